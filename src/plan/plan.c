/*
 * In: the products of the earlier gates and an island of ranks. Out: the plan.
 * Pure: no clock, no communicator, no device; equal inputs give equal bytes on
 * every node, which the digest proves.
 */
#include "plan/plan.h"

#include <string.h>

#include "plan/segments.h"

void lade_plan_defaults(struct lade_plan_options *options)
{
    *options = (struct lade_plan_options){
        .scope = LADE_SCOPE_WORLD,
        .block = UINT64_C(8) << 20,
        .staging = UINT64_C(256) << 20,
        .direct_min = UINT64_C(512) << 10,
        .gap = UINT64_C(32) << 10,
        .stores = true,
    };
}

/* Ranks on the node of the island's first rank. */
static uint32_t neighbours(const struct lade_plan_input *in,
                           const uint64_t *island)
{
    uint32_t first = 0, count = 0;

    while (first + 1 < in->layout->world && !lade_bit_get(island, first))
        first++;
    for (uint32_t r = 0; r < in->layout->world; r++)
        count += in->node_of[r] == in->node_of[first];
    return count;
}

/* Options as they take effect: the ring divided over ranks where each has its
 * own, blocks that fit a segment, gaps that never bridge a direct piece. */
static int settle(const struct lade_plan_input *in, const uint64_t *island,
                  struct lade_plan_options *options, lade_err *err)
{
    if (options->scope == LADE_SCOPE_RANK)
        options->staging /= neighbours(in, island);
    uint64_t segment = options->staging / 3;
    uint64_t room = 2 * LADE_RING_UNIT + 2 * LADE_RING_STATUS;
    if (segment < room + LADE_RING_UNIT)
        return lade_err_set(
            err, LADE_E_USAGE,
            "staging of %llu bytes is too small: a ring needs at least %llu "
            "(--staging)",
            (unsigned long long)options->staging,
            (unsigned long long)(3 * (room + LADE_RING_UNIT)));
    options->block = lade_min_u64(options->block, segment - room);
    options->block = lade_min_u64(options->block, UINT64_C(1) << 29);
    options->block -= options->block % LADE_RING_UNIT;
    if (options->block == 0)
        options->block = LADE_RING_UNIT;
    if (options->direct_min == 0)
        options->direct_min = 1;
    options->gap = lade_min_u64(options->gap, options->direct_min - 1);
    return LADE_OK;
}

static void fold(struct lade_digest *digest, const void *data, size_t size)
{
    *digest = lade_digest_join(*digest, lade_digest_of(data, size));
}

/* Everything that must be equal on all nodes. Device and inode numbers of the
 * files may differ between nodes and are left out. */
static struct lade_digest digest_inputs(const struct lade_plan_input *in,
                                        const struct lade_plan_options *options)
{
    const struct lade_layout *layout = in->layout;
    struct lade_digest digest = {0, 0};
    uint64_t words[] = {options->scope,      options->block, options->staging,
                        options->direct_min, options->gap,   options->stores,
                        layout->world,       layout->tp,     layout->pp,
                        layout->dp,          layout->ep,     in->place->kind,
                        in->place->physical, in->nodes};

    fold(&digest, words, sizeof(words));
    fold(&digest, in->node_of, layout->world * sizeof(uint32_t));
    for (uint64_t i = 0; i < in->shards->shards.count; i++) {
        const struct lade_shard *shard =
            &LADE_ITEMS(in->shards, shards, struct lade_shard)[i];
        const char *name = LADE_STRING(in->shards, pool, shard->name);
        uint64_t file[] = {shard->size, (uint64_t)shard->mtime_ns};
        fold(&digest, name, strlen(name));
        fold(&digest, file, sizeof(file));
    }
    fold(&digest, in->catalogue, in->catalogue->blob.size);
    fold(&digest, in->shell, in->shell->blob.size);
    fold(&digest, in->routes, in->routes->blob.size);
    if (in->place->logical > 0)
        fold(&digest, in->place->map,
             (size_t)in->place->map_layers * in->place->physical *
                 sizeof(uint32_t));
    return digest;
}

/* Tensor bytes that any rank of the world needs: for an island a second, cheap
 * walk over all ranks. */
static int world_needs(const struct lade_plan_input *in,
                       const struct lade_plan_options *options,
                       const uint64_t *island, struct lade_mem *mem,
                       uint64_t *needed, lade_err *err)
{
    uint32_t words = (in->layout->world + 63) / 64;
    struct lade_segment_sums sums;
    struct lade_reach reach;
    int rc = LADE_OK;

    if (lade_bits_count(island, words) == in->layout->world)
        return LADE_OK;
    uint64_t *all = lade_alloc(mem, LADE_TAG_TEMP, words * sizeof(*all), err);
    if (all == NULL)
        return LADE_E_MEMORY;
    for (uint32_t r = 0; r < in->layout->world; r++)
        lade_bit_set(all, r);
    rc = lade_reach_init(&reach, in, all, mem, err);
    if (rc == LADE_OK)
        rc = lade_segments_walk(&reach, options, NULL, NULL, &sums, err);
    if (rc == LADE_OK)
        *needed = sums.needed;
    lade_reach_fini(&reach);
    lade_free(mem, all);
    return rc;
}

static int pack(struct lade_plan *head, struct lade_stripes *stripes,
                const struct lade_vec *first, struct lade_mem *mem,
                struct lade_plan **plan, lade_err *err)
{
    struct lade_reach *reach = stripes->reach;
    const struct lade_section sections[] = {
        {&head->stripes, stripes->list.data, stripes->list.count,
         sizeof(struct lade_stripe)},
        {&head->first_stripe, first->data, first->count, sizeof(uint32_t)},
        {&head->sets, reach->sets.bits.data, reach->sets.bits.count,
         reach->sets.bits.item},
        {&head->node_of, reach->in->node_of, reach->in->layout->world,
         sizeof(uint32_t)},
    };

    head->set_words = reach->sets.words;
    *plan = lade_blob_pack(mem, head, sizeof(*head), sections, 4, err);
    return *plan ? LADE_OK : LADE_E_MEMORY;
}

int lade_plan_build(const struct lade_plan_input *in,
                    const struct lade_plan_options *options,
                    const uint64_t *island, struct lade_mem *mem,
                    struct lade_plan **plan, lade_err *err)
{
    struct lade_plan head = {.blob.kind = LADE_BLOB_PLAN,
                             .options = *options,
                             .ranks = in->layout->world,
                             .nodes = in->nodes};
    struct lade_reach reach;
    struct lade_stripes stripes = {.reach = &reach, .options = &head.options};
    struct lade_segment_sums sums;
    struct lade_vec first;
    int rc;

    lade_vec_init(&stripes.list, mem, LADE_TAG_TEMP,
                  sizeof(struct lade_stripe));
    lade_vec_init(&first, mem, LADE_TAG_TEMP, sizeof(uint32_t));
    LADE_TRY(lade_reach_init(&reach, in, island, mem, err));
    LADE_TRY(settle(in, island, &head.options, err));
    LADE_TRY(lade_segments_walk(&reach, &head.options, lade_stripes_add,
                                &stripes, &sums, err));
    LADE_TRY(lade_stripes_close(&stripes, err));
    LADE_TRY(lade_rounds_build(&stripes, &head, &first, err));
    head.totals.delivered_bytes = options->stores ? sums.delivered : 0;
    head.totals.needed_bytes = sums.needed;
    LADE_TRY(world_needs(in, &head.options, island, mem,
                         &head.totals.needed_bytes, err));
    head.digest = digest_inputs(in, &head.options);
    if (options->scope == LADE_SCOPE_WORLD && stripes.list.count > 0)
        fold(&head.digest, stripes.list.data,
             stripes.list.count * sizeof(struct lade_stripe));
    LADE_TRY(pack(&head, &stripes, &first, mem, plan, err));
out:
    lade_reach_fini(&reach);
    lade_vec_fini(&stripes.list);
    lade_vec_fini(&first);
    return rc;
}

uint32_t lade_plan_receiver(const struct lade_plan *plan, uint32_t stripe,
                            uint32_t node)
{
    const struct lade_stripe *it =
        &LADE_ITEMS(plan, stripes, struct lade_stripe)[stripe];
    const uint64_t *set = lade_plan_set(plan, it->set);
    const uint32_t *node_of = LADE_ITEMS(plan, node_of, uint32_t);
    uint32_t count = 0, pick;

    for (uint32_t r = 0; r < plan->ranks; r++)
        count += lade_bit_get(set, r) && node_of[r] == node;
    if (count == 0)
        return UINT32_MAX;
    pick = stripe % count;
    for (uint32_t r = 0; r < plan->ranks; r++)
        if (lade_bit_get(set, r) && node_of[r] == node && pick-- == 0)
            return r;
    return UINT32_MAX;
}
