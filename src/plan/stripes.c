/*
 * In: segments in file order. Out: stripes: long segments cut at aligned file
 * offsets, small neighbours joined while gap, length and nodes allow it.
 */
#include "plan/segments.h"

/* Neighbours for other nodes are joined only up to this size: what is joined
 * travels to every node that needs any of it. */
#define SMALL_NEIGHBOUR (16u << 10)

static int push(struct lade_stripes *stripes, const struct lade_stripe *stripe,
                lade_err *err)
{
    if (stripes->list.count >= UINT32_MAX)
        return lade_err_set(err, LADE_E_MEMORY,
                            "more than %u stripes; choose a larger --block",
                            UINT32_MAX);
    return lade_vec_push(&stripes->list, stripe, err) ? LADE_OK : LADE_E_MEMORY;
}

/* Where to cut a range that must not pass `limit`: at a multiple of the ring
 * unit, so that two readers never share a block, and between elements. */
static uint64_t cut_before(const struct lade_segment *segment, uint64_t begin,
                           uint64_t limit)
{
    uint64_t cut = limit - limit % LADE_RING_UNIT;

    if (cut <= begin)
        cut = limit;
    cut -= (cut - segment->origin) % segment->unit;
    return cut > begin ? cut
                       : lade_min_u64(segment->end, begin + segment->unit);
}

static struct lade_stripe start(const struct lade_segment *segment,
                                uint64_t begin)
{
    return (struct lade_stripe){
        .offset = begin,
        .shard = segment->shard,
        .first_row = segment->row,
        .rows = 1,
        .set = segment->set,
        .layer = segment->layer,
    };
}

static void extend(struct lade_stripe *stripe,
                   const struct lade_segment *segment, uint64_t end,
                   uint64_t needed)
{
    stripe->length = (uint32_t)(end - stripe->offset);
    stripe->rows = segment->row - stripe->first_row + 1;
    stripe->needed += (uint32_t)needed;
    if (segment->layer < stripe->layer)
        stripe->layer = segment->layer;
}

static int add_direct(struct lade_stripes *stripes,
                      const struct lade_segment *segment, lade_err *err)
{
    uint64_t at = segment->begin;
    int rc = lade_stripes_close(stripes, err);

    while (rc == LADE_OK && at < segment->end) {
        uint64_t end = segment->end;
        if (end - at > stripes->options->block)
            end = cut_before(segment, at, at + stripes->options->block);
        struct lade_stripe stripe = start(segment, at);
        stripe.kind = LADE_STRIPE_DIRECT;
        extend(&stripe, segment, end, end - at);
        rc = push(stripes, &stripe, err);
        at = end;
    }
    return rc;
}

int lade_stripes_close(struct lade_stripes *stripes, lade_err *err)
{
    int rc = LADE_OK;

    if (stripes->open.length > 0)
        rc = push(stripes, &stripes->open, err);
    stripes->open = (struct lade_stripe){0};
    return rc;
}

/* May the segment continue the open stripe? */
static bool continues(const struct lade_stripes *stripes,
                      const struct lade_segment *segment, uint32_t nodes)
{
    const struct lade_stripe *open = &stripes->open;
    uint64_t end = open->offset + open->length;

    if (open->length == 0 || segment->shard != open->shard ||
        segment->begin < end || segment->begin - end > stripes->options->gap ||
        segment->begin - open->offset >= stripes->options->block)
        return false;
    return nodes == stripes->open_nodes ||
           segment->end - segment->begin <= SMALL_NEIGHBOUR ||
           open->length <= SMALL_NEIGHBOUR;
}

/* Joins the segment's set to the open stripe. */
static int join(struct lade_stripes *stripes,
                const struct lade_segment *segment, lade_err *err)
{
    int rc = lade_reach_union(stripes->reach, stripes->open.set, segment->set,
                              &stripes->open.set, err);
    if (rc == LADE_OK)
        rc = lade_reach_nodes(stripes->reach, stripes->open.set,
                              &stripes->open_nodes, err);
    return rc;
}

int lade_stripes_add(void *ctx, const struct lade_segment *segment,
                     lade_err *err)
{
    struct lade_stripes *stripes = ctx;
    uint64_t block = stripes->options->block;
    uint64_t at = segment->begin, needed = segment->needed;
    uint32_t nodes;

    if (segment->direct)
        return add_direct(stripes, segment, err);
    int rc = lade_reach_nodes(stripes->reach, segment->set, &nodes, err);
    if (rc == LADE_OK && continues(stripes, segment, nodes))
        rc = join(stripes, segment, err);
    else if (rc == LADE_OK)
        rc = lade_stripes_close(stripes, err);
    while (rc == LADE_OK && at < segment->end) {
        if (stripes->open.length == 0) {
            stripes->open = start(segment, at);
            stripes->open.kind = LADE_STRIPE_SHARED;
            stripes->open_nodes = nodes;
        }
        uint64_t limit = stripes->open.offset + block, end = segment->end;
        if (end > limit)
            end = cut_before(segment, at, limit);
        uint64_t here = lade_min_u64(needed, end - at);
        extend(&stripes->open, segment, end, here);
        needed -= here;
        at = end;
        if (at < segment->end)
            rc = lade_stripes_close(stripes, err);
    }
    return rc;
}
