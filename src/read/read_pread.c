/*
 * A pool of threads that pread. In: jobs (file range, target). Out: their
 * completions, in the order in which they finish.
 *
 * With direct I/O the aligned middle of a job whose target is congruent to its
 * offset goes straight to the target; ends, and incongruent jobs, go through
 * the thread's aligned bounce buffer and are counted as copied. Only the job's
 * own bytes of the target are ever written.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "read/read.h"

#define PIECE (UINT64_C(16) << 20) /* one pread at most */
#define BOUNCE LADE_READ_BOUNCE
#define UNIT 4096u /* alignment of direct I/O where the kernel does not say */

struct handle {
    int fd, direct_fd; /* -1: not open */
    bool refused;      /* no direct I/O here */
    uint32_t unit;     /* alignment of direct I/O */
};

/* A lock of its own: an open() that takes long must hold neither the caller,
 * who also answers other ranks, nor threads that read other files. */
struct file {
    pthread_mutex_t lock;
    struct handle handle;
};

struct engine {
    struct lade_mem *mem;
    struct lade_trace *trace;
    const struct lade_shards *shards;
    struct lade_read_options options;
    pthread_mutex_t lock;
    pthread_cond_t work, finished;
    struct lade_read_job *queue; /* [depth] */
    struct lade_read_done *done; /* [depth] */
    unsigned queue_first, queued, done_first, done_count, flying;
    struct file *files;     /* [shards] */
    unsigned char *bounces; /* [threads][BOUNCE]; NULL without direct I/O */
    unsigned working;       /* threads that have taken their part of it */
    struct lade_read_counts counts;
    pthread_t *threads;
    unsigned started;
    bool stop;
};

/* One thread's view while it works on a job. */
struct worker {
    struct engine *engine;
    unsigned char *bounce;
    struct lade_read_counts counts;
    struct lade_read_done result;
};

static const struct lade_shard *shard_of(const struct engine *engine,
                                         uint32_t shard)
{
    return &LADE_ITEMS(engine->shards, shards, struct lade_shard)[shard];
}

/* ---- files ---- */

static uint32_t direct_unit(int fd)
{
#ifdef STATX_DIOALIGN
    struct statx info;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 &&
        (info.stx_mask & STATX_DIOALIGN) && info.stx_dio_offset_align > 0) {
        uint32_t unit = info.stx_dio_offset_align;
        return unit > info.stx_dio_mem_align ? unit : info.stx_dio_mem_align;
    }
#else
    (void)fd;
#endif
    return UNIT;
}

static int open_file(struct engine *engine, uint32_t shard, int flags)
{
    char path[4096];
    lade_err err = LADE_ERR_INIT;

    if (lade_shard_path(engine->shards, shard, path, sizeof(path), &err) !=
        LADE_OK) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC | flags);
}

static void open_direct(struct worker *w, uint32_t shard, struct handle *handle)
{
    handle->unit = direct_unit(handle->fd);
    if (handle->unit <= BOUNCE)
        handle->direct_fd = open_file(w->engine, shard, O_DIRECT);
    handle->refused = handle->direct_fd < 0;
    w->counts.fallbacks += handle->refused;
    w->counts.opens += !handle->refused;
}

/* Opens what is needed, once for all threads. Returns errno or 0. */
static int get_file(struct worker *w, uint32_t shard, struct handle *handle)
{
    struct file *file = &w->engine->files[shard];
    struct handle *known = &file->handle;
    int error = 0;

    pthread_mutex_lock(&file->lock);
    if (known->fd < 0) {
        known->fd = open_file(w->engine, shard, 0);
        error = known->fd < 0 ? errno : 0;
        w->counts.opens += error == 0;
    }
    if (error == 0 && w->engine->options.direct && known->direct_fd < 0 &&
        !known->refused)
        open_direct(w, shard, known);
    *handle = *known;
    pthread_mutex_unlock(&file->lock);
    return error;
}

static void refuse_direct(struct worker *w, uint32_t shard)
{
    struct file *file = &w->engine->files[shard];

    pthread_mutex_lock(&file->lock);
    w->counts.fallbacks += !file->handle.refused;
    file->handle.refused = true;
    pthread_mutex_unlock(&file->lock);
}

/* ---- one job ---- */

static int failed(struct worker *w, int status, int error, uint64_t offset,
                  uint64_t got)
{
    w->result.status = status;
    w->result.system_errno = error;
    w->result.offset = offset;
    w->result.got = got;
    return status;
}

/* pread until `need` of the `size` bytes are there; more may come. */
static int read_range(struct worker *w, int fd, void *to, uint64_t size,
                      uint64_t need, uint64_t offset)
{
    uint64_t got = 0;

    while (got < need) {
        ssize_t n = pread(fd, (char *)to + got, (size_t)(size - got),
                          (off_t)(offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        w->counts.requests++;
        if (n < 0)
            return failed(w, LADE_E_IO, errno, offset + got, got);
        if (n == 0)
            return failed(w, LADE_E_CHECKPOINT, 0, offset + got, got);
        got += (uint64_t)n;
    }
    return LADE_OK;
}

static int read_buffered(struct worker *w, int fd, uint64_t offset,
                         uint64_t length, char *to)
{
    int rc = LADE_OK;

    while (rc == LADE_OK && length > 0) {
        uint64_t piece = lade_min_u64(length, PIECE);
        w->counts.bytes += piece;
        rc = read_range(w, fd, to, piece, piece, offset);
        offset += piece;
        to += piece;
        length -= piece;
    }
    return rc;
}

/* Whole blocks around [offset, offset + length) through the bounce buffer. */
static int read_bounced(struct worker *w, const struct handle *file,
                        uint64_t file_size, uint64_t offset, uint64_t length,
                        char *to)
{
    int rc = LADE_OK;

    while (rc == LADE_OK && length > 0) {
        uint64_t start = offset - offset % file->unit;
        uint64_t size =
            lade_min_u64(lade_round_up(offset + length - start, file->unit),
                         BOUNCE - BOUNCE % file->unit);
        uint64_t use = lade_min_u64(length, start + size - offset);
        rc = read_range(w, file->direct_fd, w->bounce, size,
                        offset - start + use, start);
        if (rc != LADE_OK)
            break;
        uint64_t asked = lade_min_u64(size, file_size - start);
        w->counts.bytes += asked;
        w->counts.align_bytes += asked > use ? asked - use : 0;
        w->counts.copied_bytes += use;
        memcpy(to, w->bounce + (offset - start), use);
        offset += use;
        to += use;
        length -= use;
    }
    return rc;
}

static int read_direct(struct worker *w, const struct handle *file,
                       uint64_t file_size, const struct lade_read_job *job)
{
    uint64_t unit = file->unit, offset = job->offset, length = job->length;
    char *to = job->to;
    uint64_t head = lade_round_up(offset, unit) - offset;
    int rc = LADE_OK;

    if (((uintptr_t)to + head) % unit != 0 || length < head + unit)
        return read_bounced(w, file, file_size, offset, length, to);
    if (head > 0)
        rc = read_bounced(w, file, file_size, offset, head, to);
    offset += head;
    to += head;
    length -= head;
    for (uint64_t left = length - length % unit; rc == LADE_OK && left > 0;) {
        uint64_t piece = lade_min_u64(left, PIECE);
        w->counts.bytes += piece;
        rc = read_range(w, file->direct_fd, to, piece, piece, offset);
        offset += piece;
        to += piece;
        left -= piece;
    }
    if (rc == LADE_OK && length % unit > 0)
        rc = read_bounced(w, file, file_size, offset, length % unit, to);
    return rc;
}

static void run_job(struct worker *w, const struct lade_read_job *job)
{
    struct engine *engine = w->engine;
    uint64_t size = shard_of(engine, job->shard)->size;
    struct handle file;
    int error = get_file(w, job->shard, &file);

    w->result = (struct lade_read_done){.tag = job->tag};
    if (error != 0) {
        failed(w, LADE_E_IO, error, job->offset, 0);
        return;
    }
    if (engine->options.direct && !file.refused) {
        if (read_direct(w, &file, size, job) != LADE_E_IO ||
            w->result.system_errno != EINVAL)
            return;
        refuse_direct(w, job->shard); /* this file system says no */
        w->result = (struct lade_read_done){.tag = job->tag};
    }
    read_buffered(w, file.fd, job->offset, job->length, job->to);
}

/* ---- the pool ---- */

static void add_counts(struct lade_read_counts *to,
                       const struct lade_read_counts *from)
{
    to->bytes += from->bytes;
    to->align_bytes += from->align_bytes;
    to->copied_bytes += from->copied_bytes;
    to->requests += from->requests;
    to->opens += from->opens;
    to->fallbacks += from->fallbacks;
    to->busy_ns += from->busy_ns;
}

/* Takes a job; false when the engine stops. */
static bool next_job(struct engine *engine, struct lade_read_job *job)
{
    pthread_mutex_lock(&engine->lock);
    while (engine->queued == 0 && !engine->stop)
        pthread_cond_wait(&engine->work, &engine->lock);
    bool found = engine->queued > 0;
    if (found) {
        *job = engine->queue[engine->queue_first];
        engine->queue_first = (engine->queue_first + 1) % engine->options.depth;
        engine->queued--;
    }
    pthread_mutex_unlock(&engine->lock);
    return found;
}

static void *work(void *arg)
{
    struct engine *engine = arg;
    struct worker w = {.engine = engine};
    struct lade_read_job job;

    pthread_mutex_lock(&engine->lock);
    if (engine->bounces != NULL)
        w.bounce = engine->bounces + engine->working++ * BOUNCE;
    pthread_mutex_unlock(&engine->lock);
    while (next_job(engine, &job)) {
        uint64_t start = lade_now_ns();
        w.counts = (struct lade_read_counts){0};
        run_job(&w, &job);
        uint64_t end = lade_now_ns();
        w.counts.busy_ns = end - start;
        lade_trace_span(engine->trace, "read", start, end, job.length);
        pthread_mutex_lock(&engine->lock);
        add_counts(&engine->counts, &w.counts);
        engine->done[(engine->done_first + engine->done_count++) %
                     engine->options.depth] = w.result;
        pthread_cond_signal(&engine->finished);
        pthread_mutex_unlock(&engine->lock);
    }
    return NULL;
}

static void free_engine(struct engine *engine)
{
    struct lade_mem *mem = engine->mem;

    lade_pages_free(mem, LADE_TAG_STAGING, engine->bounces,
                    engine->options.threads * BOUNCE);
    lade_free(mem, engine->queue);
    lade_free(mem, engine->done);
    lade_free(mem, engine->files);
    lade_free(mem, engine->threads);
    lade_free(mem, engine);
}

static void pread_close(void *ctx)
{
    struct engine *engine = ctx;

    pthread_mutex_lock(&engine->lock);
    engine->stop = true;
    pthread_cond_broadcast(&engine->work);
    pthread_mutex_unlock(&engine->lock);
    for (unsigned i = 0; i < engine->started; i++)
        pthread_join(engine->threads[i], NULL);
    for (uint64_t i = 0; i < engine->shards->shards.count; i++) {
        struct file *file = &engine->files[i];
        if (file->handle.fd >= 0)
            close(file->handle.fd);
        if (file->handle.direct_fd >= 0)
            close(file->handle.direct_fd);
        pthread_mutex_destroy(&file->lock);
    }
    pthread_cond_destroy(&engine->work);
    pthread_cond_destroy(&engine->finished);
    pthread_mutex_destroy(&engine->lock);
    free_engine(engine);
}

static int start(struct engine *engine, lade_err *err)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->work, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&engine->finished, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (uint64_t i = 0; i < engine->shards->shards.count; i++) {
        engine->files[i].handle = (struct handle){.fd = -1, .direct_fd = -1};
        pthread_mutex_init(&engine->files[i].lock, NULL);
    }
    for (; engine->started < engine->options.threads; engine->started++) {
        int error = pthread_create(&engine->threads[engine->started], NULL,
                                   work, engine);
        if (error != 0 && engine->started == 0)
            return lade_err_set(err, LADE_E_MEMORY,
                                "cannot start a reading thread: %s",
                                strerror(error));
        if (error != 0)
            break; /* fewer threads read as well */
    }
    return LADE_OK;
}

static int pread_open(void **ctx, const struct lade_shards *shards,
                      const struct lade_read_options *options,
                      struct lade_mem *mem, struct lade_trace *trace,
                      lade_err *err)
{
    struct engine *engine =
        lade_alloc(mem, LADE_TAG_TEMP, sizeof(*engine), err);

    if (engine == NULL)
        return LADE_E_MEMORY;
    engine->mem = mem;
    engine->trace = trace;
    engine->shards = shards;
    engine->options = *options;
    engine->queue = lade_alloc_array(mem, LADE_TAG_TEMP, options->depth,
                                     sizeof(*engine->queue), err);
    engine->done = lade_alloc_array(mem, LADE_TAG_TEMP, options->depth,
                                    sizeof(*engine->done), err);
    engine->files = lade_alloc_array(mem, LADE_TAG_TEMP, shards->shards.count,
                                     sizeof(*engine->files), err);
    engine->threads = lade_alloc_array(mem, LADE_TAG_TEMP, options->threads,
                                       sizeof(*engine->threads), err);
    if (options->direct)
        engine->bounces = lade_pages_alloc(mem, LADE_TAG_STAGING,
                                           options->threads * BOUNCE, err);
    if (!engine->queue || !engine->done || !engine->files || !engine->threads ||
        (options->direct && !engine->bounces)) {
        free_engine(engine);
        return LADE_E_MEMORY;
    }
    int rc = start(engine, err);
    if (rc != LADE_OK)
        pread_close(engine);
    else
        *ctx = engine;
    return rc;
}

static bool pread_submit(void *ctx, const struct lade_read_job *job)
{
    struct engine *engine = ctx;

    pthread_mutex_lock(&engine->lock);
    bool room = engine->flying < engine->options.depth;
    if (room) {
        engine->queue[(engine->queue_first + engine->queued++) %
                      engine->options.depth] = *job;
        engine->flying++;
        pthread_cond_signal(&engine->work);
    }
    pthread_mutex_unlock(&engine->lock);
    return room;
}

static unsigned pread_reap(void *ctx, struct lade_read_done *done, unsigned max)
{
    struct engine *engine = ctx;
    unsigned count = 0;

    pthread_mutex_lock(&engine->lock);
    for (; engine->done_count > 0 && count < max; engine->done_count--) {
        done[count++] = engine->done[engine->done_first];
        engine->done_first = (engine->done_first + 1) % engine->options.depth;
        engine->flying--;
    }
    pthread_mutex_unlock(&engine->lock);
    return count;
}

static void pread_discard(void *ctx)
{
    struct engine *engine = ctx;

    pthread_mutex_lock(&engine->lock);
    for (; engine->queued > 0; engine->queued--) {
        const struct lade_read_job *job = &engine->queue[engine->queue_first];
        engine->done[(engine->done_first + engine->done_count++) %
                     engine->options.depth] = (struct lade_read_done){
            .tag = job->tag, .status = LADE_E_INTERRUPT, .offset = job->offset};
        engine->queue_first = (engine->queue_first + 1) % engine->options.depth;
    }
    pthread_mutex_unlock(&engine->lock);
}

static void pread_wait(void *ctx, unsigned us)
{
    struct engine *engine = ctx;
    uint64_t until = lade_now_ns() + (uint64_t)us * 1000;
    struct timespec t = {(time_t)(until / 1000000000u),
                         (long)(until % 1000000000u)};

    pthread_mutex_lock(&engine->lock);
    if (engine->done_count == 0)
        pthread_cond_timedwait(&engine->finished, &engine->lock, &t);
    pthread_mutex_unlock(&engine->lock);
}

static void pread_counts(void *ctx, struct lade_read_counts *counts)
{
    struct engine *engine = ctx;

    pthread_mutex_lock(&engine->lock);
    *counts = engine->counts;
    pthread_mutex_unlock(&engine->lock);
}

const struct lade_read_ops lade_read_pread = {
    .name = "pread",
    .version = LADE_READ_VERSION,
    .open = pread_open,
    .submit = pread_submit,
    .reap = pread_reap,
    .discard = pread_discard,
    .wait = pread_wait,
    .counts = pread_counts,
    .close = pread_close,
};
