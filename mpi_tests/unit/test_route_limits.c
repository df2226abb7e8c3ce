/*
 * What the join of names costs in time, and what it leaves behind when memory
 * runs out.
 */
#include "route_bench.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/map.h"
#include "scarce.h"

/* `layers` with 128 experts of three tensors each: 384 rows a layer. */
static void many_experts(struct bench *b, uint32_t layers)
{
    static const char *const parts[] = {"gate_proj", "up_proj", "down_proj"};
    char name[96];

    bench_init(b);
    bench_rule(b, LADE_RULE_SUBSTRING, "rotary_emb.inv_freq", NULL);
    bench_rule(b, LADE_RULE_PREFIX, "transformer.", "model.");
    for (uint32_t l = 0; l < layers; l++)
        for (uint32_t i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "model.layers.%u.w%u", l, i);
            bench_param(b, name, LADE_DTYPE_BF16);
            snprintf(name, sizeof name,
                     "model.layers.%u.mlp.experts.{e}.%s.weight", l, parts[i]);
            bench_part(b, name, 2, 4)->experts = 128;
            for (uint32_t e = 0; e < 128; e++) {
                snprintf(name, sizeof name,
                         "model.layers.%u.mlp.experts.%u.%s.weight", l, e,
                         parts[i]);
                bench_row(b, name, LADE_DTYPE_BF16, 2, 4);
            }
        }
}

/* The least that a join can do: write every name once and hash it. */
static uint64_t linear_pass_ns(const struct bench *b)
{
    char name[256];
    volatile uint64_t sum = 0;
    uint64_t start = lade_now_ns();

    for (uint64_t r = 0; r < b->rows.count; r++) {
        const struct lade_row *row = LADE_VEC_AT(&b->rows, struct lade_row, r);
        int n = snprintf(name, sizeof name, "%s",
                         lade_pool_get(&b->pool, row->name));
        sum = sum + lade_hash64(name, (size_t)n);
    }
    return lade_now_ns() - start;
}

/* Were rows compared with rows it would be a hundred thousand times as much;
 * the pass is repeated so that one interruption does not decide. */
static void test_cost(void **state)
{
    enum { LAYERS = 261, FACTOR = 100 };
    uint64_t pass = UINT64_MAX, join = UINT64_MAX;
    struct bench b;

    (void)state;
    many_experts(&b, LAYERS);
    assert_true(b.rows.count > 100000);
    bench_pack(&b);
    for (int i = 0; i < 3; i++) {
        pass = lade_min_u64(pass, linear_pass_ns(&b));
        uint64_t start = lade_now_ns();
        assert_int_equal(lade_route_build(b.shards, b.catalogue, b.shell, true,
                                          b.mem, &b.routes, &b.err),
                         LADE_OK);
        join = lade_min_u64(join, lade_now_ns() - start);
        lade_free(b.mem, b.routes);
        b.routes = NULL;
    }
    print_message("%llu rows: pass %llu us, join %llu us\n",
                  (unsigned long long)b.rows.count,
                  (unsigned long long)pass / 1000,
                  (unsigned long long)join / 1000);
    assert_true(join < FACTOR * pass);
    bench_free(&b);
}

/* The allocation that fails is the first, the second, ... the last. */
static void test_without_memory(void **state)
{
    uint64_t before, n = 0;
    struct bench b;
    int rc;

    (void)state;
    many_experts(&b, 2);
    bench_rule(&b, LADE_RULE_REGEX, "^(x)\\.", "\\1");
    bench_alias(&b, "other", 0);
    b.rows.count--; /* expert 127 of the last part is missing */
    bench_row(&b, "model.layers.0.unknown", LADE_DTYPE_BF16, 2, 4);
    bench_pack(&b);
    before = scarce_booked(b.mem);
    for (;; n++) {
        scarce_left = n;
        rc = lade_route_build(b.shards, b.catalogue, b.shell, false, b.mem,
                              &b.routes, &b.err);
        scarce_left = UINT64_MAX;
        if (rc == LADE_OK)
            break;
        unit_failed(rc, &b.err, LADE_E_MEMORY, "cannot allocate");
        assert_null(b.routes);
        assert_int_equal(scarce_booked(b.mem), before);
    }
    assert_true(n > 5);
    assert_int_equal(b.routes->missing.count, 1);
    bench_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
