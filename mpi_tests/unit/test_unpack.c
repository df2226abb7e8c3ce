/*
 * The strided copy and the casts: every F16 and BF16 value there and back,
 * rounding against the two neighbours, windows that cut runs anywhere.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/unpack.h"

static void halves_go_there_and_back(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float a = lade_f16_float((uint16_t)bits);
        float b = lade_bf16_float((uint16_t)bits);
        if (isnan(a))
            assert_true(isnan(lade_f16_float(lade_float_f16(a))));
        else
            assert_int_equal(lade_float_f16(a), bits);
        if (isnan(b))
            assert_int_equal(lade_float_bf16(b), 0x7fc0);
        else
            assert_int_equal(lade_float_bf16(b), bits);
    }
}

static void known_halves(void **state)
{
    (void)state;
    assert_true(lade_f16_float(0x3c00) == 1.0f);
    assert_true(lade_f16_float(0xc000) == -2.0f);
    assert_true(lade_f16_float(0x7bff) == 65504.0f);
    assert_true(lade_f16_float(0x0001) == 0x1p-24f);
    assert_true(lade_f16_float(0x0400) == 0x1p-14f);
    assert_true(isinf(lade_f16_float(0x7c00)));
    assert_int_equal(lade_float_f16(65519.0f), 0x7bff);
    assert_int_equal(lade_float_f16(65520.0f), 0x7c00);
    assert_int_equal(lade_float_f16(-1e30f), 0xfc00);
    assert_int_equal(lade_float_f16(0x1p-25f), 0x0000); /* tie to even */
    assert_int_equal(lade_float_f16(0x1.8p-25f), 0x0001);
    assert_int_equal(lade_float_f16(1.0f + 0x1p-11f), 0x3c00); /* tie */
    assert_int_equal(lade_float_f16(1.0f + 0x1.8p-10f), 0x3c02); /* tie */
    assert_int_equal(lade_float_bf16(1.0f + 0x1p-8f), 0x3f80);   /* tie */
    assert_int_equal(lade_float_bf16(1.0f + 0x1.8p-7f), 0x3f82); /* tie */
    assert_int_equal(lade_float_bf16(INFINITY), 0x7f80);
}

/* The result must be the nearest of its neighbours; on a tie the even one. */
static void rounding_is_nearest_even(void **state)
{
    uint32_t x = 12345;

    (void)state;
    for (int i = 0; i < 2000000; i++) {
        x = x * 1664525u + 1013904223u;
        float v = lade_bits_float(x);
        if (!(fabsf(v) < 65504.0f) || fabsf(v) < 0x1p-24f)
            continue;
        uint16_t h = lade_float_f16(v);
        double here = fabs((double)lade_f16_float(h) - (double)v);
        double up = fabs((double)lade_f16_float((uint16_t)(h + 1)) - (double)v);
        double down =
            (h & 0x7fff) ? fabs((double)lade_f16_float((uint16_t)(h - 1)) -
                                (double)v)
                         : INFINITY;
        assert_true(here <= up && here <= down);
        if (here == up || here == down)
            assert_int_equal(h & 1, 0);
    }
}

/* A [6, 10] tensor into columns of a [6, 4] parameter at column offset 1,
 * delivered in two windows that cut at every possible element. */
static void windows_cut_anywhere(void **state)
{
    uint16_t tensor[60];

    (void)state;
    for (int i = 0; i < 60; i++)
        tensor[i] = (uint16_t)(1000 + i);
    for (uint64_t cut = 0; cut <= 60; cut++) {
        uint16_t param[6 * 4] = {0};
        struct lade_unpack u = {.to = param,
                                .src = 5, /* columns 5, 6, 7 */
                                .dst = 1,
                                .runs = 6,
                                .run = 3,
                                .src_step = 10,
                                .dst_step = 4};
        u.from = tensor;
        u.high = cut;
        uint64_t done = lade_unpack_copy_host(&u, 2);
        u.from = tensor + cut;
        u.low = cut;
        u.high = 60;
        done += lade_unpack_copy_host(&u, 2);
        assert_int_equal(done, 18);
        for (int r = 0; r < 6; r++) {
            assert_int_equal(param[r * 4], 0);
            for (int c = 0; c < 3; c++)
                assert_int_equal(param[r * 4 + 1 + c], 1000 + r * 10 + 5 + c);
        }
    }
}

static void nothing_outside_the_window(void **state)
{
    uint16_t tensor[8] = {0}, param[8] = {0};
    struct lade_unpack u = {.from = tensor,
                            .to = param,
                            .src = 4,
                            .runs = 1,
                            .run = 4,
                            .src_step = 4,
                            .dst_step = 4,
                            .low = 0,
                            .high = 4};

    (void)state;
    assert_int_equal(lade_unpack_copy_host(&u, 2), 0);
    u.low = 8;
    u.high = 16;
    assert_int_equal(lade_unpack_copy_host(&u, 2), 0);
}

static void casts_between_all_kinds(void **state)
{
    const double values[] = {0.0, 1.0, -1.5, 0.0078125, 2.5, -65504.0};
    const unsigned size[] = {2, 2, 4, 8};

    (void)state;
    for (int from = 0; from < LADE_NUMBERS; from++)
        for (int to = 0; to < LADE_NUMBERS; to++) {
            unsigned char source[64], target[64];
            memset(target, 0xee, sizeof(target));
            for (unsigned i = 0; i < 5; i++)
                lade_number_put(source, i, (enum lade_number)from, values[i]);
            struct lade_unpack u = {.from = source,
                                    .to = target,
                                    .runs = 1,
                                    .run = 5,
                                    .src_step = 5,
                                    .dst_step = 5,
                                    .high = 5};
            assert_int_equal(lade_unpack_cast_host(&u, (enum lade_number)from,
                                                   (enum lade_number)to),
                             5);
            for (unsigned i = 0; i < 5; i++)
                assert_true(lade_number_get(target, i, (enum lade_number)to) ==
                            values[i]);
            assert_int_equal(target[5 * size[to]], 0xee);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_go_there_and_back),
        cmocka_unit_test(known_halves),
        cmocka_unit_test(rounding_is_nearest_even),
        cmocka_unit_test(windows_cut_anywhere),
        cmocka_unit_test(nothing_outside_the_window),
        cmocka_unit_test(casts_between_all_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
