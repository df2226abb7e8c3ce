/*
 * Reads nothing: a job is done when it is submitted and its memory stays as it
 * is. What a load costs besides storage.
 */
#include <string.h>

#include "read/read.h"

struct null_engine {
    struct lade_mem *mem;
    unsigned depth, first, count;
    uint32_t tags[];
};

static int null_open(void **ctx, const struct lade_shards *shards,
                     const struct lade_read_options *options,
                     struct lade_mem *mem, struct lade_trace *trace,
                     lade_err *err)
{
    struct null_engine *engine =
        lade_alloc(mem, LADE_TAG_TEMP,
                   sizeof(*engine) + options->depth * sizeof(uint32_t), err);

    (void)shards, (void)trace;
    if (engine == NULL)
        return LADE_E_MEMORY;
    engine->mem = mem;
    engine->depth = options->depth;
    *ctx = engine;
    return LADE_OK;
}

static bool null_submit(void *ctx, const struct lade_read_job *job)
{
    struct null_engine *engine = ctx;

    if (engine->count == engine->depth)
        return false;
    engine->tags[(engine->first + engine->count++) % engine->depth] = job->tag;
    return true;
}

static unsigned null_reap(void *ctx, struct lade_read_done *done, unsigned max)
{
    struct null_engine *engine = ctx;
    unsigned count = 0;

    for (; engine->count > 0 && count < max; engine->count--) {
        done[count++] =
            (struct lade_read_done){.tag = engine->tags[engine->first]};
        engine->first = (engine->first + 1) % engine->depth;
    }
    return count;
}

static void null_discard(void *ctx)
{
    (void)ctx; /* a submitted job is done already */
}

static void null_wait(void *ctx, unsigned us)
{
    (void)ctx, (void)us; /* nothing is ever in flight */
}

static void null_counts(void *ctx, struct lade_read_counts *counts)
{
    (void)ctx;
    memset(counts, 0, sizeof(*counts));
}

static void null_close(void *ctx)
{
    struct null_engine *engine = ctx;

    lade_free(engine->mem, engine);
}

const struct lade_read_ops lade_read_null = {
    .name = "null",
    .version = LADE_READ_VERSION,
    .open = null_open,
    .submit = null_submit,
    .reap = null_reap,
    .discard = null_discard,
    .wait = null_wait,
    .counts = null_counts,
    .close = null_close,
};
