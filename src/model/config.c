/*
 * In: a parsed config.json. Out: the part of it that describes the language
 * model, the engine's dtype, and whether the checkpoint is quantised.
 *
 * Mirrors vLLM: config/model.py (dtype of the config, then of its text_config),
 * model_executor/model_loader/weight_utils.py, get_quant_config.
 */
#include "base/log.h"
#include "model/family.h"

static const cJSON *member(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsNull(item) ? NULL : item;
}

const cJSON *lade_config_text(const cJSON *config)
{
    const cJSON *text = member(config, "text_config");

    return cJSON_IsObject(text) ? text : NULL;
}

const cJSON *lade_config_quantization(const cJSON *config, const char **key)
{
    static const char *const keys[] = {"quantization_config",
                                       "compression_config"};
    const cJSON *places[] = {config, lade_config_text(config)};

    for (int k = 0; k < 2; k++) {
        for (int p = 0; p < 2; p++) {
            const cJSON *item = member(places[p], keys[k]);
            *key = keys[k];
            if (item)
                return item;
        }
    }
    return NULL;
}

static const cJSON *dtype_item(const cJSON *config, const char **key)
{
    static const char *const keys[] = {"dtype", "torch_dtype"};
    const cJSON *places[] = {config, lade_config_text(config)};

    for (int p = 0; p < 2; p++) {
        for (int k = 0; k < 2; k++) {
            const cJSON *item = member(places[p], keys[k]);
            *key = keys[k];
            if (item)
                return item;
        }
    }
    return NULL;
}

int lade_config_dtype(const cJSON *config, enum lade_dtype wish,
                      enum lade_dtype *dtype, lade_err *err)
{
    const char *key = NULL;
    const cJSON *item = NULL;
    enum lade_dtype found = wish;

    if (wish == LADE_DTYPE_UNKNOWN) {
        item = dtype_item(config, &key);
        found = cJSON_IsString(item) ? lade_dtype_from_torch(item->valuestring)
                                     : LADE_DTYPE_UNKNOWN;
    }
    if (wish == LADE_DTYPE_UNKNOWN && !item) {
        lade_warn("config.json: neither dtype nor torch_dtype is there; "
                  "parameters are BF16 (--dtype chooses another)");
        found = LADE_DTYPE_BF16;
    }
    if (found != LADE_DTYPE_BF16 && found != LADE_DTYPE_F16 &&
        found != LADE_DTYPE_F32) {
        if (!item)
            return lade_err_set(err, LADE_E_USAGE,
                                "--dtype %s: parameters are BF16, F16 or F32",
                                lade_dtype_name(wish));
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "config.json: %s is %s%.40s%s, but parameters are "
                            "bfloat16, float16 or float32",
                            key, cJSON_IsString(item) ? "\"" : "",
                            cJSON_IsString(item) ? item->valuestring
                                                 : "not a text",
                            cJSON_IsString(item) ? "\"" : "");
    }
    *dtype = found;
    return LADE_OK;
}
