/*
 * Time, and spans of it for --trace.
 */
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct span {
    const char *name;
    uint64_t start, end, bytes;
    long thread;
};

struct lade_trace {
    pthread_mutex_t lock;
    struct lade_mem *mem;
    struct lade_vec spans;
    int rank;
};

uint64_t lade_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void lade_sleep_us(unsigned us)
{
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};

    nanosleep(&t, NULL);
}

struct lade_trace *lade_trace_new(struct lade_mem *mem, int rank, lade_err *err)
{
    struct lade_trace *trace =
        lade_alloc(mem, LADE_TAG_TEMP, sizeof(*trace), err);

    if (trace == NULL)
        return NULL;
    pthread_mutex_init(&trace->lock, NULL);
    trace->mem = mem;
    trace->rank = rank;
    lade_vec_init(&trace->spans, mem, LADE_TAG_TEMP, sizeof(struct span));
    return trace;
}

void lade_trace_free(struct lade_trace *trace)
{
    if (trace == NULL)
        return;
    lade_vec_fini(&trace->spans);
    pthread_mutex_destroy(&trace->lock);
    lade_free(trace->mem, trace);
}

void lade_trace_span(struct lade_trace *trace, const char *name,
                     uint64_t start_ns, uint64_t end_ns, uint64_t bytes)
{
    struct span span = {name, start_ns, end_ns, bytes, (long)gettid()};

    if (trace == NULL)
        return;
    pthread_mutex_lock(&trace->lock);
    lade_vec_push(&trace->spans, &span, NULL);
    pthread_mutex_unlock(&trace->lock);
}

int lade_trace_text(struct lade_trace *trace, uint64_t origin_ns, char **text,
                    size_t *length, lade_err *err)
{
    struct lade_vec chars;
    char line[256];

    lade_vec_init(&chars, trace->mem, LADE_TAG_TEMP, 1);
    for (uint64_t i = 0; i < trace->spans.count; i++) {
        const struct span *s = LADE_VEC_AT(&trace->spans, struct span, i);
        int n = snprintf(
            line, sizeof(line),
            "%s{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%ld,"
            "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"bytes\":%llu}}",
            i ? ",\n" : "", s->name, trace->rank, s->thread,
            ((double)s->start - (double)origin_ns) / 1000.0,
            (double)(s->end - s->start) / 1000.0, (unsigned long long)s->bytes);
        if (n < 0 || lade_vec_append(&chars, line, (uint64_t)n, err) == NULL) {
            lade_vec_fini(&chars);
            return LADE_E_MEMORY;
        }
    }
    *length = chars.count;
    if (lade_vec_push(&chars, NULL, err) == NULL)
        return LADE_E_MEMORY;
    *text = chars.data;
    return LADE_OK;
}
