/*
 * Who needs a piece: sets of ranks of one island, for every axis and expert.
 * Computed once; a lookup is two array accesses.
 */
#ifndef LADE_PLAN_REACH_H
#define LADE_PLAN_REACH_H

#include "plan/plan.h"

#define LADE_NOBODY 0u /* index of the empty set */

struct lade_reach_axis {
    uint32_t axis, copies, pieces;
    uint32_t *sets; /* [pieces] */
};

struct lade_reach {
    const struct lade_plan_input *in;
    const uint64_t *island;
    struct lade_arena arena;
    struct lade_sets sets;  /* of ranks */
    struct lade_sets nodes; /* of nodes */
    struct lade_vec
        node_set_of; /* uint32_t per rank set, UINT32_MAX: not yet */
    struct lade_reach_axis axes[8];
    int axis_count;
    uint32_t *experts; /* [map_layers][logical] */
    uint64_t *scratch; /* one rank set */
    struct {
        uint32_t a, b, both;
    } unions[256]; /* the unions of late: the same few come again and again */
};

int lade_reach_init(struct lade_reach *reach, const struct lade_plan_input *in,
                    const uint64_t *island, struct lade_mem *mem,
                    lade_err *err);
void lade_reach_fini(struct lade_reach *reach);

/* Pieces of a part's axis. */
uint32_t lade_reach_pieces(const struct lade_reach *reach,
                           const struct lade_shell_part *part);
/* Ranks that need `piece` of `part` for `expert`. */
int lade_reach_set(struct lade_reach *reach, const struct lade_shell_part *part,
                   uint32_t expert, uint32_t piece, uint32_t *set,
                   lade_err *err);
int lade_reach_union(struct lade_reach *reach, uint32_t a, uint32_t b,
                     uint32_t *both, lade_err *err);
/* Nodes on which a set has ranks: index into reach->nodes. */
int lade_reach_nodes(struct lade_reach *reach, uint32_t set, uint32_t *nodes,
                     lade_err *err);
/* The copies of a piece in the island: ranks, or slots for an expert that is
 * there more than once. */
uint64_t lade_reach_copies(struct lade_reach *reach,
                           const struct lade_shell_part *part, uint32_t expert,
                           uint32_t set);

uint32_t lade_bits_count(const uint64_t *bits, uint32_t words);
/* The only member, or UINT32_MAX if there is not exactly one. */
uint32_t lade_bits_only(const uint64_t *bits, uint32_t words);

#endif
