/*
 * In: the checked tree of a family and a config. Out: its modules in order,
 * each handed to its kind and then to the quantisation method; aliases, ties
 * and rules of names.
 *
 * Mirrors vLLM: the constructors of the model classes; models/utils.py
 * (AutoWeightsLoader's rotary rules come before those of a model).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/family.h"

#define STAGE_LAST UINT32_MAX
#define VISITS_MAX 4000000u /* nested loops multiply */

static const cJSON *at_key(const cJSON *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

static void set_place(struct lade_build *b, const char *at)
{
    snprintf(b->what, sizeof b->what, "%s%s%s", b->family->what,
             at ? ", module " : "", at ? at : "");
    b->scope.what = b->what;
}

/* ---- order of loading ---------------------------------------------------- */

static int set_stage(struct lade_build *b, const cJSON *json, lade_err *err)
{
    const cJSON *item = at_key(json, "stage");
    int64_t layer = 0;
    int rc = LADE_OK;

    if (!item)
        return LADE_OK;
    if (strcmp(item->valuestring, "first") == 0) {
        b->stage = 0;
    } else if (strcmp(item->valuestring, "last") == 0) {
        b->stage = STAGE_LAST;
    } else {
        LADE_TRY(lade_expr_eval(&b->scope, item->valuestring + 6, &layer, err));
        if (layer < 0 || layer >= LADE_LAYERS_MAX)
            return lade_err_set(
                err, LADE_E_USAGE,
                "%s: stage %s is layer %" PRId64 ", not 0 to %d", b->what,
                item->valuestring, layer, LADE_LAYERS_MAX - 1);
        b->stage = 1 + (uint32_t)layer;
        if (b->stage > b->last_layer)
            b->last_layer = b->stage;
    }
out:
    return rc;
}

/* "last" is behind all layers, whose number is known only at the end. */
static void settle_order(struct lade_build *b)
{
    for (uint64_t i = 0; i < b->params.count; i++) {
        struct lade_shell_param *p =
            LADE_VEC_AT(&b->params, struct lade_shell_param, i);
        if (p->layer == STAGE_LAST)
            p->layer = b->last_layer + 1;
    }
}

/* ---- tied head ---------------------------------------------------------- */

/* As the engine looks: a tensor whose name ends in the head's. */
static bool on_disk(const struct lade_catalogue *catalogue, const char *name)
{
    const struct lade_row *rows;
    size_t n = strlen(name);

    if (!catalogue)
        return false;
    rows = LADE_ITEMS(catalogue, rows, struct lade_row);
    for (uint64_t i = 0; i < catalogue->rows.count; i++) {
        const char *row = LADE_STRING(catalogue, pool, rows[i].name);
        size_t length = strlen(row);
        if (length >= n && strcmp(row + length - n, name) == 0 &&
            (length == n || row[length - n - 1] == '.'))
            return true;
    }
    return false;
}

/* *alias: the module is another name of a built one and has nothing own. */
static int settle_tie(struct lade_build *b, const cJSON *json,
                      const struct lade_module *m, bool *alias, lade_err *err)
{
    char name[LADE_NAME_MAX + 8], to[LADE_NAME_MAX];
    const cJSON *tied_if = at_key(json, "tied_if");
    int64_t tied = tied_if == NULL;
    int rc = LADE_OK;

    *alias = false;
    if (!at_key(json, "tied_to"))
        return LADE_OK;
    if (tied_if)
        LADE_TRY(lade_expr_value(&b->scope, tied_if, &tied, err));
    if (!tied)
        return LADE_OK;
    LADE_TRY(lade_expr_format(&b->scope, at_key(json, "tied_to")->valuestring,
                              to, sizeof to, err));
    const cJSON *disk = at_key(json, "disk");
    snprintf(name, sizeof name, "%s.weight", m->at);
    if (disk) {
        char path[LADE_NAME_MAX];
        LADE_TRY(lade_expr_format(&b->scope, disk->valuestring, path,
                                  sizeof path, err));
        snprintf(name, sizeof name, "%s.weight", path);
    }
    if (on_disk(b->catalogue, name)) {
        b->untied = 1;
        LADE_TRY(lade_build_name(b, to, "weight", &b->tie_from, err));
        LADE_TRY(lade_build_name(b, m->at, "weight", &b->tie_to, err));
        return LADE_OK;
    }
    *alias = true;
    LADE_TRY(lade_build_alias(b, m->at, to, "weight", err));
out:
    return rc;
}

/* ---- modules ------------------------------------------------------------ */

static int declare_also(struct lade_build *b, const cJSON *json,
                        const struct lade_module *m, lade_err *err)
{
    const cJSON *item = NULL;
    char also[LADE_NAME_MAX];
    int rc = LADE_OK;

    cJSON_ArrayForEach(item, at_key(json, "also"))
    {
        LADE_TRY(lade_expr_format(&b->scope, item->valuestring, also,
                                  sizeof also, err));
        LADE_TRY(lade_build_alias(b, also, m->at, "weight", err));
        if (m->bias)
            LADE_TRY(lade_build_alias(b, also, m->at, "bias", err));
    }
out:
    return rc;
}

static int declare_module(struct lade_build *b, const cJSON *json,
                          lade_err *err)
{
    const cJSON *dtype = at_key(json, "dtype");
    struct lade_module m = {
        .dtype = dtype ? lade_dtype_find(dtype->valuestring) : b->dtype,
        .optional = cJSON_IsTrue(at_key(json, "optional")),
        .quantised = !cJSON_IsFalse(at_key(json, "quantised")),
    };
    bool alias = false;
    int rc = LADE_OK;

    LADE_TRY(lade_expr_format(&b->scope, at_key(json, "at")->valuestring, m.at,
                              sizeof m.at, err));
    set_place(b, m.at);
    LADE_TRY(settle_tie(b, json, &m, &alias, err));
    const struct lade_kind *kind =
        lade_kind_find(at_key(json, "kind")->valuestring);
    LADE_TRY(kind->shape(b, json, &m, err));
    if (alias)
        return LADE_OK;
    LADE_TRY(b->quant->declare(b, &m, err));
    LADE_TRY(declare_also(b, json, &m, err));
out:
    return rc;
}

static int walk_list(struct lade_build *b, const cJSON *list, lade_err *err);

static int read_range(struct lade_build *b, const struct lade_range *range,
                      int64_t *from, int64_t *to, lade_err *err)
{
    char text[256];
    int rc = LADE_OK;

    LADE_TRY(lade_expr_eval(&b->scope, range->from, from, err));
    LADE_TRY(lade_expr_eval(&b->scope, range->to, to, err));
    if (*from >= 0 && *to > *from && *to <= LADE_LAYERS_MAX)
        return LADE_OK;
    cJSON *item = cJSON_CreateStringReference(range->to);
    lade_build_describe(b, item, text, sizeof text);
    cJSON_Delete(item);
    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "config.json: %s is %" PRId64 ", but from %" PRId64
                        " to %d is needed (%s, for %s)",
                        text, *to, *from < 0 ? 1 : *from + 1, LADE_LAYERS_MAX,
                        b->what, range->name);
out:
    return rc;
}

static int walk_block(struct lade_build *b, const cJSON *json, lade_err *err)
{
    const struct lade_expr_bound *outer = b->scope.bound;
    struct lade_range range;
    int64_t from = 0, to = 0;
    int rc = LADE_OK;

    if (!lade_range_parse(at_key(json, "for")->valuestring, &range))
        return lade_err_set(err, LADE_E_INTERNAL, "%s: unchecked for", b->what);
    LADE_TRY(read_range(b, &range, &from, &to, err));
    for (int64_t i = from; i < to; i++) {
        struct lade_expr_bound bound = {range.name, i, outer};
        b->scope.bound = &bound;
        LADE_TRY(set_stage(b, json, err));
        LADE_TRY(walk_list(b, at_key(json, "modules"), err));
    }
out:
    b->scope.bound = outer;
    return rc;
}

static int walk_list(struct lade_build *b, const cJSON *list, lade_err *err)
{
    const cJSON *item = NULL;
    uint32_t stage = b->stage;
    int rc = LADE_OK;

    cJSON_ArrayForEach(item, list)
    {
        const cJSON *condition = at_key(item, "if");
        int64_t wanted = 1;
        b->stage = stage;
        set_place(b, NULL);
        if (++b->visits > VISITS_MAX)
            return lade_err_set(err, LADE_E_USAGE,
                                "%s: its loops visit more than %u modules",
                                b->what, VISITS_MAX);
        if (condition)
            LADE_TRY(lade_expr_value(&b->scope, condition, &wanted, err));
        if (!wanted)
            continue;
        if (at_key(item, "for")) {
            LADE_TRY(walk_block(b, item, err));
        } else {
            LADE_TRY(set_stage(b, item, err));
            LADE_TRY(declare_module(b, item, err));
        }
    }
out:
    b->stage = stage;
    return rc;
}

/* ---- rules of names ----------------------------------------------------- */

static int add_rule(struct lade_build *b, int kind, const char *from,
                    const char *to, const char *why, lade_err *err)
{
    struct lade_shell_rule rule = {.kind = (uint32_t)kind, .to = UINT32_MAX};
    int rc = LADE_OK;

    LADE_TRY(lade_pool_add(&b->pool, from, strlen(from), &rule.from, err));
    if (to)
        LADE_TRY(lade_pool_add(&b->pool, to, strlen(to), &rule.to, err));
    if (why)
        LADE_TRY(lade_pool_add(&b->pool, why, strlen(why), &rule.why, err));
    if (!lade_vec_push(&b->rules, &rule, err))
        rc = LADE_E_MEMORY;
out:
    return rc;
}

/* The engine drops them whatever the model. */
static int add_rotary_rules(struct lade_build *b, lade_err *err)
{
    static const char *const caches[] = {
        "rotary_pos_emb.inv_freq", "rotary_emb.inv_freq",
        "rotary_emb.cos_cached", "rotary_emb.sin_cached"};
    int kind = lade_rule_kind_find("substring"), rc = LADE_OK;

    for (int i = 0; i < 4; i++)
        LADE_TRY(add_rule(b, kind, caches[i], NULL,
                          "rotary tables, which the engine computes", err));
out:
    return rc;
}

/* In the engine's order of kinds; within a kind in that of the file. */
static int add_family_rules(struct lade_build *b, lade_err *err)
{
    static const char *const lists[] = {"drop", "names"};
    int rc = LADE_OK;

    for (int i = 0; i < 8; i++) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, at_key(b->family->root, lists[i % 2]))
        {
            const cJSON *to = at_key(item, "to"), *why = at_key(item, "why");
            int kind = lade_rule_kind_find(at_key(item, "kind")->valuestring);
            if (kind != i / 2)
                continue;
            LADE_TRY(add_rule(b, kind, at_key(item, "from")->valuestring,
                              to ? to->valuestring : NULL,
                              why ? why->valuestring : NULL, err));
        }
    }
out:
    return rc;
}

int lade_build_walk(struct lade_build *b, lade_err *err)
{
    int rc = LADE_OK;

    LADE_TRY(add_rotary_rules(b, err));
    LADE_TRY(add_family_rules(b, err));
    LADE_TRY(walk_list(b, at_key(b->family->root, "modules"), err));
    settle_order(b);
out:
    return rc;
}
