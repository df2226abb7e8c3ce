/*
 * Reconciliation, copies, report and table of the small world.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "base/log.h"
#include "check/copies.h"
#include "check/digest.h"
#include "check/reconcile.h"
#include "check/report.h"
#include "check/writer.h"
#include "small_world.h"

/* Cells in the order of the parameters: w a, w b, norm, emb, e slot 0, slot 1,
 * bias. */
struct cells {
    uint32_t first[SMALL_PARAMS + 1];
    uint64_t written[7];
    struct lade_target target;
};

static void fill(struct cells *cells, uint32_t rank)
{
    static const uint32_t first[] = {0, 2, 3, 4, 6, 7};
    const uint64_t written[] = {6, 6, 5, rank == 0 ? 8u : 2u, 4, 4, 0};

    memcpy(cells->first, first, sizeof first);
    memcpy(cells->written, written, sizeof written);
    cells->target = (struct lade_target){.first_cell = cells->first,
                                         .written = cells->written};
}

static void test_complete(void **state)
{
    struct small_world w;
    struct cells cells;
    struct lade_reconciled sums;

    (void)state;
    assert_true(small_world_make(&w));
    fill(&cells, 0);
    assert_int_equal(
        lade_reconcile(&w.in, 0, &cells.target, w.mem, &sums, &w.err), LADE_OK);
    assert_int_equal(sums.elements, 6 + 6 + 5 + 8 + 8);
    assert_int_equal(sums.padding, 3); /* the bias that is not on disk */
    assert_int_equal(sums.missing, 0);
    fill(&cells, 1);
    assert_int_equal(
        lade_reconcile(&w.in, 1, &cells.target, w.mem, &sums, &w.err), LADE_OK);
    assert_int_equal(sums.elements, 6 + 6 + 5 + 2 + 8);
    assert_int_equal(sums.padding, 3 + 6); /* three rows of the vocabulary */
    assert_true(small_world_free(&w));
}

static void test_one_element_lacks(void **state)
{
    struct small_world w;
    struct cells cells;
    struct lade_reconciled sums;

    (void)state;
    assert_true(small_world_make(&w));
    fill(&cells, 1);
    cells.written[5] = 3; /* slot 1 of rank 1 is expert 3 */
    cells.written[1] = 0;
    assert_int_equal(
        lade_reconcile(&w.in, 1, &cells.target, w.mem, &sums, &w.err),
        LADE_E_PARAMETER);
    assert_string_equal(w.err.text,
                        "w: part b: 0 elements were written but it has 6 (2 "
                        "parts are incomplete in all)");
    w.err = (lade_err)LADE_ERR_INIT;
    cells.written[1] = 6;
    assert_int_equal(
        lade_reconcile(&w.in, 1, &cells.target, w.mem, &sums, &w.err),
        LADE_E_PARAMETER);
    assert_string_equal(w.err.text,
                        "e: part x.{e}, expert 3 in slot 1: 3 elements were "
                        "written but it has 4 (1 parts are incomplete in all)");
    assert_true(small_world_free(&w));
}

static void test_written_twice(void **state)
{
    struct small_world w;
    struct cells cells;
    struct lade_reconciled sums;

    (void)state;
    assert_true(small_world_make(&w));
    fill(&cells, 0);
    cells.written[2] = 10;
    assert_int_equal(
        lade_reconcile(&w.in, 0, &cells.target, w.mem, &sums, &w.err),
        LADE_E_INTERNAL);
    assert_non_null(strstr(w.err.text, "norm: part norm: 10 elements"));
    assert_non_null(strstr(w.err.text, "written too often"));
    assert_true(small_world_free(&w));
}

/* An expert that is not on disk, with strict off: counted, not refused; but
 * nothing may then be written there. */
static void test_missing_on_disk(void **state)
{
    struct small_world w;
    struct cells cells;
    struct lade_reconciled sums;

    (void)state;
    assert_true(small_world_make(&w));
    struct lade_route *routes = (struct lade_route *)(uintptr_t)LADE_ITEMS(
        w.routes, routes, struct lade_route);
    routes[SMALL_ROWS - 1].part = UINT32_MAX;
    fill(&cells, 1);
    cells.written[5] = 0;
    assert_int_equal(
        lade_reconcile(&w.in, 1, &cells.target, w.mem, &sums, &w.err), LADE_OK);
    assert_int_equal(sums.missing, 1);
    cells.written[5] = 4;
    assert_int_equal(
        lade_reconcile(&w.in, 1, &cells.target, w.mem, &sums, &w.err),
        LADE_E_INTERNAL);
    assert_true(small_world_free(&w));
}

static void test_copies(void **state)
{
    struct small_world w;
    struct lade_copies copies;

    (void)state;
    assert_true(small_world_make(&w));
    lade_copies_count(&w.in, &copies);
    assert_int_equal(copies.count, 2);
    assert_int_equal(copies.rows[0].copies, 1);
    assert_int_equal(copies.rows[0].elements, 12 + 12 + 10 + 16);
    assert_int_equal(copies.rows[1].copies, 2);
    assert_int_equal(copies.rows[1].elements, 5);
    assert_int_equal(copies.elements, 55);
    assert_int_equal(copies.bytes, 110);
    assert_true(small_world_free(&w));
}

/* Two replicas without expert parallelism: dense parts twice, expert parts cut
 * by dp * tp once each. */
static void test_copies_of_replicas(void **state)
{
    struct small_world w;
    struct lade_copies copies;

    (void)state;
    assert_true(small_world_make(&w));
    lade_placement_fini(&w.place);
    w.layout = (struct lade_layout){.world = 2, .tp = 1, .pp = 1, .dp = 2};
    assert_int_equal(
        lade_placement_init(&w.place, &w.layout, 4, 1, 1, w.mem, &w.err),
        LADE_OK);
    struct lade_shell_part *parts =
        (struct lade_shell_part *)(uintptr_t)LADE_ITEMS(w.shell, parts,
                                                        struct lade_shell_part);
    parts[PART_E].axis = LADE_AXIS_MOE_TP;
    parts[PART_E].piece = 1;
    parts[PART_A].piece = parts[PART_B].piece = 4;
    parts[PART_EMB].piece = 5;
    lade_copies_count(&w.in, &copies);
    assert_int_equal(copies.count, 2);
    assert_int_equal(copies.rows[0].elements, 16);
    assert_int_equal(copies.rows[1].copies, 2);
    assert_int_equal(copies.rows[1].elements, 12 + 12 + 10 + 5);
    assert_true(small_world_free(&w));
}

static double at(const cJSON *root, const char *a, const char *b)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(root, a), b);

    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void test_report(void **state)
{
    struct small_world w;
    struct lade_copies copies;
    struct lade_rank_stats stats[2] = {{.node = "n0"}, {.node = "n0"}};
    struct lade_writer out;
    char *text = NULL;

    (void)state;
    assert_true(small_world_make(&w));
    lade_copies_count(&w.in, &copies);
    stats[0].heads = 1;
    stats[0].plan.needed_bytes = 110;
    stats[0].plan.gap_bytes = 2;
    stats[0].share.read = (struct lade_read_counts){
        .bytes = 70, .align_bytes = 8, .requests = 2, .opens = 1};
    stats[1].share.read =
        (struct lade_read_counts){.bytes = 50, .requests = 3, .opens = 1};
    stats[1].phase_s[LADE_PHASE_READ] = 0.5;
    stats[1].peak[LADE_TAG_PARAMETERS] = 4096;
    struct lade_report_facts facts = {.verb = "load",
                                      .command = "lade load \"x\"",
                                      .layout = &w.layout,
                                      .ranks = 2,
                                      .nodes = 1,
                                      .ep = 2,
                                      .shards = w.shards,
                                      .catalogue = w.catalogue,
                                      .shell = w.shell,
                                      .routes = w.routes,
                                      .copies = &copies,
                                      .stats = stats};
    cJSON *root = lade_report_build(&facts);
    assert_non_null(root);
    assert_string_equal(
        cJSON_GetObjectItemCaseSensitive(root, "verdict")->valuestring, "ok");
    assert_true(at(root, "read", "bytes") == 70 + 50 + 100);
    assert_true(at(root, "read", "payload_bytes") == 110);
    assert_true(at(root, "read", "requests") == 5);
    assert_true(at(root, "read", "opens") == 3); /* one for the header */
    assert_true(at(root, "read", "ratio") == 2.0);
    assert_true(at(root, "read", "seconds") == 0.5);
    assert_true(at(root, "model", "parameters") == 55);
    const cJSON *memory = cJSON_GetObjectItemCaseSensitive(root, "memory");
    assert_true(at(memory, "rank_of_max", "parameters") == 1);
    lade_writer_init(&out, w.mem);
    lade_table_write(&out, root);
    assert_int_equal(lade_writer_take(&out, &text, NULL, &w.err), LADE_OK);
    assert_non_null(strstr(text, "ratio 2.0000"));
    assert_string_equal(text + strlen(text) - 11, "verdict ok\n");
    lade_text_free(text);
    lade_writer_fini(&out);
    cJSON_Delete(root);
    assert_true(small_world_free(&w));
}

/* A load that failed before anything was known: every key is there. */
static void test_report_of_nothing(void **state)
{
    struct lade_layout layout = {0};
    lade_err err = LADE_ERR_INIT;
    struct lade_report_facts facts = {
        .verb = "load", .layout = &layout, .err = &err, .ranks = 1};
    static const char *const keys[] = {
        "schema", "error", "world",  "checkpoint", "model",   "plan",
        "read",   "share", "memory", "phases",     "skipped", "reasons"};

    (void)state;
    lade_err_set(&err, LADE_E_CHECKPOINT, "nowhere: no such directory");
    cJSON *root = lade_report_build(&facts);
    assert_non_null(root);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_non_null(cJSON_GetObjectItemCaseSensitive(root, keys[i]));
    assert_true(at(root, "error", "code") == 3);
    assert_string_equal(
        cJSON_GetObjectItemCaseSensitive(root, "verdict")->valuestring,
        "CHECKPOINT");
    assert_int_equal(
        cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "phases")),
        LADE_PHASES);
    cJSON_Delete(root);
}

static void test_digest_text(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    const struct lade_digest_param param = {.name = "a\"b\\\n",
                                            .dtype = LADE_DTYPE_BF16,
                                            .ndim = 2,
                                            .shape = {0, 3}};
    const char *alias = "head", *target = "emb";
    const struct lade_digest_rank rank = {7, &param, 1, &alias, &target, 1};
    lade_err err = LADE_ERR_INIT;
    struct lade_writer out;
    char *text = NULL;

    (void)state;
    lade_writer_init(&out, mem);
    lade_digest_rank_write(&out, &rank);
    assert_int_equal(lade_writer_take(&out, &text, NULL, &err), LADE_OK);
    assert_string_equal(text, "{\"rank\":7,\"params\":[\n"
                              "[\"a\\\"b\\\\\\u000a\",\"BF16\",[0,3],"
                              "\"99aa06d3014798d86001c324468d497f\"]],\n"
                              "\"aliases\":{\"head\":\"emb\"}}");
    lade_text_free(text);
    lade_writer_fini(&out);
    lade_mem_free(mem);
}

static void test_sizes(void **state)
{
    char out[24];

    (void)state;
    assert_string_equal(lade_size_text(0, out, sizeof out), "0 B");
    assert_string_equal(lade_size_text(1023, out, sizeof out), "1023 B");
    assert_string_equal(lade_size_text(1536, out, sizeof out), "1.50 KiB");
    assert_string_equal(lade_size_text(UINT64_C(5) << 40, out, sizeof out),
                        "5.00 TiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_one_element_lacks),
        cmocka_unit_test(test_written_twice),
        cmocka_unit_test(test_missing_on_disk),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_copies_of_replicas),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_report_of_nothing),
        cmocka_unit_test(test_digest_text),
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
