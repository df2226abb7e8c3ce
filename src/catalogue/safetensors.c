/*
 * safetensors: 8 bytes of header length, a JSON object, the data.
 *
 * In: one open file. Out: its tensors, each with a byte range that lies in the
 * file, fits its dtype and shape, and overlaps no other; the ranges cover the
 * data without a gap. Everything is checked against the real file size before
 * anything is allocated or believed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/json.h"
#include "catalogue/catalogue.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors holds little-endian numbers; this host is not little-endian"
#endif

#define HEADER_LIMIT (UINT64_C(1) << 30)
#define NAME_LIMIT 65536u
#define POINTER_SIZE 1024u /* large-file pointers are shorter */

typedef int (*sink_fn)(void *ctx, const char *name, size_t length,
                       const struct lade_row *row, const char *dtype_name,
                       lade_err *err);

struct range {
    uint64_t begin, end;
    const char *name;
};

struct parse {
    const char *file;
    uint64_t data, file_size; /* first data byte, end of file */
    struct lade_mem *mem;
    struct lade_vec ranges; /* struct range */
    sink_fn sink;
    void *ctx;
    lade_err *err;
};

static int bad(const struct parse *p, const char *name, const char *why)
{
    return lade_err_set(p->err, LADE_E_CHECKPOINT, "%s: tensor %.200s: %s",
                        p->file, name, why);
}

/* ---- one entry ---- */

static int read_shape(const struct parse *p, const char *name,
                      const cJSON *list, struct lade_row *row)
{
    if (!cJSON_IsArray(list))
        return bad(p, name, "its shape is not a list");
    for (const cJSON *dim = list->child; dim; dim = dim->next) {
        if (row->ndim == LADE_MAX_DIMS)
            return bad(p, name, "its shape has more than 8 dimensions");
        if (!lade_json_u64(dim, &row->shape[row->ndim]))
            return bad(p, name, "its shape holds something that is no size");
        row->ndim++;
    }
    return LADE_OK;
}

static int read_range(const struct parse *p, const char *name,
                      const cJSON *list, uint64_t *begin, uint64_t *end)
{
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != 2 ||
        !lade_json_u64(list->child, begin) ||
        !lade_json_u64(list->child->next, end))
        return bad(p, name, "its data_offsets are not two whole numbers");
    if (*begin > *end)
        return lade_err_set(p->err, LADE_E_CHECKPOINT,
                            "%s: tensor %.200s: its data_offsets [%llu,%llu] "
                            "run backwards",
                            p->file, name, (unsigned long long)*begin,
                            (unsigned long long)*end);
    return LADE_OK;
}

/* Bytes by dtype and shape against bytes by offsets. */
static int check_size(const struct parse *p, const char *name,
                      const struct lade_row *row, const char *spelling)
{
    char shape[160];
    uint64_t elements, bytes;
    enum lade_dtype dtype = (enum lade_dtype)row->dtype;

    lade_shape_text(row->shape, row->ndim, shape, sizeof(shape));
    if (!lade_shape_count(row->shape, row->ndim, &elements))
        return lade_err_set(p->err, LADE_E_CHECKPOINT,
                            "%s: tensor %.200s: shape %s overflows", p->file,
                            name, shape);
    if (dtype == LADE_DTYPE_UNKNOWN)
        return LADE_OK;
    if (dtype == LADE_DTYPE_F4 && row->ndim > 0 &&
        row->shape[row->ndim - 1] % 2 != 0)
        return lade_err_set(p->err, LADE_E_CHECKPOINT,
                            "%s: tensor %.200s: F4 %s: a row ends inside a "
                            "byte",
                            p->file, name, shape);
    if (!lade_dtype_bytes(dtype, elements, &bytes) || bytes != row->length)
        return lade_err_set(
            p->err, LADE_E_CHECKPOINT,
            "%s: tensor %.200s: %s %s needs %llu bytes, its data_offsets give "
            "%llu",
            p->file, name, spelling, shape, (unsigned long long)bytes,
            (unsigned long long)row->length);
    return LADE_OK;
}

static int only_known_keys(const struct parse *p, const cJSON *entry)
{
    for (const cJSON *key = entry->child; key; key = key->next)
        if (strcmp(key->string, "dtype") != 0 &&
            strcmp(key->string, "shape") != 0 &&
            strcmp(key->string, "data_offsets") != 0)
            return lade_err_set(p->err, LADE_E_CHECKPOINT,
                                "%s: tensor %.200s: unknown key %.100s",
                                p->file, entry->string, key->string);
    return LADE_OK;
}

static int read_entry(struct parse *p, const cJSON *entry)
{
    const char *name = entry->string;
    struct lade_row row;
    struct range range = {.name = name};
    int rc = LADE_OK;

    memset(&row, 0, sizeof(row));
    if (name[0] == 0 || strlen(name) > NAME_LIMIT)
        return bad(p, name, "its name is empty or longer than 64 KiB");
    if (!cJSON_IsObject(entry))
        return bad(p, name, "its entry is not an object");
    LADE_TRY(only_known_keys(p, entry));
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(entry, "dtype");
    if (!cJSON_IsString(dtype))
        LADE_TRY(bad(p, name, "it has no dtype"));
    row.dtype = (uint16_t)lade_dtype_find(dtype->valuestring);
    LADE_TRY(read_shape(
        p, name, cJSON_GetObjectItemCaseSensitive(entry, "shape"), &row));
    LADE_TRY(read_range(p, name,
                        cJSON_GetObjectItemCaseSensitive(entry, "data_offsets"),
                        &range.begin, &range.end));
    row.length = range.end - range.begin;
    LADE_TRY(check_size(p, name, &row, dtype->valuestring));
    if (!lade_add_u64(p->data, range.begin, &row.offset))
        LADE_TRY(bad(p, name, "its data_offsets overflow"));
    if (lade_vec_push(&p->ranges, &range, p->err) == NULL)
        LADE_TRY(LADE_E_MEMORY);
    LADE_TRY(
        p->sink(p->ctx, name, strlen(name), &row, dtype->valuestring, p->err));
out:
    return rc;
}

static int read_metadata(const struct parse *p, const cJSON *metadata)
{
    if (!cJSON_IsObject(metadata))
        return lade_err_set(p->err, LADE_E_CHECKPOINT,
                            "%s: __metadata__ is not an object", p->file);
    for (const cJSON *item = metadata->child; item; item = item->next)
        if (!cJSON_IsString(item))
            return lade_err_set(p->err, LADE_E_CHECKPOINT,
                                "%s: __metadata__ %.100s is not a text",
                                p->file, item->string);
    return LADE_OK;
}

/* ---- all ranges together ---- */

static int by_begin(const void *x, const void *y)
{
    const struct range *a = x, *b = y;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static int too_short(const struct parse *p, const struct range *first,
                     uint64_t need)
{
    return lade_err_set(p->err, LADE_E_CHECKPOINT,
                        "%s: ends at %llu but the header needs %llu (tensor "
                        "%.200s); the download is incomplete",
                        p->file, (unsigned long long)p->file_size,
                        (unsigned long long)need, first->name);
}

static int check_ranges(struct parse *p)
{
    const struct range *ranges = p->ranges.data;
    uint64_t count = p->ranges.count, at = 0, need = 0;
    const struct range *cut = NULL;

    if (count > 0)
        qsort(p->ranges.data, count, sizeof(struct range), by_begin);
    for (uint64_t i = 0; i < count; i++) {
        const struct range *r = &ranges[i];
        if (r->begin < at && r->end > r->begin)
            return lade_err_set(p->err, LADE_E_CHECKPOINT,
                                "%s: tensors %.200s and %.200s overlap",
                                p->file, ranges[i - 1].name, r->name);
        if (r->begin > at)
            return lade_err_set(p->err, LADE_E_CHECKPOINT,
                                "%s: %llu bytes before tensor %.200s belong "
                                "to no tensor",
                                p->file, (unsigned long long)(r->begin - at),
                                r->name);
        at = lade_max_u64(at, r->end);
        if (cut == NULL && r->end > p->file_size - p->data)
            cut = r;
    }
    if (!lade_add_u64(p->data, at, &need))
        need = UINT64_MAX;
    if (cut != NULL)
        return too_short(p, cut, need);
    if (need < p->file_size)
        return lade_err_set(p->err, LADE_E_CHECKPOINT,
                            "%s: %llu bytes after the last tensor belong to "
                            "no tensor (the header ends the data at %llu, the "
                            "file has %llu bytes)",
                            p->file, (unsigned long long)(p->file_size - need),
                            (unsigned long long)need,
                            (unsigned long long)p->file_size);
    return LADE_OK;
}

int lade_safetensors_parse(const char *header, size_t length,
                           uint64_t file_size, const char *file,
                           struct lade_mem *mem, sink_fn sink, void *ctx,
                           lade_err *err)
{
    struct parse p = {.file = file,
                      .data = 8 + length,
                      .file_size = file_size,
                      .mem = mem,
                      .sink = sink,
                      .ctx = ctx,
                      .err = err};
    cJSON *root = NULL;
    int rc;

    lade_vec_init(&p.ranges, mem, LADE_TAG_TEMP, sizeof(struct range));
    if (file_size < p.data)
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%s: a header of %zu bytes in a file of %llu",
                              file, length, (unsigned long long)file_size));
    LADE_TRY(
        lade_json_parse(header, length, file, LADE_E_CHECKPOINT, &root, err));
    if (!cJSON_IsObject(root))
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%s: its header is not a JSON object", file));
    for (const cJSON *entry = root->child; entry; entry = entry->next)
        LADE_TRY(strcmp(entry->string, "__metadata__") == 0
                     ? read_metadata(&p, entry)
                     : read_entry(&p, entry));
    LADE_TRY(check_ranges(&p));
out:
    lade_vec_fini(&p.ranges);
    cJSON_Delete(root);
    return rc;
}

/* ---- a file ---- */

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
                err, LADE_E_IO, "%s at %llu: wanted %zu bytes, got %zu: %s",
                file, (unsigned long long)offset, size, got, strerror(errno));
        if (n == 0)
            return lade_err_set(err, LADE_E_CHECKPOINT,
                                "%s: ends at %llu while its header was read; "
                                "the file changed",
                                file, (unsigned long long)(offset + got));
        got += (size_t)n;
    }
    return LADE_OK;
}

/* A file that is the text of a large-file pointer instead of weights. */
static int refuse_pointer(int fd, uint64_t size, const char *file,
                          lade_err *err)
{
    char text[POINTER_SIZE + 1] = "";
    const char *said = NULL;

    if (size > POINTER_SIZE ||
        read_at(fd, file, text, (size_t)size, 0, err) != LADE_OK ||
        strncmp(text, "version https://git-lfs", 23) != 0)
        return err->status;
    said = strstr(text, "\nsize ");
    unsigned long long whole = said ? strtoull(said + 6, NULL, 10) : 0;
    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "%s: a large-file (Git LFS) pointer of %llu bytes, "
                        "not weights; it stands for a file of %llu bytes: "
                        "fetch it with git lfs pull",
                        file, (unsigned long long)size, whole);
}

static int scan(int fd, uint64_t size, const char *file, struct lade_mem *mem,
                sink_fn sink, void *ctx, uint64_t *header_bytes, lade_err *err)
{
    uint64_t length;
    char *header = NULL;
    int rc;

    if (size < 8)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%s: %llu bytes, shorter than any safetensors "
                            "file; the download is incomplete",
                            file, (unsigned long long)size);
    LADE_TRY(refuse_pointer(fd, size, file, err));
    LADE_TRY(read_at(fd, file, &length, sizeof(length), 0, err));
    if (length > size - 8)
        LADE_TRY(lade_err_set(
            err, LADE_E_CHECKPOINT,
            "%s: says its header has %llu bytes, but the file has %llu; not "
            "a safetensors file, or the download is incomplete",
            file, (unsigned long long)length, (unsigned long long)size));
    if (length > HEADER_LIMIT)
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%s: a header of %llu bytes; at most 1 GiB is "
                              "accepted",
                              file, (unsigned long long)length));
    header = lade_alloc(mem, LADE_TAG_TEMP, (size_t)length, err);
    if (header == NULL)
        LADE_TRY(LADE_E_MEMORY);
    LADE_TRY(read_at(fd, file, header, (size_t)length, 8, err));
    LADE_TRY(lade_safetensors_parse(header, (size_t)length, size, file, mem,
                                    sink, ctx, err));
    *header_bytes = 8 + length;
out:
    lade_free(mem, header);
    return rc;
}

const struct lade_format_ops lade_format_safetensors = {
    .name = "safetensors",
    .scan = scan,
};
