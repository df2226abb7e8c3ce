/*
 * In: the tensors of a recipe. Out: which file holds which, and in what order.
 *
 * tiny: greedy in listed order, a new file before 40 % of the bytes would be
 * passed; inside a file listed order. True size: the publisher's rule. greedy
 * walks the modules (embedding, layers by number: attention, MLP, norms; then
 * final norm and head) up to max_bytes; per_layer and per_layer_halves give
 * each layer its file or two; inside a file tensors lie by descending element
 * size, then by name, as the safetensors writer puts them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synth/recipe.h"

#define INDEX_NAME "model.safetensors.index.json"
#define PLAIN_FORMAT "model-%05d-of-%05d.safetensors"

struct place {
    const char *name;
    uint64_t file;
    int64_t layer, expert;
    uint32_t tensor, pattern;
    unsigned phase, group, bits;
};

/* What a module walk meets first: see the opening comment. */
static void rank_place(const struct lade_recipe *recipe, struct place *place,
                       bool layers_last)
{
    const cJSON *item = cJSON_GetArrayItem(
        cJSON_GetObjectItemCaseSensitive(recipe->model, "tensors"),
        (int)place->pattern);
    const char *pattern =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
    const char *role =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "role"));
    const char *rest = strstr(pattern, "{L}.");
    place->phase = 3;
    if (role != NULL && strcmp(role, "vision") == 0)
        place->phase = 0;
    else if (place->layer >= 0)
        place->phase = layers_last ? 4 : 2;
    else if (strstr(pattern, "embed") != NULL)
        place->phase = 1;
    if (rest == NULL)
        return;
    rest += strlen("{L}.");
    char word[64] = "";
    strncpy(word, rest,
            strcspn(rest, ".") < sizeof word - 1 ? strcspn(rest, ".")
                                                 : sizeof word - 1);
    if (strstr(word, "attn") != NULL || strstr(word, "attention") != NULL)
        place->group = strstr(word, "norm") != NULL ? 2 : 0;
    else
        place->group = strstr(word, "norm") != NULL ? 2 : 1;
}

#define BY(a, b, what)                                                         \
    do {                                                                       \
        if ((a)->what != (b)->what)                                            \
            return (a)->what < (b)->what ? -1 : 1;                             \
    } while (0)

static int compare_module(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    BY(a, b, phase);
    BY(a, b, layer);
    BY(a, b, group);
    BY(a, b, expert);
    BY(a, b, pattern);
    BY(a, b, tensor);
    return 0;
}

static int compare_file(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    BY(a, b, file);
    BY(b, a, bits); // descending
    return strcmp(a->name, b->name);
}

static void deal_greedy(const struct lade_recipe *recipe, struct place *places,
                        uint64_t limit)
{
    uint64_t file = 0, size = 0; // sums stay below 2^63: recipe.c checks
    bool any = false;
    for (uint64_t i = 0; i < recipe->tensors.count; i++) {
        const uint64_t bytes = lade_recipe_at(recipe, places[i].tensor)->bytes;
        if (any && size + bytes > limit) {
            file++;
            size = 0;
        }
        places[i].file = file;
        size += bytes;
        any = true;
    }
}

/* Layer L: files L * parts ..; a layer is cut where it passes its share. What
 * has no layer is in a file of its own after the layers, if `count` says that
 * there is one; else the embedding is in the first and the rest in the last. */
static void deal_layers(const struct lade_recipe *recipe, struct place *places,
                        uint64_t count, uint64_t parts)
{
    const uint64_t n = recipe->tensors.count;
    int64_t last = 0;
    for (uint64_t i = 0; i < n; i++)
        if (places[i].phase != 0 && places[i].layer > last)
            last = places[i].layer;
    const uint64_t files = ((uint64_t)last + 1) * parts;
    for (uint64_t i = 0; i < n;) {
        uint64_t end = i, bytes = 0, seen = 0;
        while (end < n && places[end].phase == places[i].phase &&
               places[end].layer == places[i].layer)
            bytes += lade_recipe_at(recipe, places[end++].tensor)->bytes;
        for (; i < end; i++) {
            struct place *p = &places[i];
            const uint64_t part = bytes == 0 ? 0 : seen / (bytes / parts + 1);
            seen += lade_recipe_at(recipe, p->tensor)->bytes;
            if (p->phase == 0)
                p->file = files + 1;
            else if (p->layer >= 0)
                p->file = (uint64_t)p->layer * parts + part;
            else if (count > files)
                p->file = files;
            else
                p->file = p->phase == 1 ? 0 : files - 1;
        }
    }
}

static int deal_true(const struct lade_recipe *recipe, struct place *places,
                     lade_err *err)
{
    const uint64_t n = recipe->tensors.count;
    const cJSON *files =
        cJSON_GetObjectItemCaseSensitive(recipe->model, "files");
    const cJSON *rule = cJSON_GetObjectItemCaseSensitive(files, "rule");
    const char *kind =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(rule, "kind"));
    const char *order =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(rule, "order"));
    uint64_t limit = 0, count = 0, parts = 2;
    for (uint64_t i = 0; i < n; i++)
        rank_place(recipe, &places[i],
                   order != NULL && strstr(order, "then layers") != NULL);
    qsort(places, n, sizeof *places, compare_module);
    if (kind == NULL)
        return LADE_OK; // one file
    lade_json_u64(cJSON_GetObjectItemCaseSensitive(files, "count"), &count);
    if (strcmp(kind, "greedy") == 0) {
        if (!lade_json_u64(cJSON_GetObjectItemCaseSensitive(rule, "max_bytes"),
                           &limit) ||
            limit == 0)
            return lade_err_set(err, LADE_E_CHECKPOINT,
                                "model file %s: files.rule.max_bytes is not a "
                                "positive number",
                                recipe->name);
        deal_greedy(recipe, places, limit);
    } else if (strcmp(kind, "per_layer") == 0) {
        deal_layers(recipe, places, count, 1);
    } else if (strcmp(kind, "per_layer_halves") == 0) {
        lade_json_u64(cJSON_GetObjectItemCaseSensitive(rule, "files_per_layer"),
                      &parts);
        if (parts < 1 || parts > 64)
            return lade_err_set(err, LADE_E_CHECKPOINT,
                                "model file %s: files.rule.files_per_layer "
                                "is %llu; 1 to 64 are possible",
                                recipe->name, (unsigned long long)parts);
        deal_layers(recipe, places, count, parts);
    } else {
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "model file %s: files.rule.kind %s is unknown; "
                            "greedy, per_layer and per_layer_halves are known",
                            recipe->name, kind);
    }
    return LADE_OK;
}

static int deal_tiny(const struct lade_recipe *recipe, struct place *places,
                     lade_err *err)
{
    uint64_t count = 0;
    const char *how =
        cJSON_GetStringValue(lade_recipe_key(recipe, "tiny_files"));
    lade_json_u64(
        cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(recipe->model, "files"), "count"),
        &count);
    if (how == NULL)
        how = count == 1 ? "one" : "split";
    if (strcmp(how, "one") != 0 && strcmp(how, "split") != 0)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "model file %s: tiny_files is %s; one and split "
                            "are known",
                            recipe->name, how);
    if (strcmp(how, "split") == 0)
        deal_greedy(recipe, places, recipe->bytes * 2 / 5);
    return LADE_OK;
}

/* ---- Names of files ----------------------------------------------------- */

/* "%05d" or "%d" at *format: writes value, moves both pointers on. */
static bool put_number(const char **format, uint64_t value, char *out,
                       size_t size)
{
    const char *f = *format + 1;
    int width = 0;
    if (f[0] == '0' && f[1] >= '1' && f[1] <= '9') {
        width = f[1] - '0';
        f += 2;
    }
    if (*f != 'd')
        return false;
    *format = f + 1;
    return snprintf(out, size, "%0*llu", width, (unsigned long long)value) <
           (int)size;
}

/* The format comes from a file: only two plain numbers are obeyed. */
static bool format_name(const char *format, const uint64_t numbers[2],
                        char *out, size_t size)
{
    size_t used = 0;
    int n = 0;
    while (*format != '\0') {
        if (used + 2 >= size || *format == '/' || (unsigned char)*format < 0x20)
            return false;
        if (*format != '%') {
            out[used++] = *format++;
            continue;
        }
        if (n == 2 ||
            !put_number(&format, numbers[n++], out + used, size - used))
            return false;
        used += strlen(out + used);
    }
    out[used] = '\0';
    return n == 2 && used > strlen(".safetensors") && out[0] != '.' &&
           strcmp(out + used - strlen(".safetensors"), ".safetensors") == 0;
}

/* Name of the only file: what the model file says, if that can be a name. */
static void name_single(const struct lade_recipe *recipe, bool tiny,
                        struct lade_split_file *file)
{
    const char *given = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(recipe->model, "files"),
        "name_format"));
    const size_t length = given == NULL ? 0 : strlen(given);
    const size_t end = strlen(".safetensors");
    const bool fits = !tiny && length > end && length < sizeof file->name &&
                      strcmp(given + length - end, ".safetensors") == 0 &&
                      strpbrk(given, "/% ") == NULL && given[0] != '.';
    snprintf(file->name, sizeof file->name, "%s",
             fits ? given : "model.safetensors");
}

/* Number before the name, and after "of": the publisher's, moved along when
 * the number of files is not the published one. */
static int name_files(const struct lade_recipe *recipe, bool tiny,
                      struct lade_split *split, lade_err *err)
{
    const cJSON *files =
        cJSON_GetObjectItemCaseSensitive(recipe->model, "files");
    const uint64_t n = split->files.count;
    uint64_t first = 1, count = 0, last = n;
    const char *format = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(files, "name_format"));
    if (tiny || format == NULL || strchr(format, '%') == NULL) {
        format = PLAIN_FORMAT;
    } else {
        lade_json_u64(cJSON_GetObjectItemCaseSensitive(files, "first_index"),
                      &first);
        lade_json_u64(cJSON_GetObjectItemCaseSensitive(files, "count"), &count);
        last = n + first - 1;
        if (count == n)
            lade_json_u64(
                cJSON_GetObjectItemCaseSensitive(files, "denominator_in_name"),
                &last);
    }
    for (uint64_t i = 0; i < n; i++) {
        struct lade_split_file *file =
            LADE_VEC_AT(&split->files, struct lade_split_file, i);
        const uint64_t numbers[2] = {first + i, last};
        if (!format_name(format, numbers, file->name, sizeof file->name))
            return lade_err_set(err, LADE_E_CHECKPOINT,
                                "model file %s: files.name_format %s: needs "
                                "two numbers (%%05d) and .safetensors",
                                recipe->name, format);
    }
    snprintf(split->index, sizeof split->index, "%s", INDEX_NAME);
    return LADE_OK;
}

static int collect(struct lade_split *split, const struct place *places,
                   uint64_t n, lade_err *err)
{
    struct lade_split_file *file = NULL;
    for (uint64_t i = 0; i < n; i++) {
        split->order[i] = places[i].tensor;
        if (i == 0 || places[i].file != places[i - 1].file) {
            const struct lade_split_file next = {"", i, 0};
            file = lade_vec_push(&split->files, &next, err);
            if (file == NULL)
                return LADE_E_MEMORY;
        }
        file->count++;
    }
    return LADE_OK;
}

int lade_split_init(struct lade_split *split, const struct lade_recipe *recipe,
                    bool tiny, lade_err *err)
{
    int rc = LADE_OK;
    const uint64_t n = recipe->tensors.count;
    *split = (struct lade_split){.mem = recipe->mem};
    lade_vec_init(&split->files, recipe->mem, LADE_TAG_CATALOGUE,
                  sizeof(struct lade_split_file));
    struct place *places =
        lade_alloc_array(recipe->mem, LADE_TAG_TEMP, n, sizeof *places, err);
    split->order = lade_alloc_array(recipe->mem, LADE_TAG_CATALOGUE, n,
                                    sizeof *split->order, err);
    if (places == NULL || split->order == NULL)
        LADE_TRY(LADE_E_MEMORY);
    for (uint64_t i = 0; i < n; i++) {
        const struct lade_recipe_tensor *t = lade_recipe_at(recipe, i);
        places[i] =
            (struct place){.name = lade_pool_get(&recipe->names, t->name),
                           .layer = t->layer,
                           .expert = t->expert,
                           .tensor = (uint32_t)i,
                           .pattern = t->pattern,
                           .bits = lade_dtype_bits(t->dtype)};
    }
    LADE_TRY(tiny ? deal_tiny(recipe, places, err)
                  : deal_true(recipe, places, err));
    if (!tiny)
        qsort(places, n, sizeof *places, compare_file);
    LADE_TRY(collect(split, places, n, err));
    if (split->files.count == 1)
        name_single(recipe, tiny,
                    LADE_VEC_AT(&split->files, struct lade_split_file, 0));
    else
        LADE_TRY(name_files(recipe, tiny, split, err));
out:
    lade_free(recipe->mem, places);
    return rc;
}

void lade_split_fini(struct lade_split *split)
{
    lade_free(split->mem, split->order);
    lade_vec_fini(&split->files);
    split->order = NULL;
}
