/* Expressions: values, faults and their texts, hostile input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/expr.h"
#include "model/family.h"

static const char config_text[] =
    "{\"hidden_size\":4096,\"heads\":32,\"tie\":true,\"none\":null,"
    "\"rope\":1.5,\"huge\":9007199254740992,\"model_type\":\"gemma3_text\","
    "\"skip\":[0,3,7],\"names\":[\"a\",\"b\"],"
    "\"vision\":{\"depth\":27,\"deep\":{\"er\":5}},\"minus\":-3}";
static const char fallback_text[] =
    "{\"layers\":61,\"hidden_size\":1,\"none\":12}";
static const char let_text[] =
    "{\"H\":\"hidden_size\",\"D\":\"head_dim ?? H / heads\",\"n\":7,"
    "\"moe(l)\":\"l >= 3 && (l + 1) % 2 == 0\",\"add(a, b)\":\"a + b\","
    "\"loop\":\"loop + 1\",\"ping\":\"pong\",\"pong\":\"ping * 2\","
    "\"f(x)\":\"f(x - 1)\",\"sees\":\"l\",\"broken()\":\"1\","
    "\"b0\":\"1+1\",\"b1\":\"b0+b0+b0+b0+b0+b0+b0+b0+b0+b0\","
    "\"b2\":\"b1+b1+b1+b1+b1+b1+b1+b1+b1+b1\","
    "\"b3\":\"b2+b2+b2+b2+b2+b2+b2+b2+b2+b2\","
    "\"b4\":\"b3+b3+b3+b3+b3+b3+b3+b3+b3+b3\","
    "\"b5\":\"b4+b4+b4+b4+b4+b4+b4+b4+b4+b4\"}";

static cJSON *config, *fallback, *let;
static const struct lade_expr_bound bound_e = {"e", 9, NULL};
static const struct lade_expr_bound bound_l = {"l", 5, &bound_e};
static struct lade_expr_scope scope;

static int set_up(void **state)
{
    (void)state;
    config = cJSON_Parse(config_text);
    fallback = cJSON_Parse(fallback_text);
    let = cJSON_Parse(let_text);
    scope = (struct lade_expr_scope){.config = config,
                                     .fallback = fallback,
                                     .let = let,
                                     .bound = &bound_l,
                                     .what = "family test"};
    return !config || !fallback || !let;
}

static int tear_down(void **state)
{
    (void)state;
    cJSON_Delete(config);
    cJSON_Delete(fallback);
    cJSON_Delete(let);
    return 0;
}

static void gives(const char *text, int64_t wanted)
{
    lade_err err = LADE_ERR_INIT;
    int64_t value = -77;
    int rc = lade_expr_eval(&scope, text, &value, &err);

    if (rc != LADE_OK)
        print_error("%s: %s\n", text, err.text);
    assert_int_equal(rc, LADE_OK);
    if (value != wanted)
        print_error("%s\n", text);
    assert_int_equal(value, wanted);
    assert_int_equal(lade_expr_check(text, &err), LADE_OK);
}

static void fails(const char *text, int status, const char *says)
{
    lade_err err = LADE_ERR_INIT;
    int64_t value = -77;

    int rc = lade_expr_eval(&scope, text, &value, &err);
    if (rc != status || !strstr(err.text, says))
        print_error("%.80s: %d %s\n", text, rc, err.text);
    assert_int_equal(rc, status);
    assert_non_null(strstr(err.text, says));
    assert_int_equal(value, -77);
}

static void numbers(void **state)
{
    (void)state;
    gives("1 + 2 * 3", 7);
    gives("(1 + 2) * 3", 9);
    gives("20 - 5 - 3", 12);
    gives("64 / 4 / 2", 8);
    gives("17 % 5 * 2", 4);
    gives("-3 + 5", 2);
    gives("- - 4", 4);
    gives("7 % -1", 0);
    gives("cdiv(130, 64) * 64", 192);
    gives("cdiv(0, 3)", 0);
    gives("9223372036854775807", INT64_MAX);
    gives("\t hidden_size/heads ", 128);
    gives("hidden_size", 4096);
    gives("layers", 61);
    gives("none", 12);
    gives("vision.depth + vision.deep.er", 32);
    gives("skip[1] + skip[l - 3]", 10);
    gives("minus", -3);
}

static void truth(void **state)
{
    (void)state;
    gives("tie", 1);
    gives("!tie || false", 0);
    gives("true && 5", 1);
    gives("1 < 2 && 2 <= 2 && 3 > 2 && 2 >= 3", 0);
    gives("1 != 2", 1);
    gives("!(l in skip)", 1);
    gives("3 in skip", 1);
    gives("3 in []", 0);
    gives("l in (absent ?? [])", 0);
    gives("\"b\" in names", 1);
    gives("'c' in names", 0);
    gives("model_type == \"gemma3_text\"", 1);
    gives("model_type != 'llama'", 1);
    gives("model_type == 4", 0);
    gives("(absent ?? \"\") == \"x\"", 0);
    gives("1 || absent", 1);
    gives("0 && absent / 0", 0);
}

static void absence(void **state)
{
    (void)state;
    gives("absent ?? 3", 3);
    gives("absent ?? gone ?? 4", 4);
    gives("absent[3] ?? 8", 8);
    gives("vision.none ?? 6", 6);
    gives("hidden_size.below ?? 6", 6);
    gives("hidden_size ?? 1 / 0", 4096);
    gives("absent ?? hidden_size / heads", 128);
    fails("absent", LADE_E_CHECKPOINT, "key absent is absent");
    fails("1 + gone", LADE_E_CHECKPOINT, "\"1 + gone\" (family test)");
    fails("absent == 'x'", LADE_E_CHECKPOINT, "key absent is absent");
    fails("3 in absent", LADE_E_CHECKPOINT, "key absent is absent");
}

static void definitions(void **state)
{
    (void)state;
    gives("H", 4096);
    gives("D", 128);
    gives("n + 1", 8);
    gives("moe(l)", 1);
    gives("moe(2) || moe(4)", 0);
    gives("add(add(1, 2), 3 * 4)", 15);
    gives("l + e", 14);
    gives("b3", 2000);
    fails("loop", LADE_E_USAGE, "refers to itself");
    fails("ping", LADE_E_USAGE, "refers to itself");
    fails("f(3)", LADE_E_USAGE, "refers to itself");
    /* a definition does not see its user's variables */
    fails("sees", LADE_E_CHECKPOINT, "key l is absent");
    fails("moe", LADE_E_CHECKPOINT, "key moe is absent");
    fails("moe(1, 2)", LADE_E_USAGE, "wrong number of arguments");
    fails("broken(1)", LADE_E_USAGE, "wrong number of arguments");
    fails("add(1,2,3,4,5)", LADE_E_USAGE, "too many arguments");
    fails("nothing(1)", LADE_E_USAGE, "unknown function");
}

static void faults_of_the_config(void **state)
{
    (void)state;
    fails("hidden_size / 7", LADE_E_CHECKPOINT, "4096 is not a multiple of 7");
    fails("1 / 0", LADE_E_CHECKPOINT, "division by zero");
    fails("1 % (heads - 32)", LADE_E_CHECKPOINT, "division by zero");
    fails("cdiv(1, 0)", LADE_E_CHECKPOINT, "cdiv");
    fails("cdiv(minus, 2)", LADE_E_CHECKPOINT, "cdiv");
    fails("rope", LADE_E_CHECKPOINT, "key rope is not a whole number");
    fails("huge * huge", LADE_E_CHECKPOINT, "beyond 64 bits");
    fails("9223372036854775807 + 1", LADE_E_CHECKPOINT, "beyond 64 bits");
    fails("-9223372036854775807 - 2", LADE_E_CHECKPOINT, "beyond 64 bits");
    fails("(-9223372036854775807 - 1) / -1", LADE_E_CHECKPOINT, "64 bits");
    fails("-(-9223372036854775807 - 1)", LADE_E_CHECKPOINT, "64 bits");
    fails("model_type + 1", LADE_E_CHECKPOINT, "but the text \"gemma3_text\"");
    fails("skip", LADE_E_CHECKPOINT,
          "key skip is not a whole number but a list");
    fails("skip[3]", LADE_E_CHECKPOINT, "element 3 of a list of 3 elements");
    fails("skip[-1]", LADE_E_CHECKPOINT, "element -1");
    fails("heads[0]", LADE_E_CHECKPOINT,
          "key heads is not a list but a number");
    fails("vision", LADE_E_CHECKPOINT, "key vision is not a whole number");
    fails("1 in heads", LADE_E_CHECKPOINT, "is not a list but a number");
    fails("model_type < 3", LADE_E_CHECKPOINT, "key model_type is not a whole");
    fails("'x' + 1", LADE_E_CHECKPOINT, "not a whole number but the text");
}

static void faults_of_the_text(void **state)
{
    static const char *const bad[] = {
        "",     "1 +",         "(1",      "1)",
        "1 2",  "a b",         "1.5",     "0x10",
        "3a",   "+ 1",         "a ? b",   "a = b",
        "&& 1", "1 == 1 == 1", "\"x",     "[1]",
        "a[1",  "cdiv(",       "cdiv(1)", "f()",
        "a..b", "a ?? ",       "1 in",    "{l}",
        "a.",   "\x80",        "1;",      "99999999999999999999",
        "!",    "cdiv(1,2,3)"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lade_err err = LADE_ERR_INIT;
        int rc = lade_expr_check(bad[i], &err);
        if (rc != LADE_E_USAGE)
            print_error("%s: %d\n", bad[i], rc);
        assert_int_equal(rc, LADE_E_USAGE);
        fails(bad[i], LADE_E_USAGE, "expression");
    }
    fails("1 + * 2", LADE_E_USAGE, "a value expected at character 5");
    /* what is not evaluated is still parsed */
    fails("1 || (2", LADE_E_USAGE, ") expected");
}

static char *repeat(const char *part, size_t times)
{
    size_t n = strlen(part);
    char *text = calloc(2 * n * times + 16, 1);

    assert_non_null(text);
    for (size_t i = 0; i < times; i++)
        memcpy(text + i * n, part, n);
    return text;
}

static void hostile(void **state)
{
    static const char *const deep[] = {"(",     "!",  "-",  "[",
                                       "cdiv(", "x[", "a??"};
    (void)state;
    for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
        char *text = repeat(deep[i], 200), *longer = repeat(deep[i], 100000);
        fails(text, LADE_E_USAGE, "expression");
        fails(longer, LADE_E_USAGE, "too long");
        free(text);
        free(longer);
    }
    char *text = repeat("(", 63);
    strcat(text, "1");
    for (int i = 0; i < 63; i++)
        strcat(text, ")");
    gives(text, 1);
    free(text);
    text = repeat("!", 65);
    strcat(text, "1");
    fails(text, LADE_E_USAGE, "nested too deep");
    free(text);
    fails("b5 * 2", LADE_E_USAGE, "too many steps");
}

static void items(void **state)
{
    lade_err err = LADE_ERR_INIT;
    int64_t value = 0;
    cJSON *list = cJSON_Parse("[12, true, \"H * 2\", 1.5, null, {}]");

    (void)state;
    assert_int_equal(
        lade_expr_value(&scope, cJSON_GetArrayItem(list, 0), &value, &err), 0);
    assert_int_equal(value, 12);
    assert_int_equal(
        lade_expr_value(&scope, cJSON_GetArrayItem(list, 1), &value, &err), 0);
    assert_int_equal(value, 1);
    assert_int_equal(
        lade_expr_value(&scope, cJSON_GetArrayItem(list, 2), &value, &err), 0);
    assert_int_equal(value, 8192);
    for (int i = 3; i < 7; i++) {
        lade_err bad = LADE_ERR_INIT;
        assert_int_equal(
            lade_expr_value(&scope, cJSON_GetArrayItem(list, i), &value, &bad),
            LADE_E_USAGE);
    }
    cJSON_Delete(list);
}

static void patterns(void **state)
{
    lade_err err = LADE_ERR_INIT;
    char out[32];

    (void)state;
    assert_int_equal(
        lade_expr_format(&scope, "layers.{l}.e.{e}.w", out, sizeof out, &err),
        LADE_OK);
    assert_string_equal(out, "layers.5.e.9.w");
    assert_int_equal(lade_expr_format(&scope, "plain", out, sizeof out, &err),
                     LADE_OK);
    assert_string_equal(out, "plain");
    assert_int_equal(lade_expr_format(&scope, "", out, sizeof out, &err), 0);
    assert_string_equal(out, "");
    assert_int_equal(
        lade_expr_format_keep(&scope, "{l}.{e}.w", "e", out, sizeof out, &err),
        LADE_OK);
    assert_string_equal(out, "5.{e}.w");
    static const struct {
        const char *pattern, *says;
    } bad[] = {
        {"x{q}y", "nothing named {q}"},
        {"x{l", "{ without }"},
        {"{}", "nothing named {}"},
        {"0123456789012345678901234567890x", "longer than 31"},
        {"012345678901234567890123456789{l}x", "longer than 31"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lade_err fault = LADE_ERR_INIT;
        assert_int_equal(
            lade_expr_format(&scope, bad[i].pattern, out, sizeof out, &fault),
            LADE_E_USAGE);
        assert_non_null(strstr(fault.text, bad[i].says));
    }
    assert_int_equal(lade_expr_format(&scope, "0123456789012345678901234567890",
                                      out, sizeof out, &err),
                     LADE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(truth),
        cmocka_unit_test(absence),
        cmocka_unit_test(definitions),
        cmocka_unit_test(faults_of_the_config),
        cmocka_unit_test(faults_of_the_text),
        cmocka_unit_test(hostile),
        cmocka_unit_test(items),
        cmocka_unit_test(patterns),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
