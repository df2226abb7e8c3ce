/*
 * Any text as a config.json. What a shell is made of must be consistent: parts
 * in order, names inside the pool.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check(const struct lade_shell *shell)
{
    const struct lade_shell_param *params =
        LADE_ITEMS(shell, params, struct lade_shell_param);
    const struct lade_shell_part *parts =
        LADE_ITEMS(shell, parts, struct lade_shell_part);
    uint64_t next = 0;

    for (uint64_t i = 0; i < shell->params.count; i++) {
        must(params[i].name < shell->pool.count);
        must(params[i].first_part == next);
        next += params[i].parts;
    }
    must(next == shell->parts.count);
    for (uint64_t i = 0; i < shell->parts.count; i++)
        must(parts[i].name < shell->pool.count &&
             parts[i].param < shell->params.count && parts[i].piece > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct lade_model_wish wish = {.family_file = NULL};
    const struct lade_layout layout = {
        .world = 4, .tp = 2, .pp = 1, .dp = 2, .ep = size % 2 != 0};
    struct lade_mem *mem = lade_mem_new();
    struct lade_shell *shell = NULL;
    lade_err err = LADE_ERR_INIT;
    cJSON *config = NULL;

    must(mem != NULL);
    lade_log_setup(LADE_LOG_ERROR, 1, 2, "fuzz");
    if (lade_json_parse((const char *)data, size, "config.json",
                        LADE_E_CHECKPOINT, &config, &err) == LADE_OK) {
        int rc =
            lade_model_build(config, &wish, &layout, NULL, mem, &shell, &err);
        must((rc == LADE_OK) == (shell != NULL));
        must(rc == LADE_OK || rc == LADE_E_CHECKPOINT || rc == LADE_E_USAGE);
        if (shell)
            check(shell);
    }
    must((shell != NULL) == (err.text[0] == 0));
    lade_free(mem, shell);
    must(lade_mem_now(mem, LADE_TAG_CATALOGUE) == 0);
    lade_mem_free(mem);
    cJSON_Delete(config);
    return 0;
}
