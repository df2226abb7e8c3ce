/*
 * In: a stripe's bytes. Out: elements in parameters, counted per cell. The
 * boxes are computed here, not stored: rows under the stripe, parts of the
 * row's route, slots of the expert on this rank.
 */
#include "share/take.h"

#include "kernels/unpack.h"
#include "plan/box.h"

int lade_taker_init(struct lade_taker *taker, const struct lade_plan_input *in,
                    const struct lade_target *target, uint32_t rank,
                    struct lade_mem *mem, lade_err *err)
{
    *taker = (struct lade_taker){
        .in = in,
        .target = target,
        .at = lade_coords_of(in->layout, rank),
        .max_slots = in->place->physical > 1 ? in->place->physical : 1,
    };
    taker->slots = lade_alloc_array(mem, LADE_TAG_TEMP, taker->max_slots,
                                    sizeof(uint32_t), err);
    return taker->slots ? LADE_OK : LADE_E_MEMORY;
}

void lade_taker_fini(struct lade_taker *taker, struct lade_mem *mem)
{
    lade_free(mem, taker->slots);
}

/* One box of this rank that meets the stripe. */
struct piece {
    const struct lade_row *row;
    const struct lade_shell_part *part;
    const struct lade_shell_param *param;
    struct lade_box box;
    uint32_t slot;
    unsigned unit;      /* bytes of a disk element */
    uint64_t low, high; /* elements of the tensor inside the stripe */
};

typedef bool (*piece_visitor)(struct lade_taker *taker,
                              const struct piece *piece, void *ctx);

static bool visit_slots(struct lade_taker *taker, struct piece *piece,
                        uint32_t expert, piece_visitor visit, void *ctx)
{
    const struct lade_shell *shell = taker->in->shell;
    uint32_t count =
        lade_box_slots(shell, taker->in->place, piece->part, expert, &taker->at,
                       taker->slots, taker->max_slots);

    for (uint32_t i = 0; i < count; i++) {
        piece->slot = taker->slots[i];
        if (lade_box_of(shell, piece->part, &taker->at, piece->slot,
                        &piece->box) &&
            !visit(taker, piece, ctx))
            return false;
    }
    return true;
}

/* Calls visit for every box of this rank in the rows under the stripe, until
 * it returns false. */
static void visit_pieces(struct lade_taker *taker,
                         const struct lade_stripe *stripe, piece_visitor visit,
                         void *ctx)
{
    const struct lade_plan_input *in = taker->in;
    const struct lade_shell_part *parts =
        LADE_ITEMS(in->shell, parts, struct lade_shell_part);
    const struct lade_shell_param *params =
        LADE_ITEMS(in->shell, params, struct lade_shell_param);
    uint64_t end = stripe->offset + stripe->length;

    for (uint32_t i = 0; i < stripe->rows; i++) {
        uint32_t r = stripe->first_row + i;
        struct piece piece = {
            .row = &LADE_ITEMS(in->catalogue, rows, struct lade_row)[r]};
        const struct lade_route *route =
            &LADE_ITEMS(in->routes, routes, struct lade_route)[r];
        uint64_t first = lade_max_u64(stripe->offset, piece.row->offset);
        uint64_t last =
            lade_min_u64(end, piece.row->offset + piece.row->length);
        if (route->part == UINT32_MAX || first >= last)
            continue;
        piece.unit = lade_dtype_bits((enum lade_dtype)piece.row->dtype) / 8;
        piece.low = (first - piece.row->offset) / piece.unit;
        piece.high = (last - piece.row->offset) / piece.unit;
        for (uint32_t k = 0; k < route->parts; k++) {
            piece.part = &parts[route->part + k];
            piece.param = &params[piece.part->param];
            if (!visit_slots(taker, &piece, route->expert, visit, ctx))
                return;
        }
    }
}

static uint64_t *cell_of(const struct lade_taker *taker,
                         const struct piece *piece)
{
    uint32_t p = piece->part->param;
    const struct lade_shell_part *first =
        LADE_ITEMS(taker->in->shell, parts, struct lade_shell_part) +
        piece->param->first_part;

    return &taker->target->written[taker->target->first_cell[p] +
                                   piece->slot * piece->param->parts +
                                   (uint32_t)(piece->part - first)];
}

static enum lade_number number_of(enum lade_dtype dtype)
{
    switch (dtype) {
    case LADE_DTYPE_F16:
        return LADE_F16;
    case LADE_DTYPE_BF16:
        return LADE_BF16;
    case LADE_DTYPE_F32:
        return LADE_F32;
    default:
        return LADE_F64;
    }
}

static void account(struct lade_taker *taker, const struct piece *piece,
                    uint64_t elements)
{
    *cell_of(taker, piece) += elements;
    taker->delivered_bytes +=
        elements * lade_dtype_bits((enum lade_dtype)piece->param->dtype) / 8;
    if (piece->row->dtype != piece->param->dtype)
        taker->cast_elements += elements;
}

static uint64_t overlap(const struct lade_unpack *u)
{
    uint64_t first, last, element, count = 0;

    lade_unpack_runs(u, &first, &last);
    for (uint64_t j = first; j < last; j++)
        count += lade_unpack_run(u, j, &element);
    return count;
}

static bool take_piece(struct lade_taker *taker, const struct piece *piece,
                       void *ctx)
{
    const struct lade_stripe *stripe = ((const void **)ctx)[0];
    const unsigned char *data = ((const void **)ctx)[1];
    enum lade_dtype from = (enum lade_dtype)piece->row->dtype;
    enum lade_dtype to = (enum lade_dtype)piece->param->dtype;
    struct lade_unpack u = {
        .to = taker->target->data[piece->part->param],
        .src = piece->box.src,
        .dst = piece->box.dst,
        .runs = piece->box.runs,
        .run = piece->box.run,
        .src_step = piece->box.src_step,
        .dst_step = piece->box.dst_step,
        .low = piece->low,
        .high = piece->high,
    };

    if (data == NULL) {
        account(taker, piece, overlap(&u));
        return true;
    }
    u.from =
        data + (piece->row->offset + piece->low * piece->unit - stripe->offset);
    account(taker, piece,
            from == to
                ? lade_unpack_copy_host(&u, piece->unit)
                : lade_unpack_cast_host(&u, number_of(from), number_of(to)));
    return true;
}

void lade_take(struct lade_taker *taker, const struct lade_stripe *stripe,
               const unsigned char *data)
{
    const void *ctx[] = {stripe, data};

    visit_pieces(taker, stripe, take_piece, ctx);
}

/* Finds the box that the direct stripe lies in. */
struct landing {
    struct piece piece;
    void *address;
    bool found;
};

static bool land(struct lade_taker *taker, const struct piece *piece, void *ctx)
{
    struct landing *landing = ctx;
    uint64_t end = piece->box.src + piece->box.run;

    if (piece->box.runs != 1 || piece->low < piece->box.src ||
        piece->high > end || piece->row->dtype != piece->param->dtype)
        return true;
    unsigned char *data = taker->target->data[piece->part->param];
    uint64_t at = piece->box.dst + (piece->low - piece->box.src);
    landing->piece = *piece;
    landing->found = true;
    landing->address = data ? data + at * piece->unit : NULL;
    return false;
}

void *lade_take_address(struct lade_taker *taker,
                        const struct lade_stripe *stripe)
{
    struct landing landing = {.found = false};

    visit_pieces(taker, stripe, land, &landing);
    return landing.address;
}

void lade_take_count(struct lade_taker *taker, const struct lade_stripe *stripe)
{
    struct landing landing = {.found = false};

    visit_pieces(taker, stripe, land, &landing);
    if (landing.found)
        account(taker, &landing.piece, landing.piece.high - landing.piece.low);
}
