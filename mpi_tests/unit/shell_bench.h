/*
 * What the tests of the shell share: the expected data, configs to change, and
 * a build with a catalogue of which only one name counts.
 */
#ifndef LADE_TESTS_SHELL_BENCH_H
#define LADE_TESTS_SHELL_BENCH_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "model/model.h"

static cJSON *expected;
static struct lade_mem *mem;

static inline int set_up(void **state)
{
    lade_err err = LADE_ERR_INIT;

    (void)state;
    lade_log_setup(LADE_LOG_ERROR, 0, 1, "n0");
    mem = lade_mem_new();
    if (lade_json_read(LADE_TEST_DATA "/data/shell_expected.json",
                       UINT64_C(16) << 20, &expected, &err) != LADE_OK)
        print_error("%s\n", err.text);
    return !mem || !expected;
}

static inline int tear_down(void **state)
{
    (void)state;
    cJSON_Delete(expected);
    int left = (int)lade_mem_now(mem, LADE_TAG_CATALOGUE);
    lade_mem_free(mem);
    return left;
}

/* ---- helpers ------------------------------------------------------------ */

static inline const cJSON *get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static inline uint32_t number(const cJSON *object, const char *key)
{
    return (uint32_t)get(object, key)->valueint;
}

static inline struct lade_layout layout_of(uint32_t tp, uint32_t dp, bool ep)
{
    return (struct lade_layout){
        .world = tp * dp, .tp = tp, .pp = 1, .dp = dp, .ep = ep};
}

/* A catalogue of one tensor, of which only the name counts here. */
static inline struct lade_catalogue *catalogue_of(const char *name)
{
    static char pool[LADE_MAX_DIMS * 32];
    int n = snprintf(pool, sizeof pool, "%c%s", '\0', name);
    struct lade_row row = {.name = 1};
    struct lade_catalogue head = {.blob = {.kind = LADE_BLOB_CATALOGUE}};
    const struct lade_section sections[] = {
        {&head.rows, &row, 1, sizeof row},
        {&head.pool, pool, (uint64_t)n + 1, 1},
    };
    lade_err err = LADE_ERR_INIT;

    return lade_blob_pack(mem, &head, sizeof head, sections, 2, &err);
}

static inline int build(const cJSON *config, const struct lade_layout *layout,
                        const char *head, struct lade_shell **shell,
                        lade_err *err)
{
    struct lade_model_wish wish = {.dtype = LADE_DTYPE_UNKNOWN};
    struct lade_catalogue *catalogue = head ? catalogue_of(head) : NULL;
    int rc =
        lade_model_build(config, &wish, layout, catalogue, mem, shell, err);

    lade_free(mem, catalogue);
    return rc;
}

static inline const struct lade_shell_param *
params_of(const struct lade_shell *shell)
{
    return LADE_ITEMS(shell, params, struct lade_shell_param);
}

static inline const struct lade_shell_part *
parts_of(const struct lade_shell *shell)
{
    return LADE_ITEMS(shell, parts, struct lade_shell_part);
}

static inline const char *text(const struct lade_shell *shell, uint32_t name)
{
    return LADE_STRING(shell, pool, name);
}

static inline cJSON *config_of(const char *name)
{
    const cJSON *want = NULL;

    cJSON_ArrayForEach(want, get(expected, "tiny"))
    {
        if (strcmp(get(want, "case")->valuestring, name) == 0)
            return cJSON_Duplicate(get(want, "config"), 1);
    }
    fail_msg("no case %s", name);
    return NULL;
}

/* Replaces a key of the config; NULL removes it. */
static inline void put(cJSON *config, const char *key, const char *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(config, key);
    if (value)
        cJSON_AddItemToObject(config, key, cJSON_Parse(value));
}

#endif
