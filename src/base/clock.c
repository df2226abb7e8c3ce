/*
 * In: beginnings and ends. Out: monotonic nanoseconds; spans as Chrome trace
 * events, one process per rank, one row per thread.
 */
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A span for every piece of a very large load would fill the memory that the
 * load itself needs. */
#define MOST_SPANS (UINT64_C(1) << 20)

struct span {
    const char *name;
    uint64_t start_ns, end_ns, bytes;
    uint64_t row; /* index in rows */
};

struct lade_trace {
    struct lade_mem *mem;
    int rank;
    pthread_mutex_t lock;
    struct lade_vec spans, rows; /* rows: pid_t of the threads seen */
    uint64_t dropped;
};

uint64_t lade_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void lade_sleep_us(unsigned us)
{
    struct timespec left = {us / 1000000, (long)(us % 1000000) * 1000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

struct lade_trace *lade_trace_new(struct lade_mem *mem, int rank, lade_err *err)
{
    struct lade_trace *trace =
        lade_alloc(mem, LADE_TAG_TEMP, sizeof(*trace), err);

    if (trace == NULL)
        return NULL;
    trace->mem = mem;
    trace->rank = rank;
    pthread_mutex_init(&trace->lock, NULL);
    lade_vec_init(&trace->spans, mem, LADE_TAG_TEMP, sizeof(struct span));
    lade_vec_init(&trace->rows, mem, LADE_TAG_TEMP, sizeof(pid_t));
    return trace;
}

void lade_trace_free(struct lade_trace *trace)
{
    if (trace == NULL)
        return;
    lade_vec_fini(&trace->spans);
    lade_vec_fini(&trace->rows);
    pthread_mutex_destroy(&trace->lock);
    lade_free(trace->mem, trace);
}

/* Row of the calling thread; with the lock held. */
static bool row_of_thread(struct lade_trace *trace, uint64_t *row)
{
    static _Thread_local pid_t self;

    if (self == 0)
        self = gettid();
    for (uint64_t i = 0; i < trace->rows.count; i++)
        if (*LADE_VEC_AT(&trace->rows, pid_t, i) == self) {
            *row = i;
            return true;
        }
    *row = trace->rows.count;
    return lade_vec_push(&trace->rows, &self, NULL) != NULL;
}

void lade_trace_span(struct lade_trace *trace, const char *name,
                     uint64_t start_ns, uint64_t end_ns, uint64_t bytes)
{
    struct span span = {name, start_ns, end_ns, bytes, 0};

    if (trace == NULL)
        return;
    pthread_mutex_lock(&trace->lock);
    if (trace->spans.count >= MOST_SPANS || !row_of_thread(trace, &span.row) ||
        lade_vec_push(&trace->spans, &span, NULL) == NULL)
        trace->dropped++;
    pthread_mutex_unlock(&trace->lock);
}

static int add(struct lade_vec *out, lade_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int add(struct lade_vec *out, lade_err *err, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    int length = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof(text))
        return lade_err_set(err, LADE_E_INTERNAL,
                            "a trace event is longer than %zu", sizeof(text));
    return lade_vec_append(out, text, (uint64_t)length, err) ? LADE_OK
                                                             : LADE_E_MEMORY;
}

/* Microseconds with nanoseconds behind the point, exact. */
static const char *microseconds(int64_t ns, char out[32])
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

    snprintf(out, 32, "%s%llu.%03llu", ns < 0 ? "-" : "",
             (unsigned long long)(size / 1000),
             (unsigned long long)(size % 1000));
    return out;
}

static int add_span(struct lade_vec *out, const struct lade_trace *trace,
                    const struct span *span, uint64_t origin_ns, lade_err *err)
{
    char at[32], took[32], bytes[64] = "";
    uint64_t end =
        span->end_ns < span->start_ns ? span->start_ns : span->end_ns;

    if (span->bytes > 0)
        snprintf(bytes, sizeof(bytes), ",\"args\":{\"bytes\":%llu}",
                 (unsigned long long)span->bytes);
    return add(out, err,
               ",\n{\"name\":\"%.64s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%llu,"
               "\"ts\":%s,\"dur\":%s%s}",
               span->name, trace->rank, (unsigned long long)span->row,
               microseconds((int64_t)(span->start_ns - origin_ns), at),
               microseconds((int64_t)(end - span->start_ns), took), bytes);
}

static int add_events(struct lade_vec *out, const struct lade_trace *trace,
                      uint64_t origin_ns, lade_err *err)
{
    int rc = add(out, err,
                 "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,"
                 "\"args\":{\"name\":\"rank %d\",\"dropped_spans\":%llu}}",
                 trace->rank, trace->rank, (unsigned long long)trace->dropped);

    for (uint64_t i = 0; i < trace->spans.count && rc == LADE_OK; i++)
        rc = add_span(out, trace, LADE_VEC_AT(&trace->spans, struct span, i),
                      origin_ns, err);
    return rc;
}

int lade_trace_text(struct lade_trace *trace, uint64_t origin_ns, char **text,
                    size_t *length, lade_err *err)
{
    struct lade_vec out;
    int rc;

    lade_vec_init(&out, trace->mem, LADE_TAG_TEMP, 1);
    pthread_mutex_lock(&trace->lock);
    rc = add_events(&out, trace, origin_ns, err);
    pthread_mutex_unlock(&trace->lock);
    if (rc == LADE_OK && lade_vec_push(&out, NULL, err) == NULL)
        rc = LADE_E_MEMORY;
    if (rc != LADE_OK) {
        lade_vec_fini(&out);
        return rc;
    }
    *text = out.data;
    *length = out.count - 1;
    return LADE_OK;
}
