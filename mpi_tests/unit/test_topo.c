/*
 * Sizes and coordinates, where experts are (against the engine's answers in
 * data/placement_vectors.json), explicit maps with their errors, sets of ranks.
 */
#include "unit.h"

#include "scarce.h"

#include "base/json.h"
#include "base/log.h"
#include "topo/topo.h"

static struct lade_mem *mem;
static cJSON *vectors;
static char folder[PATH_MAX];

static int set_up(void **state)
{
    lade_err err = LADE_ERR_INIT;

    (void)state;
    lade_log_setup(LADE_LOG_ERROR, 0, 1, "n0");
    mem = lade_mem_new();
    unit_folder_new(folder);
    return !mem || lade_json_read(LADE_TEST_DATA "/data/placement_vectors.json",
                                  1 << 20, &vectors, &err) != LADE_OK;
}

static int tear_down(void **state)
{
    uint64_t left = 0;

    (void)state;
    for (int t = 0; t < LADE_TAGS; t++)
        left += lade_mem_now(mem, (enum lade_tag)t);
    cJSON_Delete(vectors);
    lade_mem_free(mem);
    lade_warn_reset();
    unit_folder_free(folder);
    return left != 0;
}

/* ---- helpers ---- */

static const cJSON *get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static uint32_t number(const cJSON *object, const char *key)
{
    assert_true(cJSON_IsNumber(get(object, key)));
    return (uint32_t)get(object, key)->valueint;
}

static bool is(const cJSON *object, const char *key, const char *text)
{
    const cJSON *item = get(object, key);

    return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

static struct lade_layout layout_of(uint32_t tp, uint32_t dp, bool ep)
{
    return (struct lade_layout){
        .world = tp * dp, .tp = tp, .pp = 1, .dp = dp, .ep = ep};
}

static void place_of(const struct lade_layout *layout, uint32_t experts,
                     uint32_t groups, struct lade_placement *place)
{
    lade_err err = LADE_ERR_INIT;

    if (lade_placement_init(place, layout, experts, groups, 2, mem, &err) !=
        LADE_OK)
        fail_msg("%s", err.text);
}

/* owner and slot are the inverse of physical, and every one is on one rank. */
static void check_inverse(const struct lade_placement *place)
{
    uint32_t seen = 0;

    for (uint32_t r = 0; r < place->ep; r++)
        for (uint32_t s = 0; s < lade_place_count(place, r); s++, seen++) {
            uint32_t rank, slot, p = lade_place_physical(place, r, s);
            assert_true(p < place->physical);
            lade_place_owner(place, p, &rank, &slot);
            assert_int_equal(rank, r);
            assert_int_equal(slot, s);
        }
    assert_int_equal(seen, place->physical);
    for (uint32_t m = 0; m < place->map_layers; m++) {
        const uint32_t *first = place->first + (size_t)m * (place->logical + 1);
        const uint32_t *ids = place->by_logical + (size_t)m * place->physical;
        const uint32_t *map = place->map + (size_t)m * place->physical;
        assert_int_equal(first[0], 0);
        assert_int_equal(first[place->logical], place->physical);
        for (uint32_t e = 0; e < place->logical; e++) {
            assert_true(first[e] < first[e + 1]);
            for (uint32_t i = first[e]; i < first[e + 1]; i++) {
                assert_int_equal(map[ids[i]], e);
                assert_true(i == first[e] || ids[i - 1] < ids[i]);
            }
        }
    }
}

/* ---- sizes ---- */

static int resolve(uint32_t world, uint32_t tp, uint32_t pp, uint32_t dp,
                   struct lade_layout *layout, lade_err *err)
{
    *layout =
        (struct lade_layout){.world = world, .tp = tp, .pp = pp, .dp = dp};
    return lade_layout_resolve(layout, err);
}

static void test_sizes(void **state)
{
    static const uint32_t good[][8] = {
        /* given: world tp pp dp   resolved: world tp pp dp */
        {8, 0, 0, 0, 8, 8, 1, 1},
        {8, 4, 0, 2, 8, 4, 1, 2},
        {8, 2, 2, 2, 8, 2, 2, 2},
        {8, 0, 8, 0, 8, 1, 8, 1},
        {1, 0, 0, 0, 1, 1, 1, 1},
        {0, 4, 0, 2, 8, 4, 1, 2},
        {0, 0, 0, 0, 1, 1, 1, 1},
        {65536, 0, 0, 0, 65536, 65536, 1, 1},
        {65536, 256, 16, 16, 65536, 256, 16, 16},
    };
    struct lade_layout l;
    lade_err err = LADE_ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const uint32_t *g = good[i];
        assert_int_equal(resolve(g[0], g[1], g[2], g[3], &l, &err), LADE_OK);
        assert_int_equal(l.world, g[4]);
        assert_int_equal(l.tp, g[5]);
        assert_int_equal(l.pp, g[6]);
        assert_int_equal(l.dp, g[7]);
    }
}

static void test_sizes_refused(void **state)
{
    struct lade_layout l;
    lade_err err = LADE_ERR_INIT;

    (void)state;
    unit_failed(resolve(8, 3, 0, 0, &l, &err), &err, LADE_E_USAGE,
                "tp 3 * pp 1 * dp 1 = 3, but there are 8 ranks");
    assert_int_equal(l.pp, 0); /* a failure leaves the layout as it was */
    unit_failed(resolve(8, 0, 2, 0, &l, &err), &err, LADE_E_USAGE,
                "tp 1 * pp 2 * dp 1 = 2, but there are 8 ranks");
    unit_failed(resolve(65537, 0, 0, 0, &l, &err), &err, LADE_E_USAGE,
                "tp 65537 * pp 1 * dp 1 is more than 65536 ranks");
    unit_failed(resolve(0, UINT32_MAX, UINT32_MAX, UINT32_MAX, &l, &err), &err,
                LADE_E_USAGE, "is more than 65536 ranks");
    /* 2^32 and 2^64 must not wrap to something small */
    unit_failed(resolve(0, 65536, 65536, 1, &l, &err), &err, LADE_E_USAGE,
                "tp 65536 * pp 65536 * dp 1 is more than 65536 ranks");
    unit_failed(resolve(1, 1u << 31, 1u << 31, 4, &l, &err), &err, LADE_E_USAGE,
                "is more than 65536 ranks");
}

static void test_coords(void **state)
{
    struct lade_layout l = {.world = 24, .tp = 4, .pp = 3, .dp = 2};

    (void)state;
    for (uint32_t r = 0; r < l.world; r++) {
        struct lade_coords at = lade_coords_of(&l, r);
        assert_int_equal(at.rank, r);
        assert_int_equal((at.dp * 3 + at.pp) * 4 + at.tp, r);
        assert_true(at.tp < 4 && at.pp < 3 && at.dp < 2);
        assert_int_equal(at.flat, at.dp * 4 + at.tp);
        assert_int_equal(lade_rank_of(&l, at.dp, at.pp, at.tp), r);
    }
}

/* ---- the engine's answers ---- */

static void compare_placement(const cJSON *v)
{
    bool round_robin = is(v, "placement", "round_robin");
    uint32_t ep = number(v, "ep_size"), rank = number(v, "ep_rank"), slot = 0;
    struct lade_layout l = layout_of(ep, 1, true);
    struct lade_placement place;
    const cJSON *item = NULL;

    l.placement = round_robin ? LADE_PLACE_ROUND_ROBIN : LADE_PLACE_LINEAR;
    place_of(&l, number(v, "experts"), 2, &place);
    assert_int_equal(place.ep, ep);
    check_inverse(&place);
    if (number(v, "experts") >= ep)
        assert_int_equal(place.kind, l.placement);
    if (get(v, "error")) { /* the engine fails; here the rank is empty */
        assert_int_equal(place.kind, LADE_PLACE_LINEAR);
        assert_int_equal(lade_place_count(&place, rank), 0);
    } else {
        assert_int_equal(lade_place_count(&place, rank),
                         number(v, "local_count"));
        cJSON_ArrayForEach(item, get(v, "local_experts")) assert_int_equal(
            lade_place_physical(&place, rank, slot++), item->valueint);
    }
    lade_placement_fini(&place);
}

/* Returns false for what lade has not: prefill context parallel ranks. */
static bool compare_parallel(const cJSON *v)
{
    struct lade_layout l = layout_of(number(v, "tp"), number(v, "dp"),
                                     cJSON_IsTrue(get(v, "enable_ep")));
    const cJSON *out = get(v, "out");
    struct lade_placement place;

    if (number(v, "pcp") != 1)
        return false;
    place_of(&l, 64, 1, &place);
    struct lade_coords at = lade_coords_of(
        &l, lade_rank_of(&l, number(v, "dp_rank"), 0, number(v, "tp_rank")));
    assert_int_equal(place.moe_tp, number(out, "moe_tp_size"));
    assert_int_equal(place.ep, number(out, "ep_size"));
    assert_int_equal(place.ep > 1, cJSON_IsTrue(get(out, "use_ep")));
    assert_int_equal(place.moe_tp > 1 ? at.flat : 0,
                     number(out, "moe_tp_rank"));
    assert_int_equal(place.ep > 1 ? at.flat : 0, number(out, "ep_rank"));
    lade_placement_fini(&place);
    return true;
}

/* Returns false for all-to-all back-ends that lade does not know of. */
static bool compare_fallback(const cJSON *v)
{
    struct lade_layout l =
        layout_of(number(v, "tp"), number(v, "dp"), cJSON_IsTrue(get(v, "ep")));
    bool eplb = cJSON_IsTrue(get(v, "eplb"));
    bool linear = is(v, "effective", "linear");
    char path[PATH_MAX + 16];
    struct lade_placement place;

    if (is(v, "all2all", "deepep_low_latency") || is(v, "all2all", "nixl_ep"))
        return false;
    l.placement = LADE_PLACE_ROUND_ROBIN;
    l.redundant = number(v, "redundant");
    if (eplb && l.redundant == 0) { /* a map turns it on without redundancy */
        unit_write(folder, "same.json", "[0,1,2,3,4,5]", 13);
        snprintf(path, sizeof path, "%s/same.json", folder);
        l.expert_map = path;
        l.tp = l.world = 2;
    }
    lade_warn_reset();
    place_of(&l, 6, number(v, "num_expert_group"), &place);
    assert_int_equal(place.kind,
                     linear ? LADE_PLACE_LINEAR : LADE_PLACE_ROUND_ROBIN);
    assert_int_equal(lade_warn_count(), linear ? 1 : 0);
    lade_placement_fini(&place);
    return true;
}

static void compare_initial(const cJSON *v)
{
    uint32_t logical = number(v, "logical"), p = 0;
    struct lade_layout l = layout_of(4, 1, true);
    struct lade_placement place;
    const cJSON *item = NULL;

    l.redundant = number(v, "redundant");
    place_of(&l, logical, 1, &place);
    check_inverse(&place);
    if (get(v, "physical_count")) {
        assert_int_equal(place.physical, number(v, "physical_count"));
        p = place.physical - (uint32_t)cJSON_GetArraySize(get(v, "tail"));
        cJSON_ArrayForEach(item, get(v, "tail"))
            assert_int_equal(place.map[p++], item->valueint);
    } else {
        cJSON_ArrayForEach(item, get(v, "physical_to_logical"))
            assert_int_equal(place.map[p++], item->valueint);
    }
    assert_int_equal(p, place.physical);
    lade_placement_fini(&place);
}

static void compare_eplb_rank(const cJSON *v)
{
    uint32_t rank = number(v, "ep_rank"), slot = 0;
    struct lade_layout l = layout_of(number(v, "ep_size"), 1, true);
    struct lade_placement place;
    const cJSON *item = NULL, *logical = get(v, "logical_needed")->child;

    l.redundant = number(v, "redundant");
    place_of(&l, number(v, "logical"), 1, &place);
    assert_int_equal(lade_place_count(&place, rank),
                     cJSON_GetArraySize(get(v, "physical")));
    cJSON_ArrayForEach(item, get(v, "physical"))
    {
        uint32_t p = lade_place_physical(&place, rank, slot++);
        assert_int_equal(p, item->valueint);
        assert_int_equal(place.map[p], logical->valueint);
        logical = logical->next;
    }
    lade_placement_fini(&place);
}

static void test_vectors(void **state)
{
    const cJSON *v = NULL;
    int ran = 0, passed_over = 0;

    (void)state;
    cJSON_ArrayForEach(v, get(vectors, "vectors"))
    {
        bool done = true;
        if (is(v, "rule", "expert_placement"))
            compare_placement(v);
        else if (is(v, "rule", "moe_parallel"))
            done = compare_parallel(v);
        else if (is(v, "rule", "placement_fallback"))
            done = compare_fallback(v);
        else if (is(v, "rule", "eplb_initial_map"))
            compare_initial(v);
        else if (is(v, "rule", "eplb_rank"))
            compare_eplb_rank(v);
        else
            fail_msg("a vector of a rule that is not tested");
        ran += done;
        passed_over += !done;
    }
    assert_int_equal(ran, 94);
    assert_int_equal(passed_over, 3); /* one of pcp 2, two of all2all */
}

/* ---- placement ---- */

/* 30 experts on 8 ranks: the rest goes to the first ranks, one each. */
static void test_uneven(void **state)
{
    static const uint32_t starts[] = {0, 4, 8, 12, 16, 20, 24, 27, 30};
    static const uint32_t three[] = {3, 3, 2};
    struct lade_layout l = layout_of(8, 1, true);
    struct lade_placement place;

    (void)state;
    place_of(&l, 30, 1, &place);
    for (uint32_t r = 0; r < 8; r++) {
        assert_int_equal(lade_place_count(&place, r),
                         starts[r + 1] - starts[r]);
        assert_int_equal(lade_place_physical(&place, r, 0), starts[r]);
    }
    check_inverse(&place);
    lade_placement_fini(&place);
    l = layout_of(3, 1, true);
    place_of(&l, 8, 1, &place);
    for (uint32_t r = 0; r < 3; r++)
        assert_int_equal(lade_place_count(&place, r), three[r]);
    lade_placement_fini(&place);
}

static void test_more_ranks_than_experts(void **state)
{
    struct lade_layout l = layout_of(256, 256, true);
    struct lade_placement place;

    (void)state;
    place_of(&l, 7, 1, &place);
    assert_int_equal(place.ep, 65536);
    assert_int_equal(lade_place_count(&place, 6), 1);
    assert_int_equal(lade_place_count(&place, 7), 0);
    assert_int_equal(lade_place_count(&place, 65535), 0);
    check_inverse(&place);
    lade_placement_fini(&place);
}

/* Four experts, two redundant, two ranks: what each slot holds. */
static void test_redundant(void **state)
{
    static const uint32_t want[2][3] = {{0, 1, 2}, {3, 0, 1}};
    struct lade_layout l = layout_of(2, 1, true);
    struct lade_placement place;

    (void)state;
    l.redundant = 2;
    place_of(&l, 4, 1, &place);
    for (uint32_t r = 0; r < 2; r++)
        for (uint32_t s = 0; s < 3; s++)
            assert_int_equal(place.map[lade_place_physical(&place, r, s)],
                             want[r][s]);
    assert_int_equal(place.first[1], 2); /* expert 0: physical 0 and 4 */
    assert_int_equal(place.by_logical[0], 0);
    assert_int_equal(place.by_logical[1], 4);
    check_inverse(&place);
    lade_placement_fini(&place);
}

static int try_place(struct lade_layout layout, uint32_t experts,
                     uint32_t redundant, lade_err *err)
{
    struct lade_placement place;

    layout.redundant = redundant;
    int rc = lade_placement_init(&place, &layout, experts, 1, 2, mem, err);
    if (rc == LADE_OK)
        lade_placement_fini(&place);
    return rc;
}

static void test_redundant_refused(void **state)
{
    lade_err err = LADE_ERR_INIT;

    (void)state;
    unit_failed(try_place(layout_of(3, 1, true), 8, 2, &err), &err,
                LADE_E_USAGE,
                "8 experts and 2 redundant ones are 10, which does not divide "
                "by 3 expert-parallel ranks; --redundant-experts 1 or 4 fits");
    /* below the experts themselves nothing fits: the next two above */
    unit_failed(try_place(layout_of(8, 1, true), 9, 1, &err), &err,
                LADE_E_USAGE, "--redundant-experts 7 or 15 fits");
    unit_failed(try_place(layout_of(4, 1, false), 8, 4, &err), &err,
                LADE_E_USAGE, "--redundant-experts needs expert parallelism");
    unit_failed(try_place(layout_of(1, 1, true), 8, 4, &err), &err,
                LADE_E_USAGE, "over more than one rank");
    unit_failed(try_place(layout_of(4, 1, true), 0, 4, &err), &err,
                LADE_E_USAGE,
                "the model has no experts, but --redundant-experts was given");
    unit_failed(try_place(layout_of(4, 1, true), 8, UINT32_MAX, &err), &err,
                LADE_E_USAGE, "more than 1000000 experts");
    unit_failed(try_place(layout_of(4, 1, true), UINT32_MAX, 0, &err), &err,
                LADE_E_USAGE, "more than 1000000 experts");
    assert_int_equal(try_place(layout_of(3, 1, true), 8, 1, &err), LADE_OK);
    assert_int_equal(try_place(layout_of(3, 1, true), 8, 4, &err), LADE_OK);
    assert_int_equal(try_place(layout_of(4, 1, true), 0, 0, &err), LADE_OK);
}

static void warns(struct lade_layout layout, uint32_t groups, const char *why)
{
    struct lade_placement place;

    lade_warn_reset();
    layout.placement = LADE_PLACE_ROUND_ROBIN;
    place_of(&layout, 8, groups, &place);
    assert_int_equal(place.kind, LADE_PLACE_LINEAR);
    assert_int_equal(lade_warn_count(), 1);
    assert_non_null(strstr(lade_warn_get(0), why));
    lade_placement_fini(&place);
}

static void test_fallback_says_why(void **state)
{
    struct lade_layout l = layout_of(2, 1, true);
    struct lade_placement place;

    (void)state;
    warns(layout_of(2, 1, false), 4, "one expert-parallel rank");
    warns(layout_of(1, 1, true), 4, "one expert-parallel rank");
    warns(layout_of(2, 1, true), 1, "one expert group");
    warns(layout_of(2, 2, true), 4, "all-to-all");
    warns(layout_of(16, 1, true), 4, "more ranks than experts");
    l.redundant = 2;
    warns(l, 4, "redundant");
    /* eight experts, two ranks, and nothing against it: 0 2 4 6 */
    l.redundant = 0;
    l.placement = LADE_PLACE_ROUND_ROBIN;
    lade_warn_reset();
    place_of(&l, 8, 4, &place);
    for (uint32_t s = 0; s < 4; s++)
        assert_int_equal(lade_place_physical(&place, 0, s), 2 * s);
    check_inverse(&place);
    assert_int_equal(lade_warn_count(), 0);
    lade_placement_fini(&place);
}

/* ---- explicit maps ---- */

/* Four experts on two EP ranks, two layers with experts. */
static int with_map(const char *json, uint32_t redundant,
                    struct lade_placement *place, lade_err *err)
{
    struct lade_layout l = layout_of(2, 1, true);
    char path[PATH_MAX + 16];

    snprintf(path, sizeof path, "%s/map.json", folder);
    unit_write(folder, "map.json", json, strlen(json));
    l.expert_map = path;
    l.redundant = redundant;
    return lade_placement_init(place, &l, 4, 1, 2, mem, err);
}

static void test_map(void **state)
{
    struct lade_placement place;
    lade_err err = LADE_ERR_INIT;

    (void)state;
    assert_int_equal(with_map("[3,2,1,0,3,3]", 0, &place, &err), LADE_OK);
    assert_int_equal(place.physical, 6);
    assert_int_equal(place.map_layers, 1);
    assert_int_equal(lade_place_count(&place, 1), 3);
    assert_int_equal(place.first[4] - place.first[3], 3); /* expert 3 */
    check_inverse(&place);
    lade_placement_fini(&place);

    assert_int_equal(with_map("[[0,1,2,3,0,1],[3,2,1,0,2,2]]", 2, &place, &err),
                     LADE_OK);
    assert_int_equal(place.map_layers, 2);
    assert_int_equal(place.map[6], 3);
    check_inverse(&place);
    lade_placement_fini(&place);
}

static void test_map_refused(void **state)
{
    static const struct {
        const char *json, *why;
        uint32_t redundant;
    } bad[] = {
        {"[0,1,2,4]",
         "map.json: list 0 (of 1), expert-parallel rank 1, slot "
         "1: 4 is not an expert of 0 .. 3",
         0},
        {"[[0,1,2,3],[0,1,-2,3]]",
         "list 1 (of 2), expert-parallel rank 1, "
         "slot 0: -2 is not an expert of 0 .. 3",
         0},
        {"[0,1,2,2.5]", "slot 1: 2.5 is not an expert", 0},
        {"[0,\"1\",2,3]", "rank 0, slot 1: \"1\" is not an expert", 0},
        {"[0,1,2,[3]]", "rank 1, slot 1: [3] is not an expert", 0},
        {"[0,1,2,2]", "list 0 (of 1): expert 3 is on no rank", 0},
        {"[[0,1,2,3],[3,3,2,1]]", "list 1 (of 2): expert 0 is on no rank", 0},
        {"[[0,1,2,3],[0,1,2,3,0,1]]",
         "list 1 (of 2) has 6 experts, but list 0 has 4", 0},
        {"[[0,1,2,3],7]", "list 1 (of 2) has 0 experts, but list 0 has 4", 0},
        {"[[0,1,2,3]]", "1 lists, but 2 layers of the model have experts", 0},
        {"[[],[],[]]", "3 lists, but 2 layers of the model have experts", 0},
        {"[[],[]]", "a list of at least 4 experts is needed, found 0", 0},
        {"[0,1,2]", "a list of at least 4 experts is needed, found 3", 0},
        {"[]", "a list of at least 4 experts is needed, found 0", 0},
        {"{\"0\":[0,1,2,3]}", "a list of at least 4 experts is needed", 0},
        {"7", "a list of at least 4 experts is needed, found 0", 0},
        {"[0,1,2,3,0]",
         "lists of 5 experts do not divide by 2 "
         "expert-parallel ranks; 4 or 6 would",
         0},
        {"[0,1,2,3]", "lists of 4 experts, but --redundant-experts 2 needs 6",
         2},
        {"[0,1,2,3] x", "map.json", 0},
        {"[0,1,02,3]", "map.json", 0},
    };
    struct lade_placement place;
    lade_err err = LADE_ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        unit_failed(with_map(bad[i].json, bad[i].redundant, &place, &err), &err,
                    LADE_E_USAGE, bad[i].why);
}

static void test_map_needs(void **state)
{
    struct lade_layout l = layout_of(2, 1, true);
    struct lade_placement place;
    lade_err err = LADE_ERR_INIT;

    (void)state;
    l.expert_map = "/nowhere/map.json";
    unit_failed(lade_placement_init(&place, &l, 4, 1, 2, mem, &err), &err,
                LADE_E_USAGE, "/nowhere/map.json");
    l.ep = false;
    unit_failed(lade_placement_init(&place, &l, 4, 1, 2, mem, &err), &err,
                LADE_E_USAGE, "--expert-map needs expert parallelism");
    unit_failed(lade_placement_init(&place, &l, 0, 1, 0, mem, &err), &err,
                LADE_E_USAGE,
                "the model has no experts, but --expert-map was given");
}

/* ---- sets ---- */

static void test_sets(void **state)
{
    enum { RANKS = 130, SETS = 1000 };
    struct lade_sets sets;
    lade_err err = LADE_ERR_INIT;
    uint64_t bits[3];
    uint32_t index;

    (void)state;
    assert_int_equal(lade_sets_init(&sets, RANKS, mem, &err), LADE_OK);
    assert_int_equal(sets.words, 3);
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < SETS; i++) {
            memset(bits, 0, sizeof bits);
            for (uint32_t b = 0; b < 10; b++)
                if (i >> b & 1)
                    lade_bit_set(bits, b * 13 + 12);
            assert_int_equal(lade_sets_add(&sets, bits, &index, &err), LADE_OK);
            assert_int_equal(index, i); /* in order; the second time found */
            assert_memory_equal(lade_sets_get(&sets, index), bits, sizeof bits);
            assert_int_equal(lade_bit_get(bits, 129), i >> 9 & 1);
        }
    assert_int_equal(sets.bits.count, SETS);
    lade_sets_fini(&sets);
}

/* ---- memory runs out ---- */

/* The allocation that fails is the first, the second, ... the last. */
static void fails_clean(const struct lade_layout *layout)
{
    struct lade_placement place;
    lade_err err = LADE_ERR_INIT;
    uint64_t n = 0;
    int rc;

    for (;; n++) {
        scarce_left = n;
        rc = lade_placement_init(&place, layout, 4, 1, 2, mem, &err);
        scarce_left = UINT64_MAX;
        if (rc == LADE_OK)
            break;
        unit_failed(rc, &err, LADE_E_MEMORY, "cannot allocate");
        assert_int_equal(scarce_booked(mem), 0);
        lade_placement_fini(&place); /* harmless */
    }
    assert_true(n >= 3); /* map, its inverse, where each expert begins */
    check_inverse(&place);
    lade_placement_fini(&place);
    assert_int_equal(scarce_booked(mem), 0);
}

static void test_placement_without_memory(void **state)
{
    struct lade_layout l = layout_of(2, 1, true);
    char path[PATH_MAX + 16];

    (void)state;
    l.redundant = 2;
    fails_clean(&l);
    snprintf(path, sizeof path, "%s/two.json", folder);
    unit_write(folder, "two.json", "[[0,1,2,3,0,1],[3,2,1,0,2,2]]", 29);
    l.expert_map = path;
    fails_clean(&l);
}

/* A set that could not be added is added when there is memory again. */
static void test_sets_without_memory(void **state)
{
    struct lade_sets sets;
    lade_err err = LADE_ERR_INIT;
    uint32_t index, failed = 0;

    (void)state;
    scarce_left = 0;
    unit_failed(lade_sets_init(&sets, 64, mem, &err), &err, LADE_E_MEMORY,
                "cannot allocate");
    scarce_left = UINT64_MAX;
    lade_sets_fini(&sets);
    assert_int_equal(scarce_booked(mem), 0);
    assert_int_equal(lade_sets_init(&sets, 64, mem, &err), LADE_OK);
    for (uint64_t bits = 1; bits <= 500; bits++) {
        scarce_left = 0;
        int rc = lade_sets_add(&sets, &bits, &index, &err);
        scarce_left = UINT64_MAX;
        if (rc != LADE_OK) {
            unit_failed(rc, &err, LADE_E_MEMORY, "cannot allocate");
            failed++;
            assert_int_equal(lade_sets_add(&sets, &bits, &index, &err),
                             LADE_OK);
        }
        assert_int_equal(index, bits - 1);
    }
    assert_true(failed >= 3);
    for (uint64_t bits = 1; bits <= 500; bits++) {
        assert_int_equal(lade_sets_add(&sets, &bits, &index, &err), LADE_OK);
        assert_int_equal(index, bits - 1);
    }
    lade_sets_fini(&sets);
    assert_int_equal(scarce_booked(mem), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_sizes_refused),
        cmocka_unit_test(test_coords),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_more_ranks_than_experts),
        cmocka_unit_test(test_redundant),
        cmocka_unit_test(test_redundant_refused),
        cmocka_unit_test(test_fallback_says_why),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_map_refused),
        cmocka_unit_test(test_map_needs),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_placement_without_memory),
        cmocka_unit_test(test_sets_without_memory),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
