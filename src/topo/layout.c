/*
 * In: the sizes that the user gave. Out: a layout whose sizes agree, and the
 * place of each rank in it. Mirrors vLLM: parallel_state.py,
 * initialize_model_parallel.
 */
#include "topo/topo.h"

#include "base/checked.h"

#define MOST_RANKS 65536u

int lade_layout_resolve(struct lade_layout *layout, lade_err *err)
{
    struct lade_layout full = *layout;
    bool given = full.tp != 0 || full.pp != 0 || full.dp != 0;
    uint64_t product;

    if (!given)
        full.tp = full.world;
    full.tp = full.tp ? full.tp : 1;
    full.pp = full.pp ? full.pp : 1;
    full.dp = full.dp ? full.dp : 1;
    if (!lade_mul_u64(full.tp, full.pp, &product) ||
        !lade_mul_u64(product, full.dp, &product) || product > MOST_RANKS)
        return lade_err_set(err, LADE_E_USAGE,
                            "tp %u * pp %u * dp %u is more than %u ranks",
                            full.tp, full.pp, full.dp, MOST_RANKS);
    if (full.world == 0)
        full.world = (uint32_t)product;
    if (product != full.world)
        return lade_err_set(err, LADE_E_USAGE,
                            "tp %u * pp %u * dp %u = %llu, but there are %u "
                            "ranks",
                            full.tp, full.pp, full.dp,
                            (unsigned long long)product, full.world);
    *layout = full;
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
