/*
 * Options from four sources; nothing is ignored, every refusal names the option
 * and what is possible.
 */
#include "unit.h"

#include <cjson/cJSON.h>

#include "base/log.h"
#include "base/option.h"

enum { LOAD = 1, PLAN = 2, SYNTH = 4 };

struct values {
    bool ep, force, verbose;
    uint32_t tp, seed;
    uint64_t staging;
    double timeout;
    const char *json, *settings, *set;
    int scope;
};

static const char *const scopes[] = {"auto", "world", "node", "rank", NULL};

#define AT(member) offsetof(struct values, member)
static const struct lade_option table[] = {
    {"tp", 't', "N", "tensor-parallel size", LADE_OPT_U32, LOAD | PLAN, AT(tp),
     1, 65536, NULL, NULL},
    {"ep", 0, NULL, "whole experts", LADE_OPT_FLAG, LOAD | PLAN, AT(ep), 0, 0,
     NULL, NULL},
    {"scope", 0, "S", "who shares one read", LADE_OPT_CHOICE, LOAD, AT(scope),
     0, 0, scopes, "node"},
    {"staging-size", 0, "SIZE", "bytes in flight", LADE_OPT_SIZE, LOAD,
     AT(staging), 65536, UINT64_C(1) << 60, NULL, "64M"},
    {"timeout", 0, "SEC",
     "longest wait without progress, in a text that is long enough to be "
     "broken into several lines of eighty columns",
     LADE_OPT_SECONDS, LOAD, AT(timeout), 0, 0, NULL, "300"},
    {"json", 0, "FILE", "the report (default: none)", LADE_OPT_TEXT, LOAD,
     AT(json), 0, 0, NULL, NULL},
    {"settings", 0, "FILE", "options from a file", LADE_OPT_TEXT,
     LOAD | PLAN | SYNTH, AT(settings), 0, 0, NULL, NULL},
    {"set", 0, "KEY=VALUE", "a key of the config", LADE_OPT_LIST, LOAD | SYNTH,
     AT(set), 0, 0, NULL, NULL},
    {"seed", 0, "N", "seed", LADE_OPT_U32, SYNTH, AT(seed), 0, 0, NULL, NULL},
    {"force", 'f', NULL, "overwrite", LADE_OPT_FLAG, LOAD, AT(force), 0, 0,
     NULL, NULL},
    {"verbose", 'v', NULL, "tell more", LADE_OPT_FLAG, LOAD, AT(verbose), 0, 0,
     NULL, NULL},
};
enum { ROWS = sizeof(table) / sizeof(*table) };

static struct lade_mem *mem;
static struct lade_arena arena;
static struct lade_option_set set;
static struct values v;
static const char *words[3];
static int word_count;
static lade_err err;

static int set_up(void **state)
{
    (void)state;
    mem = lade_mem_new();
    lade_arena_init(&arena, mem, LADE_TAG_TEMP);
    memset(&v, 0xee, sizeof(v));
    set = (struct lade_option_set){
        .table = table, .count = ROWS, .values = &v, .arena = &arena};
    err = (lade_err)LADE_ERR_INIT;
    lade_warn_reset();
    lade_log_setup(LADE_LOG_ERROR, 0, 1, "");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lade_arena_fini(&arena);
    lade_mem_free(mem);
    return 0;
}

/* `line` is split at blanks; "" stays an empty word when written as ''. */
static int parse_as(unsigned verb, const char *line)
{
    static char copy[1024];
    char *argv[32];
    int argc = 0;

    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "''") == 0 ? copy + strlen(copy) : word;
    set.verb = verb;
    return lade_option_parse(&set, argc, argv, words, 3, &word_count, &err);
}

static void good(const char *line)
{
    if (parse_as(LOAD, line) != LADE_OK)
        fail_msg("%s: %s", line, err.text);
}

static void bad(const char *line, const char *part)
{
    unit_failed(parse_as(LOAD, line), &err, LADE_E_USAGE, part);
}

static const char *source_of(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(table[i].name, name) == 0) {
            assert_int_equal(set.given[i], set.source[i] != NULL);
            return set.source[i] ? set.source[i] : "default";
        }
    return "?";
}

static void test_defaults(void **state)
{
    (void)state;
    good("");
    assert_true(v.tp == 0 && v.seed == 0 && !v.ep && !v.force && !v.verbose);
    assert_null(v.json);
    assert_null(v.set);
    assert_int_equal(v.scope, 2);
    assert_int_equal(v.staging, 64 << 20);
    assert_true(v.timeout == 300);
    assert_int_equal(word_count, 0);
    assert_string_equal(source_of("scope"), "default");
}

static void test_command_line(void **state)
{
    (void)state;
    good("model --tp 4 --scope=world --ep --staging-size 1G --timeout 0.25 "
         "--json out.json -vf");
    assert_int_equal(v.tp, 4);
    assert_int_equal(v.scope, 1);
    assert_true(v.ep && v.verbose && v.force);
    assert_int_equal(v.staging, 1 << 30);
    assert_true(v.timeout == 0.25);
    assert_string_equal(v.json, "out.json");
    assert_int_equal(word_count, 1);
    assert_string_equal(words[0], "model");
    assert_string_equal(source_of("tp"), "command line");
    good("-t8 a --ep --ep -v -v b");
    assert_int_equal(v.tp, 8);
    assert_int_equal(word_count, 2);
    good("-t 16 --ep=0 - -- --tp -x");
    assert_int_equal(v.tp, 16);
    assert_false(v.ep);
    assert_int_equal(word_count, 3);
    assert_string_equal(words[0], "-");
    assert_string_equal(words[1], "--tp");
    assert_string_equal(words[2], "-x");
    good("--json=a=b --set x=1 --set=y=2");
    assert_string_equal(v.json, "a=b");
    assert_string_equal(v.set, "x=1\ny=2");
}

static void test_unknown(void **state)
{
    (void)state;
    bad("--scop node", "unknown option --scop; did you mean --scope?");
    bad("--tpp=4", "--tpp; did you mean --tp?");
    bad("--stage 5", "--stage (see --help)");
    bad("--stag 5", "--stag; did you mean --staging-size?");
    bad("--no-ep", "unknown option --no-ep");
    bad("--sede 5", "unknown option --sede; did you mean --set?");
    bad("---tp 5", "unknown option ---tp");
    bad("--=5", "unknown option --");
    bad("-x", "unknown option -x");
    bad("-vx", "unknown option -x");
    bad("-5", "unknown option -5");
    bad("--tp\x1b[31m 5", "--tp?[31m");
    bad("--seed 5", "--seed is an option of other verbs");
    bad("a b c d", "one word too many: d");
}

static void test_values(void **state)
{
    (void)state;
    bad("--tp", "--tp needs a value (N)");
    bad("--tp --ep", "--tp needs a value (N)");
    bad("-t", "--tp needs a value (N)");
    bad("--tp=", "--tp '' is not a whole number");
    bad("--tp four", "--tp 'four' is not a whole number");
    bad("--tp 4x", "'4x' is not a whole number");
    bad("--tp 0x4", "is not a whole number");
    bad("--tp +4", "is not a whole number");
    bad("--tp -4", "--tp '-4' is not a whole number");
    bad("--tp 1.5", "is not a whole number");
    bad("--tp 0", "--tp 0: must be 1 .. 65536");
    bad("--tp 65537", "must be 1 .. 65536");
    bad("--tp 4294967297", "must be 1 .. 65536");
    bad("--tp 99999999999999999999999999", "must be 1 .. 65536");
    bad("--tp 2 --tp 4", "--tp is given twice");
    bad("--tp 2 -t 4", "--tp is given twice");
    bad("--json ''", "--json needs a value (FILE)");
    bad("--json=", "--json needs a value (FILE)");
    bad("--ep=maybe", "--ep takes no value");
    bad("--ep --ep=0", "--ep is given twice");
    bad("--scope wrold",
        "--scope wrold: not one of auto, world, node, rank; did you mean "
        "world?");
    bad("--scope xyzzy", "not one of auto, world, node, rank");
    bad("--scope World", "did you mean world?");
    bad("--staging-size 65535", "must be 65536 .. 1152921504606846976");
    bad("--staging-size 2048T0", "--staging-size: '2048T0' is not a size");
    bad("--staging-size 99999999T", "--staging-size: 99999999T is too large");
    assert_int_equal(parse_as(SYNTH, "--seed 4294967295"), LADE_OK);
    assert_true(v.seed == UINT32_MAX);
    unit_failed(parse_as(SYNTH, "--seed 4294967296"), &err, LADE_E_USAGE,
                "must be 0 .. 4294967295");
}

static void test_seconds(void **state)
{
    static const char *const wrong[] = {
        "x",   "1e3", "-1",    "1.", ".5",  "0x1",       "inf",
        "nan", "1,5", "1.5.2", "''", "1 s", "1000000000"};
    char line[64];

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        snprintf(line, sizeof(line), "--timeout=%s", wrong[i]);
        if (strchr(wrong[i], ' ') == NULL)
            bad(line, "is not a number of seconds");
    }
    good("--timeout 999999999.5");
    assert_true(v.timeout == 999999999.5);
    good("--timeout 0");
    assert_true(v.timeout == 0);
    good("--timeout 0.001");
    assert_true(v.timeout > 0.00099 && v.timeout < 0.00101);
}

static void test_size(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {
        {"0", 0},
        {"4096", 4096},
        {"64K", 65536},
        {"64k", 65536},
        {"3M", 3u << 20},
        {"2G", UINT64_C(2) << 30},
        {"1T", UINT64_C(1) << 40},
        {"18446744073709551615", UINT64_MAX},
        {"16777215T", UINT64_C(16777215) << 40},
    };
    static const char *const wrong[] = {"",    "K",  "1.5G", "-1", "1KB", "1 K",
                                        "1KK", "0x", "1e3",  "+1", "1P"};
    uint64_t bytes = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        assert_int_equal(lade_option_size(sizes[i].text, &bytes, &err),
                         LADE_OK);
        assert_true(bytes == sizes[i].bytes);
    }
    bytes = 7;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        unit_failed(lade_option_size(wrong[i], &bytes, &err), &err,
                    LADE_E_USAGE, "is not a size");
    unit_failed(lade_option_size("18446744073709551616", &bytes, &err), &err,
                LADE_E_USAGE, "18446744073709551616 is too large");
    unit_failed(lade_option_size("16777216T", &bytes, &err), &err, LADE_E_USAGE,
                "16777216T is too large");
    assert_int_equal(bytes, 7);
}

static void test_environment(void **state)
{
    (void)state;
    setenv("LADE_TP", "2", 1);
    setenv("LADE_STAGING_SIZE", "1M", 1);
    setenv("LADE_EP", "1", 1);
    setenv("LADE_SEED", "no number, but for another verb", 1);
    good("--tp 8");
    assert_int_equal(v.tp, 8);
    assert_int_equal(v.staging, 1 << 20);
    assert_true(v.ep);
    assert_string_equal(source_of("tp"), "command line");
    assert_string_equal(source_of("staging-size"), "environment");
    assert_int_equal(lade_warn_count(), 0);
    setenv("LADE_EP", "0", 1);
    good("");
    assert_false(v.ep);
    assert_string_equal(source_of("ep"), "environment");
    setenv("LADE_TP", "two", 1);
    bad("--tp 8", "environment LADE_TP: --tp 'two' is not a whole number");
    setenv("LADE_TP", "", 1);
    bad("", "environment LADE_TP: --tp ''");
    unsetenv("LADE_TP");
    unsetenv("LADE_STAGING_SIZE");
    unsetenv("LADE_EP");
    unsetenv("LADE_SEED");
}

static void test_unknown_variable(void **state)
{
    (void)state;
    setenv("LADE_TPP", "2", 1);
    setenv("LADE_tp", "3", 1);
    setenv("LADE", "4", 1);
    setenv("LADEN", "4", 1);
    good("");
    assert_int_equal(v.tp, 0);
    assert_int_equal(lade_warn_count(), 2);
    assert_non_null(strstr(lade_warn_get(0), "LADE_"));
    assert_non_null(strstr(lade_warn_get(0), "is no option of lade"));
    unsetenv("LADE_TPP");
    unsetenv("LADE_tp");
    unsetenv("LADE");
    unsetenv("LADEN");
}

static void settings(const char *folder, const char *text, const char *line,
                     const char *wrong)
{
    char whole[2 * PATH_MAX];

    unit_write(folder, "s.json", text, strlen(text));
    snprintf(whole, sizeof(whole), "--settings %s/s.json %s", folder, line);
    if (wrong == NULL)
        good(whole);
    else
        bad(whole, wrong);
}

static void test_settings(void **state)
{
    char folder[PATH_MAX];

    (void)state;
    unit_folder_new(folder);
    settings(folder,
             "{\"tp\":4,\"ep\":true,\"scope\":\"rank\",\"timeout\":1.5,"
             "\"staging-size\":1125899906842624,\"set\":[\"a=1\",\"b=2\"],"
             "\"seed\":7}",
             "", NULL);
    assert_int_equal(v.tp, 4);
    assert_true(v.ep && v.scope == 3 && v.timeout == 1.5);
    assert_true(v.staging == UINT64_C(1) << 50);
    assert_string_equal(v.set, "a=1\nb=2");
    assert_int_equal(v.seed, 0); /* of another verb */
    assert_string_equal(source_of("tp"), "settings");
    setenv("LADE_SCOPE", "world", 1);
    settings(folder, "{\"tp\":4,\"scope\":\"rank\",\"set\":[\"a=1\"]}",
             "--tp 2 --set c=3", NULL);
    unsetenv("LADE_SCOPE");
    assert_int_equal(v.tp, 2);
    assert_int_equal(v.scope, 1);
    assert_string_equal(v.set, "c=3");
    settings(folder, "{\"set\":\"one=1\",\"staging-size\":\"2M\"}", "", NULL);
    assert_string_equal(v.set, "one=1");
    assert_int_equal(v.staging, 2 << 20);
    unit_folder_free(folder);
}

static void test_bad_settings(void **state)
{
    char folder[PATH_MAX], line[2 * PATH_MAX];

    (void)state;
    unit_folder_new(folder);
    settings(folder, "{\"tpp\":4}", "",
             "s.json: unknown setting --tpp; did you mean --tp?");
    settings(folder, "{\"tp\":0}", "", "s.json: --tp 0: must be 1 .. 65536");
    settings(folder, "{\"tp\":1.5}", "", "--tp '1.5' is not a whole number");
    settings(folder, "{\"tp\":[1,2]}", "", "tp is a list, one is needed");
    settings(folder, "{\"tp\":null}", "", "tp is not a text, number");
    settings(folder, "{\"tp\":{}}", "", "tp is not a text, number");
    settings(folder, "{\"ep\":\"yes\"}", "", "--ep takes no value");
    settings(folder, "{\"json\":\"\"}", "", "--json needs a value");
    settings(folder, "{\"settings\":\"x\"}", "", "cannot name a further file");
    settings(folder, "{\"tp\":1,\"tp\":2}", "", "the name tp stands twice");
    settings(folder, "[1]", "", "s.json: not a JSON object");
    settings(folder, "{\"tp\":01}", "", "s.json: byte 7: a number with a");
    snprintf(line, sizeof(line), "--settings %s/none.json", folder);
    bad(line, "--settings: ");
    bad(line, "none.json: No such file");
    unit_folder_free(folder);
}

static void test_nearest(void **state)
{
    static const char *const list[] = {"world", "node", "redundant-experts",
                                       NULL};
    char longer[900];

    (void)state;
    assert_string_equal(lade_nearest("wrold", list), "world");
    assert_string_equal(lade_nearest("nod", list), "node");
    assert_string_equal(lade_nearest("redundant", list), "redundant-experts");
    assert_string_equal(lade_nearest("redundent-expert", list),
                        "redundant-experts");
    assert_null(lade_nearest("xyz", list));
    assert_null(lade_nearest("", list));
    assert_null(lade_nearest("no", list));
    assert_null(lade_nearest("world", list + 3));
    assert_int_equal(lade_edit_distance("", ""), 0);
    assert_int_equal(lade_edit_distance("abc", ""), 3);
    assert_int_equal(lade_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(lade_edit_distance("same", "same"), 0);
    memset(longer, 'x', sizeof(longer));
    longer[899] = 0;
    assert_int_equal(lade_edit_distance(longer, "x"), 255);
    assert_int_equal(lade_edit_distance("x", longer), 255);
    assert_int_equal(lade_edit_distance(longer, longer), 0);
    assert_null(lade_nearest(longer, list));
    longer[254] = 0;
    assert_int_equal(lade_edit_distance(longer, ""), 254);
}

static void test_help(void **state)
{
    char text[4096];
    FILE *f = tmpfile();

    (void)state;
    assert_non_null(f);
    lade_option_help(table, ROWS, LOAD, f);
    rewind(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = 0;
    fclose(f);
    assert_non_null(
        strstr(text, "  -t, --tp N                 tensor-parallel size\n"));
    assert_non_null(
        strstr(text, "      --ep                   whole experts\n"));
    assert_non_null(strstr(text, "--scope S              who shares one read "
                                 "(default node)\n"));
    assert_non_null(strstr(text, "the report (default: none)\n"));
    assert_non_null(strstr(text, "\n                             long enough"));
    assert_null(strstr(text, "seed"));
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_in_range(strcspn(line, "\n"), 1, 80);
}

static void test_echo(void **state)
{
    (void)state;
    good("--tp 4 --ep --json out --set a=1 --set b=2 --staging-size 1M "
         "--timeout 2.5 --scope world");
    cJSON *echo = lade_option_echo(&set);
    char *text = cJSON_PrintUnformatted(echo);
    assert_string_equal(
        text, "{\"tp\":4,\"ep\":true,\"scope\":\"world\",\"staging-size\":"
              "1048576,\"timeout\":2.5,\"json\":\"out\",\"set\":[\"a=1\","
              "\"b=2\"]}");
    cJSON_free(text);
    cJSON_Delete(echo);
    good("");
    echo = lade_option_echo(&set);
    assert_int_equal(cJSON_GetArraySize(echo), 0);
    cJSON_Delete(echo);
}

static void test_table_too_long(void **state)
{
    (void)state;
    set.count = 129;
    unit_failed(parse_as(LOAD, ""), &err, LADE_E_INTERNAL,
                "more than 128 options");
}

/* Variables of the one who runs the tests. */
static void clear_environment(void)
{
    char name[256];

    for (char **entry = environ; *entry;) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
        if (strncmp(name, "LADE_", 5) == 0 && unsetenv(name) == 0)
            entry = environ;
        else
            entry++;
    }
}

int main(void)
{
    clear_environment();
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_defaults),    TEST(test_command_line),
        TEST(test_unknown),     TEST(test_values),
        TEST(test_seconds),     TEST(test_size),
        TEST(test_environment), TEST(test_unknown_variable),
        TEST(test_settings),    TEST(test_bad_settings),
        TEST(test_nearest),     TEST(test_help),
        TEST(test_echo),        TEST(test_table_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
