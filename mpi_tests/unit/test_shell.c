/*
 * The shell against what the engine declared (data/shell_expected.json): names,
 * dtypes, shapes and aliases on every rank at tiny size, names on disk and
 * bytes of each rank at true size; refusals and hostile configs.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "model/model.h"

static cJSON *expected;
static struct lade_mem *mem;

static int set_up(void **state)
{
    lade_err err = LADE_ERR_INIT;

    (void)state;
    lade_log_setup(LADE_LOG_ERROR, 0, 1, "n0");
    mem = lade_mem_new();
    if (lade_json_read(LADE_TEST_DATA "/data/shell_expected.json",
                       UINT64_C(16) << 20, &expected, &err) != LADE_OK)
        print_error("%s\n", err.text);
    return !mem || !expected;
}

static int tear_down(void **state)
{
    (void)state;
    cJSON_Delete(expected);
    int left = (int)lade_mem_now(mem, LADE_TAG_CATALOGUE);
    lade_mem_free(mem);
    return left;
}

/* ---- helpers ------------------------------------------------------------ */

static const cJSON *get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static uint32_t number(const cJSON *object, const char *key)
{
    return (uint32_t)get(object, key)->valueint;
}

static struct lade_layout layout_of(uint32_t tp, uint32_t dp, bool ep)
{
    return (struct lade_layout){
        .world = tp * dp, .tp = tp, .pp = 1, .dp = dp, .ep = ep};
}

/* A catalogue of one tensor, of which only the name counts here. */
static struct lade_catalogue *catalogue_of(const char *name)
{
    static char pool[LADE_MAX_DIMS * 32];
    int n = snprintf(pool, sizeof pool, "%c%s", '\0', name);
    struct lade_row row = {.name = 1};
    struct lade_catalogue head = {.blob = {.kind = LADE_BLOB_CATALOGUE}};
    const struct lade_section sections[] = {
        {&head.rows, &row, 1, sizeof row},
        {&head.pool, pool, (uint64_t)n + 1, 1},
    };
    lade_err err = LADE_ERR_INIT;

    return lade_blob_pack(mem, &head, sizeof head, sections, 2, &err);
}

static int build(const cJSON *config, const struct lade_layout *layout,
                 const char *head, struct lade_shell **shell, lade_err *err)
{
    struct lade_model_wish wish = {.dtype = LADE_DTYPE_UNKNOWN};
    struct lade_catalogue *catalogue = head ? catalogue_of(head) : NULL;
    int rc =
        lade_model_build(config, &wish, layout, catalogue, mem, shell, err);

    lade_free(mem, catalogue);
    return rc;
}

static const struct lade_shell_param *params_of(const struct lade_shell *shell)
{
    return LADE_ITEMS(shell, params, struct lade_shell_param);
}

static const struct lade_shell_part *parts_of(const struct lade_shell *shell)
{
    return LADE_ITEMS(shell, parts, struct lade_shell_part);
}

static const char *text(const struct lade_shell *shell, uint32_t name)
{
    return LADE_STRING(shell, pool, name);
}

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

/* ---- refusals ----------------------------------------------------------- */

static cJSON *config_of(const char *name)
{
    const cJSON *want = NULL;

    cJSON_ArrayForEach(want, get(expected, "tiny"))
    {
        if (strcmp(get(want, "case")->valuestring, name) == 0)
            return cJSON_Duplicate(get(want, "config"), 1);
    }
    fail_msg("no case %s", name);
    return NULL;
}

/* Replaces a key of the config; NULL removes it. */
static void put(cJSON *config, const char *key, const char *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(config, key);
    if (value)
        cJSON_AddItemToObject(config, key, cJSON_Parse(value));
}

static void refuses(const cJSON *config, struct lade_layout layout, int status,
                    const char *const *says)
{
    struct lade_shell *shell = NULL;
    lade_err err = LADE_ERR_INIT;
    int rc = build(config, &layout, NULL, &shell, &err);

    if (rc != status)
        print_error("%d: %s\n", rc, err.text);
    assert_int_equal(rc, status);
    assert_null(shell);
    for (; *says; says++) {
        if (!strstr(err.text, *says))
            print_error("\"%s\" is not in: %s\n", *says, err.text);
        assert_non_null(strstr(err.text, *says));
    }
}

#define SAYS(...)                                                              \
    (const char *const[])                                                      \
    {                                                                          \
        __VA_ARGS__, NULL                                                      \
    }

static cJSON *smollm2(void)
{
    cJSON *config = config_of("llama-3.2-1b.tp1");

    put(config, "hidden_size", "576");
    put(config, "intermediate_size", "1536");
    put(config, "num_attention_heads", "9");
    put(config, "num_key_value_heads", "3");
    put(config, "num_hidden_layers", "30");
    put(config, "vocab_size", "49152");
    put(config, "head_dim", NULL);
    return config;
}

static void layouts_that_do_not_fit(void **state)
{
    cJSON *config = smollm2();

    (void)state;
    refuses(config, layout_of(2, 1, false), LADE_E_USAGE,
            SAYS("model.layers.0.self_attn.qkv_proj",
                 "9 attention heads do not divide by tp 2",
                 "tp sizes that fit: 1 3"));
    refuses(config, layout_of(9, 1, false), LADE_E_USAGE,
            SAYS("model.embed_tokens", "49152", "does not divide by tp 9",
                 "sizes that fit: 1 3"));
    put(config, "vocab_size", "49153");
    refuses(config, layout_of(9, 1, false), LADE_E_USAGE,
            SAYS("49153 rows", "padded to 49216", "sizes that fit: 1"));
    cJSON_Delete(config);

    config = config_of("llama-3-8b.tp1");
    put(config, "num_key_value_heads", "3");
    put(config, "num_attention_heads", "24");
    put(config, "head_dim", "8");
    refuses(config, layout_of(2, 1, false), LADE_E_USAGE,
            SAYS("3 KV heads do not divide by tp 2"));
    refuses(config, layout_of(8, 1, false), LADE_E_USAGE,
            SAYS("tp 8 is not a multiple of 3 KV heads"));
    put(config, "num_key_value_heads", "8");
    put(config, "num_attention_heads", "8");
    put(config, "intermediate_size", "12");
    refuses(config, layout_of(8, 1, false), LADE_E_USAGE,
            SAYS("model.layers.0.mlp.gate_up_proj",
                 "12 output features of a part do not divide by tp 8",
                 "sizes that fit: 1 2 4"));
    refuses(config, (struct lade_layout){.world = 2, .tp = 1, .pp = 2, .dp = 1},
            LADE_E_USAGE, SAYS("--pp 2: pipeline parallel is not in"));
    cJSON_Delete(config);
}

static void experts_that_do_not_fit(void **state)
{
    cJSON *config = config_of("mixtral-8x7b.tp1");
    struct lade_layout layout = layout_of(4, 1, true);

    (void)state;
    put(config, "intermediate_size", "12");
    refuses(config, layout_of(4, 2, false), LADE_E_USAGE,
            SAYS("the expert width 12 does not divide by dp 2 times tp 4",
                 "tp sizes that fit with dp 2: 1 2"));
    layout.redundant = 3;
    refuses(config, layout, LADE_E_USAGE, SAYS("6", "3", "redundant"));
    put(config, "num_local_experts", "0");
    refuses(config, layout_of(1, 1, false), LADE_E_CHECKPOINT,
            SAYS("num_local_experts is 0", "block_sparse_moe"));
    put(config, "num_local_experts", "100000000");
    refuses(config, layout_of(1, 1, false), LADE_E_CHECKPOINT,
            SAYS("num_local_experts is 100000000 experts"));
    cJSON_Delete(config);

    config = config_of("qwen3-30b-a3b.tp1");
    put(config, "num_experts", "2");
    refuses(config, layout_of(8, 1, true), LADE_E_USAGE,
            SAYS("tp 8 is more than the 2 experts", "sizes that fit: 1 2"));
    cJSON_Delete(config);

    config = config_of("llama-3-8b.tp1");
    layout.redundant = 4;
    refuses(config, layout, LADE_E_USAGE, SAYS("no experts"));
    cJSON_Delete(config);
}

static void hostile_sizes(void **state)
{
    static const char *const keys[] = {
        "hidden_size",       "intermediate_size",
        "num_hidden_layers", "num_attention_heads",
        "vocab_size",        "num_key_value_heads",
        "head_dim"};
    static const char *const values[] = {
        "0",        "-1",  "1.5", "1e300", "9007199254740992",
        "\"many\"", "[8]", "{}",  "1e15"};
    cJSON *good = config_of("llama-3-8b.tp1");

    (void)state;
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            cJSON *config = cJSON_Duplicate(good, 1);
            put(config, keys[k], values[v]);
            refuses(config, layout_of(1, 1, false), LADE_E_CHECKPOINT,
                    SAYS("config.json", keys[k], "family llama"));
            cJSON_Delete(config);
        }
    }
    cJSON_Delete(good);
}

static void missing_and_large(void **state)
{
    cJSON *config = config_of("llama-3-8b.tp1");

    (void)state;
    put(config, "intermediate_size", NULL);
    refuses(config, layout_of(1, 1, false), LADE_E_CHECKPOINT,
            SAYS("key intermediate_size is absent", "family llama",
                 "module model.layers.0.mlp.gate_up_proj"));
    put(config, "intermediate_size", "1099511627776");
    put(config, "hidden_size", "1099511627776");
    refuses(config, layout_of(1, 1, false), LADE_E_CHECKPOINT,
            SAYS("more than 288230376151711744 elements"));
    put(config, "intermediate_size", "64");
    put(config, "hidden_size", "64");
    put(config, "num_hidden_layers", "100001");
    refuses(config, layout_of(1, 1, false), LADE_E_CHECKPOINT,
            SAYS("num_hidden_layers", "100001", "100000"));
    put(config, "num_hidden_layers", "2");
    put(config, "head_dim", "1099511627776");
    refuses(config, layout_of(1, 1, false), LADE_E_CHECKPOINT,
            SAYS("8 times 1099511627776"));
    put(config, "head_dim", "null");
    put(config, "num_attention_heads", "7");
    put(config, "num_key_value_heads", "7");
    refuses(config, layout_of(1, 1, false), LADE_E_CHECKPOINT,
            SAYS("64 is not a multiple of 7", "hidden_size / H"));
    cJSON_Delete(config);
}

static void architectures(void **state)
{
    cJSON *config = config_of("llama-3-8b.tp1");
    struct lade_layout one = layout_of(1, 1, false);

    (void)state;
    put(config, "architectures", "[\"LlamaForCausalLn\"]");
    refuses(config, one, LADE_E_CHECKPOINT,
            SAYS("unknown architecture LlamaForCausalLn",
                 "nearest: LlamaForCausalLM", "MixtralForCausalLM",
                 "Qwen3MoeForCausalLM", "--family FILE"));
    put(config, "architectures", NULL);
    refuses(config, one, LADE_E_CHECKPOINT, SAYS("architectures is absent"));
    put(config, "architectures", "[]");
    refuses(config, one, LADE_E_CHECKPOINT, SAYS("architectures is absent"));
    put(config, "architectures", "[3]");
    refuses(config, one, LADE_E_CHECKPOINT, SAYS("architectures is absent"));
    cJSON_Delete(config);
    config = cJSON_Parse("[1]");
    refuses(config, one, LADE_E_CHECKPOINT, SAYS("not a JSON object"));
    cJSON_Delete(config);
}

static void quantised(void **state)
{
    cJSON *config = config_of("llama-3-8b.tp1");
    struct lade_layout one = layout_of(1, 1, false);

    (void)state;
    put(config, "quantization_config", "{\"quant_method\":\"fp8\"}");
    refuses(config, one, LADE_E_CHECKPOINT,
            SAYS("quantization_config names the method fp8",
                 "quantised checkpoints are not in this version"));
    put(config, "quantization_config", "{}");
    refuses(config, one, LADE_E_CHECKPOINT, SAYS("quant_method absent"));
    put(config, "quantization_config", NULL);
    put(config, "text_config",
        "{\"quantization_config\":{\"quant_method\":\"gptq\"}}");
    refuses(config, one, LADE_E_CHECKPOINT, SAYS("the method gptq"));
    put(config, "text_config",
        "{\"compression_config\":{\"quant_method\":\"x\"}}");
    refuses(config, one, LADE_E_CHECKPOINT, SAYS("compression_config"));
    cJSON_Delete(config);
}

/* ---- details ------------------------------------------------------------ */

static struct lade_shell *shell_of(const cJSON *config, uint32_t tp,
                                   const char *head)
{
    struct lade_layout layout = layout_of(tp, 1, false);
    struct lade_shell *shell = NULL;
    lade_err err = LADE_ERR_INIT;

    if (build(config, &layout, head, &shell, &err) != LADE_OK)
        print_error("%s\n", err.text);
    assert_non_null(shell);
    return shell;
}

static int64_t find(const struct lade_shell *shell, const char *name)
{
    for (uint32_t i = 0; i < shell->params.count; i++)
        if (strcmp(text(shell, params_of(shell)[i].name), name) == 0)
            return i;
    return -1;
}

static void element_types(void **state)
{
    static const struct {
        const char *key, *value;
        enum lade_dtype wish, want;
    } good[] = {
        {"torch_dtype", "\"float16\"", LADE_DTYPE_UNKNOWN, LADE_DTYPE_F16},
        {"dtype", "\"float32\"", LADE_DTYPE_UNKNOWN, LADE_DTYPE_F32},
        {"torch_dtype", "\"float16\"", LADE_DTYPE_F32, LADE_DTYPE_F32},
        {"torch_dtype", NULL, LADE_DTYPE_UNKNOWN, LADE_DTYPE_BF16},
        {"text_config", "{\"dtype\":\"float16\"}", LADE_DTYPE_UNKNOWN,
         LADE_DTYPE_F16},
    };
    struct lade_layout one = layout_of(1, 1, false);

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct lade_model_wish wish = {.dtype = good[i].wish};
        struct lade_shell *shell = NULL;
        lade_err err = LADE_ERR_INIT;
        cJSON *config = config_of("llama-3-8b.tp1");
        put(config, "torch_dtype", NULL);
        put(config, good[i].key, good[i].value);
        lade_warn_reset();
        assert_int_equal(
            lade_model_build(config, &wish, &one, NULL, mem, &shell, &err),
            LADE_OK);
        assert_int_equal(shell->dtype, good[i].want);
        assert_int_equal(params_of(shell)[0].dtype, good[i].want);
        assert_int_equal(lade_warn_count(), good[i].value ? 0 : 1);
        if (!good[i].value)
            assert_non_null(strstr(lade_warn_get(0), "BF16"));
        lade_free(mem, shell);
        cJSON_Delete(config);
    }
    cJSON *config = config_of("llama-3-8b.tp1");
    put(config, "torch_dtype", "\"float8_e4m3fn\"");
    refuses(config, one, LADE_E_CHECKPOINT,
            SAYS("torch_dtype is \"float8_e4m3fn\""));
    put(config, "torch_dtype", "3");
    refuses(config, one, LADE_E_CHECKPOINT, SAYS("torch_dtype is not a text"));
    cJSON_Delete(config);
}

static void tied_heads(void **state)
{
    cJSON *config = config_of("llama-3.2-1b.tp1");
    struct lade_shell *shell = shell_of(config, 2, NULL);

    (void)state;
    assert_int_equal(shell->untied_by_checkpoint, 0);
    assert_int_equal(find(shell, "lm_head.weight"), -1);
    assert_int_equal(shell->tie_from, shell->tie_to);
    lade_free(mem, shell);

    shell = shell_of(config, 2, "model.norm.weight");
    assert_int_equal(shell->untied_by_checkpoint, 0);
    lade_free(mem, shell);
    shell = shell_of(config, 2, "xlm_head.weight");
    assert_int_equal(shell->untied_by_checkpoint, 0);
    lade_free(mem, shell);

    shell = shell_of(config, 2, "lm_head.weight");
    assert_int_equal(shell->untied_by_checkpoint, 1);
    assert_int_equal(shell->aliases.count, 0);
    assert_int_equal(shell->tie_from, find(shell, "model.embed_tokens.weight"));
    assert_int_equal(shell->tie_to, find(shell, "lm_head.weight"));
    assert_true(shell->tie_to > shell->tie_from);
    lade_free(mem, shell);

    put(config, "tie_word_embeddings", NULL);
    shell = shell_of(config, 2, NULL);
    assert_true(find(shell, "lm_head.weight") > 0);
    assert_int_equal(shell->untied_by_checkpoint, 0);
    lade_free(mem, shell);
    cJSON_Delete(config);
}

static void biases(void **state)
{
    cJSON *config = config_of("llama-3-8b.tp1");
    struct lade_shell *shell = NULL;

    (void)state;
    put(config, "attention_bias", "true");
    put(config, "mlp_bias", "true");
    shell = shell_of(config, 4, NULL);
    int64_t o = find(shell, "model.layers.0.self_attn.o_proj.bias");
    int64_t qkv = find(shell, "model.layers.0.self_attn.qkv_proj.bias");
    assert_true(o > 0 && qkv > 0);
    assert_true(find(shell, "model.layers.1.mlp.gate_up_proj.bias") > 0);
    assert_true(find(shell, "model.layers.1.mlp.down_proj.bias") > 0);
    /* a row layer's bias is whole, though its weight is cut by columns */
    assert_int_equal(params_of(shell)[o].shape[0], 64);
    const struct lade_shell_part *part =
        &parts_of(shell)[params_of(shell)[o].first_part];
    assert_int_equal(part->axis, LADE_AXIS_NONE);
    assert_int_equal(part->piece, 64);
    part = &parts_of(shell)[params_of(shell)[o - 1].first_part];
    assert_int_equal(part->axis, LADE_AXIS_TP);
    assert_int_equal(part->cut, 1);
    /* two KV heads over four ranks: each is on two */
    part = &parts_of(shell)[params_of(shell)[qkv].first_part];
    assert_int_equal(part[0].axis, LADE_AXIS_TP);
    assert_int_equal(part[1].axis, LADE_AXIS_KV);
    assert_int_equal(part[2].copies, 2);
    assert_string_equal(text(shell, part[2].name),
                        "model.layers.0.self_attn.v_proj.bias");
    lade_free(mem, shell);

    put(config, "qkv_bias", "false");
    shell = shell_of(config, 1, NULL);
    assert_int_equal(find(shell, "model.layers.0.self_attn.qkv_proj.bias"), -1);
    assert_true(find(shell, "model.layers.0.self_attn.o_proj.bias") > 0);
    lade_free(mem, shell);
    cJSON_Delete(config);

    config = config_of("qwen3-8b.tp1");
    put(config, "attention_bias", "true");
    shell = shell_of(config, 1, NULL);
    assert_true(find(shell, "model.layers.0.self_attn.qkv_proj.bias") > 0);
    assert_int_equal(find(shell, "model.layers.0.self_attn.o_proj.bias"), -1);
    lade_free(mem, shell);
    cJSON_Delete(config);
}

static void order_and_rules(void **state)
{
    cJSON *config = config_of("mixtral-8x7b.tp1");
    struct lade_shell *shell = shell_of(config, 1, NULL);
    const struct lade_shell_rule *rules =
        LADE_ITEMS(shell, rules, struct lade_shell_rule);
    uint32_t last = (uint32_t)shell->params.count - 1;

    (void)state;
    assert_int_equal(params_of(shell)[0].layer, 0);
    assert_int_equal(params_of(shell)[1].layer, 1);
    assert_int_equal(params_of(shell)[last - 2].layer, 3);
    assert_int_equal(params_of(shell)[last - 1].layer, 4);
    assert_int_equal(params_of(shell)[last].layer, 4);
    int64_t w13 =
        find(shell, "model.layers.2.block_sparse_moe.experts.routed_experts."
                    "w13_weight");
    assert_int_equal(params_of(shell)[w13].moe_layer, 2);
    assert_int_equal(shell->moe_layers, 3);
    assert_string_equal(
        text(shell, parts_of(shell)[params_of(shell)[w13].first_part].name),
        "model.layers.2.block_sparse_moe.experts.{e}.w1.weight");
    assert_int_equal(shell->rules.count, 7);
    assert_int_equal(rules[0].to, UINT32_MAX);
    assert_string_equal(text(shell, rules[1].from), "rotary_emb.inv_freq");
    assert_string_equal(text(shell, rules[5].from), ".up_proj.");
    assert_string_equal(text(shell, rules[5].to), ".w3.");
    assert_string_equal(text(shell, shell->family), "mixtral");
    assert_string_equal(text(shell, shell->architecture), "MixtralForCausalLM");
    assert_string_equal(text(shell, shell->quantization), "none");
    lade_free(mem, shell);
    cJSON_Delete(config);
}

static void dense_layers_among_experts(void **state)
{
    cJSON *config = config_of("qwen3-30b-a3b.tp1");
    struct lade_shell *shell = NULL;

    (void)state;
    put(config, "num_hidden_layers", "6");
    put(config, "decoder_sparse_step", "2");
    put(config, "mlp_only_layers", "[3]");
    shell = shell_of(config, 1, NULL);
    /* layers 1, 3, 5 by the step, 3 made dense by the list */
    static const bool experts[] = {false, true, false, false, false, true};
    for (int l = 0; l < 6; l++) {
        char name[128];
        snprintf(name, sizeof name, "model.layers.%d.mlp.gate.weight", l);
        assert_int_equal(find(shell, name) >= 0, experts[l]);
        snprintf(name, sizeof name, "model.layers.%d.mlp.down_proj.weight", l);
        assert_int_equal(find(shell, name) >= 0, !experts[l]);
    }
    assert_int_equal(shell->moe_layers, 2);
    assert_int_equal(shell->aliases.count, 2);
    lade_free(mem, shell);
    put(config, "num_experts", "0");
    shell = shell_of(config, 1, NULL);
    assert_int_equal(shell->experts, 0);
    assert_int_equal(shell->ep, 1);
    lade_free(mem, shell);
    cJSON_Delete(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_engine),
        cmocka_unit_test(true_sizes),
        cmocka_unit_test(layouts_that_do_not_fit),
        cmocka_unit_test(experts_that_do_not_fit),
        cmocka_unit_test(hostile_sizes),
        cmocka_unit_test(missing_and_large),
        cmocka_unit_test(architectures),
        cmocka_unit_test(quantised),
        cmocka_unit_test(element_types),
        cmocka_unit_test(tied_heads),
        cmocka_unit_test(biases),
        cmocka_unit_test(order_and_rules),
        cmocka_unit_test(dense_layers_among_experts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
