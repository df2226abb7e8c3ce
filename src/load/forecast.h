/*
 * What a plan will do and need, before anything is allocated. Pure, but for the
 * session that memory is asked about.
 */
#ifndef LADE_LOAD_FORECAST_H
#define LADE_LOAD_FORECAST_H

#include "load/session.h"

/* Adds to ranks[r].expected, share.read.bytes, sent and received bytes of every
 * rank of the plan's world. */
int lade_forecast_traffic(const struct lade_plan *plan, struct lade_mem *mem,
                          uint64_t shards, struct lade_rank_stats *ranks,
                          lade_err *err);
/* The sums over the ranks. */
int lade_forecast_sum(const struct lade_plan *plan, struct lade_mem *mem,
                      uint64_t shards, struct lade_traffic *sum, lade_err *err);
/* What this rank's counts would have been, had the reads happened: a null
 * device and a null reader move headers only. */
int lade_forecast_counts(struct lade_session *s, lade_err *err);
/* Memory by tag of rank r in a simulated world; sets node, parameters. */
int lade_forecast_memory(struct lade_session *s, const struct lade_plan *plan,
                         uint32_t r, struct lade_rank_stats *stats,
                         lade_err *err);

#endif
