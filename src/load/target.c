/*
 * In: shell, routes and plan; a rank. Out: the layout of its memory.
 *
 * An expert parameter has one source for each expert, and they need not have
 * the same residue: the residue that covers most bytes wins, the rest goes
 * through the reader's bounce buffers and is counted there.
 */
#include "load/target.h"

#include <stdlib.h>

#include "check/reconcile.h"
#include "plan/box.h"

#define PAGE UINT64_C(4096)

/* Bytes that will be read straight into a parameter, by residue. */
struct residue {
    uint32_t param, residue;
    uint64_t bytes;
};

static int compare_residues(const void *a, const void *b)
{
    const struct residue *x = a, *y = b;

    if (x->param != y->param)
        return x->param < y->param ? -1 : 1;
    if (x->residue != y->residue)
        return x->residue < y->residue ? -1 : 1;
    return 0;
}

/* The part of `route` whose bytes a direct stripe carries. */
static bool stripe_residue(const struct lade_plan_input *in,
                           const struct lade_stripe *stripe,
                           const struct lade_coords *at, struct residue *found)
{
    const struct lade_row *row =
        &LADE_ITEMS(in->catalogue, rows, struct lade_row)[stripe->first_row];
    const struct lade_route *route =
        &LADE_ITEMS(in->routes, routes, struct lade_route)[stripe->first_row];
    const struct lade_shell_part *parts =
        LADE_ITEMS(in->shell, parts, struct lade_shell_part);
    uint64_t size = lade_dtype_bits(row->dtype) / 8;

    if (route->part == UINT32_MAX)
        return false;
    for (uint32_t i = 0; i < route->parts; i++) {
        const struct lade_shell_part *part = &parts[route->part + i];
        struct lade_box box;
        uint32_t slot = 0;
        if (lade_box_slots(in->shell, in->place, part, route->expert, at, &slot,
                           1) == 0 ||
            !lade_box_of(in->shell, part, at, slot, &box) || box.runs != 1)
            continue;
        uint64_t begin = row->offset + box.src * size;
        uint64_t end = begin + box.run * size;
        if (stripe->offset < begin || stripe->offset >= end)
            continue;
        *found = (struct residue){
            part->param,
            (uint32_t)((begin % PAGE + PAGE - box.dst * size % PAGE) % PAGE),
            stripe->length};
        return true;
    }
    return false;
}

static int collect(const struct lade_plan_input *in,
                   const struct lade_plan *plan, uint32_t rank,
                   struct lade_vec *list, lade_err *err)
{
    const struct lade_stripe *stripes =
        LADE_ITEMS(plan, stripes, struct lade_stripe);
    struct lade_coords at = lade_coords_of(in->layout, rank);

    for (uint64_t i = 0; i < plan->stripes.count; i++) {
        struct residue found;
        if (stripes[i].kind != LADE_STRIPE_DIRECT || stripes[i].reader != rank)
            continue;
        if (stripe_residue(in, &stripes[i], &at, &found) &&
            !lade_vec_push(list, &found, err))
            return LADE_E_MEMORY;
    }
    if (list->count > 1)
        qsort(list->data, list->count, sizeof(struct residue),
              compare_residues);
    return LADE_OK;
}

/* The residue with most bytes among those of `param`; *next moves behind them.
 */
static uint32_t best_residue(const struct lade_vec *list, uint64_t *next,
                             uint32_t param)
{
    const struct residue *items = list->data;
    uint64_t best = 0;
    uint32_t residue = 0;

    while (*next < list->count && items[*next].param == param) {
        uint32_t now = items[*next].residue;
        uint64_t bytes = 0;
        for (; *next < list->count && items[*next].param == param &&
               items[*next].residue == now;
             (*next)++)
            bytes += items[*next].bytes;
        if (bytes > best) {
            best = bytes;
            residue = now;
        }
    }
    return residue;
}

int lade_target_layout(const struct lade_plan_input *in,
                       const struct lade_plan *plan, uint32_t rank,
                       struct lade_mem *mem, uint64_t *at, uint64_t *total,
                       lade_err *err)
{
    struct lade_coords coords = lade_coords_of(in->layout, rank);
    struct lade_vec list;
    uint64_t next = 0, size = 0;
    int rc = LADE_OK;

    lade_vec_init(&list, mem, LADE_TAG_TEMP, sizeof(struct residue));
    LADE_TRY(collect(in, plan, rank, &list, err));
    for (uint32_t i = 0; i < in->shell->params.count; i++) {
        uint64_t bytes = lade_shell_bytes(in->shell, in->place, &coords, i);
        uint64_t residue = best_residue(&list, &next, i), end;
        if (at)
            at[i] = size + residue;
        if (!lade_add_u64(size, residue, &end) ||
            !lade_add_u64(end, bytes, &end) || end > INT64_MAX) {
            rc = lade_err_set(err, LADE_E_MEMORY,
                              "the parameters of one rank exceed 8 EiB");
            goto out;
        }
        size = lade_round_up(end, PAGE);
    }
    *total = size;
out:
    lade_vec_fini(&list);
    return rc;
}

int lade_target_init(struct lade_target *target,
                     const struct lade_plan_input *in, uint32_t rank,
                     void *base, const uint64_t *at, struct lade_mem *mem,
                     lade_err *err)
{
    const struct lade_shell_param *params =
        LADE_ITEMS(in->shell, params, struct lade_shell_param);
    uint64_t count = in->shell->params.count, cells = 0;

    target->data =
        lade_alloc_array(mem, LADE_TAG_TEMP, count + 1, sizeof(void *), err);
    target->first_cell =
        lade_alloc_array(mem, LADE_TAG_TEMP, count + 1, sizeof(uint32_t), err);
    if (!target->data || !target->first_cell)
        return LADE_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        target->data[i] = base ? (char *)base + at[i] : NULL;
        target->first_cell[i] = (uint32_t)cells;
        cells += (uint64_t)lade_cell_slots(in, rank, i) * params[i].parts;
        if (cells > UINT32_MAX)
            return lade_err_set(err, LADE_E_INTERNAL,
                                "more than 2^32 parts on one rank");
    }
    target->first_cell[count] = (uint32_t)cells;
    target->written =
        lade_alloc_array(mem, LADE_TAG_TEMP, cells + 1, sizeof(uint64_t), err);
    return target->written ? LADE_OK : LADE_E_MEMORY;
}

void lade_target_fini(struct lade_target *target, struct lade_mem *mem)
{
    lade_free(mem, target->data);
    lade_free(mem, target->first_cell);
    lade_free(mem, target->written);
    *target = (struct lade_target){0};
}
