/*
 * Blobs (offsets hold in a copy), the hash map and digests.
 */
#include "unit.h"

#include "base/blob.h"
#include "base/map.h"

static lade_err err;

struct product {
    struct lade_blob blob;
    struct lade_span rows, names;
};

static struct product *pack(struct lade_mem *mem)
{
    static const uint16_t rows[] = {1, 2, 3};
    static const char names[] = "\0one\0two";
    struct product head = {.blob = {.kind = LADE_BLOB_CATALOGUE}};
    const struct lade_section sections[] = {
        {&head.rows, rows, 3, sizeof(*rows)},
        {&head.names, names, sizeof(names), 1},
    };

    return lade_blob_pack(mem, &head, sizeof(head), sections, 2, &err);
}

static void test_pack(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    struct product *made = pack(mem), *copy;

    (void)state;
    assert_non_null(made);
    assert_int_equal(made->rows.at % 8, 0);
    assert_int_equal(made->names.at % 8, 0);
    assert_int_equal(made->rows.count, 3);
    assert_int_equal(made->blob.size % 8, 0);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_CATALOGUE), made->blob.size);
    copy = malloc(made->blob.size);
    memcpy(copy, made, made->blob.size);
    lade_free(mem, made);
    assert_int_equal(
        lade_blob_check(copy, copy->blob.size, LADE_BLOB_CATALOGUE, &err),
        LADE_OK);
    assert_int_equal(LADE_ITEMS(copy, rows, uint16_t)[2], 3);
    assert_string_equal(LADE_STRING(copy, names, 5), "two");
    free(copy);
    lade_mem_free(mem);
}

static void test_empty_and_large(void **state)
{
    struct product head = {.blob = {.kind = LADE_BLOB_PLAN}};
    struct lade_section section = {&head.rows, NULL, 0, 8};
    struct product *made =
        lade_blob_pack(NULL, &head, sizeof(head), &section, 1, &err);

    (void)state;
    assert_int_equal(made->blob.size, sizeof(head));
    assert_int_equal(made->rows.count, 0);
    lade_free(NULL, made);
    section.count = UINT64_C(1) << 61;
    assert_null(lade_blob_pack(NULL, &head, sizeof(head), &section, 1, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "a product is too large");
    section.count = UINT64_MAX / 8;
    assert_null(lade_blob_pack(NULL, &head, sizeof(head), &section, 1, &err));
    unit_failed(err.status, &err, LADE_E_MEMORY, "a product is too large");
}

static void test_check(void **state)
{
    struct product *made = pack(NULL);
    uint64_t size = made->blob.size;

    (void)state;
    unit_failed(lade_blob_check(made, size - 8, LADE_BLOB_CATALOGUE, &err),
                &err, LADE_E_INTERNAL, "arrived as kind 3");
    unit_failed(lade_blob_check(made, size, LADE_BLOB_PLAN, &err), &err,
                LADE_E_INTERNAL, "a product of kind 7");
    unit_failed(lade_blob_check(made, 8, LADE_BLOB_CATALOGUE, &err), &err,
                LADE_E_INTERNAL, "arrived as kind 0");
    unit_failed(lade_blob_check(made, 0, LADE_BLOB_CATALOGUE, &err), &err,
                LADE_E_INTERNAL, "and 0 bytes");
    lade_free(NULL, made);
}

static void test_map(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    static char keys[20000][24];
    struct lade_map map;
    uint32_t value = 0;
    bool added;

    (void)state;
    lade_map_init(&map, mem);
    assert_false(lade_map_get(&map, "a", 1, &value));
    for (uint32_t i = 0; i < 20000; i++) {
        snprintf(keys[i], sizeof(keys[i]), "model.layers.%u.w", i);
        assert_int_equal(
            lade_map_put(&map, keys[i], strlen(keys[i]), i, NULL, &added, &err),
            LADE_OK);
        assert_true(added);
    }
    assert_int_equal(map.count, 20000);
    for (uint32_t i = 0; i < 20000; i++) {
        assert_true(lade_map_get(&map, keys[i], strlen(keys[i]), &value));
        assert_int_equal(value, i);
    }
    value = 5;
    assert_false(lade_map_get(&map, "model.layers.20000.w", 20, &value));
    assert_false(lade_map_get(&map, keys[0], strlen(keys[0]) - 1, &value));
    assert_int_equal(value, 5);
    lade_map_fini(&map);
    lade_map_fini(&map);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_TEMP), 0);
    lade_mem_free(mem);
}

static void test_map_again(void **state)
{
    struct lade_map map;
    uint32_t old = 9, value;
    bool added;

    (void)state;
    lade_map_init(&map, NULL);
    assert_int_equal(lade_map_put(&map, "k", 1, 1, &old, &added, &err),
                     LADE_OK);
    assert_int_equal(old, 9);
    assert_int_equal(lade_map_put(&map, "k", 1, 2, &old, &added, &err),
                     LADE_OK);
    assert_int_equal(old, 1);
    assert_false(added);
    assert_int_equal(lade_map_put(&map, "k", 1, 3, NULL, NULL, &err), LADE_OK);
    assert_true(lade_map_get(&map, "k", 1, &value));
    assert_int_equal(value, 1);
    /* bytes, not text: the empty key and keys with a zero inside */
    lade_map_put(&map, "", 0, 4, NULL, &added, &err);
    assert_true(added);
    lade_map_put(&map, "k\0a", 3, 5, NULL, &added, &err);
    assert_true(added);
    lade_map_put(&map, "k\0b", 3, 6, NULL, &added, &err);
    assert_true(added);
    assert_true(lade_map_get(&map, "", 0, &value));
    assert_int_equal(value, 4);
    assert_true(lade_map_get(&map, "k\0b", 3, &value));
    assert_int_equal(value, 6);
    unit_failed(
        lade_map_put(&map, "k", (size_t)UINT32_MAX + 1, 0, NULL, NULL, &err),
        &err, LADE_E_MEMORY, "a key of 4294967296 bytes");
    lade_map_fini(&map);
}

/* Published values of XXH3 for no bytes, seed 0. */
static void test_digest(void **state)
{
    struct lade_digest none = lade_digest_of("", 0), a, b;
    char text[33];

    (void)state;
    assert_true(lade_hash64("", 0) == UINT64_C(0x2d06800538d394c2));
    lade_digest_text(none, text);
    assert_string_equal(text, "99aa06d3014798d86001c324468d497f");
    a = lade_digest_of("a", 1);
    b = lade_digest_of("b", 1);
    struct lade_digest ab = lade_digest_join(a, b), ba = lade_digest_join(b, a);
    assert_true(ab.high != ba.high || ab.low != ba.low);
    struct lade_digest same = lade_digest_join(a, b);
    assert_memory_equal(&ab, &same, sizeof(ab));
    lade_digest_text((struct lade_digest){1, 0xab}, text);
    assert_string_equal(text, "000000000000000100000000000000ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_empty_and_large),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_map_again),
        cmocka_unit_test(test_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
