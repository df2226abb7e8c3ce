/*
 * In: the shell and the routes (what must be there), the written counters of
 * this rank (what came). Out: the sums, or the first part that is incomplete.
 *
 * Counts elements, not names: a parameter of which one expert or one part is
 * missing is an error. Mirrors, and is stricter than, vLLM:
 * default_loader.py, DefaultModelLoader.load_weights (weights not loaded from
 * the checkpoint).
 */
#include "check/reconcile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint32_t lade_cell_slots(const struct lade_plan_input *in, uint32_t rank,
                         uint32_t param)
{
    const struct lade_shell_param *p =
        &LADE_ITEMS(in->shell, params, struct lade_shell_param)[param];

    if (!(p->flags & LADE_PARAM_EXPERTS))
        return 1;
    struct lade_coords at = lade_coords_of(in->layout, rank);
    return lade_place_count(in->place, in->place->ep > 1 ? at.flat : 0);
}

uint32_t lade_cell_expert(const struct lade_plan_input *in, uint32_t rank,
                          uint32_t param, uint32_t slot)
{
    const struct lade_shell_param *p =
        &LADE_ITEMS(in->shell, params, struct lade_shell_param)[param];
    const struct lade_placement *place = in->place;

    if (!(p->flags & LADE_PARAM_EXPERTS))
        return 0;
    struct lade_coords at = lade_coords_of(in->layout, rank);
    uint32_t list = place->map_layers > 1 ? p->moe_layer : 0;
    uint32_t id = lade_place_physical(place, place->ep > 1 ? at.flat : 0, slot);
    return place->map[(size_t)list * place->physical + id];
}

/* Which (part, expert) pairs some row of the catalogue fills. */
struct present {
    uint64_t *bits;
    uint64_t *first; /* [parts] first bit of a part */
};

static int present_init(struct present *present,
                        const struct lade_plan_input *in, struct lade_mem *mem,
                        lade_err *err)
{
    const struct lade_shell *shell = in->shell;
    const struct lade_shell_part *parts =
        LADE_ITEMS(shell, parts, struct lade_shell_part);
    const struct lade_route *routes =
        LADE_ITEMS(in->routes, routes, struct lade_route);
    uint64_t bits = 0;

    present->first = lade_alloc_array(mem, LADE_TAG_TEMP,
                                      shell->parts.count + 1, sizeof bits, err);
    if (!present->first)
        return LADE_E_MEMORY;
    for (uint64_t i = 0; i < shell->parts.count; i++) {
        present->first[i] = bits;
        bits += parts[i].experts ? parts[i].experts : 1;
    }
    present->bits =
        lade_alloc_array(mem, LADE_TAG_TEMP, bits / 64 + 1, sizeof bits, err);
    if (!present->bits)
        return LADE_E_MEMORY;
    for (uint64_t row = 0; row < in->routes->routes.count; row++) {
        const struct lade_route *route = &routes[row];
        if (route->part == UINT32_MAX)
            continue;
        for (uint32_t i = 0; i < route->parts; i++)
            lade_bit_set(
                present->bits,
                (uint32_t)(present->first[route->part + i] + route->expert));
    }
    return LADE_OK;
}

static void present_fini(struct present *present, struct lade_mem *mem)
{
    lade_free(mem, present->bits);
    lade_free(mem, present->first);
}

/* The first cell that is wrong, and how many are. */
struct fault {
    uint64_t cells, needed, written;
    uint32_t param, part, slot, expert;
};

static void fault_note(struct fault *fault, const struct fault *found)
{
    uint64_t cells = fault->cells;

    if (cells == 0)
        *fault = *found;
    fault->cells = cells + 1;
}

static int fault_tell(const struct fault *fault, bool twice,
                      const struct lade_plan_input *in, lade_err *err)
{
    const struct lade_shell *shell = in->shell;
    const struct lade_shell_part *part =
        &LADE_ITEMS(shell, parts, struct lade_shell_part)[fault->part];
    const struct lade_shell_param *param =
        &LADE_ITEMS(shell, params, struct lade_shell_param)[fault->param];
    char where[64] = "";

    if (param->flags & LADE_PARAM_EXPERTS)
        snprintf(where, sizeof where, ", expert %" PRIu32 " in slot %" PRIu32,
                 fault->expert, fault->slot);
    return lade_err_set(
        err, twice ? LADE_E_INTERNAL : LADE_E_PARAMETER,
        "%s: part %s%s: %" PRIu64 " elements were written but it has %" PRIu64
        " (%" PRIu64 " %s in all)",
        LADE_STRING(shell, pool, param->name),
        LADE_STRING(shell, pool, part->name), where, fault->written,
        fault->needed, fault->cells,
        twice ? "parts were written too often" : "parts are incomplete");
}

struct walk {
    const struct lade_plan_input *in;
    const struct lade_target *target;
    struct present present;
    struct lade_coords at;
    uint32_t rank;
    struct fault lacking, excess;
    struct lade_reconciled sums;
};

static void check_cell(struct walk *walk, uint32_t part_index, uint32_t slot,
                       uint32_t expert, uint64_t written)
{
    const struct lade_shell_part *part =
        &LADE_ITEMS(walk->in->shell, parts, struct lade_shell_part)[part_index];
    struct lade_box box;
    uint64_t needed = 0;
    uint64_t bit = walk->present.first[part_index] + expert;

    if (lade_box_of(walk->in->shell, part, &walk->at, slot, &box))
        needed = box.runs * box.run;
    if (!lade_bit_get(walk->present.bits, (uint32_t)bit)) {
        if (needed > 0 && !part->optional)
            walk->sums.missing++;
        needed = 0;
    }
    struct fault found = {0,          needed, written, part->param,
                          part_index, slot,   expert};
    if (written < needed)
        fault_note(&walk->lacking, &found);
    else if (written > needed)
        fault_note(&walk->excess, &found);
    walk->sums.elements += written;
}

static void check_param(struct walk *walk, uint32_t index)
{
    const struct lade_plan_input *in = walk->in;
    const struct lade_shell_param *param =
        &LADE_ITEMS(in->shell, params, struct lade_shell_param)[index];
    uint32_t slots = lade_cell_slots(in, walk->rank, index);
    const uint64_t *written =
        walk->target->written + walk->target->first_cell[index];
    uint64_t before = walk->sums.elements, elements = 0;
    uint64_t shape[LADE_MAX_DIMS];

    for (uint32_t slot = 0; slot < slots; slot++) {
        uint32_t expert = lade_cell_expert(in, walk->rank, index, slot);
        for (uint32_t i = 0; i < param->parts; i++)
            check_cell(walk, param->first_part + i, slot, expert,
                       written[(uint64_t)slot * param->parts + i]);
    }
    int ndim = lade_shell_shape(in->shell, in->place, &walk->at, index, shape);
    if (lade_shape_count(shape, ndim, &elements) &&
        elements > walk->sums.elements - before)
        walk->sums.padding += elements - (walk->sums.elements - before);
}

int lade_reconcile(const struct lade_plan_input *in, uint32_t rank,
                   const struct lade_target *target, struct lade_mem *mem,
                   struct lade_reconciled *sums, lade_err *err)
{
    struct walk walk = {.in = in, .target = target, .rank = rank};
    int rc = LADE_OK;

    LADE_TRY(present_init(&walk.present, in, mem, err));
    walk.at = lade_coords_of(in->layout, rank);
    for (uint32_t i = 0; i < in->shell->params.count; i++)
        check_param(&walk, i);
    if (walk.excess.cells > 0)
        LADE_TRY(fault_tell(&walk.excess, true, in, err));
    if (walk.lacking.cells > 0)
        LADE_TRY(fault_tell(&walk.lacking, false, in, err));
    *sums = walk.sums;
out:
    present_fini(&walk.present, mem);
    return rc;
}
