/*
 * Error text: written once, one clean line, cut to its room.
 */
#include "unit.h"

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(lade_status_name(LADE_OK), "ok");
    assert_string_equal(lade_status_name(LADE_E_INTERNAL), "INTERNAL");
    assert_string_equal(lade_status_name(LADE_E_USAGE), "USAGE");
    assert_string_equal(lade_status_name(LADE_E_CHECKPOINT), "CHECKPOINT");
    assert_string_equal(lade_status_name(LADE_E_PARAMETER), "PARAMETER");
    assert_string_equal(lade_status_name(LADE_E_IO), "IO");
    assert_string_equal(lade_status_name(LADE_E_MEMORY), "MEMORY");
    assert_string_equal(lade_status_name(LADE_E_DEVICE), "DEVICE");
    assert_string_equal(lade_status_name(LADE_E_MPI), "MPI");
    assert_string_equal(lade_status_name(LADE_E_VERIFY), "VERIFY");
    assert_string_equal(lade_status_name(LADE_E_TIMEOUT), "TIMEOUT");
    assert_string_equal(lade_status_name(LADE_E_INTERRUPT), "INTERRUPT");
    assert_string_equal(lade_status_name(LADE_E_TERMINATED), "INTERRUPT");
    assert_string_equal(lade_status_name(-77), "INTERNAL");
    assert_string_equal(lade_status_name(1), "INTERNAL");
    assert_int_equal(lade_exit_code(LADE_OK), 0);
    assert_int_equal(lade_exit_code(LADE_E_TIMEOUT), 75);
    assert_int_equal(lade_exit_code(LADE_E_TERMINATED), 143);
    assert_string_equal(lade_version(), LADE_VERSION);
}

static void test_first_cause_wins(void **state)
{
    lade_err err = LADE_ERR_INIT;

    (void)state;
    assert_int_equal(
        lade_err_set(&err, LADE_E_IO, "%s at %d", "a.safetensors", 8),
        LADE_E_IO);
    assert_int_equal(lade_err_set(&err, LADE_E_USAGE, "later"), LADE_E_USAGE);
    assert_int_equal(err.status, LADE_E_IO);
    assert_string_equal(err.text, "a.safetensors at 8");
    assert_int_equal(err.rank, -1);
    assert_int_equal(lade_err_set(NULL, LADE_E_MPI, "x"), LADE_E_MPI);
}

static void test_text_is_one_clean_line(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"plain", "plain"},
        {"a\nb\rc\td\x1b[31m\x7f", "a?b?c?d?[31m?"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff\xfe", "??"},
        {"\xc3", "?"},
        {"\xe2\x82", "??"},
        {"\xf0\x9f\x98", "???"},
        {"\xc0\xaf", "??"},
        {"\xed\xa0\x80", "???"},
        {"\xf4\x90\x80\x80", "????"},
        {"\xc2\x9b"
         "31m",
         "??31m"}, /* a terminal's CSI in one character */
        {"\xc2\xa0", "\xc2\xa0"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        lade_err err = LADE_ERR_INIT;
        char copy[64];
        snprintf(copy, sizeof(copy), "%s", cases[i].in);
        lade_text_clean(copy);
        assert_string_equal(copy, cases[i].out);
        lade_err_set(&err, LADE_E_IO, "%s", cases[i].in);
        assert_string_equal(err.text, cases[i].out);
    }
}

/* A name longer than the text, cut inside a character of two bytes. */
static void test_long_text(void **state)
{
    lade_err err = LADE_ERR_INIT;
    char name[3000];

    (void)state;
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = 0;
    lade_err_set(&err, LADE_E_IO, "%s", name);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    memcpy(name + sizeof(err.text) - 2, "\xc3\xa9", 2);
    err = (lade_err)LADE_ERR_INIT;
    lade_err_set(&err, LADE_E_IO, "%s", name);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_int_equal(err.text[sizeof(err.text) - 2], '?');
}

static void test_line(void **state)
{
    lade_err err = {LADE_E_CHECKPOINT, 3, "n1", "catalogue", "m: ends at 104"};
    char line[256], small[12];

    (void)state;
    lade_err_line(&err, line, sizeof(line));
    assert_string_equal(line, "lade: error[CHECKPOINT] rank 3 (node n1) "
                              "catalogue: m: ends at 104");
    err.node[0] = 0;
    lade_err_line(&err, line, sizeof(line));
    assert_string_equal(
        line, "lade: error[CHECKPOINT] rank 3 catalogue: m: ends at 104");
    err.rank = -1;
    err.gate[0] = 0;
    lade_err_line(&err, line, sizeof(line));
    assert_string_equal(line, "lade: error[CHECKPOINT]: m: ends at 104");
    lade_err_line(&err, small, sizeof(small));
    assert_string_equal(small, "lade: error");
}

static int twice(int first, int second, int *calls)
{
    int rc = LADE_OK;

    *calls = 1;
    LADE_TRY(first);
    *calls = 2;
    LADE_TRY(second);
    *calls = 3;
out:
    return rc;
}

static void test_try(void **state)
{
    int calls;

    (void)state;
    assert_int_equal(twice(LADE_OK, LADE_OK, &calls), LADE_OK);
    assert_int_equal(calls, 3);
    assert_int_equal(twice(LADE_E_IO, LADE_OK, &calls), LADE_E_IO);
    assert_int_equal(calls, 1);
    assert_int_equal(twice(LADE_OK, LADE_E_MPI, &calls), LADE_E_MPI);
    assert_int_equal(calls, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_first_cause_wins),
        cmocka_unit_test(test_text_is_one_clean_line),
        cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_try),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
