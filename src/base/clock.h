/*
 * Monotonic time and spans: what took how long, for the report's phases and
 * for --trace (Chrome trace events, one row per rank and thread).
 */
#ifndef LADE_BASE_CLOCK_H
#define LADE_BASE_CLOCK_H

#include "base/mem.h"

uint64_t lade_now_ns(void);
void lade_sleep_us(unsigned us);

/* A list of finished spans, at most a million; what is beyond is counted.
 * Thread-safe. */
struct lade_trace;
struct lade_trace *lade_trace_new(struct lade_mem *mem, int rank,
                                  lade_err *err);
void lade_trace_free(struct lade_trace *trace);
/* name must be a static string of plain ASCII without quotes; trace may be NULL
 * (off). `bytes` 0 if meaningless. */
void lade_trace_span(struct lade_trace *trace, const char *name,
                     uint64_t start_ns, uint64_t end_ns, uint64_t bytes);
/* This rank's events as the inside of a JSON array ("{...},{...}"), allocated
 * from mem with tag TEMP; *length without the terminating zero. Times are
 * microseconds since origin_ns. */
int lade_trace_text(struct lade_trace *trace, uint64_t origin_ns, char **text,
                    size_t *length, lade_err *err);

#endif
