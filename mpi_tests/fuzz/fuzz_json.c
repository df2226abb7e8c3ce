/*
 * Any bytes as JSON. What is accepted must survive being printed and parsed
 * again; what is refused must say why.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lade_err err = LADE_ERR_INIT;
    cJSON *root = NULL, *again = NULL;
    uint64_t number;

    if (lade_json_parse((const char *)data, size, "fuzz", LADE_E_CHECKPOINT,
                        &root, &err) != LADE_OK) {
        must(root == NULL && err.status == LADE_E_CHECKPOINT && err.text[0]);
        return 0;
    }
    lade_json_u64(root, &number);
    char *text = cJSON_PrintUnformatted(root);
    must(text != NULL);
    must(lade_json_parse(text, strlen(text), "again", LADE_E_CHECKPOINT, &again,
                         &err) == LADE_OK);
    cJSON_Delete(again);
    cJSON_Delete(root);
    cJSON_free(text);
    return 0;
}
