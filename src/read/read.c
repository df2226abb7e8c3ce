/*
 * Which engine, and whether to bypass the page cache; the words of a failed
 * read.
 */
#include "read/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/host.h"

#define SAMPLES 16u

int lade_read_choose(const char *name, const struct lade_read_ops **ops,
                     const char **reason, lade_err *err)
{
    if (strcmp(name, "auto") == 0 || strcmp(name, "pread") == 0) {
        *ops = &lade_read_pread;
        *reason = name[0] == 'a' ? "works on every file system" : "asked for";
        return LADE_OK;
    }
    if (strcmp(name, "null") == 0) {
        *ops = &lade_read_null;
        *reason = "asked for: nothing is read";
        return LADE_OK;
    }
    return lade_err_set(err, LADE_E_USAGE,
                        "read engine %s is not in this version (auto, pread, "
                        "null)",
                        name);
}

static bool offers_direct(int fd)
{
#ifdef STATX_DIOALIGN
    struct statx info;

    return statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 &&
           (info.stx_mask & STATX_DIOALIGN) && info.stx_dio_offset_align > 0;
#else
    (void)fd;
    return false;
#endif
}

/* Is the byte in the page cache? A read that would have to wait says EAGAIN;
 * any other answer is no reason to bypass the cache. */
static bool is_cached(int fd, uint64_t offset)
{
    char byte;
    struct iovec to = {&byte, 1};

    return preadv2(fd, &to, 1, (off_t)offset, RWF_NOWAIT) >= 0 ||
           errno != EAGAIN;
}

/* Looks at places spread over all files. Returns how many are cached, of
 * *looked; -1 if a file does not offer direct I/O. Counts what it opens. */
static int sample(const struct lade_shards *shards, unsigned *looked,
                  uint64_t *opens)
{
    uint64_t count = shards->shards.count;
    uint64_t step = count > SAMPLES ? count / SAMPLES : 1;
    unsigned each = count < SAMPLES ? (unsigned)(SAMPLES / count) : 1;
    int cached = 0;
    char path[4096];

    *looked = 0;
    for (uint64_t i = 0; i < count; i += step) {
        uint64_t size = LADE_ITEMS(shards, shards, struct lade_shard)[i].size;
        if (lade_shard_path(shards, (uint32_t)i, path, sizeof(path), NULL) !=
            LADE_OK)
            continue;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue; /* the read itself says why */
        ++*opens;
        if (!offers_direct(fd)) {
            close(fd);
            return -1;
        }
        for (unsigned k = 1; k <= each; k++, ++*looked)
            cached += is_cached(fd, size / (each + 1) * k);
        close(fd);
    }
    return cached;
}

int lade_read_direct_wanted(const struct lade_shards *shards, const char *wish,
                            struct lade_read_choice *choice, lade_err *err)
{
    const char *type = LADE_STRING(shards, pool, shards->filesystem);
    unsigned looked;

    *choice = (struct lade_read_choice){.direct = strcmp(wish, "on") == 0,
                                        .reason = "asked for"};
    if (choice->direct || strcmp(wish, "off") == 0)
        return LADE_OK;
    if (strcmp(wish, "auto") != 0)
        return lade_err_set(err, LADE_E_USAGE,
                            "--direct %s: not one of auto, on, off", wish);
    if (shards->shards.count == 0) {
        choice->reason = "there is nothing to read";
    } else if (lade_host_is_network(type)) {
        choice->reason = "the file system is a network one";
    } else {
        int cached = sample(shards, &looked, &choice->opens);
        choice->direct = cached >= 0 && (unsigned)cached * 2 < looked;
        choice->reason =
            cached < 0       ? "the file system does not offer direct I/O"
            : choice->direct ? "local files that are not in the page cache"
                             : "the files are in the page cache";
    }
    return LADE_OK;
}

void lade_read_error(const struct lade_shards *shards,
                     const struct lade_read_job *job,
                     const struct lade_read_done *done, const char *tensor,
                     lade_err *err)
{
    const struct lade_shard *shard =
        &LADE_ITEMS(shards, shards, struct lade_shard)[job->shard];
    const char *name = LADE_STRING(shards, pool, shard->name);

    if (done->status == LADE_E_CHECKPOINT)
        lade_err_set(err, done->status,
                     "%s: ends at %llu, but had %llu bytes when the load "
                     "began (tensor %s); the file changed",
                     name, (unsigned long long)done->offset,
                     (unsigned long long)shard->size, tensor);
    else
        lade_err_set(err, done->status,
                     "%s at %llu: wanted %llu bytes, got %llu: %s (tensor %s)",
                     name, (unsigned long long)job->offset,
                     (unsigned long long)job->length,
                     (unsigned long long)done->got,
                     strerror(done->system_errno), tensor);
}
