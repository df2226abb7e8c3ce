/*
 * In: a part of a parameter, a rank's coordinates. Out: the strided copy from
 * the disk tensor into the rank's parameter, in elements.
 *
 * Mirrors vLLM: linear.py (ColumnParallelLinear, MergedColumnParallelLinear,
 * QKVParallelLinear, RowParallelLinear weight loaders),
 * vocab_parallel_embedding.py (VocabParallelEmbedding.weight_loader),
 * fused_moe/layer.py (FusedMoE._load_w13, _load_w2).
 */
#include "plan/box.h"

#include "base/checked.h"

static uint64_t piece_index(const struct lade_shell_part *part,
                            const struct lade_coords *at)
{
    switch (part->axis) {
    case LADE_AXIS_TP:
        return at->tp;
    case LADE_AXIS_KV:
        return at->tp / part->copies;
    case LADE_AXIS_MOE_TP:
        return at->flat;
    default:
        return 0;
    }
}

bool lade_box_piece(const struct lade_shell *shell,
                    const struct lade_shell_part *part, uint64_t index,
                    uint32_t slot, struct lade_box *box)
{
    const struct lade_shell_param *param =
        &LADE_ITEMS(shell, params, struct lade_shell_param)[part->param];
    int lead = param->flags & LADE_PARAM_EXPERTS ? 1 : 0;
    uint64_t begin = index * part->piece;
    uint64_t outer = 1, inner = 1, slot_size = 1;

    if (begin >= part->extent)
        return false;
    uint64_t size = lade_min_u64(part->piece, part->extent - begin);
    for (int d = 0; d < part->ndim; d++) {
        if (d < part->cut)
            outer *= part->shape[d];
        else if (d > part->cut)
            inner *= part->shape[d];
    }
    for (int d = lead; d < param->ndim; d++)
        slot_size *= param->shape[d];
    uint64_t wide = part->ndim ? part->shape[part->cut] : 1;
    uint64_t into = slot_size / (outer && inner ? outer * inner : 1);

    *box = (struct lade_box){
        .src = (part->base + begin) * inner,
        .dst = slot * slot_size + part->start * inner,
        .runs = outer,
        .run = size * inner,
        .src_step = wide * inner,
        .dst_step = into * inner,
    };
    if (box->run == 0 || box->runs == 0)
        return false;
    if (box->runs > 1 && box->run == box->src_step &&
        box->run == box->dst_step) {
        box->run *= box->runs;
        box->runs = 1;
    }
    return true;
}

bool lade_box_of(const struct lade_shell *shell,
                 const struct lade_shell_part *part,
                 const struct lade_coords *at, uint32_t slot,
                 struct lade_box *box)
{
    return lade_box_piece(shell, part, piece_index(part, at), slot, box);
}

uint32_t lade_box_slots(const struct lade_shell *shell,
                        const struct lade_placement *place,
                        const struct lade_shell_part *part, uint32_t expert,
                        const struct lade_coords *at, uint32_t *slots,
                        uint32_t max)
{
    const struct lade_shell_param *param =
        &LADE_ITEMS(shell, params, struct lade_shell_param)[part->param];
    uint32_t found = 0;

    if (!(param->flags & LADE_PARAM_EXPERTS)) {
        if (max > 0)
            slots[0] = 0;
        return 1;
    }
    uint32_t list = place->map_layers > 1 ? param->moe_layer : 0;
    const uint32_t *first = place->first + (size_t)list * (place->logical + 1);
    const uint32_t *ids = place->by_logical + (size_t)list * place->physical;
    uint32_t mine = place->ep > 1 ? at->flat : 0;
    for (uint32_t i = first[expert]; i < first[expert + 1]; i++) {
        uint32_t owner, slot;
        lade_place_owner(place, ids[i], &owner, &slot);
        if (owner != mine)
            continue;
        if (found < max)
            slots[found] = slot;
        found++;
    }
    return found;
}
