/*
 * In: a recipe. Out: the content of config.json (the model file's config, the
 * overrides, then config_defaults where a key is absent, to any depth), and of
 * the file that some publishers keep the quantisation in.
 */
#include <string.h>

#include "synth/recipe.h"

/* Adds copies of the keys of `defaults` that `object` lacks. */
static int add_defaults(cJSON *object, const cJSON *defaults, lade_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, defaults)
    {
        cJSON *found = cJSON_GetObjectItemCaseSensitive(object, item->string);
        if (found == NULL) {
            cJSON *copy = cJSON_Duplicate(item, true);
            if (copy == NULL ||
                !cJSON_AddItemToObject(object, item->string, copy)) {
                cJSON_Delete(copy);
                return lade_err_set(err, LADE_E_MEMORY,
                                    "config.json: out of memory");
            }
        } else if (cJSON_IsObject(found) && cJSON_IsObject(item)) {
            const int rc = add_defaults(found, item, err);
            if (rc != LADE_OK)
                return rc;
        }
    }
    return LADE_OK;
}

/* A key quantization_config_file moves quantization_config to that file. */
static int take_other(cJSON *config, cJSON **other, char *name, size_t size,
                      lade_err *err)
{
    const char *file = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(config, "quantization_config_file"));
    if (file == NULL)
        return LADE_OK;
    const size_t length = strlen(file);
    if (length < 6 || length >= size || file[0] == '.' ||
        strchr(file, '/') != NULL || strcmp(file + length - 5, ".json") != 0 ||
        strcmp(file, "config.json") == 0)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "quantization_config_file %s: needs the name of a "
                            ".json file beside config.json",
                            file);
    memcpy(name, file, length + 1);
    *other =
        cJSON_DetachItemFromObjectCaseSensitive(config, "quantization_config");
    cJSON_DeleteItemFromObjectCaseSensitive(config, "quantization_config_file");
    return *other != NULL
               ? LADE_OK
               : lade_err_set(err, LADE_E_CHECKPOINT,
                              "quantization_config_file %s: the config has no "
                              "quantization_config",
                              name);
}

int lade_recipe_config(const struct lade_recipe *recipe, cJSON **config,
                       cJSON **other, char *other_name, size_t size,
                       lade_err *err)
{
    int rc = LADE_OK;
    cJSON *apart = NULL;
    cJSON *made = cJSON_Duplicate(
        cJSON_GetObjectItemCaseSensitive(recipe->model, "config"), true);
    if (made == NULL)
        return lade_err_set(err, LADE_E_MEMORY, "config.json: out of memory");
    LADE_TRY(
        add_defaults(made, lade_recipe_key(recipe, "config_defaults"), err));
    LADE_TRY(take_other(made, &apart, other_name, size, err));
    *config = made;
    *other = apart;
    made = apart = NULL;
out:
    cJSON_Delete(made);
    cJSON_Delete(apart);
    return rc;
}
