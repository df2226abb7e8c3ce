/*
 * In: routes, shell, placement. Out: copies -> number of source elements, as
 * the golden records count them (elements_by_copies).
 *
 * A row is looked at once for each distinct piece of its axis, never once for
 * each rank: how many ranks hold a piece follows from the sizes.
 */
#include "check/copies.h"

#include <string.h>

#include "plan/box.h"

static void note(struct lade_copies *copies, uint64_t times, uint64_t elements)
{
    uint32_t i = 0, limit = sizeof copies->rows / sizeof copies->rows[0];

    if (times == 0 || elements == 0)
        return;
    while (i < copies->count && copies->rows[i].copies < times)
        i++;
    if (i == copies->count || copies->rows[i].copies != times) {
        if (copies->count == limit) {
            i = i < limit ? i : limit - 1;
        } else {
            memmove(&copies->rows[i + 1], &copies->rows[i],
                    (copies->count - i) * sizeof copies->rows[0]);
            copies->rows[i].copies = times;
            copies->rows[i].elements = 0;
            copies->count++;
        }
    }
    copies->rows[i].elements += elements;
    copies->elements += elements;
}

/* Distinct pieces of a part's axis. */
static uint32_t pieces_of(const struct lade_plan_input *in,
                          const struct lade_shell_part *part)
{
    switch (part->axis) {
    case LADE_AXIS_TP:
        return in->layout->tp;
    case LADE_AXIS_KV:
        return in->layout->tp / (part->copies ? part->copies : 1);
    case LADE_AXIS_MOE_TP:
        return in->place->moe_tp;
    default:
        return 1;
    }
}

/* How many (rank, slot) pairs hold one piece: dense parts are cut by tp and
 * repeated over dp; experts lie on the ranks of their placement. */
static uint64_t holders_of(const struct lade_plan_input *in,
                           const struct lade_shell_part *part, uint32_t expert,
                           uint32_t pieces)
{
    const struct lade_shell_param *param =
        &LADE_ITEMS(in->shell, params, struct lade_shell_param)[part->param];
    const struct lade_placement *place = in->place;
    uint64_t stage = (uint64_t)in->layout->tp * in->layout->dp;

    if (!(param->flags & LADE_PARAM_EXPERTS))
        return stage / pieces;
    uint32_t list = place->map_layers > 1 ? param->moe_layer : 0;
    const uint32_t *first = place->first + (size_t)list * (place->logical + 1);
    uint64_t slots = first[expert + 1] - first[expert];
    return place->ep > 1 ? slots : slots * (stage / pieces);
}

static void count_part(const struct lade_plan_input *in,
                       const struct lade_shell_part *part, uint32_t expert,
                       struct lade_copies *copies)
{
    const struct lade_shell_param *param =
        &LADE_ITEMS(in->shell, params, struct lade_shell_param)[part->param];
    uint32_t pieces = pieces_of(in, part);
    uint64_t holders = holders_of(in, part, expert, pieces);
    uint64_t before = copies->elements, bytes = 0;
    struct lade_box box;

    for (uint32_t piece = 0; piece < pieces; piece++)
        if (lade_box_piece(in->shell, part, piece, 0, &box))
            note(copies, holders, box.runs * box.run);
    if (lade_dtype_bytes(param->dtype, copies->elements - before, &bytes))
        copies->bytes += bytes;
}

void lade_copies_count(const struct lade_plan_input *in,
                       struct lade_copies *copies)
{
    const struct lade_route *routes =
        LADE_ITEMS(in->routes, routes, struct lade_route);
    const struct lade_shell_part *parts =
        LADE_ITEMS(in->shell, parts, struct lade_shell_part);

    memset(copies, 0, sizeof *copies);
    for (uint64_t row = 0; row < in->routes->routes.count; row++) {
        const struct lade_route *route = &routes[row];
        if (route->part == UINT32_MAX)
            continue;
        for (uint32_t i = 0; i < route->parts; i++)
            count_part(in, &parts[route->part + i], route->expert, copies);
    }
}
