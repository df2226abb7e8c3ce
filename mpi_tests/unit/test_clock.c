/*
 * Time goes forward; spans come out as valid Chrome trace events.
 */
#include "unit.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/json.h"

static lade_err err;

static void test_time(void **state)
{
    uint64_t start = lade_now_ns();

    (void)state;
    lade_sleep_us(2000);
    uint64_t took = lade_now_ns() - start;
    assert_in_range(took, 2000000, UINT64_C(10000000000));
    lade_sleep_us(0);
}

static const char *text_of(const cJSON *event, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, name);

    return cJSON_IsString(item) ? item->valuestring : "";
}

static double number_of(const cJSON *event, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, name);

    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

/* The events as an array; wraps what lade_trace_text gives. */
static cJSON *events_of(struct lade_trace *trace, struct lade_mem *mem,
                        uint64_t origin)
{
    char *inside = NULL;
    size_t length = 0;
    cJSON *root = NULL;

    assert_int_equal(lade_trace_text(trace, origin, &inside, &length, &err),
                     LADE_OK);
    assert_int_equal(strlen(inside), length);
    char *whole = malloc(length + 3);
    snprintf(whole, length + 3, "[%s]", inside);
    if (lade_json_parse(whole, length + 2, "trace", LADE_E_INTERNAL, &root,
                        &err) != LADE_OK)
        fail_msg("%s", err.text);
    free(whole);
    lade_free(mem, inside);
    return root;
}

static void test_spans(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    struct lade_trace *trace = lade_trace_new(mem, 3, &err);

    (void)state;
    lade_trace_span(trace, "read", 5000001000, 5000002500, 4096);
    lade_trace_span(trace, "take", 4999999500, 5000000000, 0);
    lade_trace_span(trace, "odd", 5000000007, 5000000000, 0); /* ends before */
    lade_trace_span(NULL, "off", 1, 2, 3);
    cJSON *events = events_of(trace, mem, 5000000000);
    assert_int_equal(cJSON_GetArraySize(events), 4);
    const cJSON *meta = cJSON_GetArrayItem(events, 0);
    assert_string_equal(text_of(meta, "ph"), "M");
    assert_string_equal(text_of(meta, "name"), "process_name");
    const cJSON *args = cJSON_GetObjectItemCaseSensitive(meta, "args");
    assert_string_equal(text_of(args, "name"), "rank 3");
    const cJSON *span = cJSON_GetArrayItem(events, 1);
    assert_string_equal(text_of(span, "name"), "read");
    assert_string_equal(text_of(span, "ph"), "X");
    assert_true(number_of(span, "pid") == 3 && number_of(span, "tid") == 0);
    assert_true(number_of(span, "ts") == 1.0 && number_of(span, "dur") == 1.5);
    args = cJSON_GetObjectItemCaseSensitive(span, "args");
    assert_true(number_of(args, "bytes") == 4096);
    span = cJSON_GetArrayItem(events, 2);
    assert_true(number_of(span, "ts") == -0.5 && number_of(span, "dur") == 0.5);
    assert_null(cJSON_GetObjectItemCaseSensitive(span, "args"));
    span = cJSON_GetArrayItem(events, 3);
    assert_true(number_of(span, "ts") == 0.007 && number_of(span, "dur") == 0);
    cJSON_Delete(events);
    lade_trace_free(trace);
    lade_trace_free(NULL);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_TEMP), 0);
    lade_mem_free(mem);
}

static void *work(void *arg)
{
    for (int i = 0; i < 500; i++)
        lade_trace_span(arg, "piece", (uint64_t)i * 1000, (uint64_t)i * 1001,
                        1);
    return NULL;
}

static void test_rows(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    struct lade_trace *trace = lade_trace_new(mem, 0, &err);
    pthread_t threads[3];
    int rows[8] = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, trace);
    work(trace);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    cJSON *events = events_of(trace, mem, 0);
    assert_int_equal(cJSON_GetArraySize(events), 2001);
    for (const cJSON *e = events->child->next; e; e = e->next) {
        assert_in_range((int)number_of(e, "tid"), 0, 3);
        rows[(int)number_of(e, "tid")]++;
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(rows[i], 500);
    cJSON_Delete(events);
    lade_trace_free(trace);
    lade_mem_free(mem);
}

/* A span for every piece must not fill the memory: what is beyond is counted.
 */
static void test_limit(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    struct lade_trace *trace = lade_trace_new(mem, 0, &err);
    char *text;
    size_t length;

    (void)state;
    for (int i = 0; i < (1 << 20) + 7; i++)
        lade_trace_span(trace, "x", 0, 0, 0);
    assert_int_equal(lade_trace_text(trace, 0, &text, &length, &err), LADE_OK);
    assert_non_null(strstr(text, "\"dropped_spans\":7}"));
    lade_free(mem, text);
    lade_trace_free(trace);
    lade_mem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
