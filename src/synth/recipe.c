/*
 * In: a preset or model file, --tiny, --set. Out: the tensors of the
 * checkpoint in listed order (pattern, then layer, then expert).
 *
 * All of it is untrusted: numbers are checked, the list is bounded, names are
 * refused that would not survive in a header.
 */
#include "synth/recipe.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/embed.h"
#include "base/map.h"
#include "base/option.h"
#include "model/expr.h"

#define MODEL_FILE_LIMIT (UINT64_C(16) << 20)
#define TENSOR_LIMIT (UINT64_C(1) << 22)
#define NAME_LIMIT 512

/* One entry of tensors[] while it is being expanded. */
struct pattern {
    struct lade_expr_scope scope;
    const cJSON *item;
    const char *name;
    struct lade_recipe_tensor row; /* what its tensors have in common */
};

static int bad(const struct lade_recipe *recipe, const struct pattern *pattern,
               const char *what, lade_err *err)
{
    return lade_err_set(err, LADE_E_CHECKPOINT, "model file %s: tensor %s: %s",
                        recipe->name, pattern->name, what);
}

static int expand_shape(const struct lade_recipe *recipe,
                        struct pattern *pattern, lade_err *err)
{
    int rc = LADE_OK;
    struct lade_recipe_tensor *row = &pattern->row;
    const cJSON *shape =
        cJSON_GetObjectItemCaseSensitive(pattern->item, "shape");
    const cJSON *dim;
    if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > LADE_MAX_DIMS)
        return bad(recipe, pattern, "its shape is not a list of at most 8",
                   err);
    cJSON_ArrayForEach(dim, shape)
    {
        int64_t value;
        LADE_TRY(lade_expr_value(&pattern->scope, dim, &value, err));
        if (value < 0)
            return bad(recipe, pattern, "a dimension is negative", err);
        row->shape[row->ndim++] = (uint64_t)value;
    }
    if (!lade_shape_count(row->shape, row->ndim, &row->elements) ||
        !lade_dtype_bytes(row->dtype, row->elements, &row->bytes))
        return bad(recipe, pattern, "its size is beyond 64 bits", err);
out:
    return rc;
}

static int add_tensor(struct lade_recipe *recipe, struct pattern *pattern,
                      lade_err *err)
{
    int rc = LADE_OK;
    char name[NAME_LIMIT];
    struct lade_recipe_tensor *row = &pattern->row;
    LADE_TRY(lade_expr_format(&pattern->scope, pattern->name, name, sizeof name,
                              err));
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == '"' || *c == '\\' || *c == 0x7f)
            return bad(recipe, pattern,
                       "quotes, backslashes and control characters cannot "
                       "stand in a name",
                       err);
    if (recipe->tensors.count >= TENSOR_LIMIT)
        return bad(recipe, pattern, "more than 4194304 tensors", err);
    if (!lade_add_u64(recipe->bytes, row->bytes, &recipe->bytes) ||
        recipe->bytes > INT64_MAX)
        return bad(recipe, pattern, "the checkpoint would pass 2^63 bytes",
                   err);
    LADE_TRY(
        lade_pool_add(&recipe->names, name, strlen(name), &row->name, err));
    if (lade_vec_push(&recipe->tensors, row, err) == NULL)
        return LADE_E_MEMORY;
out:
    return rc;
}

/* [from, to) of two expressions. */
static int get_range(const struct lade_recipe *recipe, struct pattern *pattern,
                     const cJSON *pair, int64_t *from, int64_t *to,
                     lade_err *err)
{
    int rc = LADE_OK;
    if (!cJSON_IsArray(pair) || cJSON_GetArraySize(pair) != 2)
        return bad(recipe, pattern, "a range is not a list of two", err);
    LADE_TRY(lade_expr_value(&pattern->scope, cJSON_GetArrayItem(pair, 0), from,
                             err));
    LADE_TRY(
        lade_expr_value(&pattern->scope, cJSON_GetArrayItem(pair, 1), to, err));
    if (*from < 0 || *to > (int64_t)TENSOR_LIMIT)
        return bad(recipe, pattern, "a range leaves 0 .. 4194304", err);
out:
    return rc;
}

static int expand_experts(struct lade_recipe *recipe, struct pattern *pattern,
                          lade_err *err)
{
    int rc = LADE_OK;
    int64_t from = 0, to = 0;
    const struct lade_expr_bound *outer = pattern->scope.bound;
    const cJSON *range =
        cJSON_GetObjectItemCaseSensitive(pattern->item, "experts");
    pattern->row.expert = -1;
    if (range == NULL)
        return add_tensor(recipe, pattern, err);
    LADE_TRY(get_range(recipe, pattern, range, &from, &to, err));
    for (int64_t e = from; e < to; e++) {
        const struct lade_expr_bound bound = {"E", e, outer};
        pattern->scope.bound = &bound;
        pattern->row.expert = e;
        rc = add_tensor(recipe, pattern, err);
        pattern->scope.bound = outer;
        if (rc != LADE_OK)
            break;
    }
out:
    return rc;
}

static int expand_layers(struct lade_recipe *recipe, struct pattern *pattern,
                         lade_err *err)
{
    int rc = LADE_OK;
    int64_t from = 0, to = 0;
    const cJSON *range;
    const cJSON *ranges =
        cJSON_GetObjectItemCaseSensitive(pattern->item, "layers");
    pattern->row.layer = -1;
    if (ranges == NULL)
        return expand_experts(recipe, pattern, err);
    if (!cJSON_IsArray(ranges))
        return bad(recipe, pattern, "layers is not a list of ranges", err);
    cJSON_ArrayForEach(range, ranges)
    {
        LADE_TRY(get_range(recipe, pattern, range, &from, &to, err));
        for (int64_t layer = from; layer < to; layer++) {
            const struct lade_expr_bound bound = {"L", layer, NULL};
            pattern->scope.bound = &bound;
            pattern->row.layer = layer;
            rc = expand_experts(recipe, pattern, err);
            pattern->scope.bound = NULL;
            if (rc != LADE_OK)
                goto out;
        }
    }
out:
    return rc;
}

static int expand_pattern(struct lade_recipe *recipe, struct pattern *pattern,
                          lade_err *err)
{
    const cJSON *item = pattern->item;
    const char *dtype =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "dtype"));
    const cJSON *fill = cJSON_GetObjectItemCaseSensitive(item, "fill");
    pattern->name =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
    if (pattern->name == NULL)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "model file %s: tensors[%u] has no name",
                            recipe->name, pattern->row.pattern);
    if (dtype == NULL || lade_dtype_find(dtype) == LADE_DTYPE_UNKNOWN)
        return lade_err_set(
            err, LADE_E_CHECKPOINT,
            "model file %s: tensor %s: dtype %s is not one of safetensors",
            recipe->name, pattern->name, dtype == NULL ? "(none)" : dtype);
    if (fill != NULL && !cJSON_IsString(fill))
        return bad(recipe, pattern, "fill is not a text", err);
    pattern->row.dtype = lade_dtype_find(dtype);
    pattern->row.fill = cJSON_GetStringValue(fill);
    const int rc = expand_shape(recipe, pattern, err);
    return rc != LADE_OK ? rc : expand_layers(recipe, pattern, err);
}

static int refuse_twins(const struct lade_recipe *recipe, lade_err *err)
{
    int rc = LADE_OK;
    struct lade_map map;
    lade_map_init(&map, recipe->mem);
    for (uint64_t i = 0; i < recipe->tensors.count; i++) {
        bool added;
        const char *name =
            lade_pool_get(&recipe->names, lade_recipe_at(recipe, i)->name);
        LADE_TRY(lade_map_put(&map, name, strlen(name), (uint32_t)i, NULL,
                              &added, err));
        if (!added)
            LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                                  "model file %s: two tensors are named %s",
                                  recipe->name, name));
    }
out:
    lade_map_fini(&map);
    return rc;
}

static int expand(struct lade_recipe *recipe, lade_err *err)
{
    int rc = LADE_OK;
    uint32_t n = 0;
    const cJSON *config =
        cJSON_GetObjectItemCaseSensitive(recipe->model, "config");
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(config, "text_config");
    const cJSON *let = cJSON_GetObjectItemCaseSensitive(recipe->model, "let");
    const cJSON *tensors =
        cJSON_GetObjectItemCaseSensitive(recipe->model, "tensors");
    const cJSON *item;
    cJSON_ArrayForEach(item, tensors)
    {
        struct pattern pattern = {
            .scope = {.config = config,
                      .fallback = cJSON_IsObject(text) ? text : NULL,
                      .let = let,
                      .what = recipe->name},
            .item = item,
            .row = {.pattern = n++},
        };
        LADE_TRY(expand_pattern(recipe, &pattern, err));
    }
    if (recipe->tensors.count == 0)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "model file %s names no tensors", recipe->name);
    rc = refuse_twins(recipe, err);
out:
    return rc;
}

/* ---- The file and its overrides ---------------------------------------- */

static const struct lade_embedded *find_preset(const char *name)
{
    const struct lade_embedded *preset = lade_presets;
    while (preset->name != NULL && strcmp(preset->name, name) != 0)
        preset++;
    return preset->name == NULL ? NULL : preset;
}

static int unknown_preset(const char *name, lade_err *err)
{
    const char *words[257] = {NULL};
    for (size_t i = 0; i < 256 && lade_presets[i].name != NULL; i++)
        words[i] = lade_presets[i].name;
    const char *near = lade_nearest(name, words);
    char all[512] = "";
    for (size_t i = 0; words[i] != NULL; i++) {
        const size_t used = strlen(all);
        if (used + strlen(words[i]) + 2 < sizeof all)
            snprintf(all + used, sizeof all - used, " %s", words[i]);
    }
    return lade_err_set(err, LADE_E_USAGE,
                        "--preset %s: there is no such preset; nearest: %s; "
                        "all:%s",
                        name, near == NULL ? "none" : near, all);
}

static int open_model(struct lade_recipe *recipe,
                      const struct lade_synth_wish *wish, lade_err *err)
{
    int rc = LADE_OK;
    const struct lade_embedded *preset;
    if ((wish->preset == NULL) == (wish->model_file == NULL))
        return lade_err_set(err, LADE_E_USAGE,
                            "synth needs --preset NAME or --model FILE, and "
                            "not both");
    if (wish->preset != NULL) {
        preset = find_preset(wish->preset);
        return preset == NULL
                   ? unknown_preset(wish->preset, err)
                   : lade_json_parse(preset->text, preset->length, preset->name,
                                     LADE_E_INTERNAL, &recipe->model, err);
    }
    LADE_TRY(lade_json_read(wish->model_file, MODEL_FILE_LIMIT, &recipe->model,
                            err));
    const char *name = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(recipe->model, "name"));
    preset = name == NULL ? NULL : find_preset(name);
    if (preset != NULL)
        rc = lade_json_parse(preset->text, preset->length, preset->name,
                             LADE_E_INTERNAL, &recipe->helper, err);
out:
    return rc;
}

static int check_model(struct lade_recipe *recipe,
                       const struct lade_synth_wish *wish, lade_err *err)
{
    static const struct {
        const char *key;
        int type;
    } needed[] = {{"name", cJSON_String},
                  {"config", cJSON_Object},
                  {"let", cJSON_Object},
                  {"tensors", cJSON_Array}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        const cJSON *item =
            cJSON_GetObjectItemCaseSensitive(recipe->model, needed[i].key);
        if (item == NULL || (item->type & 0xff) != needed[i].type)
            return lade_err_set(
                err, LADE_E_CHECKPOINT,
                "%s: the key %s is absent or of the wrong type; a model file "
                "has name, config, let and tensors",
                wish->model_file == NULL ? wish->preset : wish->model_file,
                needed[i].key);
    }
    recipe->name = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(recipe->model, "name"));
    return LADE_OK;
}

static int apply_tiny(struct lade_recipe *recipe, lade_err *err)
{
    int rc = LADE_OK;
    cJSON *config = cJSON_GetObjectItemCaseSensitive(recipe->model, "config");
    const cJSON *tiny = cJSON_GetObjectItemCaseSensitive(recipe->model, "tiny");
    const cJSON *item;
    if (!cJSON_IsObject(tiny))
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "model file %s has no tiny overrides; leave out "
                            "--tiny and give sizes with --set",
                            recipe->name);
    cJSON_ArrayForEach(item, tiny)
    {
        LADE_TRY(lade_recipe_set(config, item->string,
                                 cJSON_Duplicate(item, true), "tiny",
                                 LADE_E_CHECKPOINT, err));
    }
out:
    return rc;
}

static int apply_set(struct lade_recipe *recipe, const char *text,
                     lade_err *err)
{
    char key[256];
    cJSON *value = NULL;
    lade_err inner = LADE_ERR_INIT;
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text ||
        (size_t)(equals - text) >= sizeof key)
        return lade_err_set(err, LADE_E_USAGE, "--set %s: needs KEY=VALUE",
                            text);
    memcpy(key, text, (size_t)(equals - text));
    key[equals - text] = '\0';
    if (lade_json_parse(equals + 1, strlen(equals + 1), "--set", LADE_E_USAGE,
                        &value, &inner) != LADE_OK)
        return lade_err_set(err, LADE_E_USAGE,
                            "--set %s: the value is not JSON (a text needs "
                            "quotes: %s='\"text\"')",
                            text, key);
    return lade_recipe_set(
        cJSON_GetObjectItemCaseSensitive(recipe->model, "config"), key, value,
        "--set", LADE_E_USAGE, err);
}

int lade_recipe_set(cJSON *object, const char *key, cJSON *value,
                    const char *what, int status, lade_err *err)
{
    const char *at = key, *dot;
    char part[256];
    if (value == NULL)
        return lade_err_set(err, LADE_E_MEMORY, "%s %s: out of memory", what,
                            key);
    for (;; at = dot + 1) {
        dot = strchr(at, '.');
        const size_t length = dot == NULL ? strlen(at) : (size_t)(dot - at);
        if (length == 0 || length >= sizeof part || !cJSON_IsObject(object))
            break;
        memcpy(part, at, length);
        part[length] = '\0';
        cJSON *found = cJSON_GetObjectItemCaseSensitive(object, part);
        if (dot != NULL) {
            object = found;
            continue;
        }
        if (found != NULL
                ? cJSON_ReplaceItemInObjectCaseSensitive(object, part, value)
                : cJSON_AddItemToObject(object, part, value))
            return LADE_OK;
        break;
    }
    cJSON_Delete(value);
    return lade_err_set(err, status,
                        "%s %s: what stands before \"%s\" is no object of the "
                        "model file's config",
                        what, key, at);
}

const cJSON *lade_recipe_key(const struct lade_recipe *recipe, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(recipe->model, key);
    return item != NULL || recipe->helper == NULL
               ? item
               : cJSON_GetObjectItemCaseSensitive(recipe->helper, key);
}

int lade_recipe_init(struct lade_recipe *recipe,
                     const struct lade_synth_wish *wish, struct lade_mem *mem,
                     lade_err *err)
{
    int rc = LADE_OK;
    *recipe = (struct lade_recipe){.mem = mem, .name = "?"};
    lade_vec_init(&recipe->tensors, mem, LADE_TAG_CATALOGUE,
                  sizeof(struct lade_recipe_tensor));
    LADE_TRY(lade_pool_init(&recipe->names, mem, LADE_TAG_CATALOGUE, err));
    LADE_TRY(open_model(recipe, wish, err));
    LADE_TRY(check_model(recipe, wish, err));
    if (wish->tiny)
        LADE_TRY(apply_tiny(recipe, err));
    for (int i = 0; i < wish->set_count; i++)
        LADE_TRY(apply_set(recipe, wish->sets[i], err));
    LADE_TRY(expand(recipe, err));
out:
    return rc;
}

void lade_recipe_fini(struct lade_recipe *recipe)
{
    lade_pool_fini(&recipe->names);
    lade_vec_fini(&recipe->tensors);
    cJSON_Delete(recipe->model);
    cJSON_Delete(recipe->helper);
    recipe->model = recipe->helper = NULL;
}
