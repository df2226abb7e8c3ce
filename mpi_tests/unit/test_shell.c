/*
 * The shell against what the engine declared (data/shell_expected.json): names,
 * dtypes, shapes and aliases on every rank at tiny size, names on disk and
 * bytes of each rank at true size.
 */
#include "shell_bench.h"

/* ---- tiny: against the engine's records --------------------------------- */

static void compare_rank(const struct lade_shell *shell,
                         const struct lade_placement *place,
                         const struct lade_coords *at, const cJSON *params)
{
    const cJSON *want = NULL;
    uint32_t i = 0;

    assert_int_equal(shell->params.count, cJSON_GetArraySize(params));
    cJSON_ArrayForEach(want, params)
    {
        const struct lade_shell_param *p = &params_of(shell)[i];
        uint64_t shape[LADE_MAX_DIMS], bytes = 0, count = 1;
        int ndim = lade_shell_shape(shell, place, at, i, shape);
        const cJSON *dims = cJSON_GetArrayItem(want, 2);
        assert_string_equal(text(shell, p->name),
                            cJSON_GetArrayItem(want, 0)->valuestring);
        assert_string_equal(lade_dtype_name((enum lade_dtype)p->dtype),
                            cJSON_GetArrayItem(want, 1)->valuestring);
        assert_int_equal(ndim, cJSON_GetArraySize(dims));
        for (int d = 0; d < ndim; d++) {
            assert_int_equal(shape[d], cJSON_GetArrayItem(dims, d)->valueint);
            count *= shape[d];
        }
        assert_true(lade_dtype_bytes((enum lade_dtype)p->dtype, count, &bytes));
        assert_int_equal(lade_shell_bytes(shell, place, at, i), bytes);
        i++;
    }
}

static void compare_aliases(const struct lade_shell *shell, const cJSON *want)
{
    const struct lade_shell_alias *aliases =
        LADE_ITEMS(shell, aliases, struct lade_shell_alias);

    assert_int_equal(shell->aliases.count, cJSON_GetArraySize(want));
    for (uint64_t i = 0; i < shell->aliases.count; i++) {
        const cJSON *to = get(want, text(shell, aliases[i].name));
        assert_non_null(to);
        assert_string_equal(
            to->valuestring,
            text(shell, params_of(shell)[aliases[i].param].name));
    }
}

/* Every part lies inside its parameter and what is cut is cut evenly. */
static void check_parts(const struct lade_shell *shell,
                        const struct lade_layout *layout)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < shell->params.count; i++) {
        const struct lade_shell_param *p = &params_of(shell)[i];
        int lead = p->flags & LADE_PARAM_EXPERTS ? 1 : 0;
        uint64_t filled = 0;
        assert_int_equal(p->first_part, next);
        for (uint32_t k = 0; k < p->parts; k++, next++) {
            const struct lade_shell_part *part = &parts_of(shell)[next];
            uint32_t pieces =
                part->axis == LADE_AXIS_TP       ? layout->tp
                : part->axis == LADE_AXIS_KV     ? layout->tp / part->copies
                : part->axis == LADE_AXIS_MOE_TP ? layout->tp * layout->dp
                                                 : 1;
            assert_int_equal(part->param, i);
            assert_int_equal(part->ndim, p->ndim - lead);
            assert_int_equal(part->start, filled);
            assert_int_equal(part->base, 0);
            assert_int_equal(part->extent, part->shape[part->cut]);
            assert_true(part->piece * pieces >= part->extent);
            assert_true(part->piece * pieces < part->extent + 64);
            assert_int_equal(part->experts, lead ? shell->experts : 0);
            assert_int_equal(strstr(text(shell, part->name), "{e}") != NULL,
                             lead);
            for (int d = 0; d < part->ndim; d++)
                if (d != part->cut)
                    assert_int_equal(part->shape[d], p->shape[d + lead]);
            filled += part->piece;
            if (k + 1 == p->parts)
                assert_int_equal(filled, p->shape[part->cut + lead]);
        }
    }
    assert_int_equal(next, shell->parts.count);
}

static void compare_case(const cJSON *want)
{
    struct lade_layout layout = layout_of(
        number(want, "tp"), number(want, "dp"), cJSON_IsTrue(get(want, "ep")));
    struct lade_shell *shell = NULL;
    struct lade_placement place;
    lade_err err = LADE_ERR_INIT;
    const cJSON *run = NULL;
    uint32_t rank = 0;
    bool head = cJSON_IsTrue(get(want, "head_on_disk"));

    layout.redundant = number(want, "redundant");
    if (cJSON_IsTrue(get(want, "round_robin")))
        layout.placement = LADE_PLACE_ROUND_ROBIN;
    if (build(get(want, "config"), &layout, head ? "lm_head.weight" : NULL,
              &shell, &err) != LADE_OK)
        print_error("%s: %s\n", get(want, "case")->valuestring, err.text);
    assert_non_null(shell);
    assert_int_equal(
        lade_blob_check(shell, shell->blob.size, LADE_BLOB_SHELL, &err),
        LADE_OK);
    assert_int_equal(lade_model_placement(shell, &layout, mem, &place, &err),
                     LADE_OK);
    cJSON_ArrayForEach(run, get(want, "ranks"))
    {
        for (int i = 0; i < cJSON_GetArrayItem(run, 0)->valueint; i++) {
            struct lade_coords at = lade_coords_of(&layout, rank++);
            compare_rank(shell, &place, &at, cJSON_GetArrayItem(run, 1));
        }
    }
    assert_int_equal(rank, layout.world);
    compare_aliases(shell, get(want, "aliases"));
    check_parts(shell, &layout);
    assert_int_equal(shell->untied_by_checkpoint, head);
    lade_placement_fini(&place);
    lade_free(mem, shell);
}

static void equals_the_engine(void **state)
{
    const cJSON *want = NULL;

    (void)state;
    cJSON_ArrayForEach(want, get(expected, "tiny")) compare_case(want);
    assert_true(cJSON_GetArraySize(get(expected, "tiny")) >= 30);
}

/* ---- full size ---------------------------------------------------------- */

static uint64_t fnv(const char *bytes)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *bytes; bytes++)
        h = (h ^ (unsigned char)*bytes) * UINT64_C(0x100000001b3);
    return h;
}

struct disk {
    uint64_t tensors, elements, digest;
};

static void add_tensor(struct disk *disk, const char *name, uint32_t expert,
                       const struct lade_shell_part *part)
{
    const char *hole = part->experts ? strstr(name, "{e}") : NULL;
    char line[512];
    uint64_t count = 1;
    int n = hole ? snprintf(line, sizeof line, "%.*s%" PRIu32 "%s",
                            (int)(hole - name), name, expert, hole + 3)
                 : snprintf(line, sizeof line, "%s", name);

    for (int d = 0; d < part->ndim; d++) {
        n += snprintf(line + n, sizeof line - (size_t)n, " %" PRIu64,
                      part->shape[d]);
        count *= part->shape[d];
    }
    disk->tensors++;
    disk->elements += count;
    disk->digest += fnv(line);
}

static void compare_disk(const struct lade_shell *shell, const cJSON *want)
{
    struct disk disk = {0};
    char line[32];

    for (uint32_t i = 0; i < shell->parts.count; i++) {
        const struct lade_shell_part *part = &parts_of(shell)[i];
        uint32_t times = part->experts ? part->experts : 1;
        for (uint32_t e = 0; e < times; e++)
            add_tensor(&disk, text(shell, part->name), e, part);
    }
    assert_int_equal(disk.tensors, number(want, "tensors"));
    snprintf(line, sizeof line, "%" PRIu64, disk.elements);
    assert_string_equal(line, get(want, "elements")->valuestring);
    snprintf(line, sizeof line, "%016" PRIx64, disk.digest);
    assert_string_equal(line, get(want, "digest")->valuestring);
}

static uint64_t bytes_of_rank(const struct lade_shell *shell,
                              const struct lade_placement *place,
                              const struct lade_coords *at)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < shell->params.count; i++)
        sum += lade_shell_bytes(shell, place, at, i);
    return sum;
}

static void compare_layout(const cJSON *want, const cJSON *row)
{
    struct lade_layout layout = layout_of(number(row, "tp"), number(row, "dp"),
                                          cJSON_IsTrue(get(row, "ep")));
    bool head = cJSON_IsTrue(get(want, "head_on_disk"));
    struct lade_shell *shell = NULL;
    struct lade_placement place;
    lade_err err = LADE_ERR_INIT;
    const cJSON *run = NULL;
    uint32_t rank = 0;
    int rc = build(get(want, "config"), &layout, head ? "lm_head.weight" : NULL,
                   &shell, &err);

    if (cJSON_IsString(get(row, "refused"))) {
        assert_int_equal(rc, LADE_E_USAGE);
        assert_non_null(strstr(err.text, get(row, "refused")->valuestring));
        return;
    }
    if (rc != LADE_OK)
        print_error("%s\n", err.text);
    assert_int_equal(rc, LADE_OK);
    compare_disk(shell, want);
    assert_int_equal(lade_model_placement(shell, &layout, mem, &place, &err),
                     LADE_OK);
    cJSON_ArrayForEach(run, get(row, "parameter_bytes"))
    {
        double bytes = cJSON_GetArrayItem(run, 1)->valuedouble;
        for (int i = 0; i < cJSON_GetArrayItem(run, 0)->valueint; i++) {
            struct lade_coords at = lade_coords_of(&layout, rank++);
            uint64_t have = bytes_of_rank(shell, &place, &at);
            if (have != (uint64_t)bytes)
                print_error("%s tp %u dp %u ep %d rank %u\n",
                            get(want, "model")->valuestring, layout.tp,
                            layout.dp, layout.ep, rank - 1);
            assert_int_equal(have, (uint64_t)bytes);
        }
    }
    assert_int_equal(rank, layout.world);
    lade_placement_fini(&place);
    lade_free(mem, shell);
}

static void true_sizes(void **state)
{
    const cJSON *want = NULL, *row = NULL;
    int rows = 0;

    (void)state;
    cJSON_ArrayForEach(want, get(expected, "full"))
    {
        cJSON_ArrayForEach(row, get(want, "layouts"))
        {
            compare_layout(want, row);
            rows++;
        }
    }
    assert_true(rows >= 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_engine),
        cmocka_unit_test(true_sizes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
