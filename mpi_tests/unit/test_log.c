/*
 * Who speaks at which level, whole lines, and the list of warnings.
 */
#include "unit.h"

#include <pthread.h>

#include "base/log.h"

static char text[1 << 18];
static int saved;

static void capture(void)
{
    FILE *f = tmpfile();

    assert_non_null(f);
    saved = dup(STDERR_FILENO);
    assert_true(dup2(fileno(f), STDERR_FILENO) >= 0);
    fclose(f);
}

/* What was written to stderr since capture(). */
static const char *captured(void)
{
    ssize_t n = pread(STDERR_FILENO, text, sizeof(text) - 1, 0);

    assert_true(n >= 0);
    text[n] = 0;
    dup2(saved, STDERR_FILENO);
    close(saved);
    return text;
}

static void test_line(void **state)
{
    (void)state;
    lade_log_setup(LADE_LOG_INFO, 0, 64, "n3");
    capture();
    lade_log(LADE_LOG_INFO, "plan", "%d stripes in %d rounds", 412, 9);
    assert_string_equal(captured(), "lade " LADE_VERSION " rank 0/64 n3 plan: "
                                    "412 stripes in 9 rounds\n");
    lade_log_setup(LADE_LOG_INFO, 0, 1, NULL);
    capture();
    lade_log(LADE_LOG_INFO, "read", "a\nb\x1b[0m");
    assert_string_equal(captured(),
                        "lade " LADE_VERSION " rank 0/1 read: a?b?[0m\n");
}

static void test_levels(void **state)
{
    static const bool on[3][5] = {
        {true, true, false, false, false}, /* rank 0, warn */
        {true, true, true, true, true},    /* rank 0, trace */
        {true, false, false, true, true},  /* rank 3, trace */
    };

    (void)state;
    for (int i = 0; i < 3; i++) {
        lade_log_setup(i == 0 ? LADE_LOG_WARN : LADE_LOG_TRACE, i == 2 ? 3 : 0,
                       4, "");
        for (int level = LADE_LOG_ERROR; level <= LADE_LOG_TRACE; level++) {
            assert_int_equal(lade_log_on((enum lade_level)level), on[i][level]);
            capture();
            lade_log((enum lade_level)level, "read", "x");
            assert_int_equal(captured()[0] != 0, on[i][level]);
        }
    }
}

static void test_long_line(void **state)
{
    char name[4000];

    (void)state;
    lade_log_setup(LADE_LOG_WARN, 0, 1, "");
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = 0;
    capture();
    lade_log(LADE_LOG_ERROR, "read", "%s", name);
    captured();
    assert_in_range(strlen(text), 1000, 1536);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void test_warnings(void **state)
{
    (void)state;
    lade_warn_reset();
    lade_log_setup(LADE_LOG_WARN, 0, 4, "");
    capture();
    lade_warn("%s is not read", "a\nb");
    lade_warn("a?b is not read"); /* the same text: once */
    lade_warn("c is not read");
    assert_string_equal(captured(), "lade: warning: a?b is not read\n"
                                    "lade: warning: c is not read\n");
    assert_int_equal(lade_warn_count(), 2);
    assert_string_equal(lade_warn_get(0), "a?b is not read");
    assert_string_equal(lade_warn_get(1), "c is not read");
    assert_null(lade_warn_get(2));
    assert_null(lade_warn_get(-1));
    lade_warn_reset();
    assert_int_equal(lade_warn_count(), 0);
    assert_null(lade_warn_get(0));
}

/* Other ranks, and a quiet one, keep what they do not print. */
static void test_silent_warnings(void **state)
{
    (void)state;
    lade_log_setup(LADE_LOG_WARN, 1, 4, "");
    capture();
    lade_warn("of rank 1");
    assert_string_equal(captured(), "");
    lade_log_setup(LADE_LOG_ERROR, 0, 4, "");
    capture();
    lade_warn("of a quiet rank 0");
    assert_string_equal(captured(), "");
    assert_int_equal(lade_warn_count(), 2);
    lade_warn_reset();
}

static void test_many_warnings(void **state)
{
    (void)state;
    lade_log_setup(LADE_LOG_WARN, 0, 1, "");
    capture();
    for (int i = 0; i < 1500; i++)
        lade_warn("tensor %d", i);
    captured();
    assert_int_equal(lade_warn_count(), 1000);
    assert_string_equal(lade_warn_get(998), "tensor 998");
    assert_string_equal(
        lade_warn_get(999),
        "there are more warnings than 1000; the rest is not shown");
    assert_null(strstr(text, "tensor 999"));
    assert_non_null(strstr(text, "more warnings than 1000"));
    lade_warn_reset();
}

static void *talk(void *arg)
{
    for (int i = 0; i < 200; i++)
        lade_log(LADE_LOG_ERROR, "read", "%s", (const char *)arg);
    return NULL;
}

/* Lines of two threads do not mix. */
static void test_whole_lines(void **state)
{
    static char a[] = "aaaaaaaaaaaaaaaaaaaaaaaa", b[] = "bbbbbbbbbbbb";
    pthread_t threads[2];
    int lines = 0;

    (void)state;
    lade_log_setup(LADE_LOG_WARN, 0, 1, "");
    capture();
    pthread_create(&threads[0], NULL, talk, a);
    pthread_create(&threads[1], NULL, talk, b);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    captured();
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *said = strrchr(line, ' ') + 1;
        assert_true(strcmp(said, a) == 0 || strcmp(said, b) == 0);
        lines++;
    }
    assert_int_equal(lines, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_silent_warnings),
        cmocka_unit_test(test_many_warnings),
        cmocka_unit_test(test_whole_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
