/*
 * What one rank takes of one disk tensor, against the engine's answers
 * (data/box_vectors.json): each vector becomes a family of one module and a
 * config of its sizes; the shell's part and its box must say the same.
 */
#include "unit.h"

#include "base/json.h"
#include "base/log.h"
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

    if (strcmp(rule, "vocab") == 0)
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
                 "\"kind\":\"%s\",\"out\":%llu,\"in\":%llu,\"bias\":true", rule,
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

static void compare(const cJSON *vector, const struct lade_shell *shell,
                    const struct lade_layout *layout)
{
    const char *suffix = get(vector, "param")->valuestring;
    struct lade_coords at =
        lade_coords_of(layout, (uint32_t)number(vector, "rank", 0));
    const struct lade_shell_param *params =
        LADE_ITEMS(shell, params, struct lade_shell_param);
    uint64_t dim = number(vector, "dim", 0), inner = 1, i = 0;
    uint64_t size = number(vector, "size", 0);
    struct lade_box box;
    char name[32];

    snprintf(name, sizeof(name), "m.%s", suffix);
    while (i < shell->params.count &&
           strcmp(LADE_STRING(shell, pool, params[i].name), name) != 0)
        i++;
    if (i == shell->params.count)
        fail_msg("%s: no parameter %s", get(vector, "id")->valuestring, name);
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
    assert_true(cut >= 100);
    assert_true(refused >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_engine),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
