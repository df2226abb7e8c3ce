/*
 * Gate 5: who reads which bytes, in which order, and who needs them. Pure.
 *
 * A stripe is a contiguous range of one file with one reader and the set of
 * ranks that need any of it. What a rank takes out of a stripe is not stored:
 * it follows from the rows under the stripe, their routes, and the rank's
 * coordinates (box.h). So the plan grows with the bytes, never with the ranks.
 */
#ifndef LADE_PLAN_PLAN_H
#define LADE_PLAN_PLAN_H

#include "base/checked.h"
#include "base/map.h"
#include "route/route.h"

enum lade_scope {
    LADE_SCOPE_AUTO,
    LADE_SCOPE_WORLD,
    LADE_SCOPE_NODE,
    LADE_SCOPE_RANK
};

struct lade_plan_options {
    enum lade_scope scope; /* not AUTO */
    uint64_t block;        /* longest stripe */
    uint64_t staging;      /* ring bytes per node */
    uint64_t direct_min;   /* shorter pieces go through the ring, joined with
                              neighbours */
    uint64_t gap;          /* longest unneeded run inside a stripe */
    bool stores;           /* the device has addresses (false: --device null) */
};

enum lade_stripe_kind {
    LADE_STRIPE_DIRECT, /* one rank, contiguous in one parameter, no cast: read
                           into place */
    LADE_STRIPE_SHARED, /* through the ring */
};

struct lade_stripe {
    uint64_t offset; /* in the file */
    uint32_t length;
    uint32_t shard;
    uint32_t first_row, rows; /* catalogue rows that it touches */
    uint32_t set;             /* ranks that need any of it */
    uint32_t reader;          /* world rank */
    uint32_t round;
    uint32_t needed; /* bytes needed by at least one rank of the set */
    uint32_t kind;
    uint32_t layer;
};

struct lade_plan_totals {
    uint64_t needed_bytes; /* tensor bytes that at least one rank of the world
                              needs, whatever the island */
    uint64_t read_bytes;   /* of all stripes, without header and alignment */
    uint64_t gap_bytes;
    uint64_t direct_stripes, shared_stripes;
    uint64_t direct_bytes, shared_bytes;
    uint64_t delivered_bytes; /* written into parameters, all ranks */
    uint64_t internode_bytes;
    uint64_t messages;
};

/* A plan for one sharing group ("island"): the world, one node, or one rank. */
struct lade_plan {
    struct lade_blob blob;
    struct lade_plan_options options;
    uint32_t ranks, nodes; /* of the world */
    uint32_t rounds;
    uint32_t segments; /* of the ring; a round uses segment round % segments */
    uint64_t segment_bytes; /* ring bytes per node = segments * segment_bytes */
    struct lade_plan_totals totals; /* of this island */
    struct lade_digest digest;      /* of inputs, options and stripes */
    struct lade_span stripes;       /* struct lade_stripe, in (round, order) */
    struct lade_span first_stripe;  /* uint32_t per round, plus one */
    struct lade_span sets;          /* uint64_t[words] each */
    uint32_t set_words, reserved;
    struct lade_span node_of; /* uint32_t per rank */
};

struct lade_plan_input {
    const struct lade_shards *shards;
    const struct lade_catalogue *catalogue;
    const struct lade_shell *shell;
    const struct lade_routes *routes;
    const struct lade_placement *place;
    const struct lade_layout *layout;
    const uint32_t *node_of; /* [world] */
    uint32_t nodes;
};

/* island: bitmap over the world, the ranks that share (world: all bits). */
int lade_plan_build(const struct lade_plan_input *in,
                    const struct lade_plan_options *options,
                    const uint64_t *island, struct lade_mem *mem,
                    struct lade_plan **plan, lade_err *err);

/* Bytes that a shared stripe occupies in a ring segment: the data stands at the
 * file offset's residue, so that a direct read is aligned, and a status word
 * follows it, so that a message carries both. */
#define LADE_RING_UNIT 4096u
#define LADE_RING_STATUS 8u
static inline uint64_t lade_plan_slot_bytes(const struct lade_stripe *stripe)
{
    uint64_t lead = stripe->offset % LADE_RING_UNIT;
    uint64_t end = lead + lade_round_up(stripe->length, 8) + LADE_RING_STATUS;
    return lade_round_up(end, LADE_RING_UNIT);
}

static inline const uint64_t *lade_plan_set(const struct lade_plan *plan,
                                            uint32_t set)
{
    return LADE_ITEMS(plan, sets, uint64_t) + (uint64_t)set * plan->set_words;
}

/* Receiver of a stripe on a node that is not the reader's: one of the ranks
 * there that need it. */
uint32_t lade_plan_receiver(const struct lade_plan *plan, uint32_t stripe,
                            uint32_t node);

/* Default values of the options. */
void lade_plan_defaults(struct lade_plan_options *options);

#endif
