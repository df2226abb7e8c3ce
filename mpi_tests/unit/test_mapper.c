/*
 * Rename rules: against what the engine makes of names (data/map_vectors.json),
 * then their limits.
 */
#include "route_bench.h"

#include "base/json.h"
#include "route/mapper.h"

static int kind_of(const char *name)
{
    static const char *const kinds[] = {"regex", "substring", "prefix",
                                        "suffix"};

    for (int k = 0; k < 4; k++)
        if (strcmp(kinds[k], name) == 0)
            return k;
    fail_msg("no kind %s", name);
    return -1;
}

static const cJSON *get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* Maps one name; returns NULL if it is dropped. */
static const char *map(struct bench *b, const char *name, char *out,
                       size_t size, uint32_t *rule)
{
    bench_drop_blobs(b);
    bench_pack_shell(b);
    return lade_route_map(b->shell, name, out, size, rule) ? out : NULL;
}

static void compare(const cJSON *mappers, const cJSON *v)
{
    const cJSON *name = NULL, *item = NULL, *expect = get(v, "expect");
    bool rename_only = get(v, "variant") != NULL;
    char out[LADE_NAME_MAX];
    struct bench b;
    uint32_t rule;

    bench_init(&b);
    cJSON_ArrayForEach(name, get(v, "mappers"))
        cJSON_ArrayForEach(item, get(mappers, name->valuestring))
    {
        const cJSON *to = cJSON_GetArrayItem(item, 2);
        if (rename_only && cJSON_IsNull(to))
            continue;
        bench_rule(&b, (uint32_t)kind_of(item->child->valuestring),
                   cJSON_GetArrayItem(item, 1)->valuestring, to->valuestring);
    }
    const char *got =
        map(&b, get(v, "name")->valuestring, out, sizeof out, &rule);
    if (cJSON_IsNull(expect) ? got != NULL
                             : !got || strcmp(got, expect->valuestring) != 0)
        fail_msg("%s: %s", get(v, "id")->valuestring, got ? got : "dropped");
    bench_free(&b);
}

static void test_vectors(void **state)
{
    lade_err err = LADE_ERR_INIT;
    cJSON *root = NULL;
    const cJSON *v = NULL;
    int ran = 0;

    (void)state;
    assert_int_equal(lade_json_read(LADE_TEST_DATA "/data/map_vectors.json",
                                    1 << 20, &root, &err),
                     LADE_OK);
    cJSON_ArrayForEach(v, get(root, "vectors"))
    {
        compare(get(root, "mappers"), v);
        ran++;
    }
    assert_int_equal(ran, 56);
    cJSON_Delete(root);
}

/* Kinds have their order, whatever the order in which they were declared. */
static void test_order_of_kinds(void **state)
{
    char out[LADE_NAME_MAX];
    struct bench b;
    uint32_t rule;

    (void)state;
    bench_init(&b);
    bench_rule(&b, LADE_RULE_SUFFIX, ".w", ".weight");
    bench_rule(&b, LADE_RULE_PREFIX, "c.", "d.");
    bench_rule(&b, LADE_RULE_SUBSTRING, "b.", "c.");
    bench_rule(&b, LADE_RULE_REGEX, "^a\\.", "b.");
    assert_string_equal(map(&b, "a.q.w", out, sizeof out, &rule), "d.q.weight");
    bench_free(&b);
}

static void test_regex(void **state)
{
    static const struct {
        const char *from, *to, *name, *want;
    } cases[] = {
        {"^h\\.([0-9]+)\\.(.*)$", "layers.\\1.\\2!", "h.12.ln.w",
         "layers.12.ln.w!"},
        {"(a)(b)(c)(d)(e)(f)(g)(h)(i)", "\\9\\1\\0", "abcdefghi",
         "iaabcdefghi"},
        {"(x)|(y)", "<\\1\\2>", "axby", "a<x>b<y>"},
        {"z*", "-", "abz", "-a-b--"}, /* empty matches, too */
        {"^a", "b", "aaa", "baa"},    /* ^ is the start of the name */
        {"a$", "b", "aaa", "aab"},
        {"\\.", "\\", "a.b", "a\\b"}, /* a lone backslash is itself */
        {"nothing", "x", "some.name", "some.name"},
        {"o", "", "o.o", "."},
    };
    char out[LADE_NAME_MAX];
    uint32_t rule;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        bench_init(&b);
        bench_rule(&b, LADE_RULE_REGEX, cases[i].from, cases[i].to);
        assert_string_equal(map(&b, cases[i].name, out, sizeof out, &rule),
                            cases[i].want);
        bench_free(&b);
    }
}

/* The rule that dropped a name is told by its index in the shell. */
static void test_which_rule(void **state)
{
    char out[LADE_NAME_MAX];
    struct bench b;
    uint32_t rule = 99;

    (void)state;
    bench_init(&b);
    bench_rule(&b, LADE_RULE_SUFFIX, ".bias", NULL);
    bench_rule(&b, LADE_RULE_PREFIX, "mtp.", NULL);
    bench_rule(&b, LADE_RULE_REGEX, "[0-9]{3}", NULL);
    assert_null(map(&b, "x.bias", out, sizeof out, &rule));
    assert_int_equal(rule, 0);
    assert_null(map(&b, "mtp.bias", out, sizeof out, &rule));
    assert_int_equal(rule, 1); /* prefixes come before suffixes */
    assert_null(map(&b, "mtp.123.bias", out, sizeof out, &rule));
    assert_int_equal(rule, 2);
    assert_string_equal(map(&b, "s", out, sizeof out, &rule), "s");
    assert_string_equal(map(&b, "x.mtp.12.bias.w", out, sizeof out, &rule),
                        "x.mtp.12.bias.w");
    bench_free(&b);
}

/* Names that grow beyond all bounds are cut; nothing is overrun. */
static void test_long_names(void **state)
{
    char name[3 * LADE_NAME_MAX], out[LADE_NAME_MAX], small[8];
    struct bench b;
    uint32_t rule;

    (void)state;
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = 0;
    bench_init(&b);
    bench_rule(&b, LADE_RULE_REGEX, "a", "aaaa");
    bench_rule(&b, LADE_RULE_PREFIX, "", "bb");
    assert_int_equal(strlen(map(&b, name, out, sizeof out, &rule)),
                     LADE_NAME_MAX - 1);
    assert_memory_equal(out, "bba", 3);
    assert_string_equal(map(&b, "aa", small, sizeof small, &rule), "bbaaaaa");
    bench_free(&b);
}

static void test_bad_regex(void **state)
{
    struct lade_mapper mapper;
    char out[64] = "?";
    uint32_t rule;
    struct bench b;

    (void)state;
    bench_init(&b);
    bench_rule(&b, LADE_RULE_REGEX, "good", "x");
    bench_rule(&b, LADE_RULE_REGEX, "(a", "b");
    bench_pack_shell(&b);
    unit_failed(lade_mapper_init(&mapper, b.shell, b.mem, &b.err), &b.err,
                LADE_E_USAGE, "family tiny: '(a' is not a regular expression");
    lade_mapper_fini(&mapper);
    assert_true(lade_route_map(b.shell, "good", out, sizeof out, &rule));
    assert_string_equal(out, "good");
    bench_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_order_of_kinds),
        cmocka_unit_test(test_regex),
        cmocka_unit_test(test_which_rule),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_bad_regex),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
