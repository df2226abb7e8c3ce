/*
 * In: the sizes that the user gave. Out: a layout whose sizes agree, and the
 * place of each rank in it. Mirrors vLLM: parallel_state.py,
 * initialize_model_parallel.
 */
#include "topo/topo.h"

#include "base/checked.h"

int lade_layout_resolve(struct lade_layout *layout, lade_err *err)
{
    bool given = layout->tp != 0 || layout->pp != 0 || layout->dp != 0;
    uint64_t product;

    if (!given)
        layout->tp = layout->world ? layout->world : 1;
    layout->tp = layout->tp ? layout->tp : 1;
    layout->pp = layout->pp ? layout->pp : 1;
    layout->dp = layout->dp ? layout->dp : 1;
    if (!lade_mul_u64(layout->tp, layout->pp, &product) ||
        !lade_mul_u64(product, layout->dp, &product) || product > 65536)
        return lade_err_set(err, LADE_E_USAGE,
                            "tp %u * pp %u * dp %u is more than 65536 ranks",
                            layout->tp, layout->pp, layout->dp);
    if (layout->world == 0)
        layout->world = (uint32_t)product;
    if (product != layout->world)
        return lade_err_set(err, LADE_E_USAGE,
                            "tp %u * pp %u * dp %u = %llu, but there are %u "
                            "ranks",
                            layout->tp, layout->pp, layout->dp,
                            (unsigned long long)product, layout->world);
    return LADE_OK;
}

struct lade_coords lade_coords_of(const struct lade_layout *layout,
                                  uint32_t rank)
{
    struct lade_coords at = {.rank = rank};

    at.tp = rank % layout->tp;
    at.pp = rank / layout->tp % layout->pp;
    at.dp = rank / layout->tp / layout->pp;
    at.flat = at.dp * layout->tp + at.tp;
    return at;
}

uint32_t lade_rank_of(const struct lade_layout *layout, uint32_t dp,
                      uint32_t pp, uint32_t tp)
{
    return (dp * layout->pp + pp) * layout->tp + tp;
}
