/*
 * In: layout, placement, island. Out: the set of ranks for each piece of each
 * axis and for each expert. Pure.
 */
#include "plan/reach.h"

#include <string.h>

uint32_t lade_bits_count(const uint64_t *bits, uint32_t words)
{
    uint32_t count = 0;
    for (uint32_t w = 0; w < words; w++)
        count += (uint32_t)__builtin_popcountll(bits[w]);
    return count;
}

uint32_t lade_bits_only(const uint64_t *bits, uint32_t words)
{
    uint32_t only = UINT32_MAX;
    for (uint32_t w = 0; w < words; w++) {
        if (bits[w] == 0)
            continue;
        if (only != UINT32_MAX || (bits[w] & (bits[w] - 1)) != 0)
            return UINT32_MAX;
        only = w * 64 + (uint32_t)__builtin_ctzll(bits[w]);
    }
    return only;
}

static uint32_t pieces_of(const struct lade_layout *layout,
                          const struct lade_placement *place, uint32_t axis,
                          uint32_t copies)
{
    switch (axis) {
    case LADE_AXIS_TP:
        return layout->tp;
    case LADE_AXIS_KV:
        return layout->tp / copies;
    case LADE_AXIS_MOE_TP:
        return place->moe_tp;
    default:
        return 1;
    }
}

uint32_t lade_reach_pieces(const struct lade_reach *reach,
                           const struct lade_shell_part *part)
{
    return pieces_of(reach->in->layout, reach->in->place, part->axis,
                     part->copies);
}

static uint32_t piece_of_rank(const struct lade_coords *at, uint32_t axis,
                              uint32_t copies)
{
    switch (axis) {
    case LADE_AXIS_TP:
        return at->tp;
    case LADE_AXIS_KV:
        return at->tp / copies;
    case LADE_AXIS_MOE_TP:
        return at->flat;
    default:
        return 0;
    }
}

/* One pass over the ranks fills the sets of all pieces of an axis. */
static int add_axis(struct lade_reach *reach, uint32_t axis, uint32_t copies,
                    lade_err *err)
{
    const struct lade_layout *layout = reach->in->layout;
    uint32_t words = reach->sets.words;
    uint32_t pieces = pieces_of(layout, reach->in->place, axis, copies);
    uint64_t bytes;

    if (!lade_mul_u64((uint64_t)pieces * words, sizeof(uint64_t), &bytes))
        return lade_err_set(err, LADE_E_MEMORY, "too many ranks: %u",
                            layout->world);
    uint32_t *sets =
        lade_arena_alloc(&reach->arena, pieces * sizeof(*sets), err);
    uint64_t *bits = lade_alloc(reach->arena.mem, LADE_TAG_TEMP, bytes, err);
    int rc = sets && bits ? LADE_OK : LADE_E_MEMORY;
    for (uint32_t r = 0; rc == LADE_OK && r < layout->world; r++) {
        struct lade_coords at = lade_coords_of(layout, r);
        uint32_t piece = piece_of_rank(&at, axis, copies);
        if (lade_bit_get(reach->island, r))
            lade_bit_set(bits + (size_t)piece * words, r);
    }
    for (uint32_t p = 0; rc == LADE_OK && p < pieces; p++)
        rc = lade_sets_add(&reach->sets, bits + (size_t)p * words, &sets[p],
                           err);
    lade_free(reach->arena.mem, bits);
    if (rc == LADE_OK)
        reach->axes[reach->axis_count++] =
            (struct lade_reach_axis){axis, copies, pieces, sets};
    return rc;
}

static int find_axis(struct lade_reach *reach,
                     const struct lade_shell_part *part,
                     const struct lade_reach_axis **axis, lade_err *err)
{
    uint32_t copies = part->axis == LADE_AXIS_KV ? part->copies : 1;

    for (int i = 0; i < reach->axis_count; i++)
        if (reach->axes[i].axis == part->axis &&
            reach->axes[i].copies == copies) {
            *axis = &reach->axes[i];
            return LADE_OK;
        }
    if (reach->axis_count == (int)(sizeof(reach->axes) / sizeof(*reach->axes)))
        return lade_err_set(err, LADE_E_INTERNAL,
                            "more than %d kinds of KV replication in a model",
                            reach->axis_count);
    int rc = add_axis(reach, part->axis, copies, err);
    if (rc == LADE_OK)
        *axis = &reach->axes[reach->axis_count - 1];
    return rc;
}

/* Owners of every logical expert, for each list of the placement's map. */
static int add_experts(struct lade_reach *reach, lade_err *err)
{
    const struct lade_placement *place = reach->in->place;
    uint64_t count = (uint64_t)place->map_layers * place->logical;

    if (place->logical == 0 || place->ep <= 1)
        return LADE_OK;
    reach->experts =
        lade_arena_alloc(&reach->arena, count * sizeof(uint32_t), err);
    if (reach->experts == NULL)
        return LADE_E_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t list = i / place->logical, expert = i % place->logical;
        const uint32_t *first = place->first + list * (place->logical + 1);
        const uint32_t *ids = place->by_logical + list * place->physical;
        memset(reach->scratch, 0, reach->sets.words * sizeof(uint64_t));
        for (uint32_t k = first[expert]; k < first[expert + 1]; k++) {
            uint32_t owner, slot;
            lade_place_owner(place, ids[k], &owner, &slot);
            /* one stage: the flat EP rank is the world rank */
            if (lade_bit_get(reach->island, owner))
                lade_bit_set(reach->scratch, owner);
        }
        int rc = lade_sets_add(&reach->sets, reach->scratch, &reach->experts[i],
                               err);
        if (rc != LADE_OK)
            return rc;
    }
    return LADE_OK;
}

int lade_reach_init(struct lade_reach *reach, const struct lade_plan_input *in,
                    const uint64_t *island, struct lade_mem *mem, lade_err *err)
{
    uint32_t empty;
    int rc;

    memset(reach, 0, sizeof(*reach));
    reach->in = in;
    reach->island = island;
    lade_arena_init(&reach->arena, mem, LADE_TAG_TEMP);
    lade_vec_init(&reach->node_set_of, mem, LADE_TAG_TEMP, sizeof(uint32_t));
    LADE_TRY(lade_sets_init(&reach->sets, in->layout->world, mem, err));
    LADE_TRY(lade_sets_init(&reach->nodes, in->nodes, mem, err));
    reach->scratch = lade_arena_alloc(
        &reach->arena, reach->sets.words * sizeof(uint64_t), err);
    if (reach->scratch == NULL)
        LADE_TRY(LADE_E_MEMORY);
    LADE_TRY(lade_sets_add(&reach->sets, reach->scratch, &empty, err));
    LADE_TRY(add_experts(reach, err));
out:
    return rc;
}

void lade_reach_fini(struct lade_reach *reach)
{
    lade_vec_fini(&reach->node_set_of);
    lade_sets_fini(&reach->sets);
    lade_sets_fini(&reach->nodes);
    lade_arena_fini(&reach->arena);
}

static bool is_expert_part(const struct lade_reach *reach,
                           const struct lade_shell_part *part)
{
    const struct lade_shell_param *param = &LADE_ITEMS(
        reach->in->shell, params, struct lade_shell_param)[part->param];
    return (param->flags & LADE_PARAM_EXPERTS) != 0;
}

static uint64_t expert_at(const struct lade_reach *reach,
                          const struct lade_shell_part *part, uint32_t expert)
{
    const struct lade_shell_param *param = &LADE_ITEMS(
        reach->in->shell, params, struct lade_shell_param)[part->param];
    const struct lade_placement *place = reach->in->place;
    uint64_t list = place->map_layers > 1 ? param->moe_layer : 0;
    return list * place->logical + expert;
}

int lade_reach_set(struct lade_reach *reach, const struct lade_shell_part *part,
                   uint32_t expert, uint32_t piece, uint32_t *set,
                   lade_err *err)
{
    const struct lade_reach_axis *axis = NULL;

    if (reach->experts != NULL && is_expert_part(reach, part)) {
        *set = reach->experts[expert_at(reach, part, expert)];
        return LADE_OK;
    }
    int rc = find_axis(reach, part, &axis, err);
    if (rc == LADE_OK)
        *set = axis->sets[piece];
    return rc;
}

int lade_reach_union(struct lade_reach *reach, uint32_t a, uint32_t b,
                     uint32_t *both, lade_err *err)
{
    if (a == b || b == LADE_NOBODY) {
        *both = a;
        return LADE_OK;
    }
    if (a == LADE_NOBODY) {
        *both = b;
        return LADE_OK;
    }
    unsigned at = (a * 31 + b) % 256;
    if (reach->unions[at].a == a && reach->unions[at].b == b) {
        *both = reach->unions[at].both;
        return LADE_OK;
    }
    const uint64_t *x = lade_sets_get(&reach->sets, a);
    const uint64_t *y = lade_sets_get(&reach->sets, b);
    for (uint32_t w = 0; w < reach->sets.words; w++)
        reach->scratch[w] = x[w] | y[w];
    int rc = lade_sets_add(&reach->sets, reach->scratch, both, err);
    if (rc == LADE_OK) {
        reach->unions[at].a = a;
        reach->unions[at].b = b;
        reach->unions[at].both = *both;
    }
    return rc;
}

int lade_reach_nodes(struct lade_reach *reach, uint32_t set, uint32_t *nodes,
                     lade_err *err)
{
    const uint32_t unknown = UINT32_MAX;

    while (reach->node_set_of.count <= set)
        if (lade_vec_push(&reach->node_set_of, &unknown, err) == NULL)
            return LADE_E_MEMORY;
    uint32_t *known = LADE_VEC_AT(&reach->node_set_of, uint32_t, set);
    if (*known == UINT32_MAX) {
        const uint64_t *bits = lade_sets_get(&reach->sets, set);
        uint64_t *mask = lade_arena_alloc(
            &reach->arena, reach->nodes.words * sizeof(uint64_t), err);
        if (mask == NULL)
            return LADE_E_MEMORY;
        for (uint32_t r = 0; r < reach->sets.ranks; r++)
            if (lade_bit_get(bits, r))
                lade_bit_set(mask, reach->in->node_of[r]);
        int rc = lade_sets_add(&reach->nodes, mask, known, err);
        if (rc != LADE_OK)
            return rc;
    }
    *nodes = *known;
    return LADE_OK;
}

uint64_t lade_reach_copies(struct lade_reach *reach,
                           const struct lade_shell_part *part, uint32_t expert,
                           uint32_t set)
{
    const struct lade_placement *place = reach->in->place;
    uint64_t copies = 0;

    if (reach->experts == NULL || !is_expert_part(reach, part))
        return lade_bits_count(lade_sets_get(&reach->sets, set),
                               reach->sets.words);
    uint64_t list = expert_at(reach, part, 0) / place->logical;
    const uint32_t *first = place->first + list * (place->logical + 1);
    const uint32_t *ids = place->by_logical + list * place->physical;
    for (uint32_t k = first[expert]; k < first[expert + 1]; k++) {
        uint32_t owner, slot;
        lade_place_owner(place, ids[k], &owner, &slot);
        copies += lade_bit_get(reach->island, owner);
    }
    return copies;
}
