/*
 * safetensors: 8 bytes of header length, a JSON object, the data.
 *
 * In: one open file. Out: the tensors of its header. Its length is compared
 * with the size of the file before anything is allocated for it, and it is read
 * in one go.
 *
 * Mirrors vLLM: weight_utils.py, safetensors_weights_iterator.
 */
#include "catalogue/catalogue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "safetensors holds little-endian numbers, and so must the host");

#define HEADER_LIMIT (UINT64_C(1) << 30)
#define POINTER_LIMIT 1024u /* large-file pointers are shorter */

static int read_at(int fd, const char *file, void *to, size_t size,
                   uint64_t offset, lade_err *err)
{
    for (size_t got = 0; got < size;) {
        ssize_t n =
            pread(fd, (char *)to + got, size - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return lade_err_set(
                err, LADE_E_IO, "%.200s at %llu: wanted %zu bytes, got %zu: %s",
                file, (unsigned long long)offset, size, got, strerror(errno));
        if (n == 0)
            return lade_err_set(
                err, LADE_E_CHECKPOINT,
                "%.200s: ends at %llu while its header was read; "
                "the file changed",
                file, (unsigned long long)(offset + got));
        got += (size_t)n;
    }
    return LADE_OK;
}

/* A file whose first 8 bytes are "version ": the text of a large-file pointer
 * instead of weights, or nothing we know. */
static int refuse_pointer(int fd, uint64_t size, const char *file,
                          lade_err *err)
{
    char text[POINTER_LIMIT + 1] = "";
    uint64_t some = lade_min_u64(size, POINTER_LIMIT);
    int rc = read_at(fd, file, text, (size_t)some, 0, err);

    if (rc != LADE_OK || strncmp(text, "version https://git-lfs", 23) != 0)
        return rc;
    const char *said = strstr(text, "\nsize ");
    unsigned long long whole = said ? strtoull(said + 6, NULL, 10) : 0;
    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "%.200s: a large-file (Git LFS) pointer of %llu bytes, "
                        "not weights; it stands for a file of %llu bytes: "
                        "fetch that with git lfs pull",
                        file, (unsigned long long)size, whole);
}

static int check_length(uint64_t length, uint64_t size, const char *file,
                        lade_err *err)
{
    if (length > size - 8)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%.200s: its first 8 bytes promise a header of "
                            "%llu bytes, but the file has %llu: not "
                            "safetensors, or the download is incomplete",
                            file, (unsigned long long)length,
                            (unsigned long long)size);
    if (length > HEADER_LIMIT)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%.200s: a header of %llu bytes; at most %llu are "
                            "accepted",
                            file, (unsigned long long)length,
                            (unsigned long long)HEADER_LIMIT);
    return LADE_OK;
}

/* `size` is what the gate before saw: the plan is made for that file. */
static int check_same(int fd, uint64_t size, const char *file, lade_err *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return lade_err_set(err, LADE_E_IO, "%.200s: %s", file,
                            strerror(errno));
    if ((uint64_t)st.st_size != size)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%.200s: has %llu bytes, had %llu a moment ago; it "
                            "changes while it is loaded",
                            file, (unsigned long long)st.st_size,
                            (unsigned long long)size);
    if (size < 8)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%.200s: %s; the download is incomplete", file,
                            size ? "shorter than the 8 bytes of a header length"
                                 : "an empty file (0 bytes)");
    return LADE_OK;
}

static int scan(int fd, uint64_t size, const char *file, struct lade_mem *mem,
                const struct lade_row_sink *sink, uint64_t *header_bytes,
                lade_err *err)
{
    uint64_t length;
    char *header = NULL;
    int rc;

    LADE_TRY(check_same(fd, size, file, err));
    LADE_TRY(read_at(fd, file, &length, sizeof(length), 0, err));
    if (memcmp(&length, "version ", sizeof(length)) == 0)
        LADE_TRY(refuse_pointer(fd, size, file, err));
    LADE_TRY(check_length(length, size, file, err));
    header = lade_alloc(mem, LADE_TAG_TEMP, (size_t)length, err);
    if (header == NULL)
        LADE_TRY(LADE_E_MEMORY);
    LADE_TRY(read_at(fd, file, header, (size_t)length, 8, err));
    LADE_TRY(lade_safetensors_parse(header, (size_t)length, size, file, mem,
                                    sink, err));
    *header_bytes = 8 + length;
out:
    lade_free(mem, header);
    return rc;
}

const struct lade_format_ops lade_format_safetensors = {
    .name = "safetensors",
    .scan = scan,
};
