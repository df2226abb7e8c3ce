/*
 * In: config.json, or the name of a family file. Out: the family that serves
 * this architecture, parsed and checked.
 *
 * Mirrors vLLM: model_executor/models/registry.py, resolve_model_cls: the first
 * of `architectures` that is known decides.
 */
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/option.h"
#include "model/family.h"

#define FAMILY_FILE_MAX (UINT64_C(1) << 20)
#define KNOWN_MAX 512

int lade_rule_kind_find(const char *name)
{
    static const char *const kinds[] = {"regex", "substring", "prefix",
                                        "suffix"};

    for (int i = 0; i < 4; i++) {
        if (strcmp(kinds[i], name) == 0)
            return i;
    }
    return -1;
}

static int take(cJSON *root, const char *what, struct lade_family *family,
                lade_err *err)
{
    const cJSON *name = NULL;
    int rc = LADE_OK;

    family->root = root;
    snprintf(family->what, sizeof family->what, "%.200s", what);
    LADE_TRY(lade_family_check(family, err));
    name = cJSON_GetObjectItemCaseSensitive(root, "family");
    family->name = name->valuestring;
    return LADE_OK;
out:
    lade_family_close(family);
    return rc;
}

int lade_family_parse(const char *text, size_t length, const char *what,
                      struct lade_family *family, lade_err *err)
{
    cJSON *root = NULL;
    int rc = LADE_OK;

    LADE_TRY(lade_json_parse(text, length, what, LADE_E_USAGE, &root, err));
    LADE_TRY(take(root, what, family, err));
out:
    return rc;
}

void lade_family_close(struct lade_family *family)
{
    cJSON_Delete(family->root);
    family->root = NULL;
}

static bool serves(const struct lade_family *family, const char *architecture)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(
        item, cJSON_GetObjectItemCaseSensitive(family->root, "architectures"))
    {
        if (strcmp(item->valuestring, architecture) == 0)
            return true;
    }
    return false;
}

/* ---- compiled in -------------------------------------------------------- */

static int open_embedded(const struct lade_embedded *data,
                         struct lade_family *family, lade_err *err)
{
    char what[LADE_NAME_MAX];

    snprintf(what, sizeof what, "family %.100s", data->name);
    return lade_family_parse(data->text, data->length, what, family, err);
}

static int find_embedded(const char *architecture, struct lade_family *family,
                         bool *found, lade_err *err)
{
    int rc = LADE_OK;

    *found = false;
    for (const struct lade_embedded *d = lade_families; d->name; d++) {
        LADE_TRY(open_embedded(d, family, err));
        *found = serves(family, architecture);
        if (*found)
            return LADE_OK;
        lade_family_close(family);
    }
out:
    return rc;
}

struct known {
    const char *names[KNOWN_MAX + 1];
    struct lade_family families[64];
    int count, opened;
};

static void list_known(struct known *known)
{
    const cJSON *item = NULL;

    for (const struct lade_embedded *d = lade_families;
         d->name && known->opened < 64; d++) {
        struct lade_family *family = &known->families[known->opened];
        if (open_embedded(d, family, NULL) != LADE_OK)
            continue;
        known->opened++;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(
                                     family->root, "architectures"))
        {
            if (known->count < KNOWN_MAX)
                known->names[known->count++] = item->valuestring;
        }
    }
}

static int unknown_architecture(const char *name, lade_err *err)
{
    struct known known = {.count = 0};
    char list[512] = "", hint[128] = "";
    size_t used = 0;

    list_known(&known);
    for (int i = 0; i < known.count && used < sizeof list; i++) {
        int n = snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                         known.names[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    const char *near = lade_nearest(name, known.names);
    if (near)
        snprintf(hint, sizeof hint, " (nearest: %s)", near);
    lade_err_set(err, LADE_E_CHECKPOINT,
                 "config.json: unknown architecture %.100s%s; known are %s; "
                 "--family FILE describes another",
                 name, hint, list);
    while (known.opened > 0)
        lade_family_close(&known.families[--known.opened]);
    return LADE_E_CHECKPOINT;
}

/* ---- choice ------------------------------------------------------------- */

static int open_file(const char *file, struct lade_family *family,
                     lade_err *err)
{
    lade_err why = LADE_ERR_INIT;
    char what[LADE_NAME_MAX];
    cJSON *root = NULL;

    snprintf(what, sizeof what, "family file %.200s", file);
    // a fault of the file is a fault of the option that names it
    int rc = lade_json_read(file, FAMILY_FILE_MAX, &root, &why);
    if (rc == LADE_E_CHECKPOINT || rc == LADE_E_IO)
        return lade_err_set(err, LADE_E_USAGE, "--family: %s", why.text);
    if (rc != LADE_OK)
        return lade_err_set(err, rc, "%s", why.text);
    return take(root, what, family, err);
}

static int refuse_file(const struct lade_family *family, const cJSON *names,
                       lade_err *err)
{
    const cJSON *first = cJSON_GetArrayItem(
        cJSON_GetObjectItemCaseSensitive(family->root, "architectures"), 0);
    const cJSON *name = cJSON_GetArrayItem(names, 0);

    return lade_err_set(
        err, LADE_E_USAGE,
        "%s is for the architecture %s, but config.json says %.100s; add that "
        "name to its list if the family fits",
        family->what, first->valuestring,
        cJSON_IsString(name) ? name->valuestring : "something else");
}

int lade_family_open(const cJSON *config, const char *file,
                     struct lade_family *family, const char **architecture,
                     lade_err *err)
{
    const cJSON *names =
        cJSON_GetObjectItemCaseSensitive(config, "architectures");
    const cJSON *item = NULL, *first = cJSON_GetArrayItem(names, 0);
    bool found = false;
    int rc = LADE_OK;

    if (file)
        LADE_TRY(open_file(file, family, err));
    cJSON_ArrayForEach(item, names)
    {
        if (!cJSON_IsString(item))
            continue;
        *architecture = item->valuestring;
        if (file)
            found = serves(family, item->valuestring);
        else
            LADE_TRY(find_embedded(item->valuestring, family, &found, err));
        if (found)
            return LADE_OK;
    }
    if (file && !first) {
        *architecture = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(
                                               family->root, "architectures"),
                                           0)
                            ->valuestring;
        return LADE_OK;
    }
    if (file)
        rc = refuse_file(family, names, err);
    else if (!cJSON_IsArray(names) || !cJSON_IsString(first))
        rc = lade_err_set(err, LADE_E_CHECKPOINT,
                          "config.json: architectures is absent or not a list "
                          "of names; it says which model this is");
    else
        rc = unknown_architecture(first->valuestring, err);
out:
    lade_family_close(family);
    return rc;
}
