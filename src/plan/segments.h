/*
 * Rows and routes -> segments: file ranges with the set of ranks that need
 * them, in file order; segments -> stripes.
 */
#ifndef LADE_PLAN_SEGMENTS_H
#define LADE_PLAN_SEGMENTS_H

#include "plan/reach.h"

struct lade_segment {
    uint64_t begin, end; /* file offsets */
    uint64_t needed;     /* bytes of it that somebody needs */
    uint64_t origin;     /* offset of the tensor, and */
    uint32_t unit;       /* bytes of its elements: cuts fall between elements */
    uint32_t row, shard, layer, set;
    bool direct;
};

typedef int (*lade_segment_sink)(void *ctx, const struct lade_segment *segment,
                                 lade_err *err);

/* What an island needs, counted on the way. */
struct lade_segment_sums {
    uint64_t needed, delivered;
};

/* Calls sink (may be NULL: only count) for every segment of every row. */
int lade_segments_walk(struct lade_reach *reach,
                       const struct lade_plan_options *options,
                       lade_segment_sink sink, void *ctx,
                       struct lade_segment_sums *sums, lade_err *err);

/* Joins and cuts segments to stripes (reader and round not yet set); feed with
 * lade_stripes_add as sink, end with lade_stripes_close. */
struct lade_stripes {
    struct lade_reach *reach;
    const struct lade_plan_options *options;
    struct lade_vec list; /* struct lade_stripe */
    struct lade_stripe open;
    uint32_t open_nodes;
};
int lade_stripes_add(void *stripes, const struct lade_segment *segment,
                     lade_err *err);
int lade_stripes_close(struct lade_stripes *stripes, lade_err *err);

/* Sorts by layer, chooses readers, cuts rounds; fills plan->rounds, segments,
 * segment_bytes and the traffic totals. first_stripe receives uint32_t per
 * round, plus one. */
int lade_rounds_build(struct lade_stripes *stripes, struct lade_plan *plan,
                      struct lade_vec *first_stripe, lade_err *err);

#endif
