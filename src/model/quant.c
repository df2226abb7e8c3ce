/*
 * In: a config. Out: the quantisation method that declares the parameters of
 * its modules. A method is a row of the table below and a file of its own.
 *
 * Mirrors vLLM: layers/quantization/__init__.py, get_quantization_config.
 */
#include "model/family.h"

static const struct lade_quant_ops *const methods[] = {&lade_quant_none};

int lade_quant_find(const cJSON *config, const struct lade_quant_ops **ops,
                    lade_err *err)
{
    const char *key = NULL;
    const cJSON *item = lade_config_quantization(config, &key);
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(item, "quant_method");

    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (methods[i]->recognise(config)) {
            *ops = methods[i];
            return LADE_OK;
        }
    }
    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "config.json: %s names the method %.60s; quantised "
                        "checkpoints are not in this version",
                        key,
                        cJSON_IsString(name) ? name->valuestring
                                             : "(quant_method absent)");
}
