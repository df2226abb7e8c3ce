/*
 * In: the names on disk and the names that the shell expects. Out: a route for
 * every row, or what is missing, unknown or does not fit (verdict.c). One hash
 * join; nothing is allocated for a row but its route.
 *
 * Mirrors vLLM: models/utils.py, AutoWeightsLoader (tied names, spare biases),
 * stricter about names that nothing expects.
 */
#include "route/route.h"

#include <stdio.h>
#include <string.h>

#include "route/hints.h"
#include "route/join.h"

const char *lade_route_reason_text(enum lade_route_reason reason)
{
    static const char *const texts[LADE_ROUTE_REASONS] = {
        "needed", "dropped by a rule of the family",
        "second name of a tied parameter", "bias that the model does not have",
        "unknown name"};

    return reason < LADE_ROUTE_REASONS ? texts[reason] : "?";
}

/* ---- what is expected ---- */

static int expect(struct lade_join *j, const char *name, uint32_t part,
                  uint32_t expert, lade_err *err)
{
    struct lade_target target = {.name = name,
                                 .part = part,
                                 .parts = 1,
                                 .expert = expert,
                                 .row = LADE_NO_ROW};
    uint32_t old;
    bool fresh;
    int rc = lade_map_put(&j->expected, name, strlen(name),
                          (uint32_t)j->targets.count, &old, &fresh, err);

    if (rc != LADE_OK)
        return rc;
    if (fresh)
        return lade_vec_push(&j->targets, &target, err) ? LADE_OK
                                                        : LADE_E_MEMORY;
    struct lade_target *first =
        LADE_VEC_AT(&j->targets, struct lade_target, old);
    if (first->expert != expert || first->part + first->parts != part)
        return lade_err_set(err, LADE_E_USAGE,
                            "family %s: two parameters want the tensor %.200s",
                            LADE_STRING(j->shell, pool, j->shell->family),
                            name);
    first->parts++; /* parts that are one tensor on disk */
    return LADE_OK;
}

/* Numbers are written in plain decimal: "experts.007" is nobody's name. */
static int expect_experts(struct lade_join *j, const char *pattern,
                          uint32_t part, lade_err *err)
{
    const char *hole = strstr(pattern, "{e}");
    int rc = LADE_OK;

    if (hole == NULL)
        return lade_err_set(err, LADE_E_USAGE, "family %s: no {e} in %.200s",
                            LADE_STRING(j->shell, pool, j->shell->family),
                            pattern);
    for (uint32_t e = 0; rc == LADE_OK && e < j->parts[part].experts; e++) {
        const char *name =
            lade_arena_printf(&j->arena, err, "%.*s%u%s", (int)(hole - pattern),
                              pattern, e, hole + 3);
        rc = name ? expect(j, name, part, e, err) : LADE_E_MEMORY;
    }
    return rc;
}

static int expect_names(struct lade_join *j, lade_err *err)
{
    const struct lade_shell_alias *aliases =
        LADE_ITEMS(j->shell, aliases, struct lade_shell_alias);
    int rc = LADE_OK;

    for (uint32_t p = 0; rc == LADE_OK && p < j->shell->parts.count; p++) {
        const char *name = LADE_STRING(j->shell, pool, j->parts[p].name);
        rc = j->parts[p].experts ? expect_experts(j, name, p, err)
                                 : expect(j, name, p, 0, err);
    }
    for (uint32_t a = 0; rc == LADE_OK && a < j->shell->aliases.count; a++) {
        const char *name = LADE_STRING(j->shell, pool, aliases[a].name);
        rc = lade_map_put(&j->aliases, name, strlen(name), a, NULL, NULL, err);
    }
    return rc;
}

/* ---- rows ---- */

/* A bias of a module that is there but has none (left by quantisers). */
static bool is_spare_bias(const struct lade_join *j, const char *name)
{
    static const char *const weights[] = {"weight", "qweight", "weight_packed"};
    char other[LADE_NAME_MAX + 16];
    size_t n = strlen(name);
    uint32_t value;

    if (n < 5 || n > LADE_NAME_MAX || strcmp(name + n - 5, ".bias") != 0)
        return false;
    memcpy(other, name, n - 4);
    for (size_t i = 0; i < sizeof(weights) / sizeof(*weights); i++) {
        size_t more = strlen(weights[i]);
        memcpy(other + n - 4, weights[i], more);
        if (lade_map_get(&j->expected, other, n - 4 + more, &value))
            return true;
    }
    return false;
}

static enum lade_route_reason why_not(struct lade_join *j, uint64_t r,
                                      const char *name)
{
    uint32_t alias;

    if (lade_map_get(&j->aliases, name, strlen(name), &alias))
        return LADE_ROUTE_TIED;
    if (is_spare_bias(j, name)) {
        lade_tally_add(&j->biases, r);
        return LADE_ROUTE_BIAS;
    }
    lade_tally_add(&j->unknown, r);
    j->quantised |= lade_hint_is_quantised(name);
    return LADE_ROUTE_UNKNOWN;
}

/* Parts that are fused on disk may belong to two parameters: each is asked. */
static void check_fit(struct lade_join *j, uint64_t r,
                      const struct lade_target *target)
{
    bool lossy = false;

    for (uint32_t p = target->part; p < target->part + target->parts; p++) {
        const struct lade_shell_part *part = &j->parts[p];
        if (lade_fits_shape(&j->rows[r], part) &&
            lade_fits_dtype(&j->rows[r], &j->params[part->param], &lossy))
            continue;
        if (j->misfits.count == 0)
            j->misfit_part = p;
        lade_tally_add(&j->misfits, r);
        return;
    }
    if (lossy)
        lade_tally_add(&j->lossy, r);
}

static int fill(struct lade_join *j, uint64_t r, struct lade_target *target,
                struct lade_route *route, lade_err *err)
{
    if (target->row != LADE_NO_ROW)
        return lade_err_set(
            err, LADE_E_PARAMETER,
            "%s: tensor %.200s is %.200s after the family's renames, but "
            "tensor %.200s of %s is that already",
            lade_join_file(j, r), lade_join_name(j, r), target->name,
            lade_join_name(j, target->row), lade_join_file(j, target->row));
    check_fit(j, r, target);
    target->row = r;
    route->part = target->part;
    route->parts = target->parts;
    route->expert = target->expert;
    j->needed++;
    return LADE_OK;
}

static int join_row(struct lade_join *j, uint64_t r, lade_err *err)
{
    struct lade_route route = {.part = UINT32_MAX};
    char name[LADE_NAME_MAX];
    uint32_t rule = 0, index;
    int rc = LADE_OK;

    if (!lade_mapper_map(&j->mapper, lade_join_name(j, r), name, sizeof(name),
                         &rule)) {
        route.reason = LADE_ROUTE_RULE;
        route.rule = (uint16_t)rule;
    } else if (!lade_map_get(&j->expected, name, strlen(name), &index)) {
        route.reason = (uint16_t)why_not(j, r, name);
    } else {
        rc = fill(j, r, LADE_VEC_AT(&j->targets, struct lade_target, index),
                  &route, err);
    }
    if (route.reason != LADE_ROUTE_NEEDED &&
        j->rows[r].dtype == LADE_DTYPE_UNKNOWN)
        lade_tally_add(&j->strange, r);
    if (rc == LADE_OK && lade_vec_push(&j->routes, &route, err) == NULL)
        rc = LADE_E_MEMORY;
    return rc;
}

/* ---- the gate ---- */

static int pack(const struct lade_join *j, struct lade_routes **routes,
                lade_err *err)
{
    struct lade_routes head = {.blob.kind = LADE_BLOB_ROUTES};
    const struct lade_section sections[] = {
        {&head.routes, j->routes.data, j->routes.count,
         sizeof(struct lade_route)},
        {&head.missing, j->missing.data, j->missing.count,
         sizeof(struct lade_missing)},
    };
    struct lade_routes *blob =
        lade_blob_pack(j->mem, &head, sizeof(head), sections, 2, err);

    if (blob == NULL)
        return LADE_E_MEMORY;
    *routes = blob;
    return LADE_OK;
}

static void init(struct lade_join *j, struct lade_mem *mem)
{
    enum lade_tag tag = LADE_TAG_TEMP;

    j->mem = mem;
    j->rows = LADE_ITEMS(j->catalogue, rows, struct lade_row);
    j->parts = LADE_ITEMS(j->shell, parts, struct lade_shell_part);
    j->params = LADE_ITEMS(j->shell, params, struct lade_shell_param);
    lade_arena_init(&j->arena, mem, tag);
    lade_map_init(&j->expected, mem);
    lade_map_init(&j->aliases, mem);
    lade_vec_init(&j->targets, mem, tag, sizeof(struct lade_target));
    lade_vec_init(&j->routes, mem, tag, sizeof(struct lade_route));
    lade_vec_init(&j->missing, mem, tag, sizeof(struct lade_missing));
}

static void fini(struct lade_join *j)
{
    lade_mapper_fini(&j->mapper);
    lade_vec_fini(&j->targets);
    lade_vec_fini(&j->routes);
    lade_vec_fini(&j->missing);
    lade_map_fini(&j->expected);
    lade_map_fini(&j->aliases);
    lade_arena_fini(&j->arena);
}

int lade_route_build(const struct lade_shards *shards,
                     const struct lade_catalogue *catalogue,
                     const struct lade_shell *shell, bool strict,
                     struct lade_mem *mem, struct lade_routes **routes,
                     lade_err *err)
{
    struct lade_join j = {
        .shards = shards, .catalogue = catalogue, .shell = shell};
    int rc;

    init(&j, mem);
    LADE_TRY(lade_mapper_init(&j.mapper, shell, mem, err));
    LADE_TRY(expect_names(&j, err));
    for (uint64_t r = 0; r < catalogue->rows.count; r++)
        LADE_TRY(join_row(&j, r, err));
    LADE_TRY(lade_route_judge(&j, strict, err));
    LADE_TRY(pack(&j, routes, err));
out:
    fini(&j);
    return rc;
}
