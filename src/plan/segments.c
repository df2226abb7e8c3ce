/*
 * In: rows with their routes, and who needs which piece. Out: segments.
 *
 * A tensor cut along its first dimension gives one segment for each piece that
 * somebody needs; one cut along a later dimension gives a single block, since
 * what one rank does not need of a row is what its neighbour needs.
 */
#include "plan/segments.h"

#include "plan/box.h"

struct walk {
    struct lade_reach *reach;
    const struct lade_plan_options *options;
    lade_segment_sink sink;
    void *ctx;
    struct lade_segment_sums *sums;
    const struct lade_row *row;
    const struct lade_route *route;
    const struct lade_shell_param *param; /* of the part at hand */
    const struct lade_shell_part *part;
    struct lade_segment base; /* what all segments of the part share */
};

static uint64_t bytes_of(const struct walk *walk, uint64_t elements)
{
    return elements * lade_dtype_bits((enum lade_dtype)walk->row->dtype) / 8;
}

/* A segment of `count` elements from element `first` of the tensor. */
static int emit(struct walk *walk, uint64_t first, uint64_t count,
                uint64_t needed, uint32_t set, bool direct, lade_err *err)
{
    struct lade_segment segment = walk->base;

    segment.begin = walk->row->offset + bytes_of(walk, first);
    segment.end = segment.begin + bytes_of(walk, count);
    segment.needed = bytes_of(walk, needed);
    segment.set = set;
    segment.direct = direct;
    walk->sums->needed += segment.needed;
    return walk->sink ? walk->sink(walk->ctx, &segment, err) : LADE_OK;
}

static void count_delivered(struct walk *walk, const struct lade_box *box,
                            uint32_t set)
{
    uint64_t elements = box->runs * box->run;
    uint64_t bits = lade_dtype_bits((enum lade_dtype)walk->param->dtype);

    walk->sums->delivered +=
        elements * bits / 8 *
        lade_reach_copies(walk->reach, walk->part, walk->route->expert, set);
}

/* May this piece be read straight into the parameter of its only rank? */
static bool may_be_direct(struct walk *walk, const struct lade_box *box,
                          uint32_t set)
{
    if (!walk->options->stores || box->runs != 1 ||
        walk->row->dtype != walk->param->dtype ||
        bytes_of(walk, box->run) < walk->options->direct_min)
        return false;
    return lade_reach_copies(walk->reach, walk->part, walk->route->expert,
                             set) == 1;
}

/* Pieces that lie one after the other in the file. */
static int walk_rows(struct walk *walk, lade_err *err)
{
    uint32_t pieces = lade_reach_pieces(walk->reach, walk->part);

    for (uint32_t i = 0; i < pieces; i++) {
        struct lade_box box;
        uint32_t set;
        if (!lade_box_piece(walk->reach->in->shell, walk->part, i, 0, &box))
            continue;
        int rc = lade_reach_set(walk->reach, walk->part, walk->route->expert, i,
                                &set, err);
        if (rc != LADE_OK)
            return rc;
        if (set == LADE_NOBODY)
            continue;
        count_delivered(walk, &box, set);
        rc = emit(walk, box.src, box.runs * box.run, box.runs * box.run, set,
                  may_be_direct(walk, &box, set), err);
        if (rc != LADE_OK)
            return rc;
    }
    return LADE_OK;
}

struct columns {
    uint64_t low, high; /* elements of a row, [low, high) */
    uint64_t width;     /* of those, needed */
    uint64_t runs, step;
    uint32_t set;
};

static int gather_columns(struct walk *walk, struct columns *all, lade_err *err)
{
    uint32_t pieces = lade_reach_pieces(walk->reach, walk->part);

    *all = (struct columns){.low = UINT64_MAX, .set = LADE_NOBODY};
    for (uint32_t i = 0; i < pieces; i++) {
        struct lade_box box;
        uint32_t set;
        if (!lade_box_piece(walk->reach->in->shell, walk->part, i, 0, &box))
            continue;
        int rc = lade_reach_set(walk->reach, walk->part, walk->route->expert, i,
                                &set, err);
        if (rc == LADE_OK && set != LADE_NOBODY) {
            count_delivered(walk, &box, set);
            all->low = lade_min_u64(all->low, box.src);
            all->high = lade_max_u64(all->high, box.src + box.run);
            all->width += box.run;
            all->runs = box.runs;
            all->step = box.src_step;
            rc = lade_reach_union(walk->reach, all->set, set, &all->set, err);
        }
        if (rc != LADE_OK)
            return rc;
    }
    return LADE_OK;
}

/* Pieces side by side in every row of the tensor. */
static int walk_columns(struct walk *walk, lade_err *err)
{
    struct columns all;
    int rc = gather_columns(walk, &all, err);

    if (rc != LADE_OK || all.set == LADE_NOBODY)
        return rc;
    uint64_t span = all.high - all.low;
    if (bytes_of(walk, all.step - span) <= walk->options->gap)
        return emit(walk, all.low, (all.runs - 1) * all.step + span,
                    all.runs * all.width, all.set, false, err);
    for (uint64_t j = 0; rc == LADE_OK && j < all.runs; j++)
        rc = emit(walk, all.low + j * all.step, span, all.width, all.set, false,
                  err);
    return rc;
}

/* Parts of one tensor that do not follow one another in the file: the whole
 * tensor is one segment for all that need any of it. */
static int walk_whole(struct walk *walk, lade_err *err)
{
    const struct lade_shell_part *parts =
        LADE_ITEMS(walk->reach->in->shell, parts, struct lade_shell_part);
    uint32_t set = LADE_NOBODY;
    uint64_t count;

    for (uint32_t k = 0; k < walk->route->parts; k++) {
        struct columns all;
        walk->part = &parts[walk->route->part + k];
        int rc = gather_columns(walk, &all, err);
        if (rc == LADE_OK)
            rc = lade_reach_union(walk->reach, set, all.set, &set, err);
        if (rc != LADE_OK)
            return rc;
    }
    if (set == LADE_NOBODY ||
        !lade_shape_count(walk->row->shape, walk->row->ndim, &count))
        return LADE_OK;
    return emit(walk, 0, count, count, set, false, err);
}

static bool in_file_order(const struct lade_shell_part *parts, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        if (count > 1 && (parts[k].cut != 0 ||
                          (k > 0 && parts[k].base < parts[k - 1].base +
                                                        parts[k - 1].extent)))
            return false;
    return true;
}

static int walk_row(struct walk *walk, lade_err *err)
{
    const struct lade_shell *shell = walk->reach->in->shell;
    const struct lade_shell_part *parts =
        LADE_ITEMS(shell, parts, struct lade_shell_part) + walk->route->part;
    int rc = LADE_OK;

    if (walk->row->length == 0)
        return LADE_OK;
    walk->param =
        &LADE_ITEMS(shell, params, struct lade_shell_param)[parts->param];
    walk->base = (struct lade_segment){
        .origin = walk->row->offset,
        .unit = lade_dtype_bits((enum lade_dtype)walk->row->dtype) / 8,
        .shard = walk->row->shard,
        .layer = walk->param->layer,
        .row = walk->base.row,
    };
    if (walk->base.unit == 0)
        walk->base.unit = 1;
    if (!in_file_order(parts, walk->route->parts))
        return walk_whole(walk, err);
    for (uint32_t k = 0; rc == LADE_OK && k < walk->route->parts; k++) {
        walk->part = &parts[k];
        walk->param =
            &LADE_ITEMS(shell, params, struct lade_shell_param)[parts[k].param];
        bool side_by_side = walk->part->cut > 0 &&
                            lade_reach_pieces(walk->reach, walk->part) > 1;
        rc = side_by_side ? walk_columns(walk, err) : walk_rows(walk, err);
    }
    return rc;
}

int lade_segments_walk(struct lade_reach *reach,
                       const struct lade_plan_options *options,
                       lade_segment_sink sink, void *ctx,
                       struct lade_segment_sums *sums, lade_err *err)
{
    const struct lade_catalogue *catalogue = reach->in->catalogue;
    struct walk walk = {.reach = reach,
                        .options = options,
                        .sink = sink,
                        .ctx = ctx,
                        .sums = sums};

    *sums = (struct lade_segment_sums){0};
    for (uint64_t i = 0; i < catalogue->rows.count; i++) {
        walk.row = &LADE_ITEMS(catalogue, rows, struct lade_row)[i];
        walk.route =
            &LADE_ITEMS(reach->in->routes, routes, struct lade_route)[i];
        walk.base.row = (uint32_t)i;
        if (walk.route->part == UINT32_MAX)
            continue;
        int rc = walk_row(&walk, err);
        if (rc != LADE_OK)
            return rc;
    }
    return LADE_OK;
}
