/*
 * In: streams (head and tensors of a file). Out: the file under a temporary
 * name, whole and synced.
 *
 * Threads take blocks of 8 MiB by turns, make the bytes and write them at
 * their place; files of more than one block bypass the page cache where the
 * file system allows it. What a crash leaves behind is ".NAME.tmp".
 */
#include "synth/synth_write.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "synth/synth_fill.h"

#define BLOCK (UINT64_C(8) << 20)
#define ALIGN UINT64_C(4096)
#define MAX_THREADS 64

struct crew {
    const struct lade_synth_stream *stream;
    struct lade_mem *mem;
    int fd;
    atomic_bool direct;
    atomic_uint_fast64_t next; /* block */
    atomic_int fault;          /* errno of the first failure */
};

struct hand {
    struct crew *crew;
    char *buffer;
    pthread_t thread;
    bool started;
};

/* Index of the tensor that holds byte `at` of the data. */
static uint64_t find_tensor(const struct lade_synth_stream *stream, uint64_t at)
{
    uint64_t low = 0, high = stream->count;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (stream->starts[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void block_of_tensors(const struct lade_synth_stream *stream,
                             uint64_t at, uint64_t length, char *out)
{
    const struct lade_recipe *recipe = stream->recipe;
    for (uint64_t i = find_tensor(stream, at); length > 0; i++) {
        const struct lade_recipe_tensor *t =
            lade_recipe_at(recipe, stream->order[i]);
        const uint64_t now = lade_min_u64(stream->starts[i + 1] - at, length);
        struct lade_fill fill;
        if (now == 0)
            continue;
        /* was tried for every tensor before the first write */
        if (lade_fill_init(&fill, lade_pool_get(&recipe->names, t->name),
                           t->dtype, t->elements, t->fill, stream->seed,
                           NULL) == LADE_OK)
            lade_fill_bytes(&fill, at - stream->starts[i], now, out);
        at += now;
        out += now;
        length -= now;
    }
}

void lade_synth_block(const struct lade_synth_stream *stream, uint64_t at,
                      uint64_t length, char *out)
{
    if (at < stream->head_size) {
        const uint64_t now = lade_min_u64(stream->head_size - at, length);
        memcpy(out, stream->head + at, now);
        at += now;
        out += now;
        length -= now;
    }
    if (length > 0)
        block_of_tensors(stream, at - stream->head_size, length, out);
}

static int write_whole(struct crew *crew, const char *data, uint64_t length,
                       uint64_t at)
{
    bool again = true;
    while (length > 0) {
        const ssize_t n = pwrite(crew->fd, data, length, (off_t)at);
        if (n >= 0) {
            data += n;
            at += (uint64_t)n;
            length -= (uint64_t)n;
        } else if (errno == EINVAL && again) { // O_DIRECT refused only now
            again = false;
            atomic_store(&crew->direct, false);
            fcntl(crew->fd, F_SETFL, O_WRONLY);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

static void *work(void *context)
{
    struct hand *hand = context;
    struct crew *crew = hand->crew;
    const uint64_t end =
        crew->stream->sparse ? crew->stream->head_size : crew->stream->size;
    while (atomic_load(&crew->fault) == 0) {
        const uint64_t at = atomic_fetch_add(&crew->next, 1) * BLOCK;
        if (at >= end)
            break;
        uint64_t length = lade_min_u64(BLOCK, end - at);
        lade_synth_block(crew->stream, at, length, hand->buffer);
        if (atomic_load(&crew->direct) && length % ALIGN != 0) {
            const uint64_t whole = lade_round_up(length, ALIGN);
            memset(hand->buffer + length, 0, whole - length);
            length = whole; // cut off again by ftruncate
        }
        const int fault = write_whole(crew, hand->buffer, length, at);
        int none = 0;
        if (fault != 0)
            atomic_compare_exchange_strong(&crew->fault, &none, fault);
    }
    return NULL;
}

/* All blocks of the file; the caller is one of the hands. */
static int write_blocks(struct crew *crew, unsigned threads, lade_err *err)
{
    int rc = LADE_OK;
    struct hand hands[MAX_THREADS] = {{0}};
    const uint64_t blocks = lade_ceil_div(crew->stream->size, BLOCK);
    if (crew->stream->sparse || threads == 0)
        threads = 1;
    threads = (unsigned)lade_min_u64(lade_min_u64(threads, MAX_THREADS),
                                     lade_max_u64(blocks, 1));
    for (unsigned i = 0; i < threads && rc == LADE_OK; i++) {
        hands[i].crew = crew;
        hands[i].buffer =
            lade_pages_alloc(crew->mem, LADE_TAG_TEMP, BLOCK, err);
        if (hands[i].buffer == NULL)
            rc = LADE_E_MEMORY;
    }
    for (unsigned i = 1; i < threads && rc == LADE_OK; i++)
        hands[i].started =
            pthread_create(&hands[i].thread, NULL, work, &hands[i]) == 0;
    if (rc == LADE_OK)
        work(&hands[0]);
    for (unsigned i = 0; i < threads; i++) {
        if (hands[i].started)
            pthread_join(hands[i].thread, NULL);
        if (hands[i].buffer != NULL)
            lade_pages_free(crew->mem, LADE_TAG_TEMP, hands[i].buffer, BLOCK);
    }
    return rc;
}

static int fail(const struct lade_synth_dir *dir, const char *name,
                const char *what, uint64_t size, int fault, lade_err *err)
{
    errno = fault;
    return lade_err_set(err, LADE_E_IO, "%s/%s: %s (%llu bytes): %m", dir->path,
                        name, what, (unsigned long long)size);
}

/* Opens the temporary file, without the page cache if that is worth while. */
static int open_temp(const struct lade_synth_dir *dir, const char *temp,
                     bool *direct)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    if (*direct) {
        const int fd = openat(dir->fd, temp, flags | O_DIRECT, 0666);
        if (fd >= 0 || errno != EINVAL)
            return fd;
        *direct = false;
    }
    return openat(dir->fd, temp, flags, 0666);
}

int lade_synth_put(struct lade_synth_dir *dir, const char *name,
                   const struct lade_synth_stream *stream, unsigned threads,
                   lade_err *err)
{
    int rc = LADE_OK;
    char temp[128];
    struct lade_synth_name entry;
    bool direct = !stream->sparse && stream->size > BLOCK;
    struct crew crew = {.stream = stream, .mem = dir->mem, .fd = -1};
    snprintf(entry.name, sizeof entry.name, "%s", name);
    snprintf(temp, sizeof temp, ".%s.tmp", name);
    if (lade_vec_push(&dir->written, &entry, err) == NULL)
        LADE_TRY(LADE_E_MEMORY);
    crew.fd = open_temp(dir, temp, &direct);
    if (crew.fd < 0)
        LADE_TRY(fail(dir, name, "cannot be made", stream->size, errno, err));
    atomic_init(&crew.direct, direct);
    if (!stream->sparse && stream->size > BLOCK &&
        fallocate(crew.fd, 0, 0, (off_t)stream->size) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        LADE_TRY(fail(dir, name, "no room for it", stream->size, errno, err));
    LADE_TRY(write_blocks(&crew, threads, err));
    if (atomic_load(&crew.fault) != 0)
        LADE_TRY(fail(dir, name, "cannot be written", stream->size,
                      atomic_load(&crew.fault), err));
    if (ftruncate(crew.fd, (off_t)stream->size) != 0 || fsync(crew.fd) != 0)
        LADE_TRY(
            fail(dir, name, "cannot be finished", stream->size, errno, err));
out:
    if (crew.fd >= 0 && close(crew.fd) != 0 && rc == LADE_OK)
        rc = fail(dir, name, "cannot be closed", stream->size, errno, err);
    return rc;
}
