/*
 * Strict JSON: what is accepted is what the text says; what is refused is
 * refused with the place and the reason.
 */
#include "unit.h"

#include "base/json.h"

static lade_err err;

static cJSON *parse(const char *text, size_t length)
{
    cJSON *root = NULL;
    int rc =
        lade_json_parse(text, length, "f.json", LADE_E_CHECKPOINT, &root, &err);

    if (rc != LADE_OK)
        fail_msg("%s: %s", text, err.text);
    assert_non_null(root);
    return root;
}

static void refused(const char *text, size_t length, const char *part)
{
    cJSON *root = (cJSON *)&err;
    int rc =
        lade_json_parse(text, length, "f.json", LADE_E_CHECKPOINT, &root, &err);

    if (rc == LADE_OK)
        fail_msg("accepted: %s", text);
    assert_ptr_equal(root, &err); /* set only on success */
    assert_non_null(strstr(err.text, "f.json: "));
    unit_failed(rc, &err, LADE_E_CHECKPOINT, part);
}

static void test_accepts(void **state)
{
    static const char *const good[] = {
        "{}",
        "[]",
        " \t\r\n{ } \n",
        "0",
        "-0",
        "-1.5e+3",
        "1E5",
        "true",
        "false",
        "null",
        "\"\"",
        "[[],{},[1,2,[3]]]",
        "{\"\":1}",
        "\"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\"",
        "9223372036854775808",
        "-9223372036854775808",
        "1e308",
        "1e-999",
        "{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":2}]}"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        cJSON_Delete(parse(good[i], strlen(good[i])));
}

static void test_means_what_it_says(void **state)
{
    const char *text = "{\"name\\u0041\":[1,-2.5,\"\\u20ac\"],\"b\":true}";
    cJSON *root = parse(text, strlen(text));
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "nameA");

    (void)state;
    assert_int_equal(cJSON_GetArraySize(list), 3);
    assert_true(cJSON_GetArrayItem(list, 1)->valuedouble == -2.5);
    assert_string_equal(cJSON_GetArrayItem(list, 2)->valuestring,
                        "\xe2\x82\xac");
    assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "b")));
    cJSON_Delete(root);
}

/* The bytes behind the length are no part of the text. */
static void test_length_counts(void **state)
{
    (void)state;
    cJSON_Delete(parse("12345", 3));
    cJSON_Delete(parse("[1]garbage", 3));
    refused("[1]", 2, "byte 2: a comma or ] is missing");
    refused("", 0, "byte 0: the text ends too early");
    refused("  ", 2, "byte 2: the text ends too early");
}

static void test_grammar(void **state)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"{", "a name in quotes is missing"},
        {"[", "the text ends too early"},
        {"]", "not a value"},
        {"[1,]", "byte 3: not a value"},
        {"[1 2]", "byte 3: a comma or ] is missing"},
        {"{\"a\":1,}", "byte 7: a name in quotes is missing"},
        {"{\"a\" 1}", "byte 5: a colon is missing"},
        {"{\"a\":}", "byte 5: not a value"},
        {"{\"a\":1]", "byte 6: a comma or } is missing"},
        {"{a:1}", "byte 1: a name in quotes is missing"},
        {"{'a':1}", "byte 1: a name in quotes is missing"},
        {"{1:1}", "byte 1: a name in quotes is missing"},
        {"[1]x", "byte 3: text after the end"},
        {"1 2", "byte 2: text after the end"},
        {"{}{}", "byte 2: text after the end"},
        {"tru", "not a value"},
        {"True", "not a value"},
        {"truely", "text after the end"},
        {"NaN", "not a value"},
        {"[Infinity]", "not a value"},
        {"// x\n1", "not a value"},
        {"\xef\xbb\xbf{}", "byte 0: not a value"},
        {"\v1", "not a value"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refused(bad[i].text, strlen(bad[i].text), bad[i].part);
    refused("1\0", 2, "byte 1: text after the end");
}

static void test_numbers(void **state)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"01", "byte 1: a number with a leading zero"},
        {"-01", "a number with a leading zero"},
        {"00", "a number with a leading zero"},
        {"[0x10]", "a comma or ] is missing"},
        {"+1", "not a value"},
        {".5", "not a value"},
        {"-", "not a value"},
        {"- 1", "not a value"},
        {"1.", "no digit after the point"},
        {"1.e5", "no digit after the point"},
        {"1e", "no digit in the exponent"},
        {"1e+", "no digit in the exponent"},
        {"1e999", "byte 0: a number out of range"},
        {"[-1e999]", "byte 1: a number out of range"},
        {"9223372036854775809", "byte 0: a number out of range"},
        {"18446744073709551616", "a number out of range"},
        {"-9223372036854775809", "a number out of range"},
        {"10000000000000000000000000000000000000", "a number out of range"},
        {"0.00000000000000000000000000000000000000000000000000000000000000001",
         "more than 63 characters"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refused(bad[i].text, strlen(bad[i].text), bad[i].part);
}

static void test_strings(void **state)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"\"a", "byte 2: the text ends inside a string"},
        {"\"a\\", "unknown escape"},
        {"\"\\x41\"", "unknown escape"},
        {"\"\\u12\"", "four hex digits"},
        {"\"\\u12g4\"", "four hex digits"},
        {"\"\\u0000\"", "NUL in a string"},
        {"{\"a\\u0000b\":1}", "NUL in a string"},
        {"\"\\ud800\"", "unpaired surrogate"},
        {"\"\\udc00\"", "unpaired surrogate"},
        {"\"\\ud800x\\udc00\"", "unpaired surrogate"},
        {"\"\\ud800\\u0041\"", "unpaired surrogate"},
        {"\"\\ud800\\ud800\"", "unpaired surrogate"},
        {"\"\\ud8", "four hex digits"},
        {"\"\t\"", "byte 1: control character"},
        {"\"\n\"", "control character"},
        {"\"\x1f\"", "control character"},
        {"\"\x80\"", "byte 1: not UTF-8"},
        {"\"\xc0\xaf\"", "not UTF-8"},
        {"\"\xc1\xbf\"", "not UTF-8"},
        {"\"\xe0\x80\xaf\"", "not UTF-8"},
        {"\"\xf0\x80\x80\xaf\"", "not UTF-8"},
        {"\"\xed\xa0\x80\"", "not UTF-8"},
        {"\"\xf4\x90\x80\x80\"", "not UTF-8"},
        {"\"\xf8\x88\x80\x80\x80\"", "not UTF-8"},
        {"\"\xff\"", "not UTF-8"},
        {"\"\xc3\"", "not UTF-8"},
        {"\"\xe2\x82\"", "not UTF-8"},
        {"{\"\xe2\x28\xa1\":1}", "not UTF-8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refused(bad[i].text, strlen(bad[i].text), bad[i].part);
    refused("\"\0\"", 3, "control character");
    refused("\"\xf0\x9f\x98", 4, "not UTF-8"); /* cut inside */
}

static void test_depth(void **state)
{
    char text[400];

    (void)state;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    cJSON_Delete(parse(text, 128));
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    refused(text, 130, "nested deeper than 64 levels");
    for (int i = 0; i < 65; i++)
        memcpy(text + 5 * i, "{\"a\":", 5);
    refused(text, 325, "nested deeper than 64 levels");
    memset(text, '[', sizeof(text)); /* never closed */
    refused(text, sizeof(text), "nested deeper than 64 levels");
}

/* Few members go one way, many another. */
static void test_repeated_names(void **state)
{
    char text[1024] = "{";
    int n = 1;

    (void)state;
    refused("{\"a\":1,\"b\":2,\"a\":3}", 19, "the name a stands twice");
    refused("{\"\":1,\"\":2}", 11, "the name  stands twice");
    refused("{\"a\":1,\"\\u0061\":2}", 18, "the name a stands twice");
    refused("{\"x\":[{\"k\":{\"deep\":1,\"deep\":1}}]}", 33,
            "the name deep stands twice");
    for (int i = 0; i < 40; i++)
        n +=
            snprintf(text + n, sizeof(text) - (size_t)n, "\"key%d\":%d,", i, i);
    snprintf(text + n, sizeof(text) - (size_t)n, "\"key17\":0}");
    refused(text, strlen(text), "the name key17 stands twice");
    snprintf(text + n, sizeof(text) - (size_t)n, "\"KEY17\":0}");
    cJSON_Delete(parse(text, strlen(text)));
}

/* 200,000 members in one object: linear, or this test takes minutes. */
static void test_many_members(void **state)
{
    size_t size = 8u << 20, n = 1;
    char *text = malloc(size);

    (void)state;
    assert_non_null(text);
    text[0] = '{';
    for (int i = 0; i < 200000; i++)
        n += (size_t)snprintf(text + n, size - n, "%s\"model.w%d\":{\"a\":%d}",
                              i ? "," : "", i, i);
    n += (size_t)snprintf(text + n, size - n, "}");
    cJSON *root = parse(text, n);
    assert_int_equal(cJSON_GetArraySize(root), 200000);
    cJSON_Delete(root);
    n--;
    n += (size_t)snprintf(text + n, size - n, ",\"model.w0\":1}");
    refused(text, n, "the name model.w0 stands twice");
    free(text);
}

static int allocations_left;

static void *scarce(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

/* A full memory is told as such, whichever allocation fails, and leaks
 * nothing. */
static void test_no_memory(void **state)
{
    cJSON_Hooks hooks = {scarce, free};
    const char *text = "{\"a\":[1,\"b\",{\"c\":null}]}";
    cJSON *root = NULL;
    int rc = LADE_E_MEMORY;

    (void)state;
    cJSON_InitHooks(&hooks);
    for (int room = 0; room < 50 && rc != LADE_OK; room++) {
        allocations_left = room;
        rc = lade_json_parse(text, strlen(text), "f.json", LADE_E_CHECKPOINT,
                             &root, &err);
        if (rc != LADE_OK)
            unit_failed(rc, &err, LADE_E_MEMORY, "f.json: no memory");
    }
    assert_int_equal(rc, LADE_OK);
    cJSON_Delete(root);
    cJSON_InitHooks(NULL);
}

static void test_whole_numbers(void **state)
{
    static const struct {
        const char *text;
        bool u64, i64;
        int64_t value;
    } cases[] = {
        {"0", true, true, 0},
        {"-0", true, true, 0},
        {"17", true, true, 17},
        {"9007199254740992", true, true, INT64_C(9007199254740992)},
        {"9007199254740994", false, false, 0},
        {"9223372036854775808", false, false, 0},
        {"-1", false, true, -1},
        {"-9007199254740992", false, true, -INT64_C(9007199254740992)},
        {"1.5", false, false, 0},
        {"-0.5", false, false, 0},
        {"1e300", false, false, 0},
        {"\"1\"", false, false, 0},
        {"true", false, false, 0},
        {"null", false, false, 0},
        {"[1]", false, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t u = 99;
        int64_t s = 99;
        cJSON *item = parse(cases[i].text, strlen(cases[i].text));
        assert_int_equal(lade_json_u64(item, &u), cases[i].u64);
        assert_int_equal(u, cases[i].u64 ? (uint64_t)cases[i].value : 99);
        assert_int_equal(lade_json_i64(item, &s), cases[i].i64);
        assert_true(s == (cases[i].i64 ? cases[i].value : 99));
        cJSON_Delete(item);
    }
    uint64_t u;
    int64_t s;
    assert_false(lade_json_u64(NULL, &u));
    assert_false(lade_json_i64(NULL, &s));
}

static void test_read(void **state)
{
    char folder[PATH_MAX], path[PATH_MAX + 32];
    cJSON *root = NULL;

    (void)state;
    unit_folder_new(folder);
    unit_write(folder, "a.json", "{\"a\":1}", 7);
    snprintf(path, sizeof(path), "%s/a.json", folder);
    assert_int_equal(lade_json_read(path, 7, &root, &err), LADE_OK);
    assert_int_equal(cJSON_GetArraySize(root), 1);
    cJSON_Delete(root);
    root = NULL;
    unit_failed(lade_json_read(path, 6, &root, &err), &err, LADE_E_CHECKPOINT,
                "a.json: 7 bytes, at most 6 are accepted");
    unit_write(folder, "a.json", "", 0);
    unit_failed(lade_json_read(path, 9, &root, &err), &err, LADE_E_CHECKPOINT,
                "a.json: byte 0: the text ends too early");
    unit_failed(lade_json_read(folder, 9, &root, &err), &err, LADE_E_CHECKPOINT,
                "not a file");
    snprintf(path, sizeof(path), "%s/b.json", folder);
    unit_failed(lade_json_read(path, 9, &root, &err), &err, LADE_E_CHECKPOINT,
                "b.json: No such file");
    snprintf(path, sizeof(path), "%s/a.json/b", folder);
    unit_failed(lade_json_read(path, 9, &root, &err), &err, LADE_E_CHECKPOINT,
                "Not a directory");
    snprintf(path, sizeof(path), "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    unit_failed(lade_json_read(path, 9, &root, &err), &err, LADE_E_CHECKPOINT,
                "not a file"); /* and does not wait for a writer */
    assert_null(root);
    unit_folder_free(folder);
}

static void test_read_refused(void **state)
{
    char folder[PATH_MAX], path[PATH_MAX + 32];
    cJSON *root = NULL;

    (void)state;
    unit_folder_new(folder);
    snprintf(path, sizeof(path), "%s/loop", folder);
    assert_int_equal(symlink(path, path), 0);
    unit_failed(lade_json_read(path, 9, &root, &err), &err, LADE_E_IO,
                "Too many levels of symbolic links");
    if (geteuid() != 0) {
        unit_write(folder, "a.json", "1", 1);
        snprintf(path, sizeof(path), "%s/a.json", folder);
        chmod(path, 0);
        unit_failed(lade_json_read(path, 9, &root, &err), &err, LADE_E_IO,
                    "Permission denied");
    }
    unit_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts),
        cmocka_unit_test(test_means_what_it_says),
        cmocka_unit_test(test_length_counts),
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_repeated_names),
        cmocka_unit_test(test_many_members),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
