/*
 * Element types and shapes.
 */
#include "unit.h"

#include "base/dtype.h"

static void test_names(void **state)
{
    static const struct {
        const char *name;
        unsigned bits;
        bool is_float;
    } known[] = {
        {"BOOL", 8, false},   {"U8", 8, false},     {"I8", 8, false},
        {"I16", 16, false},   {"U16", 16, false},   {"I32", 32, false},
        {"U32", 32, false},   {"I64", 64, false},   {"U64", 64, false},
        {"F8_E4M3", 8, true}, {"F8_E5M2", 8, true}, {"F8_E8M0", 8, true},
        {"F16", 16, true},    {"BF16", 16, true},   {"F32", 32, true},
        {"F64", 64, true},    {"F4", 4, true},
    };

    (void)state;
    assert_int_equal(sizeof(known) / sizeof(*known), LADE_DTYPES - 1);
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        enum lade_dtype dtype = lade_dtype_find(known[i].name);
        assert_int_not_equal(dtype, LADE_DTYPE_UNKNOWN);
        assert_string_equal(lade_dtype_name(dtype), known[i].name);
        assert_int_equal(lade_dtype_bits(dtype), known[i].bits);
        assert_int_equal(lade_dtype_is_float(dtype), known[i].is_float);
    }
}

static void test_unknown(void **state)
{
    static const char *const others[] = {"",      "?",    "bf16",
                                         "BF16 ", "F128", "bfloat16"};
    uint64_t bytes = 3;

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_int_equal(lade_dtype_find(others[i]), LADE_DTYPE_UNKNOWN);
    assert_int_equal(lade_dtype_bits(LADE_DTYPE_UNKNOWN), 0);
    assert_false(lade_dtype_is_float(LADE_DTYPE_UNKNOWN));
    assert_false(lade_dtype_bytes(LADE_DTYPE_UNKNOWN, 4, &bytes));
    assert_int_equal(bytes, 3);
    assert_string_equal(lade_dtype_name(LADE_DTYPES), "?");
    assert_int_equal(lade_dtype_bits(LADE_DTYPES), 0);
    assert_false(lade_dtype_is_float(LADE_DTYPES));
}

static void test_torch(void **state)
{
    (void)state;
    assert_int_equal(lade_dtype_from_torch("bfloat16"), LADE_DTYPE_BF16);
    assert_int_equal(lade_dtype_from_torch("torch.bfloat16"), LADE_DTYPE_BF16);
    assert_int_equal(lade_dtype_from_torch("torch.float16"), LADE_DTYPE_F16);
    assert_int_equal(lade_dtype_from_torch("half"), LADE_DTYPE_F16);
    assert_int_equal(lade_dtype_from_torch("float"), LADE_DTYPE_F32);
    assert_int_equal(lade_dtype_from_torch("float32"), LADE_DTYPE_F32);
    assert_int_equal(lade_dtype_from_torch("double"), LADE_DTYPE_F64);
    assert_int_equal(lade_dtype_from_torch("BF16"), LADE_DTYPE_UNKNOWN);
    assert_int_equal(lade_dtype_from_torch("torch.torch.half"),
                     LADE_DTYPE_UNKNOWN);
    assert_int_equal(lade_dtype_from_torch(""), LADE_DTYPE_UNKNOWN);
}

static void test_bytes(void **state)
{
    uint64_t bytes = 0;

    (void)state;
    assert_true(lade_dtype_bytes(LADE_DTYPE_BF16, 1000, &bytes));
    assert_int_equal(bytes, 2000);
    assert_true(lade_dtype_bytes(LADE_DTYPE_F4, 10, &bytes));
    assert_int_equal(bytes, 5);
    assert_true(lade_dtype_bytes(LADE_DTYPE_U8, UINT64_MAX, &bytes));
    assert_true(bytes == UINT64_MAX);
    assert_true(lade_dtype_bytes(LADE_DTYPE_F64, 0, &bytes));
    assert_int_equal(bytes, 0);
    bytes = 3;
    assert_false(lade_dtype_bytes(LADE_DTYPE_F4, 11, &bytes));
    assert_false(lade_dtype_bytes(LADE_DTYPE_BF16, UINT64_C(1) << 63, &bytes));
    assert_false(lade_dtype_bytes(LADE_DTYPE_F64, UINT64_C(1) << 61, &bytes));
    assert_int_equal(bytes, 3);
}

static void test_shape_count(void **state)
{
    const uint64_t shape[] = {3, 5, 7, UINT64_C(1) << 62, 0, UINT64_MAX};
    uint64_t count = 9;

    (void)state;
    assert_true(lade_shape_count(shape, 3, &count));
    assert_int_equal(count, 105);
    assert_true(lade_shape_count(NULL, 0, &count));
    assert_int_equal(count, 1);
    count = 9;
    assert_false(lade_shape_count(shape, 4, &count));
    assert_int_equal(count, 9);
    assert_true(lade_shape_count(shape + 4, 2, &count));
    assert_int_equal(count, 0);
}

static void test_shape_text(void **state)
{
    const uint64_t shape[] = {504, 64, UINT64_MAX};
    char out[64], small[6], one[1] = {'x'};

    (void)state;
    assert_string_equal(lade_shape_text(shape, 2, out, sizeof(out)),
                        "[504,64]");
    assert_string_equal(lade_shape_text(shape, 3, out, sizeof(out)),
                        "[504,64,18446744073709551615]");
    assert_string_equal(lade_shape_text(shape, 1, out, sizeof(out)), "[504]");
    assert_string_equal(lade_shape_text(shape, 0, out, sizeof(out)), "[]");
    assert_string_equal(lade_shape_text(shape, 3, small, sizeof(small)),
                        "[504,");
    assert_string_equal(lade_shape_text(shape, 3, one, 1), "");
    assert_ptr_equal(lade_shape_text(shape, 3, small, 0), small);
    assert_string_equal(small, "[504,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),       cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_torch),       cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_shape_count), cmocka_unit_test(test_shape_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
