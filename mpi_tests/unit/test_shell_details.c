/*
 * The shell: layouts that do not fit, hostile configs, dtypes, ties, biases,
 * order.
 */
#include "shell_bench.h"

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
        const char *warns; /* a word of the one warning, NULL: none */
    } good[] = {
        {"torch_dtype", "\"float16\"", LADE_DTYPE_UNKNOWN, LADE_DTYPE_F16,
         NULL},
        /* the engine takes no float32 unless it is asked for */
        {"dtype", "\"float32\"", LADE_DTYPE_UNKNOWN, LADE_DTYPE_BF16,
         "--dtype f32"},
        {"dtype", "\"float32\"", LADE_DTYPE_F32, LADE_DTYPE_F32, NULL},
        {"torch_dtype", "\"float16\"", LADE_DTYPE_F32, LADE_DTYPE_F32, NULL},
        {"torch_dtype", NULL, LADE_DTYPE_UNKNOWN, LADE_DTYPE_BF16, "BF16"},
        {"text_config", "{\"dtype\":\"float16\"}", LADE_DTYPE_UNKNOWN,
         LADE_DTYPE_F16, NULL},
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
        assert_int_equal(lade_warn_count(), good[i].warns ? 1 : 0);
        if (good[i].warns)
            assert_non_null(strstr(lade_warn_get(0), good[i].warns));
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
