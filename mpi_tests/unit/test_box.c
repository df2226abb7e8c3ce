/*
 * What one rank takes of one disk tensor, against the engine's answers
 * (data/box_vectors.json): each vector becomes a family of one module and a
 * config of its sizes; the shell's part and its box must say the same. Tensors
 * that are not of the size that the config says are refused by their names.
 */
#include "route_bench.h"

#include "base/json.h"
#include "plan/box.h"

static cJSON *vectors;
static struct lade_mem *mem;
static char folder[PATH_MAX];

static const cJSON *get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static uint64_t number(const cJSON *object, const char *key, uint64_t other)
{
    uint64_t value = other;

    lade_json_u64(get(object, key), &value);
    return value;
}

static int set_up(void **state)
{
    lade_err err = LADE_ERR_INIT;

    (void)state;
    lade_log_setup(LADE_LOG_ERROR, 0, 1, "n0");
    unit_folder_new(folder);
    mem = lade_mem_new();
    return lade_json_read(LADE_TEST_DATA "/data/box_vectors.json",
                          UINT64_C(1) << 20, &vectors, &err);
}

static void nothing_left(void)
{
    for (int t = 0; t < LADE_TAGS; t++)
        assert_int_equal(lade_mem_now(mem, (enum lade_tag)t), 0);
}

static int tear_down(void **state)
{
    (void)state;
    unit_folder_free(folder);
    cJSON_Delete(vectors);
    lade_mem_free(mem);
    return 0;
}

/* The module of a vector's rule, as text of a family file. */
static void module_of(const cJSON *vector, char *out, size_t size)
{
    const char *rule = get(vector, "rule")->valuestring;
    const cJSON *dims = get(vector, "dims"), *outs = get(dims, "outs");
    char *list = outs ? cJSON_PrintUnformatted(outs) : NULL;
    unsigned long long in = number(dims, "in", 4);

    if (strcmp(rule, "moe_load") == 0)
        snprintf(out, size,
                 "\"kind\":\"experts\",\"disk\":\"m.{e}\","
                 "\"parts\":[\"gate\",\"up\",\"down\"],\"count\":%llu,"
                 "\"groups\":%llu,\"inter\":%llu,\"hidden\":%llu",
                 (unsigned long long)number(vector, "experts", 0),
                 (unsigned long long)number(get(vector, "opts"), "groups", 1),
                 (unsigned long long)number(vector, "inter", 4),
                 (unsigned long long)number(vector, "hidden", 4));
    else if (strcmp(rule, "vocab") == 0)
        snprintf(out, size,
                 "\"kind\":\"head\",\"rows\":%llu,\"cols\":%llu,"
                 "\"bias\":true",
                 (unsigned long long)number(dims, "vocab", 0),
                 (unsigned long long)number(dims, "hidden", 4));
    else if (strcmp(rule, "qkv") == 0)
        snprintf(
            out, size,
            "\"kind\":\"qkv\",\"parts\":[\"q\",\"k\",\"v\"],\"heads\":%llu,"
            "\"kv_heads\":%llu,\"head_dim\":%llu,\"v_head_dim\":%llu,"
            "\"in\":%llu,\"bias\":true",
            (unsigned long long)number(dims, "heads", 0),
            (unsigned long long)number(dims, "kv_heads", 0),
            (unsigned long long)number(dims, "head_dim", 0),
            (unsigned long long)number(dims, "v_head_dim",
                                       number(dims, "head_dim", 0)),
            in);
    else if (outs != NULL)
        snprintf(out, size,
                 "\"kind\":\"merged\",\"parts\":[\"p0\",\"p1\"%s],\"out\":%s,"
                 "\"in\":%llu,\"bias\":true,\"tp\":%s",
                 cJSON_GetArraySize(outs) == 3 ? ",\"p2\"" : "", list, in,
                 cJSON_IsTrue(get(dims, "disable_tp")) ? "false" : "true");
    else
        snprintf(out, size,
                 "\"kind\":\"%s\",\"out\":%llu,\"in\":%llu,\"bias\":true",
                 cJSON_IsTrue(get(dims, "disable_tp")) ? "replicated" : rule,
                 (unsigned long long)number(dims, "out", 0), in);
    free(list);
}

static int build(const cJSON *vector, const struct lade_layout *layout,
                 struct lade_shell **shell, lade_err *err)
{
    char module[1024], path[PATH_MAX];
    struct lade_model_wish wish = {.family_file = path,
                                   .dtype = LADE_DTYPE_BF16};
    cJSON *config = cJSON_Parse("{\"architectures\":[\"One\"]}");

    module_of(vector, module, sizeof(module));
    snprintf(path, sizeof(path), "%.3000s/one.json", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f,
            "{\"family\":\"one\",\"architectures\":[\"One\"],\"modules\":["
            "{\"at\":\"m\",\"stage\":\"last\",%s}]}",
            module);
    assert_int_equal(fclose(f), 0);
    int rc = lade_model_build(config, &wish, layout, NULL, mem, shell, err);
    cJSON_Delete(config);
    return rc;
}

static uint32_t part_of(const cJSON *vector)
{
    const cJSON *part = get(vector, "part");

    if (cJSON_IsNumber(part))
        return (uint32_t)part->valueint;
    return strcmp(part->valuestring, "k") == 0   ? 1
           : strcmp(part->valuestring, "v") == 0 ? 2
                                                 : 0;
}

static void same_shape(const cJSON *want, const uint64_t *shape, int ndim)
{
    const cJSON *dim = want->child;

    assert_int_equal(cJSON_GetArraySize(want), ndim);
    for (int d = 0; d < ndim; d++, dim = dim->next)
        assert_int_equal(shape[d], (uint64_t)dim->valuedouble);
}

/* The parameter that the vector names. */
static uint32_t param_of(const cJSON *vector, const struct lade_shell *shell)
{
    const struct lade_shell_param *params =
        LADE_ITEMS(shell, params, struct lade_shell_param);
    char name[32];
    uint32_t i = 0;

    snprintf(name, sizeof(name), "m.%s", get(vector, "param")->valuestring);
    while (i < shell->params.count &&
           strcmp(LADE_STRING(shell, pool, params[i].name), name) != 0)
        i++;
    if (i == shell->params.count)
        fail_msg("%s: no parameter %s", get(vector, "id")->valuestring, name);
    return i;
}

static void compare(const cJSON *vector, const struct lade_shell *shell,
                    const struct lade_layout *layout)
{
    struct lade_coords at =
        lade_coords_of(layout, (uint32_t)number(vector, "rank", 0));
    const struct lade_shell_param *params =
        LADE_ITEMS(shell, params, struct lade_shell_param);
    uint64_t dim = number(vector, "dim", 0), inner = 1;
    uint64_t size = number(vector, "size", 0);
    uint32_t i = param_of(vector, shell);
    struct lade_box box;

    const struct lade_shell_part *part =
        LADE_ITEMS(shell, parts, struct lade_shell_part) +
        params[i].first_part + part_of(vector);
    same_shape(get(vector, "dst_shape"), params[i].shape, params[i].ndim);
    same_shape(get(vector, "src_shape"), part->shape, part->ndim);
    bool any = lade_box_of(shell, part, &at, 0, &box);
    assert_int_equal(any, size > 0);
    if (!any)
        return;
    for (int d = (int)dim + 1; d < part->ndim; d++)
        inner *= part->shape[d];
    assert_int_equal(box.src, number(vector, "src_start", 0) * inner);
    assert_int_equal(box.dst, number(vector, "dst_start", 0) * inner);
    assert_int_equal(box.runs * box.run,
                     size * inner * (dim ? part->shape[0] : 1));
    if (box.runs > 1) {
        assert_int_equal(box.src_step, part->shape[1]);
        assert_int_equal(box.dst_step, params[i].shape[1]);
    }
}

static void equals_the_engine(void **state)
{
    const cJSON *vector = NULL;
    int cut = 0, refused = 0;

    (void)state;
    cJSON_ArrayForEach(vector, get(vectors, "vectors"))
    {
        uint32_t tp = (uint32_t)number(vector, "tp", 1);
        struct lade_layout layout = {.world = tp, .tp = tp, .pp = 1, .dp = 1};
        struct lade_shell *shell = NULL;
        lade_err err = LADE_ERR_INIT;
        int rc = build(vector, &layout, &shell, &err);
        bool fits = get(vector, "error") == NULL;
        if ((rc == LADE_OK) != fits)
            print_error("%s: %d %s\n", get(vector, "id")->valuestring, rc,
                        err.text);
        assert_int_equal(rc, fits ? LADE_OK : LADE_E_USAGE);
        if (fits)
            compare(vector, shell, &layout);
        else
            assert_non_null(strstr(err.text, "tp"));
        cut += fits;
        refused += !fits;
        lade_free(mem, shell);
    }
    nothing_left();
    assert_int_equal(cut, 109);
    assert_int_equal(refused, 9);
}

/* ---- experts ---- */

#define ELEMENTS 1024

/* Whence each element of the parameter comes: place on disk + 1; 0 if it is
 * left alone. */
static void unfold_box(const struct lade_box *box, uint64_t *whence)
{
    for (uint64_t j = 0; j < box->runs; j++)
        for (uint64_t k = 0; k < box->run; k++) {
            uint64_t to = box->dst + j * box->dst_step + k;
            assert_true(to < ELEMENTS);
            assert_int_equal(whence[to], 0);
            whence[to] = box->src + j * box->src_step + k + 1;
        }
}

static void unfold_vector(const cJSON *vector, const uint64_t *shape,
                          uint64_t wide, uint64_t *whence)
{
    const cJSON *rows = get(vector, "rows")->child;
    const cJSON *cols = get(vector, "cols")->child;
    uint64_t slot = number(vector, "local", 0);

    assert_null(rows->next);
    assert_null(cols->next);
    for (uint64_t r = 0; r < number(rows, "size", 0); r++)
        for (uint64_t c = 0; c < number(cols, "size", 0); c++) {
            uint64_t to =
                (slot * shape[1] + number(rows, "dst", 0) + r) * shape[2] +
                number(cols, "dst", 0) + c;
            assert_true(to < ELEMENTS);
            whence[to] = (number(rows, "src", 0) + r) * wide +
                         number(cols, "src", 0) + c + 1;
        }
}

static struct lade_layout layout_of(const cJSON *vector)
{
    const cJSON *opts = get(vector, "opts");
    uint32_t tp = (uint32_t)number(vector, "tp", 1);
    struct lade_layout layout = {.world = tp, .tp = tp, .pp = 1, .dp = 1};

    layout.ep = cJSON_IsTrue(get(vector, "ep"));
    layout.redundant = (uint32_t)number(opts, "red", 0);
    if (get(opts, "strategy"))
        layout.placement = LADE_PLACE_ROUND_ROBIN;
    return layout;
}

static void compare_expert(const cJSON *vector, const struct lade_shell *shell,
                           const struct lade_layout *layout)
{
    uint64_t want[ELEMENTS] = {0}, got[ELEMENTS] = {0}, shape[LADE_MAX_DIMS];
    struct lade_coords at =
        lade_coords_of(layout, (uint32_t)number(vector, "rank", 0));
    uint32_t slots[8], found, slot = (uint32_t)number(vector, "local", 0);
    uint32_t expert = (uint32_t)number(vector, "logical", 0);
    uint32_t param = param_of(vector, shell);
    const struct lade_shell_part *part =
        LADE_ITEMS(shell, parts, struct lade_shell_part) +
        LADE_ITEMS(shell, params, struct lade_shell_param)[param].first_part;
    struct lade_placement place;
    lade_err err = LADE_ERR_INIT;
    struct lade_box box;
    bool mine = false;

    part += strcmp(get(vector, "part")->valuestring, "up") == 0;
    assert_int_equal(lade_model_placement(shell, layout, mem, &place, &err),
                     LADE_OK);
    same_shape(get(vector, "param_shape"), shape,
               lade_shell_shape(shell, &place, &at, param, shape));
    found = lade_box_slots(shell, &place, part, expert, &at, slots, 8);
    assert_true(found <= 8);
    for (uint32_t i = 0; i < found; i++)
        mine |= slots[i] == slot;
    assert_true(mine);
    assert_true(lade_box_of(shell, part, &at, slot, &box));
    unfold_box(&box, got);
    unfold_vector(vector, shape, part->shape[1], want);
    assert_memory_equal(got, want, sizeof(want));
    lade_placement_fini(&place);
}

/* Those of tensors that are not fused over the experts. */
static void experts_equal_the_engine(void **state)
{
    const cJSON *vector = NULL;
    char path[PATH_MAX];
    int compared = 0;

    (void)state;
    snprintf(path, sizeof(path), "%.3000s/map.json", folder);
    unit_write(folder, "map.json", "[0,1,2,3,4]", 11);
    cJSON_ArrayForEach(vector, get(vectors, "experts"))
    {
        struct lade_layout layout = layout_of(vector);
        struct lade_shell *shell = NULL;
        lade_err err = LADE_ERR_INIT;
        if (cJSON_IsTrue(get(vector, "eplb"))) /* a map turns it on */
            layout.expert_map = path;
        int rc = build(vector, &layout, &shell, &err);
        if (get(vector, "error") == NULL) {
            assert_int_equal(rc, LADE_OK);
            compare_expert(vector, shell, &layout);
            compared++;
        } else {
            unit_failed(rc, &err, LADE_E_USAGE,
                        layout.expert_map
                            ? "lists of 5 experts do not divide by 4"
                            : "m: the expert width 10 does not divide by dp 1 "
                              "times tp 4");
        }
        lade_free(mem, shell);
        nothing_left();
    }
    assert_int_equal(compared, 42);
}

/* Every slot of every rank is some expert's, and no slot is two's. */
static void experts_share_no_slot(void **state)
{
    const cJSON *vector = get(vectors, "experts")->child;
    struct lade_shell *shell = NULL;
    lade_err err = LADE_ERR_INIT;
    struct lade_placement place;
    uint32_t slots[4], seen[2][4] = {{0}};

    (void)state;
    while (strcmp(get(vector, "tag")->valuestring, "eplb") != 0)
        vector = vector->next;
    struct lade_layout layout = layout_of(vector);
    layout.redundant = 4; /* four experts, two ranks with four slots each */
    assert_int_equal(build(vector, &layout, &shell, &err), LADE_OK);
    assert_int_equal(lade_model_placement(shell, &layout, mem, &place, &err),
                     LADE_OK);
    const struct lade_shell_part *part =
        LADE_ITEMS(shell, parts, struct lade_shell_part);
    for (uint32_t r = 0; r < 2; r++) {
        struct lade_coords at = lade_coords_of(&layout, r);
        for (uint32_t e = 0; e < 4; e++) {
            uint32_t n = lade_box_slots(shell, &place, part, e, &at, slots, 4);
            assert_int_equal(n, 1);
            seen[r][slots[0]]++;
            /* no room: the number is told all the same */
            assert_int_equal(
                lade_box_slots(shell, &place, part, e, &at, NULL, 0), 1);
        }
        for (uint32_t s = 0; s < 4; s++)
            assert_int_equal(seen[r][s], 1);
    }
    lade_placement_fini(&place);
    lade_free(mem, shell);
    nothing_left();
}

/* Without --ep each expert is cut by dp * tp, not by tp. */
static void experts_are_cut_by_all(void **state)
{
    const cJSON *vector = get(vectors, "experts")->child;
    struct lade_layout layout = {.world = 4, .tp = 2, .pp = 1, .dp = 2};
    struct lade_shell *shell = NULL;
    lade_err err = LADE_ERR_INIT;
    struct lade_box box;

    (void)state; /* inter 8, hidden 6: two rows of gate for each of four */
    assert_int_equal(build(vector, &layout, &shell, &err), LADE_OK);
    const struct lade_shell_part *part =
        LADE_ITEMS(shell, parts, struct lade_shell_part);
    for (uint32_t r = 0; r < 4; r++) {
        struct lade_coords at = lade_coords_of(&layout, r);
        assert_true(lade_box_of(shell, &part[0], &at, 0, &box));
        assert_int_equal(box.src, r * 2 * 6);
        assert_int_equal(box.run * box.runs, 2 * 6);
        assert_true(lade_box_of(shell, &part[2], &at, 0, &box));
        assert_int_equal(box.src, r * 2);
        assert_int_equal(box.runs, 6);
    }
    lade_free(mem, shell);
    nothing_left();
}

/* ---- by hand ---- */

/* The first part and parameter of the bench as they are now, packed. */
static bool first_box(struct bench *b, const struct lade_coords *at,
                      struct lade_box *box)
{
    bench_pack(b);
    return lade_box_of(b->shell,
                       LADE_ITEMS(b->shell, parts, struct lade_shell_part), at,
                       0, box);
}

static uint32_t first_slots(struct bench *b, const struct lade_placement *place,
                            uint32_t expert, const struct lade_coords *at,
                            uint32_t slots[3])
{
    bench_pack(b);
    return lade_box_slots(b->shell, place,
                          LADE_ITEMS(b->shell, parts, struct lade_shell_part),
                          expert, at, slots, 3);
}

/* A second part that begins at `base` of its tensor; along dim `cut` it has
 * four elements, two on each of two ranks. */
static void a_part_of_a_fused_tensor(void **state)
{
    struct lade_layout layout = {.world = 2, .tp = 2, .pp = 1, .dp = 1};
    struct lade_coords at = lade_coords_of(&layout, 1);
    struct lade_shell_part *part;
    struct lade_box box;
    struct bench b;

    (void)state;
    bench_init(&b);
    bench_param(&b, "rows", LADE_DTYPE_BF16);
    part = bench_part(&b, "rows", 9, 3);
    *part = (struct lade_shell_part){.name = part->name,
                                     .ndim = 2,
                                     .shape = {9, 3},
                                     .axis = LADE_AXIS_TP,
                                     .copies = 1,
                                     .base = 5,
                                     .extent = 4,
                                     .piece = 2,
                                     .start = 3};
    struct lade_shell_param *param =
        LADE_VEC_AT(&b.params, struct lade_shell_param, 0);
    param->ndim = 2;
    param->shape[0] = 5;
    param->shape[1] = 3;
    assert_true(first_box(&b, &at, &box));
    assert_int_equal(box.src, (5 + 2) * 3);
    assert_int_equal(box.dst, 3 * 3);
    assert_int_equal(box.runs * box.run, 2 * 3);
    /* the last piece reaches beyond the part: what is there is taken */
    part->extent = 3;
    assert_true(first_box(&b, &at, &box));
    assert_int_equal(box.runs * box.run, 1 * 3);
    part->extent = 2;
    assert_false(first_box(&b, &at, &box));
    /* columns: [3,9] on disk, [3,5] on the rank */
    part->extent = 4;
    part->cut = 1;
    part->shape[0] = 3;
    part->shape[1] = 9;
    param->shape[0] = 3;
    param->shape[1] = 5;
    assert_true(first_box(&b, &at, &box));
    assert_int_equal(box.src, 5 + 2);
    assert_int_equal(box.dst, 3);
    assert_int_equal(box.runs, 3);
    assert_int_equal(box.run, 2);
    assert_int_equal(box.src_step, 9);
    assert_int_equal(box.dst_step, 5);
    bench_free(&b);
}

/* Each layer has its own list: the parameter says which. */
static void each_layer_has_its_list(void **state)
{
    struct lade_layout layout = {
        .world = 2, .tp = 2, .pp = 1, .dp = 1, .ep = true};
    struct lade_coords at = lade_coords_of(&layout, 1);
    struct lade_placement place;
    lade_err err = LADE_ERR_INIT;
    char path[PATH_MAX];
    uint32_t slots[3];
    struct bench b;

    (void)state;
    snprintf(path, sizeof(path), "%.3000s/layers.json", folder);
    unit_write(folder, "layers.json", "[[0,1,0,0],[1,0,1,1]]", 21);
    layout.expert_map = path;
    assert_int_equal(lade_placement_init(&place, &layout, 2, 1, 2, mem, &err),
                     LADE_OK);
    bench_init(&b);
    bench_param(&b, "w13", LADE_DTYPE_BF16);
    bench_part(&b, "x.{e}", 2, 4)->experts = 2;
    struct lade_shell_param *param =
        LADE_VEC_AT(&b.params, struct lade_shell_param, 0);
    param->flags = LADE_PARAM_EXPERTS;
    assert_int_equal(first_slots(&b, &place, 0, &at, slots),
                     2); /* one expert may be twice on a rank */
    assert_int_equal(slots[0], 0);
    assert_int_equal(slots[1], 1);
    assert_int_equal(first_slots(&b, &place, 1, &at, slots), 0);
    param->moe_layer = 1;
    assert_int_equal(first_slots(&b, &place, 0, &at, slots), 0);
    assert_int_equal(first_slots(&b, &place, 1, &at, slots), 2);
    param->flags = 0; /* no experts: one slot on every rank */
    assert_int_equal(first_slots(&b, &place, 0, &at, slots), 1);
    assert_int_equal(slots[0], 0);
    bench_free(&b);
    lade_placement_fini(&place);
    nothing_left();
}

/* ---- tensors of another size ---- */

/* The engine takes what is too long, and fails in a slice where it is too
 * short. */
static void wrong_sizes_are_refused(void **state)
{
    static const char *const why[] = {
        "m.weight has shape [15,4], but the config needs [16,4]",
        "m.weight has shape [16,5], but the config needs [16,4]",
        "m.weight has shape [16,5], but the config needs [16,4]",
        "m.weight has shape [1024,4], but the config needs [1003,4]",
    };
    const cJSON *vector = NULL;
    int i = 0;

    (void)state;
    cJSON_ArrayForEach(vector, get(vectors, "disk"))
    {
        const cJSON *dims = get(vector, "dims");
        uint64_t out = number(dims, "out", number(dims, "vocab", 0));
        struct lade_layout layout = layout_of(vector);
        struct lade_shell *shell = NULL;
        struct bench b;

        bench_init(&b);
        assert_int_equal(build(vector, &layout, &shell, &b.err), LADE_OK);
        bench_row(&b, "m.weight", LADE_DTYPE_BF16,
                  number(dims, "disk_rows", number(dims, "disk_out", out)),
                  number(dims, "disk_in", 4));
        bench_row(&b, "m.bias", LADE_DTYPE_BF16, out, 0);
        bench_pack(&b);
        for (int strict = 0; strict < 2; strict++)
            unit_failed(lade_route_build(b.shards, b.catalogue, shell, strict,
                                         b.mem, &b.routes, &b.err),
                        &b.err, LADE_E_PARAMETER, why[i]);
        bench_free(&b);
        lade_free(mem, shell);
        nothing_left();
        i++;
    }
    assert_int_equal(i, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_engine),
        cmocka_unit_test(experts_equal_the_engine),
        cmocka_unit_test(experts_share_no_slot),
        cmocka_unit_test(experts_are_cut_by_all),
        cmocka_unit_test(a_part_of_a_fused_tensor),
        cmocka_unit_test(each_layer_has_its_list),
        cmocka_unit_test(wrong_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
