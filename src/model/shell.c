/*
 * In: config.json, a family, a layout, the catalogue's names. Out: the shell,
 * packed. Everything that is impossible is found here, before any weight byte
 * is read.
 *
 * Mirrors vLLM: model_loader/utils.py, initialize_model: the module tree is
 * built whole before anything is loaded.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "model/family.h"

#define PARAMS_MAX (UINT64_C(1) << 24)
#define ELEMENTS_MAX (UINT64_C(1) << 58) /* of all tensors together */
#define LET_MAX 64

/* ---- parameters and parts ----------------------------------------------- */

int lade_build_name(struct lade_build *b, const char *at, const char *suffix,
                    uint32_t *name, lade_err *err)
{
    char text[LADE_NAME_MAX + 64];
    int n = snprintf(text, sizeof text, "%s.%s", at, suffix);

    if (n < 0 || n >= (int)sizeof text)
        return lade_err_set(err, LADE_E_USAGE, "%s: a name is too long",
                            b->what);
    return lade_pool_add(&b->pool, text, (size_t)n, name, err);
}

static int add_elements(struct lade_build *b, const uint64_t *shape, int ndim,
                        uint64_t times, lade_err *err)
{
    uint64_t count = 0;

    if (lade_shape_count(shape, ndim, &count) &&
        lade_mul_u64(count, times ? times : 1, &count) &&
        lade_add_u64(b->elements, count, &count) && count <= ELEMENTS_MAX) {
        b->elements = count;
        return LADE_OK;
    }
    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "config.json: its sizes make more than %" PRIu64
                        " elements (%s)",
                        ELEMENTS_MAX, b->what);
}

int lade_build_param(struct lade_build *b, const char *at, const char *suffix,
                     const struct lade_shell_param *param, lade_err *err)
{
    struct lade_shell_param copy = *param;
    int rc = LADE_OK;

    if (b->params.count >= PARAMS_MAX)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "config.json: more than %" PRIu64
                            " parameters (%s)",
                            PARAMS_MAX, b->what);
    LADE_TRY(lade_build_name(b, at, suffix, &copy.name, err));
    copy.layer = b->stage;
    copy.moe_layer = b->moe_layers ? b->moe_layers - 1 : 0;
    copy.first_part = (uint32_t)b->parts.count;
    copy.parts = 0;
    if (!lade_vec_push(&b->params, &copy, err))
        rc = LADE_E_MEMORY;
out:
    return rc;
}

int lade_build_part(struct lade_build *b, const char *disk, const char *suffix,
                    const struct lade_shell_part *part, lade_err *err)
{
    struct lade_shell_part copy = *part;
    uint64_t last = b->params.count - 1;
    int rc = LADE_OK;

    LADE_TRY(lade_build_name(b, disk, suffix, &copy.name, err));
    LADE_TRY(add_elements(b, copy.shape, copy.ndim, copy.experts, err));
    copy.param = (uint32_t)last;
    if (!lade_vec_push(&b->parts, &copy, err))
        return LADE_E_MEMORY;
    LADE_VEC_AT(&b->params, struct lade_shell_param, last)->parts++;
out:
    return rc;
}

int lade_build_alias(struct lade_build *b, const char *at, const char *to,
                     const char *suffix, lade_err *err)
{
    struct lade_shell_alias alias = {0};
    int rc = LADE_OK;

    LADE_TRY(lade_build_name(b, at, suffix, &alias.name, err));
    // the name for now; settle_names makes an index of it
    LADE_TRY(lade_build_name(b, to, suffix, &alias.param, err));
    if (!lade_vec_push(&b->aliases, &alias, err))
        rc = LADE_E_MEMORY;
out:
    return rc;
}

/* ---- names, once all are there ------------------------------------------ */

static int find_param(const struct lade_build *b, const struct lade_map *names,
                      uint32_t name, uint32_t *param, lade_err *err)
{
    const char *text = lade_pool_get(&b->pool, name);

    if (lade_map_get(names, text, strlen(text), param))
        return LADE_OK;
    return lade_err_set(err, LADE_E_USAGE,
                        "%s: tied to %s, which no module declares",
                        b->family->what, text);
}

static int put_name(struct lade_build *b, struct lade_map *names, uint32_t name,
                    uint32_t value, const char *why, lade_err *err)
{
    const char *text = lade_pool_get(&b->pool, name);
    bool added = false;
    int rc = LADE_OK;

    LADE_TRY(lade_map_put(names, text, strlen(text), value, NULL, &added, err));
    if (!added)
        return lade_err_set(err, LADE_E_USAGE, "%s: %s %s", b->family->what,
                            text, why);
out:
    return rc;
}

static int settle_params(struct lade_build *b, struct lade_map *names,
                         lade_err *err)
{
    int rc = LADE_OK;

    for (uint32_t i = 0; i < b->params.count; i++) {
        const struct lade_shell_param *p =
            LADE_VEC_AT(&b->params, struct lade_shell_param, i);
        LADE_TRY(put_name(b, names, p->name, i,
                          "is declared by two modules of one path", err));
    }
    for (uint32_t i = 0; i < b->aliases.count; i++) {
        struct lade_shell_alias *a =
            LADE_VEC_AT(&b->aliases, struct lade_shell_alias, i);
        LADE_TRY(find_param(b, names, a->param, &a->param, err));
        LADE_TRY(put_name(b, names, a->name, a->param,
                          "is declared and another name as well", err));
    }
    if (b->untied) {
        LADE_TRY(find_param(b, names, b->tie_from, &b->tie_from, err));
        LADE_TRY(find_param(b, names, b->tie_to, &b->tie_to, err));
    }
out:
    return rc;
}

/* No two parts wait for one tensor, no two parameters have one name. */
static int settle_names(struct lade_build *b, lade_err *err)
{
    struct lade_map names, disk;
    int rc = LADE_OK;

    lade_map_init(&names, b->mem);
    lade_map_init(&disk, b->mem);
    LADE_TRY(settle_params(b, &names, err));
    for (uint32_t i = 0; i < b->parts.count; i++) {
        const struct lade_shell_part *p =
            LADE_VEC_AT(&b->parts, struct lade_shell_part, i);
        LADE_TRY(put_name(b, &disk, p->name, i,
                          "on disk is wanted by two modules", err));
    }
out:
    lade_map_fini(&names);
    lade_map_fini(&disk);
    return rc;
}

/* ---- the build ---------------------------------------------------------- */

static void init(struct lade_build *b)
{
    const enum lade_tag tag = LADE_TAG_CATALOGUE;

    lade_vec_init(&b->limits, b->mem, tag, sizeof(struct lade_limit));
    lade_vec_init(&b->params, b->mem, tag, sizeof(struct lade_shell_param));
    lade_vec_init(&b->parts, b->mem, tag, sizeof(struct lade_shell_part));
    lade_vec_init(&b->aliases, b->mem, tag, sizeof(struct lade_shell_alias));
    lade_vec_init(&b->rules, b->mem, tag, sizeof(struct lade_shell_rule));
}

static void fini(struct lade_build *b)
{
    lade_vec_fini(&b->limits);
    lade_vec_fini(&b->params);
    lade_vec_fini(&b->parts);
    lade_vec_fini(&b->aliases);
    lade_vec_fini(&b->rules);
    lade_pool_fini(&b->pool);
}

static void set_scope(struct lade_build *b, const cJSON *config)
{
    const cJSON *root = b->family->root;
    bool nested =
        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "text_config"));

    b->scope = (struct lade_expr_scope){
        .config = config,
        .fallback = nested ? lade_config_text(config) : NULL,
        .let = cJSON_GetObjectItemCaseSensitive(root, "let"),
        .what = b->family->what,
    };
}

/* Definitions without arguments are evaluated once; one that fails is left for
 * the module that needs it, which gives the better error. */
static void bind_definitions(struct lade_build *b,
                             struct lade_expr_bound bound[LET_MAX])
{
    const cJSON *item = NULL;
    int count = 0;

    cJSON_ArrayForEach(item, b->scope.let)
    {
        lade_err ignored = LADE_ERR_INIT;
        int64_t value = 0;
        if (count == LET_MAX || strchr(item->string, '(') ||
            lade_expr_value(&b->scope, item, &value, &ignored) != LADE_OK)
            continue;
        bound[count] = (struct lade_expr_bound){
            item->string, value, count ? &bound[count - 1] : NULL};
        count++;
    }
    b->scope.bound = count ? &bound[count - 1] : NULL;
}

static int pack(struct lade_build *b, const char *architecture,
                const struct lade_placement *place, struct lade_shell **shell,
                lade_err *err)
{
    struct lade_shell head = {
        .blob = {.kind = LADE_BLOB_SHELL},
        .dtype = (uint32_t)b->dtype,
        .tp = b->layout->tp,
        .pp = b->layout->pp,
        .dp = b->layout->dp,
        .ep = b->experts ? place->ep : 1,
        .moe_tp = b->experts ? place->moe_tp : 1,
        .experts = b->experts,
        .physical = place->physical,
        .groups = b->groups,
        .moe_layers = b->moe_layers,
        .placement = place->kind,
        .untied_by_checkpoint = b->untied,
        .tie_from = b->tie_from,
        .tie_to = b->tie_to,
    };
    const char *quant = b->quant->name, *family = b->family->name;
    int rc = LADE_OK;

    LADE_TRY(lade_pool_add(&b->pool, architecture, strlen(architecture),
                           &head.architecture, err));
    LADE_TRY(
        lade_pool_add(&b->pool, family, strlen(family), &head.family, err));
    LADE_TRY(
        lade_pool_add(&b->pool, quant, strlen(quant), &head.quantization, err));
    const struct lade_section sections[] = {
        {&head.params, b->params.data, b->params.count, b->params.item},
        {&head.parts, b->parts.data, b->parts.count, b->parts.item},
        {&head.aliases, b->aliases.data, b->aliases.count, b->aliases.item},
        {&head.rules, b->rules.data, b->rules.count, b->rules.item},
        {&head.pool, b->pool.chars.data, b->pool.chars.count, 1},
    };
    *shell = lade_blob_pack(b->mem, &head, sizeof head, sections,
                            sizeof sections / sizeof sections[0], err);
    rc = *shell ? LADE_OK : LADE_E_MEMORY;
out:
    return rc;
}

/* Redundant experts multiply what a rank holds: no sum may overflow. */
static int check_total(const struct lade_shell *shell,
                       const struct lade_placement *place,
                       const struct lade_layout *layout, lade_err *err)
{
    const struct lade_shell_param *params =
        LADE_ITEMS(shell, params, struct lade_shell_param);
    const struct lade_coords first = lade_coords_of(layout, 0);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < shell->params.count; i++) {
        uint64_t shape[LADE_MAX_DIMS], count, bytes;
        int ndim = lade_shell_shape(shell, place, &first, i, shape);
        if (lade_shape_count(shape, ndim, &count) &&
            lade_dtype_bytes((enum lade_dtype)params[i].dtype, count, &bytes) &&
            lade_add_u64(sum, bytes, &sum) && sum <= INT64_MAX)
            continue;
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "config.json: its sizes make more than 2^63 bytes "
                            "on a rank (at %s)",
                            LADE_STRING(shell, pool, params[i].name));
    }
    return LADE_OK;
}

static int build(struct lade_build *b, const char *architecture,
                 const cJSON *config, struct lade_shell **shell, lade_err *err)
{
    struct lade_expr_bound bound[LET_MAX];
    struct lade_placement place = {0};
    struct lade_shell *made = NULL;
    int rc = LADE_OK;

    LADE_TRY(lade_pool_init(&b->pool, b->mem, LADE_TAG_CATALOGUE, err));
    set_scope(b, config);
    bind_definitions(b, bound);
    LADE_TRY(lade_build_walk(b, err));
    LADE_TRY(lade_build_fits(b, err));
    LADE_TRY(settle_names(b, err));
    LADE_TRY(lade_placement_init(&place, b->layout, b->experts,
                                 b->groups ? b->groups : 1, b->moe_layers,
                                 b->mem, err));
    LADE_TRY(pack(b, architecture, &place, &made, err));
    LADE_TRY(check_total(made, &place, b->layout, err));
    *shell = made;
    made = NULL;
out:
    lade_free(b->mem, made);
    lade_placement_fini(&place);
    return rc;
}

int lade_model_build_family(const cJSON *config,
                            const struct lade_family *family,
                            const struct lade_layout *layout,
                            struct lade_mem *mem, struct lade_shell **shell,
                            lade_err *err)
{
    struct lade_build b = {.mem = mem,
                           .family = family,
                           .layout = layout,
                           .quant = &lade_quant_none,
                           .dtype = LADE_DTYPE_BF16};

    init(&b);
    int rc = build(&b, family->name, config, shell, err);
    fini(&b);
    return rc;
}

int lade_model_build(const cJSON *config, const struct lade_model_wish *wish,
                     const struct lade_layout *layout,
                     const struct lade_catalogue *catalogue,
                     struct lade_mem *mem, struct lade_shell **shell,
                     lade_err *err)
{
    struct lade_family family = {0};
    struct lade_build b = {.mem = mem,
                           .family = &family,
                           .layout = layout,
                           .catalogue = catalogue};
    const char *architecture = NULL;
    int rc = LADE_OK;

    init(&b);
    if (!cJSON_IsObject(config))
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "config.json: not a JSON object"));
    if (layout->pp > 1)
        LADE_TRY(lade_err_set(err, LADE_E_USAGE,
                              "--pp %" PRIu32
                              ": pipeline parallel is not in this version",
                              layout->pp));
    LADE_TRY(lade_family_open(config, wish->family_file, &family, &architecture,
                              err));
    LADE_TRY(lade_quant_find(config, &b.quant, err));
    LADE_TRY(lade_config_dtype(config, wish->dtype, catalogue, &b.dtype, err));
    LADE_TRY(build(&b, architecture, config, shell, err));
out:
    fini(&b);
    lade_family_close(&family);
    return rc;
}
