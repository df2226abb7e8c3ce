/*
 * What one rank has to tell at the end of a load. Fixed size, gathered to
 * rank 0 as bytes; rank 0 alone makes the report of it.
 */
#ifndef LADE_CHECK_STATS_H
#define LADE_CHECK_STATS_H

#include "check/copies.h"
#include "share/share.h"

enum lade_phase {
    LADE_PHASE_LOCATE,
    LADE_PHASE_CATALOGUE,
    LADE_PHASE_MODEL,
    LADE_PHASE_ROUTE,
    LADE_PHASE_PLAN,
    LADE_PHASE_READ,  /* a read was in flight; overlaps with share */
    LADE_PHASE_SHARE, /* a message or a copy was in flight */
    LADE_PHASE_POST,
    LADE_PHASE_CHECK,
    LADE_PHASE_TOTAL,
    LADE_PHASES
};
const char *lade_phase_name(enum lade_phase phase);

/* What a plan will do, computed before it is done: of one rank, or sums. */
struct lade_traffic {
    uint64_t read_bytes, requests, opens;
    uint64_t sent_bytes, received_bytes;
};

struct lade_rank_stats {
    char node[64];
    uint32_t node_index;
    uint32_t heads; /* islands that this rank stands for in the fields below */
    double phase_s[LADE_PHASES];

    uint64_t parameters, parameter_bytes;
    uint64_t peak[LADE_TAGS], peak_total;
    uint64_t forecast[LADE_TAGS];
    uint64_t process_bytes;
    struct lade_share_counts share;
    uint64_t padding, missing;

    /* of the islands: the world's by rank 0, a node's by its first rank, a
     * rank's by itself; zero elsewhere */
    struct lade_plan_totals plan;
    struct lade_traffic expected;
    uint64_t rounds;
    struct lade_digest digest;
};

#endif
