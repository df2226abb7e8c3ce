/*
 * In: the shell and the coordinates of a rank. Out: what that rank holds.
 */
#include "base/checked.h"
#include "model/model.h"

int lade_model_placement(const struct lade_shell *shell,
                         const struct lade_layout *layout, struct lade_mem *mem,
                         struct lade_placement *place, lade_err *err)
{
    struct lade_layout effective = *layout;

    // what takes effect was decided, and warned about, when the shell was made
    effective.placement = (enum lade_placement_kind)shell->placement;
    return lade_placement_init(place, &effective, shell->experts,
                               shell->groups ? shell->groups : 1,
                               shell->moe_layers, mem, err);
}

int lade_shell_shape(const struct lade_shell *shell,
                     const struct lade_placement *place,
                     const struct lade_coords *at, uint32_t i,
                     uint64_t shape[LADE_MAX_DIMS])
{
    const struct lade_shell_param *param =
        &LADE_ITEMS(shell, params, struct lade_shell_param)[i];

    for (int d = 0; d < param->ndim; d++)
        shape[d] = param->shape[d];
    if (param->flags & LADE_PARAM_EXPERTS)
        shape[0] = lade_place_count(place, place->ep > 1 ? at->flat : 0);
    return param->ndim;
}

uint64_t lade_shell_bytes(const struct lade_shell *shell,
                          const struct lade_placement *place,
                          const struct lade_coords *at, uint32_t i)
{
    const struct lade_shell_param *param =
        &LADE_ITEMS(shell, params, struct lade_shell_param)[i];
    uint64_t shape[LADE_MAX_DIMS], count = 0, bytes = 0;
    int ndim = lade_shell_shape(shell, place, at, i, shape);

    // lade_model_build saw to it that this does not overflow
    if (!lade_shape_count(shape, ndim, &count) ||
        !lade_dtype_bytes((enum lade_dtype)param->dtype, count, &bytes))
        return 0;
    return bytes;
}
