/*
 * The plan of small made-up models, checked by carrying it out on paper: every
 * needed byte is in exactly one stripe of the island, every rank that needs it
 * is in the stripe's set, the reader is one of them, rounds fit the ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/box.h"
#include "plan/plan.h"

#define TENSORS 40
#define WORLD_MAX 16

/* A model of `TENSORS` tensors with one part each, kinds in turn. */
struct world {
    struct lade_mem *mem;
    struct lade_layout layout;
    struct lade_placement place;
    struct lade_shards *shards;
    struct lade_catalogue *catalogue;
    struct lade_shell *shell;
    struct lade_routes *routes;
    uint32_t node_of[WORLD_MAX];
    uint32_t nodes;
    lade_err err;
};

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void make_part(const struct world *w, uint32_t i, uint32_t *seed,
                      struct lade_shell_part *part,
                      struct lade_shell_param *param)
{
    uint32_t tp = w->layout.tp, kv = tp > 1 ? tp / 2 : 1;
    uint64_t rows = (1 + next_random(seed) % 5) * 16;
    uint64_t cols = (1 + next_random(seed) % 200) * 16;

    memset(part, 0, sizeof(*part));
    memset(param, 0, sizeof(*param));
    part->param = i;
    part->ndim = 2;
    part->copies = 1;
    part->shape[0] = rows;
    part->shape[1] = cols;
    part->piece = part->extent = rows;
    param->dtype = i % 7 == 6 ? LADE_DTYPE_F32 : LADE_DTYPE_BF16;
    param->ndim = 2;
    param->shape[0] = rows;
    param->shape[1] = cols;
    param->first_part = i;
    param->parts = 1;
    param->layer = i / 6;
    switch (i % 5) {
    case 0: /* replicated */
        break;
    case 1: /* rows by tp */
        part->axis = LADE_AXIS_TP;
        part->piece = param->shape[0] = rows / tp;
        break;
    case 2: /* columns by tp */
        part->axis = LADE_AXIS_TP;
        part->cut = 1;
        part->extent = cols;
        part->piece = param->shape[1] = cols / tp;
        break;
    case 3: /* KV heads, half as many as ranks */
        part->axis = LADE_AXIS_KV;
        part->copies = tp / kv;
        part->piece = param->shape[0] = rows / kv;
        break;
    default: /* an expert */
        part->experts = w->place.logical;
        param->flags = LADE_PARAM_EXPERTS;
        param->ndim = 3;
        param->shape[0] = 0;
        param->shape[1] = rows;
        param->shape[2] = cols;
        break;
    }
}

static void make_world(struct world *w, uint32_t tp, uint32_t dp,
                       uint32_t nodes, uint32_t redundant, uint32_t seed)
{
    struct lade_shell_part parts[TENSORS];
    struct lade_shell_param params[TENSORS];
    struct lade_row rows[TENSORS];
    struct lade_route routes[TENSORS];
    struct lade_shard shard = {.name = 1, .size = UINT64_C(1) << 40};
    uint32_t first[] = {0, TENSORS};
    uint64_t at = 1000 + 8 * (next_random(&seed) % 100);

    memset(w, 0, sizeof(*w));
    w->mem = lade_mem_new();
    w->layout = (struct lade_layout){.world = tp * dp,
                                     .tp = tp,
                                     .pp = 1,
                                     .dp = dp,
                                     .ep = tp * dp > 1,
                                     .redundant = redundant};
    w->nodes = nodes;
    for (uint32_t r = 0; r < w->layout.world; r++)
        w->node_of[r] = r * nodes / w->layout.world;
    assert_int_equal(
        lade_placement_init(&w->place, &w->layout, 6, 1, 1, w->mem, &w->err),
        LADE_OK);
    memset(rows, 0, sizeof(rows));
    memset(routes, 0, sizeof(routes));
    for (uint32_t i = 0; i < TENSORS; i++) {
        make_part(w, i, &seed, &parts[i], &params[i]);
        rows[i].ndim = 2;
        rows[i].dtype = LADE_DTYPE_BF16;
        rows[i].shape[0] = parts[i].shape[0];
        rows[i].shape[1] = parts[i].shape[1];
        rows[i].offset = at;
        rows[i].length = parts[i].shape[0] * parts[i].shape[1] * 2;
        at += rows[i].length;
        routes[i].part = i;
        routes[i].parts = 1;
        routes[i].expert = parts[i].experts ? i % w->place.logical : 0;
        if (i % 11 == 10) { /* dropped */
            routes[i].part = UINT32_MAX;
            routes[i].parts = 0;
        }
    }
    struct lade_catalogue c = {.blob.kind = LADE_BLOB_CATALOGUE};
    w->catalogue = lade_blob_pack(
        w->mem, &c, sizeof(c),
        (struct lade_section[]){{&c.rows, rows, TENSORS, sizeof(*rows)},
                                {&c.first_row, first, 2, sizeof(*first)},
                                {&c.pool, "\0n", 3, 1}},
        3, &w->err);
    struct lade_shards f = {.blob.kind = LADE_BLOB_SHARDS};
    w->shards = lade_blob_pack(
        w->mem, &f, sizeof(f),
        (struct lade_section[]){{&f.shards, &shard, 1, sizeof(shard)},
                                {&f.pool, "\0s", 3, 1}},
        2, &w->err);
    struct lade_shell s = {.blob.kind = LADE_BLOB_SHELL};
    w->shell = lade_blob_pack(
        w->mem, &s, sizeof(s),
        (struct lade_section[]){{&s.params, params, TENSORS, sizeof(*params)},
                                {&s.parts, parts, TENSORS, sizeof(*parts)},
                                {&s.pool, "\0n", 3, 1}},
        3, &w->err);
    struct lade_routes t = {.blob.kind = LADE_BLOB_ROUTES};
    w->routes = lade_blob_pack(
        w->mem, &t, sizeof(t),
        (struct lade_section[]){{&t.routes, routes, TENSORS, sizeof(*routes)}},
        1, &w->err);
    assert_non_null(w->catalogue);
    assert_non_null(w->shards);
    assert_non_null(w->shell);
    assert_non_null(w->routes);
}

static void free_world(struct world *w)
{
    lade_free(w->mem, w->catalogue);
    lade_free(w->mem, w->shards);
    lade_free(w->mem, w->shell);
    lade_free(w->mem, w->routes);
    lade_placement_fini(&w->place);
    for (int t = 0; t < LADE_TAGS; t++)
        assert_int_equal(lade_mem_now(w->mem, (enum lade_tag)t), 0);
    lade_mem_free(w->mem);
}

static struct lade_plan *plan_of(struct world *w,
                                 const struct lade_plan_options *options,
                                 uint64_t island)
{
    struct lade_plan_input in = {.shards = w->shards,
                                 .catalogue = w->catalogue,
                                 .shell = w->shell,
                                 .routes = w->routes,
                                 .place = &w->place,
                                 .layout = &w->layout,
                                 .node_of = w->node_of,
                                 .nodes = w->nodes};
    struct lade_plan *plan = NULL;

    assert_int_equal(
        lade_plan_build(&in, options, &island, w->mem, &plan, &w->err),
        LADE_OK);
    return plan;
}

/* Per file byte: bit r set if rank r needs it. */
static uint32_t *needs_by_byte(struct world *w, uint64_t island,
                               uint64_t *first, uint64_t *size)
{
    const struct lade_row *rows =
        LADE_ITEMS(w->catalogue, rows, struct lade_row);
    const struct lade_route *routes =
        LADE_ITEMS(w->routes, routes, struct lade_route);
    const struct lade_shell_part *parts =
        LADE_ITEMS(w->shell, parts, struct lade_shell_part);

    *first = rows[0].offset;
    *size = rows[TENSORS - 1].offset + rows[TENSORS - 1].length - *first;
    uint32_t *needs = calloc(*size, sizeof(*needs));
    for (uint32_t i = 0; i < TENSORS; i++)
        for (uint32_t r = 0; r < w->layout.world; r++) {
            struct lade_coords at = lade_coords_of(&w->layout, r);
            uint32_t slots[16];
            struct lade_box box;
            if (routes[i].part == UINT32_MAX || !(island >> r & 1))
                continue;
            const struct lade_shell_part *part = &parts[routes[i].part];
            if (lade_box_slots(w->shell, &w->place, part, routes[i].expert, &at,
                               slots, 16) == 0 ||
                !lade_box_of(w->shell, part, &at, 0, &box))
                continue;
            for (uint64_t j = 0; j < box.runs; j++)
                for (uint64_t e = 0; e < box.run * 2; e++)
                    needs[rows[i].offset - *first +
                          (box.src + j * box.src_step) * 2 + e] |= 1u << r;
        }
    return needs;
}

static void check_rounds(const struct world *w, const struct lade_plan *plan)
{
    const struct lade_stripe *stripes =
        LADE_ITEMS(plan, stripes, struct lade_stripe);
    const uint32_t *first = LADE_ITEMS(plan, first_stripe, uint32_t);
    uint32_t layer = 0;

    assert_int_equal(plan->first_stripe.count, plan->rounds + 1);
    for (uint32_t k = 0; k < plan->rounds; k++) {
        uint64_t used[WORLD_MAX] = {0};
        assert_true(first[k] < first[k + 1]);
        for (uint32_t i = first[k]; i < first[k + 1]; i++) {
            uint64_t set = *lade_plan_set(plan, stripes[i].set);
            assert_int_equal(stripes[i].round, k);
            assert_true(stripes[i].layer >= layer);
            layer = stripes[i].layer;
            for (uint32_t n = 0; n < w->nodes; n++) {
                bool here = false;
                for (uint32_t r = 0; r < w->layout.world; r++)
                    here |= (set >> r & 1) && w->node_of[r] == n;
                if (here && stripes[i].kind == LADE_STRIPE_SHARED)
                    used[n] += lade_plan_slot_bytes(&stripes[i]);
            }
        }
        for (uint32_t n = 0; n < w->nodes; n++)
            assert_true(used[n] <= plan->segment_bytes);
    }
    assert_true(plan->segments * plan->segment_bytes <= plan->options.staging);
}

/* Carries the plan out on paper. */
static void check_plan(struct world *w, const struct lade_plan *plan,
                       uint64_t island)
{
    const struct lade_stripe *stripes =
        LADE_ITEMS(plan, stripes, struct lade_stripe);
    uint64_t first, size, needed = 0, read = 0;
    uint32_t *needs = needs_by_byte(w, island, &first, &size);
    unsigned char *seen = calloc(size, 1);

    for (uint64_t b = 0; b < size; b++)
        needed += needs[b] != 0;
    for (uint32_t i = 0; i < plan->stripes.count; i++) {
        const struct lade_stripe *s = &stripes[i];
        uint64_t set = *lade_plan_set(plan, s->set), here = 0;
        assert_true(s->length > 0 && s->length <= plan->options.block);
        assert_true(set >> s->reader & 1);
        assert_int_equal(set & ~island, 0);
        for (uint64_t b = s->offset - first; b < s->offset - first + s->length;
             b++) {
            assert_true(b < size);
            assert_int_equal(seen[b]++, 0);
            assert_int_equal(needs[b] & ~set, 0);
            here |= needs[b];
            if (s->kind == LADE_STRIPE_DIRECT)
                assert_int_equal(needs[b], 1u << s->reader);
        }
        assert_true(here != 0);
        read += s->length;
    }
    for (uint64_t b = 0; b < size; b++)
        assert_true(needs[b] == 0 || seen[b] == 1);
    assert_int_equal(read, plan->totals.read_bytes);
    assert_int_equal(read - needed, plan->totals.gap_bytes);
    check_rounds(w, plan);
    free(needs);
    free(seen);
}

static void worlds_of_all_shapes(void **state)
{
    const struct {
        uint32_t tp, dp, nodes, redundant;
    } shapes[] = {{1, 1, 1, 0}, {2, 1, 1, 0}, {4, 1, 2, 2},  {8, 1, 2, 0},
                  {2, 4, 3, 2}, {1, 8, 8, 2}, {16, 1, 4, 10}};

    (void)state;
    for (unsigned i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
        for (uint32_t seed = 1; seed <= 3; seed++) {
            struct world w;
            struct lade_plan_options options;
            make_world(&w, shapes[i].tp, shapes[i].dp, shapes[i].nodes,
                       shapes[i].redundant, seed);
            lade_plan_defaults(&options);
            options.block = seed == 1 ? 4096 : 20000 * seed;
            options.staging = seed == 2 ? 100000 : 1000000;
            options.direct_min = seed == 3 ? 1 : 4096;
            options.gap = 2048;
            uint64_t all = (UINT64_C(1) << w.layout.world) - 1;
            struct lade_plan *plan = plan_of(&w, &options, all);
            check_plan(&w, plan, all);
            lade_free(w.mem, plan);
            free_world(&w);
        }
}

static void islands_read_their_own(void **state)
{
    struct world w;
    struct lade_plan_options options;

    (void)state;
    make_world(&w, 4, 2, 2, 2, 7);
    lade_plan_defaults(&options);
    options.scope = LADE_SCOPE_NODE;
    options.direct_min = 4096;
    for (uint32_t n = 0; n < 2; n++) {
        struct lade_plan *plan = plan_of(&w, &options, UINT64_C(15) << 4 * n);
        check_plan(&w, plan, UINT64_C(15) << 4 * n);
        assert_int_equal(plan->totals.internode_bytes, 0);
        lade_free(w.mem, plan);
    }
    options.scope = LADE_SCOPE_RANK;
    for (uint32_t r = 0; r < 8; r++) {
        struct lade_plan *plan = plan_of(&w, &options, UINT64_C(1) << r);
        check_plan(&w, plan, UINT64_C(1) << r);
        /* the ring of one rank is its part of the node's */
        assert_true(plan->options.staging * 4 <= options.staging);
        lade_free(w.mem, plan);
    }
    free_world(&w);
}

static void same_needs_whatever_the_island(void **state)
{
    struct world w;
    struct lade_plan_options options;

    (void)state;
    make_world(&w, 2, 4, 2, 0, 5);
    lade_plan_defaults(&options);
    struct lade_plan *world = plan_of(&w, &options, 255);
    options.scope = LADE_SCOPE_RANK;
    struct lade_plan *one = plan_of(&w, &options, 4);
    assert_int_equal(one->totals.needed_bytes, world->totals.needed_bytes);
    assert_int_equal(world->totals.needed_bytes + world->totals.gap_bytes,
                     world->totals.read_bytes);
    assert_true(one->totals.read_bytes < world->totals.read_bytes);
    lade_free(w.mem, world);
    lade_free(w.mem, one);
    free_world(&w);
}

static void digest_sees_every_input(void **state)
{
    struct lade_plan_options options;
    struct lade_digest digests[4];
    struct world w;

    (void)state;
    lade_plan_defaults(&options);
    for (int i = 0; i < 4; i++) {
        make_world(&w, 2, 2, i == 2 ? 2 : 1, 0, 5);
        if (i == 3) /* the file was touched */
            ((struct lade_shard *)((char *)w.shards + w.shards->shards.at))
                ->mtime_ns = 1;
        struct lade_plan *plan = plan_of(&w, &options, 15);
        digests[i] = plan->digest;
        lade_free(w.mem, plan);
        free_world(&w);
    }
    assert_int_equal(digests[0].low, digests[1].low);
    assert_int_equal(digests[0].high, digests[1].high);
    assert_int_not_equal(digests[0].low, digests[2].low);
    assert_int_not_equal(digests[0].low, digests[3].low);
}

static void null_device_has_no_direct_stripe(void **state)
{
    struct world w;
    struct lade_plan_options options;

    (void)state;
    make_world(&w, 1, 1, 1, 0, 5);
    lade_plan_defaults(&options);
    options.stores = false;
    struct lade_plan *plan = plan_of(&w, &options, 1);
    assert_int_equal(plan->totals.direct_stripes, 0);
    assert_int_equal(plan->totals.delivered_bytes, 0);
    check_plan(&w, plan, 1);
    lade_free(w.mem, plan);
    free_world(&w);
}

static void staging_too_small_is_refused(void **state)
{
    struct lade_plan_options options;
    struct lade_plan *plan = NULL;
    struct world w;
    uint64_t all = 1;

    (void)state;
    make_world(&w, 1, 1, 1, 0, 5);
    lade_plan_defaults(&options);
    options.staging = 4096;
    struct lade_plan_input in = {.shards = w.shards,
                                 .catalogue = w.catalogue,
                                 .shell = w.shell,
                                 .routes = w.routes,
                                 .place = &w.place,
                                 .layout = &w.layout,
                                 .node_of = w.node_of,
                                 .nodes = 1};
    assert_int_equal(lade_plan_build(&in, &options, &all, w.mem, &plan, &w.err),
                     LADE_E_USAGE);
    assert_non_null(strstr(w.err.text, "--staging"));
    assert_null(plan);
    free_world(&w);
}

static void readers_are_balanced(void **state)
{
    struct lade_plan_options options;
    uint64_t load[8] = {0}, most = 0, total = 0;
    struct world w;

    (void)state;
    make_world(&w, 8, 1, 2, 0, 5);
    lade_plan_defaults(&options);
    options.block = 8192;
    struct lade_plan *plan = plan_of(&w, &options, 255);
    const struct lade_stripe *s = LADE_ITEMS(plan, stripes, struct lade_stripe);
    for (uint32_t i = 0; i < plan->stripes.count; i++)
        load[s[i].reader] += s[i].length;
    for (int r = 0; r < 8; r++) {
        most = load[r] > most ? load[r] : most;
        total += load[r];
    }
    assert_true(most * 8 < total + total / 4);
    lade_free(w.mem, plan);
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worlds_of_all_shapes),
        cmocka_unit_test(islands_read_their_own),
        cmocka_unit_test(same_needs_whatever_the_island),
        cmocka_unit_test(digest_sees_every_input),
        cmocka_unit_test(null_device_has_no_direct_stripe),
        cmocka_unit_test(staging_too_small_is_refused),
        cmocka_unit_test(readers_are_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
