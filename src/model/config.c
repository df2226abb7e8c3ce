/*
 * In: a parsed config.json. Out: the part of it that describes the language
 * model, the engine's dtype, and whether the checkpoint is quantised.
 *
 * Mirrors vLLM: config/model.py, _find_dtype and _resolve_auto_dtype (dtype of
 * the config, then of its text_config, then of the files; float32 becomes the
 * device's first choice, bfloat16); model_executor/model_loader/
 * weight_utils.py, get_quant_config.
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

/* What the files hold where the config says nothing: F16 if every float tensor
 * is F16, else BF16 (the engine takes the type that all fit in, and F32 becomes
 * BF16). */
static enum lade_dtype dtype_of_files(const struct lade_catalogue *catalogue)
{
    bool half = false;

    for (uint64_t i = 0; catalogue && i < catalogue->rows.count; i++) {
        uint16_t dtype = LADE_ITEMS(catalogue, rows, struct lade_row)[i].dtype;
        if (dtype == LADE_DTYPE_F16)
            half = true;
        else if (lade_dtype_is_float((enum lade_dtype)dtype))
            return LADE_DTYPE_BF16;
    }
    return half ? LADE_DTYPE_F16 : LADE_DTYPE_BF16;
}

static int bad_dtype(const char *key, const cJSON *item, lade_err *err)
{
    bool text = cJSON_IsString(item);

    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "config.json: %s is %s%.40s%s, but parameters are "
                        "bfloat16, float16 or float32",
                        key, text ? "\"" : "",
                        text ? item->valuestring : "not a text",
                        text ? "\"" : "");
}

static bool is_engine_dtype(enum lade_dtype dtype)
{
    return dtype == LADE_DTYPE_BF16 || dtype == LADE_DTYPE_F16 ||
           dtype == LADE_DTYPE_F32;
}

int lade_config_dtype(const cJSON *config, enum lade_dtype wish,
                      const struct lade_catalogue *catalogue,
                      enum lade_dtype *dtype, lade_err *err)
{
    const char *key = NULL;

    if (wish != LADE_DTYPE_UNKNOWN) {
        *dtype = wish;
        if (is_engine_dtype(wish))
            return LADE_OK;
        return lade_err_set(err, LADE_E_USAGE,
                            "--dtype %s: parameters are BF16, F16 or F32",
                            lade_dtype_name(wish));
    }
    const cJSON *item = dtype_item(config, &key);
    if (!item) {
        *dtype = dtype_of_files(catalogue);
        lade_warn("config.json: neither dtype nor torch_dtype is there; "
                  "parameters are %s (--dtype chooses another)",
                  lade_dtype_name(*dtype));
        return LADE_OK;
    }
    *dtype = cJSON_IsString(item) ? lade_dtype_from_torch(item->valuestring)
                                  : LADE_DTYPE_UNKNOWN;
    if (!is_engine_dtype(*dtype))
        return bad_dtype(key, item, err);
    if (*dtype == LADE_DTYPE_F32) {
        *dtype = LADE_DTYPE_BF16;
        lade_warn("config.json: %s is float32; as in the engine, parameters "
                  "are BF16 (--dtype f32 keeps float32)",
                  key);
    }
    return LADE_OK;
}
