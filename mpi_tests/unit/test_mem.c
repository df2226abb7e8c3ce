/*
 * Accounted memory: what is booked is what is there, zeroed and aligned; sizes
 * that cannot be are errors that say the number.
 */
#include "unit.h"

#include <pthread.h>

#include "base/checked.h"
#include "base/mem.h"

static lade_err err;

/* With the address sanitizer impossible sizes give NULL, as without it. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static bool zero(const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const char *)data)[i] != 0)
            return false;
    return true;
}

static void nothing_booked(struct lade_mem *mem)
{
    for (int tag = 0; tag < LADE_TAGS; tag++)
        assert_int_equal(lade_mem_now(mem, (enum lade_tag)tag), 0);
    lade_mem_free(mem);
}

static void test_checked(void **state)
{
    uint64_t n = 7;

    (void)state;
    assert_true(lade_add_u64(UINT64_MAX - 1, 1, &n));
    assert_true(n == UINT64_MAX);
    n = 7;
    assert_false(lade_add_u64(UINT64_MAX, 1, &n));
    assert_false(lade_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &n));
    assert_true(lade_mul_u64(UINT64_C(1) << 32, UINT32_MAX, &n));
    assert_int_equal(lade_ceil_div(10, 5), 2);
    assert_int_equal(lade_ceil_div(11, 5), 3);
    assert_int_equal(lade_ceil_div(0, 5), 0);
    assert_true(lade_ceil_div(UINT64_MAX, 2) == UINT64_C(1) << 63);
    assert_int_equal(lade_round_up(4097, 4096), 8192);
    assert_int_equal(lade_round_up(4096, 4096), 4096);
    assert_int_equal(lade_min_u64(2, 3), 2);
    assert_int_equal(lade_max_u64(2, 3), 3);
}

static void test_alloc(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1000003};
    struct lade_mem *mem = lade_mem_new();
    void *blocks[7];
    uint64_t sum = 0;

    (void)state;
    for (int i = 0; i < 7; i++) {
        blocks[i] = lade_alloc(mem, LADE_TAG_TEMP, sizes[i], &err);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        assert_true(zero(blocks[i], sizes[i]));
        memset(blocks[i], 0xff, sizes[i]);
        sum += sizes[i];
        assert_int_equal(lade_mem_now(mem, LADE_TAG_TEMP), sum);
    }
    for (int i = 0; i < 7; i++)
        lade_free(mem, blocks[i]);
    lade_free(mem, NULL);
    assert_int_equal(lade_mem_peak(mem, LADE_TAG_TEMP), sum);
    assert_int_equal(lade_mem_peak_total(mem), sum);
    assert_int_equal(lade_mem_peak(mem, LADE_TAG_STAGING), 0);
    nothing_booked(mem);
}

static void test_refused(void **state)
{
    struct lade_mem *mem = lade_mem_new();

    (void)state;
    assert_null(lade_alloc(mem, LADE_TAG_STAGING, SIZE_MAX, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY,
                "cannot allocate 18446744073709551615 bytes for staging");
    assert_null(lade_alloc(mem, LADE_TAG_STAGING, SIZE_MAX - 100, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "for staging");
    assert_null(lade_alloc(mem, LADE_TAG_SCALES, PTRDIFF_MAX, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "for scales");
    assert_null(
        lade_alloc_array(mem, LADE_TAG_TEMP, UINT64_C(1) << 61, 16, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "for temp");
    assert_null(lade_pages_alloc(mem, LADE_TAG_PARAMETERS, SIZE_MAX, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "for parameters");
    assert_null(lade_pages_alloc(mem, LADE_TAG_CACHE, SIZE_MAX / 2, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "for cache");
    assert_null(lade_alloc(mem, LADE_TAG_TEMP, SIZE_MAX, NULL));
    nothing_booked(mem);
}

static void test_array(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    uint32_t *items = lade_alloc_array(mem, LADE_TAG_CATALOGUE, 1000, 4, &err);

    (void)state;
    assert_non_null(items);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_CATALOGUE), 4000);
    lade_free(mem, items);
    items = lade_alloc_array(mem, LADE_TAG_CATALOGUE, 0, 4, &err);
    assert_non_null(items);
    lade_free(mem, items);
    nothing_booked(mem);
}

static void test_grow_and_shrink(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    char *text = lade_realloc(mem, LADE_TAG_TEMP, NULL, 10, &err);

    (void)state;
    memcpy(text, "123456789", 10);
    text = lade_realloc(mem, LADE_TAG_TEMP, text, 1000, &err);
    assert_string_equal(text, "123456789");
    assert_true(zero(text + 10, 990));
    assert_int_equal(lade_mem_now(mem, LADE_TAG_TEMP), 1000);
    text = lade_realloc(mem, LADE_TAG_TEMP, text, 4, &err);
    assert_memory_equal(text, "1234", 4);
    assert_null(lade_realloc(mem, LADE_TAG_TEMP, text, SIZE_MAX, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "for temp");
    assert_memory_equal(text, "1234", 4); /* stays */
    assert_int_equal(lade_mem_now(mem, LADE_TAG_TEMP), 4);
    lade_free(mem, text);
    nothing_booked(mem);
}

static void test_pages(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *one = lade_pages_alloc(mem, LADE_TAG_PARAMETERS, 1, &err);
    char *many = lade_pages_alloc(mem, LADE_TAG_STAGING, 10 * page + 1, &err);

    (void)state;
    assert_int_equal((uintptr_t)one % page, 0);
    assert_int_equal((uintptr_t)many % page, 0);
    assert_true(zero(many, 11 * page));
    memset(many, 1, 11 * page);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_PARAMETERS), page);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_STAGING), 11 * page);
    lade_pages_free(mem, LADE_TAG_PARAMETERS, one, 1);
    lade_pages_free(mem, LADE_TAG_STAGING, many, 10 * page + 1);
    lade_pages_free(mem, LADE_TAG_STAGING, NULL, 5);
    one = lade_pages_alloc(mem, LADE_TAG_TEMP, 0, &err);
    assert_non_null(one);
    lade_pages_free(mem, LADE_TAG_TEMP, one, 0);
    assert_int_equal(lade_mem_peak_total(mem), 12 * page);
    nothing_booked(mem);
}

static void test_book(void **state)
{
    struct lade_mem *mem = lade_mem_new();

    (void)state;
    lade_mem_book(mem, LADE_TAG_STAGING, 100);
    lade_mem_book(mem, LADE_TAG_TEMP, 50);
    lade_mem_book(mem, LADE_TAG_STAGING, -60);
    lade_mem_book(mem, LADE_TAG_TEMP, 30);
    lade_mem_book(NULL, LADE_TAG_TEMP, 30);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_STAGING), 40);
    assert_int_equal(lade_mem_peak(mem, LADE_TAG_STAGING), 100);
    assert_int_equal(lade_mem_peak(mem, LADE_TAG_TEMP), 80);
    assert_int_equal(lade_mem_peak_total(mem), 150);
    lade_mem_book(mem, LADE_TAG_STAGING, -40);
    lade_mem_book(mem, LADE_TAG_TEMP, -80);
    nothing_booked(mem);
    assert_string_equal(lade_tag_name(LADE_TAG_PARAMETERS), "parameters");
    assert_string_equal(lade_tag_name(LADE_TAG_CATALOGUE), "catalogue");
    assert_string_equal(lade_tag_name(LADE_TAG_STAGING), "staging");
    assert_string_equal(lade_tag_name(LADE_TAG_TEMP), "temp");
    assert_string_equal(lade_tag_name(LADE_TAG_SCALES), "scales");
    assert_string_equal(lade_tag_name(LADE_TAG_CACHE), "cache");
    assert_string_equal(lade_tag_name(LADE_TAGS), "?");
    lade_mem_free(NULL);
}

static void *churn(void *arg)
{
    for (int i = 0; i < 2000; i++)
        lade_free(arg, lade_alloc(arg, LADE_TAG_TEMP, 1000, NULL));
    return NULL;
}

static void test_threads(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, mem), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_in_range(lade_mem_peak(mem, LADE_TAG_TEMP), 1000, 4000);
    assert_in_range(lade_mem_peak_total(mem), 1000, 4000);
    nothing_booked(mem);
}

static void test_arena(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    struct lade_arena arena;
    char *all[3000], *big;

    (void)state;
    lade_arena_init(&arena, mem, LADE_TAG_TEMP);
    for (int i = 0; i < 3000; i++) {
        all[i] = lade_arena_alloc(&arena, (size_t)i % 100 + 1, &err);
        assert_non_null(all[i]);
        assert_int_equal((uintptr_t)all[i] % 16, 0);
        assert_true(zero(all[i], (size_t)i % 100 + 1));
        memset(all[i], i, (size_t)i % 100 + 1);
    }
    big = lade_arena_alloc(&arena, 1 << 20, &err); /* more than a chunk */
    assert_true(zero(big, 1 << 20));
    memset(big, 0xee, 1 << 20);
    for (int i = 0; i < 3000; i++)
        assert_int_equal((unsigned char)all[i][i % 100], i & 0xff);
    assert_string_equal(lade_arena_strdup(&arena, "", &err), "");
    assert_string_equal(lade_arena_strdup(&arena, "tensor", &err), "tensor");
    assert_string_equal(lade_arena_printf(&arena, &err, "%s.%d", "layer", 7),
                        "layer.7");
    assert_null(lade_arena_alloc(&arena, SIZE_MAX, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "for temp");
    assert_null(lade_arena_alloc(&arena, SIZE_MAX - 40, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "for temp");
    lade_arena_fini(&arena);
    assert_null(arena.chunks);
    lade_arena_fini(&arena); /* again is fine */
    nothing_booked(mem);
}

static void test_vec(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    struct lade_vec vec;
    uint32_t many[100];

    (void)state;
    lade_vec_init(&vec, mem, LADE_TAG_CATALOGUE, sizeof(uint32_t));
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(*(uint32_t *)lade_vec_push(&vec, &i, &err), i);
    assert_int_equal(*(uint32_t *)lade_vec_push(&vec, NULL, &err), 0);
    for (uint32_t i = 0; i < 100; i++)
        many[i] = 5000 + i;
    assert_non_null(lade_vec_append(&vec, many, 100, &err));
    assert_non_null(lade_vec_append(&vec, NULL, 0, &err));
    assert_int_equal(vec.count, 1101);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(*LADE_VEC_AT(&vec, uint32_t, i), i);
    assert_int_equal(*LADE_VEC_AT(&vec, uint32_t, 1001), 5000);
    assert_int_equal(*LADE_VEC_AT(&vec, uint32_t, 1100), 5099);
    assert_null(lade_vec_append(&vec, NULL, UINT64_MAX, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "for catalogue");
    assert_null(lade_vec_append(&vec, NULL, UINT64_MAX / 4 + 5, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "for catalogue");
    assert_int_equal(vec.count, 1101);
    lade_vec_fini(&vec);
    lade_vec_fini(&vec);
    nothing_booked(mem);
}

/* Growth doubles: pushing stays linear. */
static void test_vec_growth(void **state)
{
    struct lade_vec vec;
    uint64_t capacity = 0;
    int grown = 0;

    (void)state;
    lade_vec_init(&vec, NULL, LADE_TAG_TEMP, 1);
    for (int i = 0; i < 100000; i++) {
        assert_non_null(lade_vec_push(&vec, "x", &err));
        grown += vec.capacity != capacity;
        capacity = vec.capacity;
    }
    assert_in_range(grown, 1, 20);
    lade_vec_fini(&vec);
}

static void test_pool(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    struct lade_pool pool;
    uint32_t a, b, empty;

    (void)state;
    assert_int_equal(lade_pool_init(&pool, mem, LADE_TAG_CATALOGUE, &err),
                     LADE_OK);
    assert_string_equal(lade_pool_get(&pool, 0), "");
    assert_int_equal(lade_pool_add(&pool, "weights", 6, &a, &err), LADE_OK);
    assert_int_equal(lade_pool_add(&pool, "bias", 4, &b, &err), LADE_OK);
    assert_int_equal(lade_pool_add(&pool, "x", 0, &empty, &err), LADE_OK);
    assert_int_equal(a, 1);
    assert_int_equal(b, 8);
    assert_int_equal(empty, 0);
    assert_string_equal(lade_pool_get(&pool, a), "weight");
    assert_string_equal(lade_pool_get(&pool, b), "bias");
    a = 77;
    unit_failed(lade_pool_add(&pool, "x", UINT32_MAX, &a, &err), &err,
                LADE_E_MEMORY, "names take more than 4 GiB");
    assert_int_equal(a, 77);
    lade_pool_fini(&pool);
    nothing_booked(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checked),
        cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_array),
        cmocka_unit_test(test_grow_and_shrink),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_book),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_vec),
        cmocka_unit_test(test_vec_growth),
        cmocka_unit_test(test_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
