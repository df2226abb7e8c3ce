/*
 * The join of names: what fills what, why rows are dropped, and the one line
 * that says what is missing, unknown or does not fit.
 */
#include "route_bench.h"

#include "route/hints.h"

#define BF16 LADE_DTYPE_BF16
#define F32 LADE_DTYPE_F32
#define F64 LADE_DTYPE_F64

enum { PART_EMBED, PART_Q, PART_K, PART_NORM, PART_GATE, PART_BIAS };

/*
 * embed [8,4]; qkv of q and k; norm [4] in F32; w13 of two experts [2,4]; a
 * bias that may be absent. Rotary tables are dropped.
 */
static void tiny(struct bench *b)
{
    bench_init(b);
    bench_param(b, "model.embed_tokens.weight", BF16);
    bench_part(b, "model.embed_tokens.weight", 8, 4);
    bench_param(b, "model.layers.0.self_attn.qkv_proj.weight", BF16);
    bench_part(b, "model.layers.0.self_attn.q_proj.weight", 4, 4);
    bench_part(b, "model.layers.0.self_attn.k_proj.weight", 2, 4);
    bench_param(b, "model.norm.weight", F32);
    bench_part(b, "model.norm.weight", 4, 0);
    bench_param(b, "model.layers.0.mlp.experts.routed_experts.w13_weight",
                BF16);
    bench_part(b, "model.layers.0.mlp.experts.{e}.gate_proj.weight", 2, 4)
        ->experts = 12;
    bench_param(b, "model.layers.0.mlp.bias_of_all", BF16);
    bench_part(b, "model.layers.0.mlp.bias_of_all", 4, 0)->optional = 1;
    bench_alias(b, "lm_head.weight", 0);
    bench_rule(b, LADE_RULE_SUBSTRING, "rotary_emb.inv_freq", NULL);
}

/* All of it but the rows whose name contains `without` (may be NULL). */
static void tiny_rows(struct bench *b, const char *without)
{
    static const struct {
        const char *name;
        enum lade_dtype dtype;
        uint64_t rows, cols;
    } plain[] = {
        {"model.embed_tokens.weight", BF16, 8, 4},
        {"model.layers.0.self_attn.k_proj.weight", BF16, 2, 4},
        {"model.layers.0.self_attn.q_proj.weight", BF16, 4, 4},
        {"model.norm.weight", F32, 4, 0},
    };
    char name[96];

    for (int e = 11; e >= 0; e--) { /* any order of rows */
        snprintf(name, sizeof name,
                 "model.layers.0.mlp.experts.%d.gate_proj.weight", e);
        if (!without || !strstr(name, without))
            bench_row(b, name, BF16, 2, 4);
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!without || !strstr(plain[i].name, without))
            bench_row(b, plain[i].name, plain[i].dtype, plain[i].rows,
                      plain[i].cols);
}

static struct lade_row *row_of(struct bench *b, const char *name)
{
    for (uint64_t r = 0; r < b->rows.count; r++) {
        struct lade_row *row = LADE_VEC_AT(&b->rows, struct lade_row, r);
        if (strcmp(lade_pool_get(&b->pool, row->name), name) == 0)
            return row;
    }
    fail_msg("no row %s", name);
    return NULL;
}

static const struct lade_route *route_of(struct bench *b, const char *name)
{
    uint64_t r = (uint64_t)(row_of(b, name) - (struct lade_row *)b->rows.data);

    assert_int_equal(b->routes->routes.count, b->rows.count);
    return &LADE_ITEMS(b->routes, routes, struct lade_route)[r];
}

static void fails(struct bench *b, bool strict, const char *text)
{
    int rc = bench_build(b, strict);

    if (rc != LADE_E_PARAMETER || strcmp(b->err.text, text) != 0)
        fail_msg("%d \"%s\"; wanted \"%s\"", rc, b->err.text, text);
    assert_null(b->routes);
    b->err = (lade_err)LADE_ERR_INIT;
}

static void works(struct bench *b, bool strict, int warnings)
{
    lade_warn_reset();
    if (bench_build(b, strict) != LADE_OK)
        fail_msg("%s", b->err.text);
    assert_int_equal(lade_blob_check(b->routes, b->routes->blob.size,
                                     LADE_BLOB_ROUTES, &b->err),
                     LADE_OK);
    if (lade_warn_count() != warnings)
        fail_msg("%d warnings, the first \"%s\"", lade_warn_count(),
                 lade_warn_count() ? lade_warn_get(0) : "");
}

/* ---- what fills what ---- */

static void test_join(void **state)
{
    const struct lade_route *route;
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, NULL);
    bench_row(&b, "model.layers.0.self_attn.rotary_emb.inv_freq", F32, 2, 0);
    works(&b, true, 0);
    route = route_of(&b, "model.layers.0.self_attn.k_proj.weight");
    assert_int_equal(route->part, PART_K);
    assert_int_equal(route->parts, 1);
    assert_int_equal(route->expert, 0);
    assert_int_equal(route->reason, LADE_ROUTE_NEEDED);
    route = route_of(&b, "model.layers.0.mlp.experts.11.gate_proj.weight");
    assert_int_equal(route->part, PART_GATE);
    assert_int_equal(route->expert, 11);
    route = route_of(&b, "model.layers.0.self_attn.rotary_emb.inv_freq");
    assert_int_equal(route->part, UINT32_MAX);
    assert_int_equal(route->parts, 0);
    assert_int_equal(route->reason, LADE_ROUTE_RULE);
    assert_int_equal(route->rule, 0);
    assert_int_equal(b.routes->missing.count, 0);
    bench_free(&b);
}

/* Names go through the rules before they are compared. */
static void test_renamed(void **state)
{
    struct bench b;

    (void)state;
    tiny(&b);
    bench_rule(&b, LADE_RULE_PREFIX, "transformer.", "model.");
    tiny_rows(&b, "norm");
    bench_row(&b, "transformer.norm.weight", F32, 4, 0);
    works(&b, true, 0);
    assert_int_equal(route_of(&b, "transformer.norm.weight")->part, PART_NORM);
    bench_row(&b, "model.norm.weight", F32, 4, 0)->shard = 1;
    fails(&b, true,
          "two.safetensors: tensor model.norm.weight is model.norm.weight "
          "after the family's renames, but tensor transformer.norm.weight of "
          "one.safetensors is that already");
    bench_free(&b);
}

/* Consecutive parts of one name are one tensor on disk. */
static void test_fused(void **state)
{
    const struct lade_route *route;
    struct bench b;

    (void)state;
    bench_init(&b);
    bench_param(&b, "qkv", BF16);
    bench_part(&b, "disk.qkv", 8, 4);
    bench_part(&b, "disk.qkv", 8, 4)->base = 4;
    bench_param(&b, "norm", BF16);
    bench_part(&b, "disk.norm", 4, 0);
    bench_row(&b, "disk.norm", BF16, 4, 0);
    fails(&b, true,
          "tensor disk.qkv is missing, needed for qkv; 1 missing in "
          "all");
    bench_row(&b, "disk.qkv", BF16, 8, 4);
    works(&b, true, 0);
    route = route_of(&b, "disk.qkv");
    assert_int_equal(route->part, 0);
    assert_int_equal(route->parts, 2);
    assert_int_equal(route_of(&b, "disk.norm")->part, 2);
    LADE_VEC_AT(&b.parts, struct lade_shell_part, 1)->shape[0] = 6;
    fails(&b, true,
          "one.safetensors: tensor disk.qkv has shape [8,4], but the config "
          "needs [6,4] for qkv");
    bench_part(&b, "disk.qkv", 8, 4); /* not beside the others */
    unit_failed(bench_build(&b, true), &b.err, LADE_E_USAGE,
                "family tiny: two parameters want the tensor disk.qkv");
    bench_free(&b);
}

/* What one element is, is not a question of dimensions. */
static void test_scalars(void **state)
{
    struct bench b;

    (void)state;
    bench_init(&b);
    bench_param(&b, "a", F32);
    bench_part(&b, "a", 0, 0);
    bench_param(&b, "b", F32);
    bench_part(&b, "b", 1, 0);
    bench_row(&b, "a", F32, 1, 1);
    bench_row(&b, "b", F32, 0, 0);
    works(&b, true, 0);
    row_of(&b, "a")->shape[0] = 2;
    fails(&b, true,
          "one.safetensors: tensor a has shape [2,1], but the config needs [] "
          "for a");
    bench_free(&b);
    tiny(&b);
    tiny_rows(&b, NULL);
    row_of(&b, "model.norm.weight")->shape[0] = 1; /* no broadcast */
    unit_failed(bench_build(&b, true), &b.err, LADE_E_PARAMETER,
                "has shape [1], but the config needs [4]");
    bench_free(&b);
}

static void test_family_faults(void **state)
{
    struct bench b;

    (void)state;
    bench_init(&b);
    bench_param(&b, "a", F32);
    bench_part(&b, "a", 1, 0)->experts = 2;
    unit_failed(bench_build(&b, true), &b.err, LADE_E_USAGE,
                "family tiny: no {e} in a");
    bench_free(&b);
    bench_init(&b);
    bench_rule(&b, LADE_RULE_REGEX, "[", "x");
    unit_failed(bench_build(&b, true), &b.err, LADE_E_USAGE,
                "family tiny: '[' is not a regular expression");
    bench_free(&b);
}

static void test_empty(void **state)
{
    struct bench b;

    (void)state;
    bench_init(&b);
    works(&b, true, 0);
    assert_int_equal(b.routes->routes.count, 0);
    bench_free(&b);
}

/* ---- reasons ---- */

static void test_tied_alias(void **state)
{
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, NULL);
    bench_row(&b, "lm_head.weight", BF16, 8, 4);
    works(&b, true, 0);
    assert_int_equal(route_of(&b, "lm_head.weight")->reason, LADE_ROUTE_TIED);
    assert_int_equal(route_of(&b, "lm_head.weight")->part, UINT32_MAX);
    bench_free(&b);
}

/* Quantisers write a bias for every layer, the model has none. */
static void test_spare_bias(void **state)
{
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, NULL);
    bench_row(&b, "model.layers.0.self_attn.q_proj.bias", BF16, 4, 0);
    bench_row(&b, "model.layers.0.mlp.experts.3.gate_proj.bias", BF16, 2, 0);
    works(&b, true, 1);
    assert_string_equal(lade_warn_get(0),
                        "2 bias tensors have no parameter in this model and "
                        "are not loaded (the first is "
                        "model.layers.0.self_attn.q_proj.bias)");
    assert_int_equal(
        route_of(&b, "model.layers.0.self_attn.q_proj.bias")->reason,
        LADE_ROUTE_BIAS);
    /* of a module that is not there it is a name like any other */
    bench_row(&b, "model.layers.0.self_attn.z_proj.bias", BF16, 4, 0);
    bench_row(&b, ".bias", BF16, 4, 0);
    bench_row(&b, "bias", BF16, 4, 0);
    fails(&b, true,
          "one.safetensors: tensor model.layers.0.self_attn.z_proj.bias is "
          "unknown to this model (nearest expected name: "
          "model.layers.0.self_attn.q_proj.weight); 3 unknown in all");
    bench_free(&b);
}

static void test_reason_texts(void **state)
{
    (void)state;
    for (int r = 0; r < LADE_ROUTE_REASONS; r++)
        assert_true(strlen(lade_route_reason_text((enum lade_route_reason)r)) >
                    5);
    assert_string_equal(lade_route_reason_text(LADE_ROUTE_REASONS), "?");
}

/* ---- missing and unknown ---- */

static void test_missing(void **state)
{
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, "norm");
    fails(&b, true,
          "tensor model.norm.weight is missing, needed for model.norm.weight; "
          "1 missing in all");
    bench_free(&b);
    tiny(&b);
    tiny_rows(&b, "experts.1"); /* 1, 10 and 11 */
    fails(&b, true,
          "tensor model.layers.0.mlp.experts.1.gate_proj.weight is missing, "
          "needed for expert 1 of "
          "model.layers.0.mlp.experts.routed_experts.w13_weight; 3 missing in "
          "all");
    bench_free(&b);
}

/* The head is one level deeper than it should be. */
static void test_near_twin(void **state)
{
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, "norm");
    bench_row(&b, "model.model.norm.weight", F32, 4, 0)->shard = 1;
    fails(&b, true,
          "tensor model.norm.weight is missing, needed for model.norm.weight "
          "(the files have model.model.norm.weight); 1 missing in all; "
          "two.safetensors: tensor model.model.norm.weight is unknown to this "
          "model (nearest expected name: model.norm.weight); 1 unknown in "
          "all");
    bench_free(&b);
}

/* 007 is not the way to write 7; 12 is one more than there are. */
static void test_numbers_of_experts(void **state)
{
    static const char *const bad[] = {"007", "07", "12",         "-1", "+7",
                                      "7 ",  "",   "4294967303", "{e}"};
    char name[96];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct bench b;
        tiny(&b);
        tiny_rows(&b, "experts.7");
        snprintf(name, sizeof name,
                 "model.layers.0.mlp.experts.%s.gate_proj.weight", bad[i]);
        bench_row(&b, name, BF16, 2, 4);
        unit_failed(bench_build(&b, true), &b.err, LADE_E_PARAMETER,
                    "tensor model.layers.0.mlp.experts.7.gate_proj.weight is "
                    "missing, needed for expert 7 of ");
        bench_free(&b);
    }
}

static void test_unknown(void **state)
{
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, NULL);
    bench_row(&b, "model.layers.0.self_attn.qq_proj.weight", BF16, 4, 4)
        ->shard = 1;
    bench_row(&b, "model.layers.1.self_attn.q_proj.weight", BF16, 4, 4);
    fails(&b, true,
          "two.safetensors: tensor model.layers.0.self_attn.qq_proj.weight is "
          "unknown to this model (nearest expected name: "
          "model.layers.0.self_attn.q_proj.weight); 2 unknown in all");
    bench_free(&b);
    tiny(&b);
    tiny_rows(&b, NULL);
    bench_row(&b, "abracadabra", BF16, 4, 4);
    fails(&b, true,
          "one.safetensors: tensor abracadabra is unknown to this model; 1 "
          "unknown in all");
    bench_free(&b);
}

/* Config says tied, the files have the head alone. */
static void test_head_only(void **state)
{
    struct bench b;

    (void)state;
    bench_init(&b);
    bench_param(&b, "model.embed_tokens.weight", BF16);
    bench_part(&b, "model.embed_tokens.weight", 8, 4);
    bench_param(&b, "lm_head.weight", BF16);
    bench_part(&b, "lm_head.weight", 8, 4);
    b.head.untied_by_checkpoint = 1;
    b.head.tie_from = 0;
    b.head.tie_to = 1;
    bench_row(&b, "lm_head.weight", BF16, 8, 4);
    fails(&b, true,
          "tensor model.embed_tokens.weight is missing, needed for "
          "model.embed_tokens.weight (the config ties lm_head.weight to it, "
          "and the files hold only that); 1 missing in all");
    bench_row(&b, "model.embed_tokens.weight", BF16, 8, 4);
    works(&b, true, 0);
    bench_free(&b);
}

/* Scales under a config of a plain model: that is the cause of all else. */
static void test_scales(void **state)
{
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, "norm");
    row_of(&b, "model.layers.0.self_attn.q_proj.weight")->dtype =
        LADE_DTYPE_F8_E4M3;
    bench_row(&b, "model.layers.0.self_attn.q_proj.weight_scale_inv", F32, 1,
              1);
    fails(&b, true,
          "the files carry scales, but the config declares no quantisation: "
          "one.safetensors: tensor model.layers.0.self_attn.q_proj.weight has "
          "dtype F8_E4M3, which cannot become BF16 of "
          "model.layers.0.self_attn.qkv_proj.weight; tensor model.norm.weight "
          "is missing, needed for model.norm.weight; 1 missing in all; "
          "one.safetensors: tensor "
          "model.layers.0.self_attn.q_proj.weight_scale_inv is unknown to "
          "this model (nearest expected name: "
          "model.layers.0.self_attn.q_proj.weight); 1 unknown in all");
    bench_free(&b);
    tiny(&b);
    tiny_rows(&b, "q_proj");
    bench_row(&b, "model.layers.0.self_attn.q_proj.qweight", F32, 4, 4);
    unit_failed(bench_build(&b, true), &b.err, LADE_E_PARAMETER,
                "the files carry scales, but the config declares no "
                "quantisation: tensor model.layers.0.self_attn.q_proj.weight "
                "is missing");
    b.head.quantization = bench_text(&b, "gptq"); /* then it is no cause */
    assert_int_equal(bench_build(&b, true), LADE_E_PARAMETER);
    assert_null(strstr(b.err.text, "declares no quantisation"));
    bench_free(&b);
}

static void test_is_quantised(void **state)
{
    (void)state;
    assert_true(lade_hint_is_quantised("a.weight_scale"));
    assert_true(lade_hint_is_quantised("a.weight_scale_inv"));
    assert_true(lade_hint_is_quantised("a.input_scale"));
    assert_true(lade_hint_is_quantised("a.qzeros"));
    assert_true(lade_hint_is_quantised("a.weight.absmax"));
    assert_true(lade_hint_is_quantised("a.gate_up_proj_blocks"));
    assert_false(lade_hint_is_quantised("a.weight"));
    assert_false(lade_hint_is_quantised("logit_scale.x"));
    assert_false(lade_hint_is_quantised(""));
}

static const char *nth(void *ctx, uint64_t i)
{
    return ((const char *const *)ctx)[i];
}

static void test_hints(void **state)
{
    static const char *const names[] = {
        "model.layers.1.mlp.up_proj.weight",
        NULL, /* taken: passed over */
        "model.layers.11.mlp.gate_proj.weight",
        "model.layers.12.mlp.up.weight",
        "model.norm.weight",
    };
    void *all = (void *)(uintptr_t)names;

    (void)state;
    /* the same layer counts for more than a letter less */
    assert_string_equal(
        lade_hint_nearest("model.layers.11.mlp.up_proj.weight", 5, nth, all),
        "model.layers.11.mlp.gate_proj.weight");
    /* a layer that is not there: any layer */
    assert_string_equal(
        lade_hint_nearest("model.layers.13.mlp.up_proj.weight", 5, nth, all),
        "model.layers.1.mlp.up_proj.weight");
    assert_string_equal(lade_hint_nearest("model.norm.wait", 5, nth, all),
                        "model.norm.weight");
    assert_null(lade_hint_nearest("abracadabra", 5, nth, all));
    assert_null(lade_hint_nearest("", 5, nth, all));
    assert_null(lade_hint_nearest("model.norm.weight", 0, nth, all));
}

static const char *counted(void *ctx, uint64_t i)
{
    (void)i;
    ++*(uint64_t *)ctx;
    return "model.layers.1.mlp.up_proj.weight";
}

/* Whatever the number of names, a few thousand are compared. */
static void test_hints_are_bounded(void **state)
{
    uint64_t calls = 0;

    (void)state;
    assert_null(
        lade_hint_nearest("layers.1.x", UINT64_C(1) << 24, counted, &calls));
    assert_true(calls > 1000 && calls < 20000);
}

/* ---- not strict ---- */

static void test_lenient(void **state)
{
    const struct lade_missing *missing;
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, "experts.1");
    bench_row(&b, "model.norm.weights", F32, 4, 0);
    works(&b, false, 2);
    assert_non_null(strstr(lade_warn_get(0), "3 missing in all"));
    assert_non_null(strstr(lade_warn_get(1), "1 unknown in all"));
    assert_int_equal(route_of(&b, "model.norm.weights")->reason,
                     LADE_ROUTE_UNKNOWN);
    assert_int_equal(b.routes->missing.count, 3);
    missing = LADE_ITEMS(b.routes, missing, struct lade_missing);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(missing[i].part, PART_GATE);
        assert_int_equal(missing[i].expert, i == 0 ? 1 : 9 + i);
    }
    bench_free(&b);
}

/* Where nothing fits, it is another model; shapes are never a trifle. */
static void test_lenient_has_limits(void **state)
{
    struct bench b;

    (void)state;
    tiny(&b);
    bench_row(&b, "encoder.weight", BF16, 4, 4);
    unit_failed(bench_build(&b, false), &b.err, LADE_E_PARAMETER,
                "tensor model.embed_tokens.weight is missing");
    bench_free(&b);
    tiny(&b);
    tiny_rows(&b, NULL);
    row_of(&b, "model.norm.weight")->shape[0] = 5;
    unit_failed(bench_build(&b, false), &b.err, LADE_E_PARAMETER,
                "has shape [5], but the config needs [4]");
    bench_free(&b);
}

/* ---- shapes and dtypes ---- */

static void test_shapes(void **state)
{
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, NULL);
    row_of(&b, "model.embed_tokens.weight")->shape[0] = 64; /* padded */
    fails(&b, true,
          "one.safetensors: tensor model.embed_tokens.weight has shape "
          "[64,4], but the config needs [8,4] for model.embed_tokens.weight");
    row_of(&b, "model.layers.0.self_attn.q_proj.weight")->shape[1] = 3;
    row_of(&b, "model.norm.weight")->ndim = 2;
    row_of(&b, "model.norm.weight")->shape[1] = 1; /* as many, in 2 dims */
    fails(&b, true,
          "one.safetensors: tensor model.embed_tokens.weight has shape "
          "[64,4], but the config needs [8,4] for model.embed_tokens.weight; "
          "3 tensors do not fit");
    bench_free(&b);
}

/* norm is F32, the others BF16. */
static void test_dtypes(void **state)
{
    static const struct {
        const char *name;
        enum lade_dtype dtype;
        const char *wrong, *lossy;
    } cases[] = {
        {"model.norm.weight", BF16, NULL, NULL},
        {"model.norm.weight", LADE_DTYPE_F16, NULL, NULL},
        {"model.norm.weight", F64, NULL, "F64 to F32"},
        {"model.norm.weight", LADE_DTYPE_I32,
         "dtype I32, which cannot become "
         "F32 of model.norm.weight",
         NULL},
        {"model.embed_tokens.weight", LADE_DTYPE_F16, NULL, "F16 to BF16"},
        {"model.embed_tokens.weight", F32, NULL, "F32 to BF16"},
        {"model.embed_tokens.weight", F64, NULL, "F64 to BF16"},
        {"model.embed_tokens.weight", LADE_DTYPE_F8_E5M2,
         "dtype F8_E5M2, which cannot become BF16", NULL},
        {"model.embed_tokens.weight", LADE_DTYPE_U8,
         "dtype U8, which cannot become BF16", NULL},
        {"model.embed_tokens.weight", LADE_DTYPE_BOOL,
         "dtype BOOL, which cannot become BF16", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        tiny(&b);
        tiny_rows(&b, NULL);
        row_of(&b, cases[i].name)->dtype = (uint16_t)cases[i].dtype;
        if (cases[i].wrong) {
            unit_failed(bench_build(&b, true), &b.err, LADE_E_PARAMETER,
                        cases[i].wrong);
        } else {
            works(&b, true, cases[i].lossy != NULL);
            if (cases[i].lossy)
                assert_non_null(strstr(lade_warn_get(0), cases[i].lossy));
        }
        bench_free(&b);
    }
}

static void test_lossy_is_counted(void **state)
{
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, NULL);
    for (uint64_t r = 0; r < b.rows.count; r++)
        LADE_VEC_AT(&b.rows, struct lade_row, r)->dtype = F32;
    works(&b, true, 1);
    assert_string_equal(
        lade_warn_get(0),
        "15 tensors lose precision on the way to the engine's dtype (the "
        "first is model.layers.0.mlp.experts.11.gate_proj.weight, F32 to "
        "BF16)");
    bench_free(&b);
}

static void test_unknown_dtype(void **state)
{
    struct lade_row *row;
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, NULL);
    row = bench_row(&b, "x.rotary_emb.inv_freq", LADE_DTYPE_UNKNOWN, 4, 0);
    row->dtype_name = bench_text(&b, "F6_E2M3");
    works(&b, true, 1);
    assert_string_equal(lade_warn_get(0),
                        "1 tensors of unknown dtype are not needed and were "
                        "passed over (the first is x.rotary_emb.inv_freq, "
                        "F6_E2M3)");
    row = row_of(&b, "model.norm.weight");
    row->dtype = LADE_DTYPE_UNKNOWN;
    row->dtype_name = bench_text(&b, "C64");
    fails(&b, true,
          "one.safetensors: tensor model.norm.weight has dtype C64, which "
          "cannot become F32 of model.norm.weight");
    bench_free(&b);
}

/* ---- hostile input ---- */

/* Very long names and names with odd bytes: the counts are still said. */
static void test_long_names(void **state)
{
    static char name[100000];
    struct bench b;

    (void)state;
    memset(name, 'x', sizeof name - 1);
    memcpy(name + sizeof name - 6, ".bias", 6);
    tiny(&b);
    tiny_rows(&b, "norm");
    bench_row(&b, name, BF16, 1, 1);
    name[200] = '\n';
    name[4095 - 5] = '.'; /* where the buffer of a name ends */
    bench_row(&b, name, BF16, 1, 1);
    unit_failed(bench_build(&b, true), &b.err, LADE_E_PARAMETER,
                "; 1 missing in all; one.safetensors: tensor xxx");
    assert_int_equal(bench_build(&b, true), LADE_E_PARAMETER);
    assert_non_null(strstr(b.err.text, "; 2 unknown in all"));
    assert_null(strchr(b.err.text, '\n'));
    bench_free(&b);
}

/* Cost: the hints look at a bounded number of names. */
static void test_many_unknown(void **state)
{
    enum { MANY = 60000 };
    char name[96];
    struct bench b;

    (void)state;
    tiny(&b);
    tiny_rows(&b, "norm");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "model.layers.%d.mlp.experts.%d.w1.weight",
                 i / 256, i % 256);
        bench_row(&b, name, BF16, 2, 4);
    }
    unit_failed(bench_build(&b, true), &b.err, LADE_E_PARAMETER,
                "60000 unknown in all");
    bench_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_renamed),
        cmocka_unit_test(test_fused),
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_family_faults),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_tied_alias),
        cmocka_unit_test(test_spare_bias),
        cmocka_unit_test(test_reason_texts),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_near_twin),
        cmocka_unit_test(test_numbers_of_experts),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_head_only),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_is_quantised),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_hints_are_bounded),
        cmocka_unit_test(test_lenient),
        cmocka_unit_test(test_lenient_has_limits),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_lossy_is_counted),
        cmocka_unit_test(test_unknown_dtype),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_many_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
