/*
 * In: stripes in file order. Out: the same in layer order, each with its reader
 * and its round. A round's shared stripes fit one segment of every node's ring.
 */
#include "plan/segments.h"

#include <stdlib.h>
#include <string.h>

#define RING_SEGMENTS 3    /* one being read, one travelling, one unpacked */
#define DIRECT_PER_ROUND 4 /* direct bytes of a rank's node, in segments */

static int by_layer(const void *x, const void *y)
{
    const struct lade_stripe *a = x, *b = y;

    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    if (a->shard != b->shard)
        return a->shard < b->shard ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

struct loads {
    const struct lade_plan_input *in;
    uint64_t *rank, *node; /* bytes to read */
    uint32_t *node_ranks;
};

static void load_add(struct loads *loads, struct lade_stripe *stripe,
                     uint32_t reader)
{
    stripe->reader = reader;
    loads->rank[reader] += stripe->length;
    loads->node[loads->in->node_of[reader]] += stripe->length;
}

/* Is node a less loaded per rank than node b? */
static bool lighter(const struct loads *loads, uint32_t a, uint32_t b)
{
    return (double)loads->node[a] / loads->node_ranks[a] <
           (double)loads->node[b] / loads->node_ranks[b];
}

/* The least loaded rank of the set; nodes before ranks. */
static uint32_t choose_reader(const struct loads *loads, const uint64_t *set)
{
    uint32_t world = loads->in->layout->world, best = UINT32_MAX;

    for (uint32_t r = 0; r < world; r++) {
        if (set[r / 64] == 0) {
            r |= 63;
            continue;
        }
        if (!lade_bit_get(set, r))
            continue;
        if (best == UINT32_MAX) {
            best = r;
            continue;
        }
        uint32_t mine = loads->in->node_of[r], than = loads->in->node_of[best];
        if (mine == than ? loads->rank[r] < loads->rank[best]
                         : lighter(loads, mine, than))
            best = r;
    }
    return best;
}

static int choose_readers(struct lade_stripes *stripes, lade_err *err)
{
    struct lade_reach *reach = stripes->reach;
    struct loads loads = {.in = reach->in};
    uint32_t world = reach->in->layout->world;
    uint64_t count = stripes->list.count;
    struct lade_stripe *list = stripes->list.data;
    struct lade_arena arena;

    lade_arena_init(&arena, reach->arena.mem, LADE_TAG_TEMP);
    loads.rank = lade_arena_alloc(&arena, world * sizeof(uint64_t), err);
    loads.node =
        lade_arena_alloc(&arena, reach->in->nodes * sizeof(uint64_t), err);
    loads.node_ranks =
        lade_arena_alloc(&arena, reach->in->nodes * sizeof(uint32_t), err);
    int rc =
        loads.rank && loads.node && loads.node_ranks ? LADE_OK : LADE_E_MEMORY;
    for (uint32_t r = 0; rc == LADE_OK && r < world; r++)
        loads.node_ranks[reach->in->node_of[r]]++;
    for (uint64_t i = 0; rc == LADE_OK && i < count; i++)
        if (list[i].kind == LADE_STRIPE_DIRECT)
            load_add(&loads, &list[i],
                     lade_bits_only(lade_sets_get(&reach->sets, list[i].set),
                                    reach->sets.words));
    for (uint64_t i = 0; rc == LADE_OK && i < count; i++)
        if (list[i].kind == LADE_STRIPE_SHARED)
            load_add(&loads, &list[i],
                     choose_reader(&loads,
                                   lade_sets_get(&reach->sets, list[i].set)));
    lade_arena_fini(&arena);
    return rc;
}

/* Bytes that each node holds in the open round. */
struct fill {
    uint64_t *ring, *direct; /* [nodes] */
    uint64_t ring_most;      /* of any node in any round */
};

/* Adds the stripe to the open round if it fits; false: start a new one. */
static bool fits(const struct lade_reach *reach, const struct fill *fill,
                 const struct lade_stripe *stripe, const uint64_t *nodes,
                 uint64_t segment)
{
    if (stripe->kind == LADE_STRIPE_DIRECT) {
        uint64_t used = fill->direct[reach->in->node_of[stripe->reader]];
        return used == 0 || used + stripe->length <= segment * DIRECT_PER_ROUND;
    }
    for (uint32_t n = 0; n < reach->in->nodes; n++)
        if (lade_bit_get(nodes, n) &&
            fill->ring[n] + lade_plan_slot_bytes(stripe) > segment)
            return false;
    return true;
}

static void put(const struct lade_reach *reach, struct fill *fill,
                const struct lade_stripe *stripe, const uint64_t *nodes)
{
    if (stripe->kind == LADE_STRIPE_DIRECT) {
        fill->direct[reach->in->node_of[stripe->reader]] += stripe->length;
        return;
    }
    for (uint32_t n = 0; n < reach->in->nodes; n++)
        if (lade_bit_get(nodes, n)) {
            fill->ring[n] += lade_plan_slot_bytes(stripe);
            fill->ring_most = lade_max_u64(fill->ring_most, fill->ring[n]);
        }
}

static void count_traffic(struct lade_plan *plan,
                          const struct lade_stripe *stripe, uint32_t nodes)
{
    struct lade_plan_totals *totals = &plan->totals;

    totals->read_bytes += stripe->length;
    totals->gap_bytes += stripe->length - stripe->needed;
    if (stripe->kind == LADE_STRIPE_DIRECT) {
        totals->direct_stripes++;
        totals->direct_bytes += stripe->length;
        return;
    }
    totals->shared_stripes++;
    totals->shared_bytes += stripe->length;
    totals->internode_bytes += (uint64_t)stripe->length * (nodes - 1);
    totals->messages += nodes - 1;
}

static int cut_rounds(struct lade_stripes *stripes, struct lade_plan *plan,
                      struct lade_vec *first, struct fill *fill, lade_err *err)
{
    struct lade_reach *reach = stripes->reach;
    uint64_t segment = plan->options.staging / RING_SEGMENTS;
    size_t size = reach->in->nodes * sizeof(uint64_t);

    for (uint32_t i = 0; i < stripes->list.count; i++) {
        struct lade_stripe *stripe =
            LADE_VEC_AT(&stripes->list, struct lade_stripe, i);
        uint32_t set;
        int rc = lade_reach_nodes(reach, stripe->set, &set, err);
        if (rc != LADE_OK)
            return rc;
        const uint64_t *nodes = lade_sets_get(&reach->nodes, set);
        if (i == 0 || !fits(reach, fill, stripe, nodes, segment)) {
            memset(fill->ring, 0, size);
            memset(fill->direct, 0, size);
            if (lade_vec_push(first, &i, err) == NULL)
                return LADE_E_MEMORY;
        }
        stripe->round = (uint32_t)(first->count - 1);
        put(reach, fill, stripe, nodes);
        count_traffic(plan, stripe, lade_bits_count(nodes, reach->nodes.words));
    }
    plan->rounds = (uint32_t)first->count;
    uint32_t end = (uint32_t)stripes->list.count;
    return lade_vec_push(first, &end, err) ? LADE_OK : LADE_E_MEMORY;
}

int lade_rounds_build(struct lade_stripes *stripes, struct lade_plan *plan,
                      struct lade_vec *first_stripe, lade_err *err)
{
    struct lade_reach *reach = stripes->reach;
    struct lade_arena arena;
    struct fill fill = {0};
    int rc;

    lade_arena_init(&arena, reach->arena.mem, LADE_TAG_TEMP);
    fill.ring =
        lade_arena_alloc(&arena, reach->in->nodes * sizeof(uint64_t), err);
    fill.direct =
        lade_arena_alloc(&arena, reach->in->nodes * sizeof(uint64_t), err);
    if (fill.ring == NULL || fill.direct == NULL)
        LADE_TRY(LADE_E_MEMORY);
    LADE_TRY(choose_readers(stripes, err));
    if (stripes->list.count > 0)
        qsort(stripes->list.data, stripes->list.count,
              sizeof(struct lade_stripe), by_layer);
    LADE_TRY(cut_rounds(stripes, plan, first_stripe, &fill, err));
    plan->segments = fill.ring_most > 0 ? RING_SEGMENTS : 0;
    plan->segment_bytes = fill.ring_most;
out:
    lade_arena_fini(&arena);
    return rc;
}
