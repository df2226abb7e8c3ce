/*
 * Any text as a family file; one that is accepted is built with a small config.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "model/family.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static int build(const struct lade_family *family, lade_err *err)
{
    static const char text[] =
        "{\"h\":64,\"hidden_size\":64,\"num_attention_heads\":4,"
        "\"num_hidden_layers\":2,\"vocab_size\":100,\"num_experts\":4,"
        "\"intermediate_size\":32,\"layers\":2,\"list\":[1,2],"
        "\"moe_intermediate_size\":16,\"tie_word_embeddings\":true}";
    static cJSON *config;
    struct lade_layout layout = {.world = 4, .tp = 2, .pp = 1, .dp = 2};
    struct lade_mem *mem = lade_mem_new();
    struct lade_shell *shell = NULL;

    if (!config)
        config = cJSON_Parse(text);
    must(mem && config);
    int rc = lade_model_build_family(config, family, &layout, mem, &shell, err);
    must((rc == LADE_OK) == (shell != NULL));
    lade_free(mem, shell);
    must(lade_mem_now(mem, LADE_TAG_CATALOGUE) == 0);
    lade_mem_free(mem);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lade_family family = {0};
    lade_err err = LADE_ERR_INIT, fault = LADE_ERR_INIT;

    lade_log_setup(LADE_LOG_ERROR, 1, 2, "fuzz");
    int rc = lade_family_parse((const char *)data, size, "fuzz", &family, &err);
    must((rc == LADE_OK) == (family.root != NULL));
    must((rc == LADE_OK) == (err.text[0] == 0));
    if (rc == LADE_OK) {
        rc = build(&family, &fault);
        must(rc != LADE_E_INTERNAL);
        must((rc == LADE_OK) == (fault.text[0] == 0));
    }
    lade_family_close(&family);
    return 0;
}
