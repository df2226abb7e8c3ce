/*
 * Log lines on stderr, and the warnings that the report repeats.
 *
 *     lade 0.1.0 rank 17/64 n3 plan: 412 stripes in 9 rounds
 *     lade: warning: model.safetensors is not named by the index; not read
 *
 * debug and trace come from every rank; info only from rank 0. Warnings are
 * kept in a list (at most 1000) and printed once by rank 0 of the job.
 */
#ifndef LADE_BASE_LOG_H
#define LADE_BASE_LOG_H

#include "base/status.h"

enum lade_level {
    LADE_LOG_ERROR,
    LADE_LOG_WARN,
    LADE_LOG_INFO,
    LADE_LOG_DEBUG,
    LADE_LOG_TRACE
};

/* Process-wide: who speaks, and how loud (default: WARN, rank 0 of 1). */
void lade_log_setup(enum lade_level level, int rank, int ranks,
                    const char *node);
bool lade_log_on(enum lade_level level);
void lade_log(enum lade_level level, const char *gate, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Records a warning of this rank and, on rank 0, prints it unless quiet. The
 * same text counts once. */
void lade_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int lade_warn_count(void);
const char *lade_warn_get(int index);
void lade_warn_reset(void);

#endif
