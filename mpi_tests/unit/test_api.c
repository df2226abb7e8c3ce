/*
 * The public API on one rank without MPI, on a checkpoint that is made here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <lade.h>

#include "base/mem.h"
#include "synth/synth.h"

static char folder[] = "/tmp/lade-api-XXXXXX";
static char model[64];

static int set_up(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    struct lade_synth_report report;
    lade_err err = LADE_ERR_INIT;

    (void)state;
    if (!mkdtemp(folder))
        return 1;
    snprintf(model, sizeof model, "%s/model", folder);
    struct lade_synth_wish wish = {.preset = "llama-3.2-1b",
                                   .out = model,
                                   .fill = LADE_SYNTH_FILL_1,
                                   .tiny = true};
    int rc = lade_synth_write(&wish, mem, &report, &err);
    if (rc != LADE_OK)
        fprintf(stderr, "%s\n", err.text);
    lade_mem_free(mem);
    return rc;
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void test_load(void **state)
{
    lade_options options = LADE_OPTIONS_INIT;
    lade_session *session = NULL;
    lade_err err = LADE_ERR_INIT;
    const char *name, *target;
    char digest[33];
    lade_param param, again;

    (void)state;
    assert_int_equal(lade_open_all(&session, model, &options, NULL, &err),
                     LADE_OK);
    size_t count = lade_param_count(session);
    assert_true(count > 10);
    assert_int_equal(lade_param_get(session, 0, &param), LADE_OK);
    assert_null(param.data);
    assert_int_equal(lade_param_digest(session, 0, digest), LADE_E_USAGE);
    assert_int_equal(lade_load_all(session, &err), LADE_OK);
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 2;
        assert_int_equal(lade_param_get(session, i, &param), LADE_OK);
        assert_non_null(param.data);
        assert_string_equal(param.dtype, "BF16");
        for (uint32_t d = 0; d < param.ndim; d++)
            bytes *= param.shape[d];
        assert_int_equal(bytes, param.bytes);
        assert_int_equal(lade_param_digest(session, i, digest), LADE_OK);
        assert_int_equal(strlen(digest), 32);
    }
    assert_int_equal(lade_param_get(session, count, &param), LADE_E_USAGE);
    assert_int_equal(lade_alias_count(session), 1);
    assert_int_equal(lade_alias_get(session, 0, &name, &target), LADE_OK);
    assert_string_equal(name, "lm_head.weight");
    assert_string_equal(target, "model.embed_tokens.weight");
    assert_int_equal(lade_alias_get(session, 1, &name, &target), LADE_E_USAGE);
    assert_int_equal(lade_param_find(session, name, &param), LADE_OK);
    assert_int_equal(lade_param_find(session, target, &again), LADE_OK);
    assert_ptr_equal(param.data, again.data);
    assert_int_equal(lade_param_find(session, "nothing", &again), LADE_E_USAGE);
    assert_int_equal(lade_load_all(session, &err), LADE_E_USAGE);
    assert_non_null(strstr(err.text, "loaded already"));
    lade_close(session);
}

static void test_texts(void **state)
{
    lade_options options = LADE_OPTIONS_INIT;
    lade_session *session = NULL;
    lade_err err = LADE_ERR_INIT;
    char *text = NULL;

    (void)state;
    options.command = "a test";
    options.trace = 1;
    assert_int_equal(lade_open_all(&session, model, &options, NULL, &err),
                     LADE_OK);
    assert_int_equal(lade_digests_json_all(session, &text, &err), LADE_E_USAGE);
    err = (lade_err)LADE_ERR_INIT;
    assert_int_equal(lade_load_all(session, &err), LADE_OK);
    assert_int_equal(lade_report_json(session, &text, &err), LADE_OK);
    assert_non_null(strstr(text, "\"a test\""));
    lade_text_free(text);
    assert_int_equal(lade_report_table(session, &text, &err), LADE_OK);
    assert_non_null(strstr(text, "\nverdict ok\n"));
    lade_text_free(text);
    assert_int_equal(lade_digests_json_all(session, &text, &err), LADE_OK);
    assert_non_null(strstr(text, "\"until\":\"processed\""));
    lade_text_free(text);
    assert_int_equal(lade_trace_json_all(session, &text, &err), LADE_OK);
    assert_non_null(strstr(text, "catalogue"));
    lade_text_free(text);
    lade_text_free(NULL);
    lade_close(session);
    lade_close(NULL);
}

static void refuses(const lade_options *options, const char *path, int status,
                    const char *part)
{
    lade_session *session = NULL;
    lade_err err = LADE_ERR_INIT;
    char *text = NULL;

    assert_int_equal(lade_open_all(&session, path, options, NULL, &err),
                     status);
    if (!strstr(err.text, part))
        print_error("%s\n", err.text);
    assert_non_null(strstr(err.text, part));
    assert_int_equal(lade_load_all(session, &err), LADE_E_USAGE);
    assert_int_equal(lade_report_json(session, &text, &err), LADE_OK);
    assert_non_null(strstr(text, lade_status_name(status)));
    lade_text_free(text);
    lade_close(session);
}

static void test_refusals(void **state)
{
    lade_options options = LADE_OPTIONS_INIT;

    (void)state;
    refuses(NULL, "/nowhere/at/all", LADE_E_CHECKPOINT, "/nowhere/at/all");
    options.scope = "wrld";
    refuses(&options, model, LADE_E_USAGE,
            "--scope wrld: no such value; did you mean world?");
    options.scope = NULL;
    options.read = "tape";
    refuses(&options, model, LADE_E_USAGE, "tape");
    options.read = NULL;
    options.device = "cuda";
    refuses(&options, model, LADE_E_DEVICE, "cuda");
    options.device = NULL;
    options.tp = 2;
    refuses(&options, model, LADE_E_USAGE, "1");
    options.tp = 0;
    options.memory = 1000;
    refuses(&options, model, LADE_E_MEMORY, "--memory allows 1000 B");
    options.memory = 0;
    options.nodes = 2;
    refuses(&options, model, LADE_E_USAGE, "--nodes 2: there are only 1 ranks");
    options.nodes = 0;
    options.size = sizeof options + 8;
    refuses(&options, model, LADE_E_USAGE, "newer lade.h");
}

/* A caller that was built with a header that had fewer fields. */
static void test_older_caller(void **state)
{
    lade_options options = LADE_OPTIONS_INIT;
    lade_session *session = NULL;
    lade_err err = LADE_ERR_INIT;

    (void)state;
    options.size = offsetof(lade_options, read);
    options.scope = "wrld"; /* behind the end of what that caller knew */
    assert_int_equal(lade_open_all(&session, model, &options, NULL, &err),
                     LADE_OK);
    lade_close(session);
}

static void test_plan(void **state)
{
    lade_options options = LADE_OPTIONS_INIT;
    lade_err err = LADE_ERR_INIT;
    char *text = NULL;

    (void)state;
    options.tp = 2;
    options.nodes = 2;
    assert_int_equal(lade_plan_json(model, &options, 0, &text, &err), LADE_OK);
    assert_non_null(strstr(text, "\"elements_by_copies\""));
    assert_non_null(strstr(text, "\"nodes\":\t2"));
    lade_text_free(text);
    assert_int_equal(lade_plan_json(model, &options, 3, &text, &err),
                     LADE_E_USAGE);
    assert_null(text);
    options.tp = 60000;
    options.dp = 60000;
    assert_int_equal(lade_plan_json(model, &options, 0, &text, &err),
                     LADE_E_USAGE);
    assert_non_null(strstr(err.text, "at most 65536"));
}

static void test_interrupt(void **state)
{
    lade_options options = LADE_OPTIONS_INIT;
    const int flag = LADE_E_TERMINATED;
    lade_session *session = NULL;
    lade_err err = LADE_ERR_INIT;

    (void)state;
    options.interrupt = &flag;
    assert_int_equal(lade_open_all(&session, model, &options, NULL, &err),
                     LADE_E_TERMINATED);
    assert_string_equal(err.text, "stopped by SIGTERM");
    lade_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load),     cmocka_unit_test(test_texts),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_older_caller),
        cmocka_unit_test(test_plan),     cmocka_unit_test(test_interrupt),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
