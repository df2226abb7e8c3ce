/*
 * lade-fill-1 against vectors of its reference implementation, for every dtype
 * and kind; then that pieces of any size and alignment equal the whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "synth/synth_fill.h"

static const struct vector {
    const char *name;
    enum lade_dtype dtype;
    const char *kind;
    uint64_t seed;
    unsigned count;
    uint64_t bits[6];
} vectors[] = {
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_BF16,
     NULL,
     0,
     6,
     {0xbd79U, 0x3d4cU, 0xbf73U, 0x3de6U, 0xbd4bU, 0x3fbfU}},
    {"x.weight_scale",
     LADE_DTYPE_BF16,
     NULL,
     7,
     4,
     {0x3d23U, 0x3fc8U, 0x3c57U, 0x3d02U}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_F16,
     NULL,
     0,
     6,
     {0xaaf9U, 0x28ccU, 0xb873U, 0x2fe6U, 0xa8cbU, 0x3f3fU}},
    {"x.weight_scale",
     LADE_DTYPE_F16,
     NULL,
     7,
     4,
     {0x2a23U, 0x3c48U, 0x2357U, 0x2902U}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_F32,
     NULL,
     0,
     6,
     {0xbd72f9d5U, 0x3d08ccdcU, 0xbf607346U, 0x3da7e6dbU, 0xbd18cbd4U,
      0x3fc73f12U}},
    {"x.weight_scale",
     LADE_DTYPE_F32,
     NULL,
     7,
     4,
     {0x3d3e23bcU, 0x3fe8484eU, 0x3c0b57c3U, 0x3d51028aU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_F64,
     NULL,
     0,
     6,
     {UINT64_C(0xbfa75a7072f9d54f), UINT64_C(0x3faeba4508ccdcda),
      UINT64_C(0xbfee46b860734663), UINT64_C(0x3fb1733ca7e6dbba),
      UINT64_C(0xbfaa52dc18cbd419), UINT64_C(0x3ff7c7acc73f1245)}},
    {"x.weight_scale",
     LADE_DTYPE_F64,
     NULL,
     7,
     4,
     {UINT64_C(0x3fa2a28fbe23bc5a), UINT64_C(0x3ff54f4ce8484e85),
      UINT64_C(0x3f8260748b57c3f2), UINT64_C(0x3fa17a6cd1028a5e)}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_F8_E4M3,
     NULL,
     0,
     6,
     {0x4fU, 0xdaU, 0x63U, 0xbaU, 0x19U, 0x45U}},
    {"x.weight_scale",
     LADE_DTYPE_F8_E4M3,
     NULL,
     7,
     4,
     {0x5aU, 0x5U, 0x72U, 0x5eU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_F8_E5M2,
     NULL,
     0,
     6,
     {0x4fU, 0xdaU, 0x63U, 0xbaU, 0x19U, 0x45U}},
    {"x.weight_scale",
     LADE_DTYPE_F8_E5M2,
     NULL,
     7,
     4,
     {0x5aU, 0x5U, 0x72U, 0x5eU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_F8_E8M0,
     NULL,
     0,
     6,
     {0x7fU, 0x7aU, 0x7bU, 0x7aU, 0x79U, 0x7dU}},
    {"x.weight_scale",
     LADE_DTYPE_F8_E8M0,
     NULL,
     7,
     4,
     {0x7aU, 0x7dU, 0x7aU, 0x7eU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_I8,
     NULL,
     0,
     6,
     {0x4fU, 0xdaU, 0x63U, 0xbaU, 0x19U, 0x45U}},
    {"x.weight_scale", LADE_DTYPE_I8, NULL, 7, 4, {0x5aU, 0x85U, 0xf2U, 0x5eU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_U8,
     NULL,
     0,
     6,
     {0x4fU, 0xdaU, 0x63U, 0xbaU, 0x19U, 0x45U}},
    {"x.weight_scale", LADE_DTYPE_U8, NULL, 7, 4, {0x5aU, 0x85U, 0xf2U, 0x5eU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_I16,
     NULL,
     0,
     6,
     {0xd54fU, 0xdcdaU, 0x4663U, 0xdbbaU, 0xd419U, 0x1245U}},
    {"x.weight_scale",
     LADE_DTYPE_I16,
     NULL,
     7,
     4,
     {0xbc5aU, 0x4e85U, 0xc3f2U, 0x8a5eU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_U16,
     NULL,
     0,
     6,
     {0xd54fU, 0xdcdaU, 0x4663U, 0xdbbaU, 0xd419U, 0x1245U}},
    {"x.weight_scale",
     LADE_DTYPE_U16,
     NULL,
     7,
     4,
     {0xbc5aU, 0x4e85U, 0xc3f2U, 0x8a5eU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_I32,
     NULL,
     0,
     6,
     {0x72f9d54fU, 0x8ccdcdaU, 0x60734663U, 0xa7e6dbbaU, 0x18cbd419U,
      0xc73f1245U}},
    {"x.weight_scale",
     LADE_DTYPE_I32,
     NULL,
     7,
     4,
     {0xbe23bc5aU, 0xe8484e85U, 0x8b57c3f2U, 0xd1028a5eU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_U32,
     NULL,
     0,
     6,
     {0x72f9d54fU, 0x8ccdcdaU, 0x60734663U, 0xa7e6dbbaU, 0x18cbd419U,
      0xc73f1245U}},
    {"x.weight_scale",
     LADE_DTYPE_U32,
     NULL,
     7,
     4,
     {0xbe23bc5aU, 0xe8484e85U, 0x8b57c3f2U, 0xd1028a5eU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_I64,
     NULL,
     0,
     6,
     {UINT64_C(0xfd375a7072f9d54f), UINT64_C(0x210eba4508ccdcda),
      UINT64_C(0xf3be46b860734663), UINT64_C(0x5881733ca7e6dbba),
      UINT64_C(0xe29a52dc18cbd419), UINT64_C(0x1657c7acc73f1245)}},
    {"x.weight_scale",
     LADE_DTYPE_I64,
     NULL,
     7,
     4,
     {UINT64_C(0xc32a28fbe23bc5a), UINT64_C(0x45154f4ce8484e85),
      UINT64_C(0xf7e260748b57c3f2), UINT64_C(0x40717a6cd1028a5e)}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_U64,
     NULL,
     0,
     6,
     {UINT64_C(0xfd375a7072f9d54f), UINT64_C(0x210eba4508ccdcda),
      UINT64_C(0xf3be46b860734663), UINT64_C(0x5881733ca7e6dbba),
      UINT64_C(0xe29a52dc18cbd419), UINT64_C(0x1657c7acc73f1245)}},
    {"x.weight_scale",
     LADE_DTYPE_U64,
     NULL,
     7,
     4,
     {UINT64_C(0xc32a28fbe23bc5a), UINT64_C(0x45154f4ce8484e85),
      UINT64_C(0xf7e260748b57c3f2), UINT64_C(0x40717a6cd1028a5e)}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_BOOL,
     NULL,
     0,
     6,
     {0x1U, 0x0U, 0x1U, 0x0U, 0x1U, 0x1U}},
    {"x.weight_scale", LADE_DTYPE_BOOL, NULL, 7, 4, {0x0U, 0x1U, 0x0U, 0x0U}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_BF16,
     "positive",
     UINT64_MAX,
     4,
     {0x3cceU, 0x3cb9U, 0x3d9fU, 0x3ed9U}},
    {"a.k_scale",
     LADE_DTYPE_BF16,
     "random",
     1,
     4,
     {0xbf0fU, 0xbc51U, 0xbce5U, 0x3d67U}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_F8_E4M3,
     "positive",
     UINT64_MAX,
     4,
     {0x57U, 0x26U, 0x68U, 0x15U}},
    {"a.k_scale",
     LADE_DTYPE_F8_E4M3,
     "random",
     1,
     4,
     {0x80U, 0x67U, 0xa9U, 0x2aU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_F8_E5M2,
     "positive",
     UINT64_MAX,
     4,
     {0x57U, 0x26U, 0x68U, 0x15U}},
    {"a.k_scale",
     LADE_DTYPE_F8_E5M2,
     "random",
     1,
     4,
     {0x80U, 0x67U, 0xa9U, 0x2aU}},
    {"model.layers.0.self_attn.q_proj.weight",
     LADE_DTYPE_I32,
     "positive",
     UINT64_MAX,
     4,
     {0x9d4e5bd7U, 0xb43947a6U, 0x669f82e8U, 0x8d91715U}},
    {"a.k_scale",
     LADE_DTYPE_I32,
     "random",
     1,
     4,
     {0xff0f4180U, 0x51d1dd67U, 0xbc650ba9U, 0x97e7202aU}},
    {"g_idx",
     LADE_DTYPE_I32,
     "gidx:2",
     0,
     6,
     {0x0U, 0x0U, 0x1U, 0x1U, 0x2U, 0x2U}},
    {"g_idx", LADE_DTYPE_BF16, "gidx:3", 0, 5, {0x0U, 0x0U, 0x0U, 0x1U, 0x1U}},
    {"c", LADE_DTYPE_I32, "const:-2", 0, 2, {0xfffffffeU, 0xfffffffeU}},
    {"c", LADE_DTYPE_U8, "const:200", 0, 2, {0xc8U, 0xc8U}},
    {"c",
     LADE_DTYPE_I64,
     "const:-1",
     0,
     2,
     {UINT64_C(0xffffffffffffffff), UINT64_C(0xffffffffffffffff)}},
    {"c", LADE_DTYPE_BF16, "const:1.5", 0, 2, {0x3fc0U, 0x3fc0U}},
    {"c", LADE_DTYPE_F16, "const:1", 0, 2, {0x3c00U, 0x3c00U}},
    {"c", LADE_DTYPE_F16, "const:-65504", 0, 2, {0xfbffU, 0xfbffU}},
    {"c", LADE_DTYPE_F16, "const:0.00006103515625", 0, 2, {0x400U, 0x400U}},
    {"c", LADE_DTYPE_F16, "const:5.9604644775390625e-08", 0, 2, {0x1U, 0x1U}},
    {"c", LADE_DTYPE_F16, "const:0", 0, 2, {0x0U, 0x0U}},
    {"c", LADE_DTYPE_F32, "const:0.5", 0, 2, {0x3f000000U, 0x3f000000U}},
    {"c",
     LADE_DTYPE_F64,
     "const:-0.1",
     0,
     2,
     {UINT64_C(0xbfb999999999999a), UINT64_C(0xbfb999999999999a)}},
    {"c", LADE_DTYPE_F8_E4M3, "const:56", 0, 2, {0x38U, 0x38U}},
    {"c", LADE_DTYPE_BOOL, "const:1", 0, 2, {0x1U, 0x1U}},
    {"w.weight_shape",
     LADE_DTYPE_I32,
     "shape:640,-3",
     0,
     2,
     {0x280U, 0xfffffffdU}},
    {"w.weight_shape", LADE_DTYPE_I64, "shape:1,2", 0, 2, {0x1U, 0x2U}},
};

static void test_vectors(void **state)
{
    (void)state;
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++) {
        const struct vector *want = &vectors[v];
        const unsigned size = lade_dtype_bits(want->dtype) / 8;
        unsigned char got[48];
        struct lade_fill fill;
        lade_err err = LADE_ERR_INIT;
        if (lade_fill_init(&fill, want->name, want->dtype, want->count,
                           want->kind, want->seed, &err) != LADE_OK)
            fail_msg("%s", err.text);
        lade_fill_bytes(&fill, 0, (uint64_t)size * want->count, got);
        for (unsigned i = 0; i < want->count; i++) {
            uint64_t bits = 0;
            memcpy(&bits, got + (size_t)i * size, size); // little-endian
            if (bits != want->bits[i])
                fail_msg("%s %s %s: element %u is %llx, want %llx", want->name,
                         lade_dtype_name(want->dtype),
                         want->kind == NULL ? "" : want->kind, i,
                         (unsigned long long)bits,
                         (unsigned long long)want->bits[i]);
        }
    }
}

/* Names that end like a scale are positive, in float dtypes only. */
static void test_default_kind(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum lade_dtype dtype;
        bool positive;
    } cases[] = {
        {"a.weight_scale", LADE_DTYPE_F32, true},
        {"a.weight_scale_inv", LADE_DTYPE_BF16, true},
        {"a.scales", LADE_DTYPE_F16, true},
        {"a.weight_scale_2", LADE_DTYPE_F32, true},
        {"a.input_global_scale", LADE_DTYPE_F32, true},
        {"a.weight_scale", LADE_DTYPE_F8_E4M3, true},
        {"a.weight_scale", LADE_DTYPE_U8, false},
        {"a.scale.weight", LADE_DTYPE_F32, false},
        {"scale", LADE_DTYPE_F64, true},
        {"cale", LADE_DTYPE_F64, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lade_fill fill;
        assert_int_equal(lade_fill_init(&fill, cases[i].name, cases[i].dtype, 4,
                                        NULL, 0, NULL),
                         LADE_OK);
        assert_int_equal(fill.positive, cases[i].positive);
    }
}

static void test_pieces(void **state)
{
    (void)state;
    enum { SIZE = 40000 };
    unsigned char *whole = malloc(SIZE), *room = malloc(SIZE + 8);
    assert_true(whole != NULL && room != NULL);
    static const enum lade_dtype dtypes[] = {LADE_DTYPE_U8, LADE_DTYPE_BF16,
                                             LADE_DTYPE_F32, LADE_DTYPE_I64};
    static const char *const kinds[] = {"random", "gidx:7"};
    unsigned random = 1;
    for (size_t d = 0; d < 8; d++) {
        struct lade_fill fill;
        assert_int_equal(lade_fill_init(&fill, "piece", dtypes[d / 2], SIZE / 8,
                                        kinds[d % 2], 3, NULL),
                         LADE_OK);
        lade_fill_bytes(&fill, 0, SIZE, whole);
        for (unsigned shift = 0; shift < 8; shift++) {
            memset(room, 0xa5, SIZE + 8);
            for (unsigned at = 0, now; at < SIZE; at += now) {
                random = random * 1103515245U + 12345U;
                now = (random >> 16) % (at % 3 ? 40U : 9000U);
                now = now > SIZE - at ? SIZE - at : now;
                lade_fill_bytes(&fill, at, now, room + shift + at);
            }
            assert_memory_equal(room + shift, whole, SIZE);
        }
    }
    free(whole);
    free(room);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        enum lade_dtype dtype;
        const char *kind;
    } bad[] = {
        {LADE_DTYPE_F32, "randomly"},
        {LADE_DTYPE_F32, ""},
        {LADE_DTYPE_I32, "gidx:"},
        {LADE_DTYPE_I32, "gidx:0"},
        {LADE_DTYPE_I32, "gidx:-4"},
        {LADE_DTYPE_I32, "gidx:4x"},
        {LADE_DTYPE_I32, "const:"},
        {LADE_DTYPE_I32, "const:1.5"},
        {LADE_DTYPE_F16, "const:0.1"},
        {LADE_DTYPE_F16, "const:65536"},
        {LADE_DTYPE_F32, "const:1e99"},
        {LADE_DTYPE_F32, "const:nan"},
        {LADE_DTYPE_I32, "shape:1"},
        {LADE_DTYPE_I32, "shape:1,2,3"},
        {LADE_DTYPE_I32, "shape:1,b"},
        {LADE_DTYPE_I32, "gidx:99999999999999999999"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct lade_fill fill;
        lade_err err = LADE_ERR_INIT;
        if (lade_fill_init(&fill, "x", bad[i].dtype, 2, bad[i].kind, 0, &err) !=
            LADE_E_CHECKPOINT)
            fail_msg("%s was taken", bad[i].kind);
        assert_non_null(strstr(err.text, "does not fit"));
    }
    struct lade_fill fill;
    lade_err err = LADE_ERR_INIT;
    assert_int_equal(
        lade_fill_init(&fill, "x", LADE_DTYPE_I32, 3, "shape:1,2", 0, &err),
        LADE_E_CHECKPOINT);
    err = (lade_err)LADE_ERR_INIT;
    assert_int_equal(
        lade_fill_init(&fill, "w", LADE_DTYPE_F4, 2, NULL, 0, &err),
        LADE_E_CHECKPOINT);
    assert_string_equal(err.text, "w: lade-fill-1 has no values for dtype F4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_default_kind),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
