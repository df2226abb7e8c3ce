/*
 * The layout of a rank's memory: parameters do not overlap, and what is read
 * straight into one stands at the residue of its file offset.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "load/target.h"
#include "small_world.h"

#define SMALL_RESIDUE ((4096 * 3 + 40) % 4096)

static struct lade_plan *plan_of(struct small_world *w, uint64_t direct_min)
{
    struct lade_plan_options options;
    struct lade_plan *plan = NULL;
    const uint64_t island = 3;

    lade_plan_defaults(&options);
    options.scope = LADE_SCOPE_WORLD;
    options.direct_min = direct_min;
    options.stores = true;
    assert_int_equal(
        lade_plan_build(&w->in, &options, &island, w->mem, &plan, &w->err),
        LADE_OK);
    return plan;
}

static void check_layout(struct small_world *w, const struct lade_plan *plan,
                         uint32_t rank, uint64_t at[SMALL_PARAMS])
{
    struct lade_coords coords = lade_coords_of(&w->layout, rank);
    uint64_t total = 0, end = 0;

    assert_int_equal(
        lade_target_layout(&w->in, plan, rank, w->mem, at, &total, &w->err),
        LADE_OK);
    for (uint32_t i = 0; i < SMALL_PARAMS; i++) {
        assert_true(at[i] >= end);
        end = at[i] + lade_shell_bytes(w->shell, &w->place, &coords, i);
    }
    assert_true(total >= end);
    assert_int_equal(total % 4096, 0);
}

static void test_pages(void **state)
{
    struct small_world w;
    uint64_t at[SMALL_PARAMS];

    (void)state;
    assert_true(small_world_make(&w));
    struct lade_plan *plan = plan_of(&w, 1u << 20); /* nothing is direct */
    check_layout(&w, plan, 0, at);
    for (int i = 0; i < SMALL_PARAMS; i++)
        assert_int_equal(at[i] % 4096, 0);
    lade_free(w.mem, plan);
    assert_true(small_world_free(&w));
}

static void test_residue(void **state)
{
    struct small_world w;
    uint64_t at[SMALL_PARAMS];

    (void)state;
    assert_true(small_world_make(&w));
    struct lade_plan *plan = plan_of(&w, 1);
    assert_true(plan->totals.direct_stripes > 0);
    check_layout(&w, plan, 0, at);
    /* rank 0: the first half of a stands first in the file and in w; the
     * experts 0 and 1 are neighbours in the file as in e */
    assert_int_equal(at[SMALL_W] % 4096, SMALL_RESIDUE);
    assert_int_equal(at[SMALL_E] % 4096, (SMALL_RESIDUE + 24 + 24 + 10 + 20));
    check_layout(&w, plan, 1, at);
    /* rank 1 takes rows 2 and 3 of a, 12 bytes further on */
    assert_int_equal(at[SMALL_W] % 4096, SMALL_RESIDUE + 12);
    assert_int_equal(at[SMALL_E] % 4096,
                     (SMALL_RESIDUE + 24 + 24 + 10 + 20 + 16));
    lade_free(w.mem, plan);
    assert_true(small_world_free(&w));
}

static void test_cells(void **state)
{
    struct small_world w;
    struct lade_target target = {0};
    uint64_t at[SMALL_PARAMS] = {0, 4096, 8192, 12288, 16384};
    static char base[20000];

    (void)state;
    assert_true(small_world_make(&w));
    assert_int_equal(
        lade_target_init(&target, &w.in, 1, base, at, w.mem, &w.err), LADE_OK);
    const uint32_t first[] = {0, 2, 3, 4, 6, 7};
    assert_memory_equal(target.first_cell, first, sizeof first);
    assert_ptr_equal(target.data[SMALL_NORM], base + 4096);
    lade_target_fini(&target, w.mem);
    assert_int_equal(
        lade_target_init(&target, &w.in, 1, NULL, at, w.mem, &w.err), LADE_OK);
    assert_null(target.data[SMALL_NORM]);
    lade_target_fini(&target, w.mem);
    assert_true(small_world_free(&w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_residue),
        cmocka_unit_test(test_cells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
