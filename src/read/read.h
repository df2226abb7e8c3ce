/*
 * Engines that fill buffers from files. pread: a pool of threads, the base that
 * works everywhere. null: completes at once and reads nothing.
 *
 * One engine per rank; its threads never touch MPI. Errors come back with the
 * completion, never as a stopped engine.
 */
#ifndef LADE_READ_READ_H
#define LADE_READ_READ_H

#include "base/clock.h"
#include "locate/locate.h"

#define LADE_READ_VERSION 1

/* Staging memory of each thread when `direct` is set. */
#define LADE_READ_BOUNCE (UINT64_C(1) << 20)

struct lade_read_options {
    unsigned threads; /* of this rank, at least 1 */
    unsigned depth;   /* requests in flight, at least 1 */
    bool direct; /* try O_DIRECT; a file system that refuses falls back, counted
                  */
};

/* One read: `length` bytes at `offset` of shard `shard` to `to`. With direct,
 * what is congruent (address and offset modulo the device's alignment) goes
 * straight there; unaligned ends and incongruent targets go through the
 * thread's bounce buffer and are counted as copied. */
struct lade_read_job {
    uint64_t offset, length;
    void *to;
    uint32_t shard;
    uint32_t tag; /* the caller's */
};

struct lade_read_done {
    uint32_t tag;
    int status; /* LADE_OK, LADE_E_IO, LADE_E_CHECKPOINT (file shorter than when
                   located), LADE_E_INTERRUPT (discarded) */
    int system_errno;
    uint64_t offset; /* where it failed */
    uint64_t got;
};

struct lade_read_counts {
    uint64_t bytes;        /* asked of files, alignment included */
    uint64_t align_bytes;  /* of those, only for alignment */
    uint64_t copied_bytes; /* through the bounce buffer */
    uint64_t requests, opens;
    uint64_t busy_ns;   /* summed over threads */
    uint64_t fallbacks; /* files that refused O_DIRECT */
};

struct lade_read_ops {
    const char *name;
    unsigned version;
    int (*open)(void **ctx, const struct lade_shards *shards,
                const struct lade_read_options *options, struct lade_mem *mem,
                struct lade_trace *trace, lade_err *err);
    /* false: the queue is full (depth), ask again after reap */
    bool (*submit)(void *ctx, const struct lade_read_job *job);
    /* copies up to max finished jobs; returns how many; never blocks */
    unsigned (*reap)(void *ctx, struct lade_read_done *done, unsigned max);
    /* gives up the jobs that no thread has begun: they finish at once with
     * LADE_E_INTERRUPT */
    void (*discard)(void *ctx);
    /* waits until something finished or us passed */
    void (*wait)(void *ctx, unsigned us);
    void (*counts)(void *ctx, struct lade_read_counts *counts);
    void (*close)(void *ctx); /* waits for what is in flight */
};
extern const struct lade_read_ops lade_read_pread, lade_read_null;

/* "auto", "pread", "null". */
int lade_read_choose(const char *name, const struct lade_read_ops **ops,
                     const char **reason, lade_err *err);

struct lade_read_choice {
    bool direct;
    const char *reason; /* static text */
    uint64_t opens;     /* files opened to find out */
};

/* Should reads of these files bypass the page cache? auto: yes if the file
 * system is local, offers direct I/O (statx), and a sample of the pages is not
 * in the cache already. `wish` is "auto", "on" or "off". */
int lade_read_direct_wanted(const struct lade_shards *shards, const char *wish,
                            struct lade_read_choice *choice, lade_err *err);

/* Turns a failed completion into the error line (file, offset, tensor is added
 * by the caller). */
void lade_read_error(const struct lade_shards *shards,
                     const struct lade_read_job *job,
                     const struct lade_read_done *done, const char *tensor,
                     lade_err *err);

#endif
