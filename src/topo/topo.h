/*
 * Sizes and ranks -> coordinates, nodes, sets of ranks, expert placement.
 *
 * rank = (dp_rank * pp + pp_rank) * tp + tp_rank (vLLM: parallel_state.py,
 * initialize_model_parallel). Pure.
 */
#ifndef LADE_TOPO_TOPO_H
#define LADE_TOPO_TOPO_H

#include "base/blob.h"

enum lade_placement_kind { LADE_PLACE_LINEAR, LADE_PLACE_ROUND_ROBIN };

/* What the user asks for. Zero sizes mean: not given. */
struct lade_layout {
    uint32_t world; /* ranks */
    uint32_t tp, pp, dp;
    bool ep;
    enum lade_placement_kind placement;
    uint32_t redundant;     /* redundant experts (EPLB) */
    const char *expert_map; /* path of a JSON file, or NULL */
};

/* Fills sizes that were not given (1; if none is given tp = world) and checks
 * that tp * pp * dp == world. LADE_E_USAGE with the numbers. */
int lade_layout_resolve(struct lade_layout *layout, lade_err *err);

struct lade_coords {
    uint32_t rank, tp, pp, dp;
    uint32_t flat; /* dp * TP + tp: place among the ranks of its stage that
                      share experts */
};
struct lade_coords lade_coords_of(const struct lade_layout *layout,
                                  uint32_t rank);
uint32_t lade_rank_of(const struct lade_layout *layout, uint32_t dp,
                      uint32_t pp, uint32_t tp);

/* Where the experts of a model are. Physical expert p (0 .. physical-1) sits on
 * EP rank owner(p) in slot slot(p) and holds logical expert map[layer or 0][p].
 * Mirrors vLLM: expert_map_manager.py, determine_expert_map;
 * fused_moe/config.py, FusedMoEParallelConfig.make; eplb_state.py,
 * build_initial_global_physical_to_logical_map. */
struct lade_placement {
    uint32_t logical;  /* experts of the model, 0 for a dense one */
    uint32_t physical; /* + redundant ones */
    uint32_t ep;       /* EP ranks: dp * tp, or 1 */
    uint32_t moe_tp;   /* ranks that cut each expert: dp * tp, or 1 */
    enum lade_placement_kind kind; /* effective */
    uint32_t map_layers; /* lists in `map`: 1, or one for each MoE layer */
    uint32_t *map;       /* [map_layers][physical] physical -> logical */
    /* inverse of map: physical ids of logical expert e in list m are
     * by_logical[m * physical + first[m * (logical + 1) + e] ..] , ascending */
    uint32_t *first, *by_logical;
    struct lade_mem *mem;
};

/* `groups` is the model's number of expert groups (n_group, 1 if none);
 * `moe_layers` how many layers have experts. Errors USAGE: redundancy that does
 * not divide names the numbers that fit; a bad expert map names the layer and
 * the expert or rank. Round robin that falls back to linear is one warning. */
int lade_placement_init(struct lade_placement *place,
                        const struct lade_layout *layout, uint32_t experts,
                        uint32_t groups, uint32_t moe_layers,
                        struct lade_mem *mem, lade_err *err);
void lade_placement_fini(struct lade_placement *place);
uint32_t lade_place_count(const struct lade_placement *place, uint32_t ep_rank);
uint32_t lade_place_physical(const struct lade_placement *place,
                             uint32_t ep_rank, uint32_t slot);
void lade_place_owner(const struct lade_placement *place, uint32_t physical,
                      uint32_t *ep_rank, uint32_t *slot);

/* Sets of ranks as bitmaps, each distinct set stored once; a set is known by
 * its index. */
struct lade_sets {
    uint32_t ranks, words; /* words of 64 bits per set */
    struct lade_vec bits;  /* uint64_t[words] per set */
    struct lade_vec hash;  /* open addressing: uint32_t set index + 1 */
};
int lade_sets_init(struct lade_sets *sets, uint32_t ranks, struct lade_mem *mem,
                   lade_err *err);
/* Index of the set equal to `bits` (words long); added if new. */
int lade_sets_add(struct lade_sets *sets, const uint64_t *bits, uint32_t *index,
                  lade_err *err);
const uint64_t *lade_sets_get(const struct lade_sets *sets, uint32_t index);
void lade_sets_fini(struct lade_sets *sets);
static inline bool lade_bit_get(const uint64_t *bits, uint32_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}
static inline void lade_bit_set(uint64_t *bits, uint32_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

#endif
