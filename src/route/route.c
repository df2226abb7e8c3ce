/*
 * In: the names on disk and the names that the shell expects. Out: a route for
 * every row, or what is missing, unknown or does not fit. One hash join.
 */
#include "route/route.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "route/hints.h"
#include "route/mapper.h"

/* An expected disk tensor. */
struct target {
    const char *name;
    uint32_t part, parts, expert;
    bool filled;
};

struct join {
    const struct lade_shards *shards;
    const struct lade_catalogue *catalogue;
    const struct lade_shell *shell;
    const struct lade_row *rows;
    const struct lade_shell_part *parts;
    const struct lade_shell_param *params;
    struct lade_mem *mem;
    struct lade_arena arena;
    struct lade_map expected; /* name -> target */
    struct lade_map aliases;  /* name -> alias */
    struct lade_vec targets;  /* struct target */
    struct lade_vec routes;   /* struct lade_route */
    struct lade_vec missing;  /* struct lade_missing */
    struct lade_mapper mapper;
    uint64_t unknown, biases, lossy, strange;                       /* counts */
    uint64_t first_unknown, first_bias, first_lossy, first_strange; /* rows */
    bool quantised; /* an unknown name looks like that of a scale */
};

const char *lade_route_reason_text(enum lade_route_reason reason)
{
    static const char *const texts[LADE_ROUTE_REASONS] = {
        "needed", "dropped by a rule of the family",
        "second name of a tied parameter", "bias that the model does not have",
        "unknown name"};

    return reason < LADE_ROUTE_REASONS ? texts[reason] : "?";
}

static const char *row_name(const struct join *j, uint64_t row)
{
    return LADE_STRING(j->catalogue, pool, j->rows[row].name);
}

static const char *row_file(const struct join *j, uint64_t row)
{
    return LADE_STRING(
        j->shards, pool,
        LADE_ITEMS(j->shards, shards, struct lade_shard)[j->rows[row].shard]
            .name);
}

/* ---- what is expected ---- */

static int expect(struct join *j, const char *name, uint32_t part,
                  uint32_t expert, lade_err *err)
{
    struct target target = {
        .name = name, .part = part, .parts = 1, .expert = expert};
    uint32_t old;
    bool fresh;
    int rc = lade_map_put(&j->expected, name, strlen(name),
                          (uint32_t)j->targets.count, &old, &fresh, err);

    if (rc != LADE_OK)
        return rc;
    if (fresh)
        return lade_vec_push(&j->targets, &target, err) ? LADE_OK
                                                        : LADE_E_MEMORY;
    struct target *first = LADE_VEC_AT(&j->targets, struct target, old);
    if (first->expert != expert || first->part + first->parts != part)
        return lade_err_set(err, LADE_E_USAGE,
                            "family %s: two parameters want the tensor %.200s",
                            LADE_STRING(j->shell, pool, j->shell->family),
                            name);
    first->parts++; /* parts that are one tensor on disk */
    return LADE_OK;
}

static int expect_experts(struct join *j, const char *pattern, uint32_t part,
                          lade_err *err)
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

static int expect_names(struct join *j, lade_err *err)
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

/* ---- does a row fit its part? ---- */

static bool same_shape(const struct lade_row *row,
                       const struct lade_shell_part *part)
{
    uint64_t have, want;

    if (row->ndim == part->ndim &&
        memcmp(row->shape, part->shape, part->ndim * sizeof(part->shape[0])) ==
            0)
        return true;
    return lade_shape_count(row->shape, row->ndim, &have) && have == 1 &&
           lade_shape_count(part->shape, part->ndim, &want) && want == 1;
}

static bool is_number(uint16_t dtype)
{
    return dtype == LADE_DTYPE_F16 || dtype == LADE_DTYPE_BF16 ||
           dtype == LADE_DTYPE_F32 || dtype == LADE_DTYPE_F64;
}

/* Can every value of `from` be held by `to`? */
static bool is_widening(uint16_t from, uint16_t to)
{
    if (to == LADE_DTYPE_F64)
        return true;
    return to == LADE_DTYPE_F32 && from != LADE_DTYPE_F64;
}

static int check_fit(struct join *j, uint64_t r, const struct target *target,
                     lade_err *err)
{
    const struct lade_row *row = &j->rows[r];
    const struct lade_shell_part *part = &j->parts[target->part];
    const struct lade_shell_param *param = &j->params[part->param];
    char have[160], want[160];

    if (!same_shape(row, part))
        return lade_err_set(
            err, LADE_E_PARAMETER,
            "%s: tensor %.200s has shape %s, but the config needs %s for %s",
            row_file(j, r), row_name(j, r),
            lade_shape_text(row->shape, row->ndim, have, sizeof(have)),
            lade_shape_text(part->shape, part->ndim, want, sizeof(want)),
            LADE_STRING(j->shell, pool, param->name));
    if (row->dtype == param->dtype)
        return LADE_OK;
    if (row->dtype == LADE_DTYPE_UNKNOWN || !is_number(row->dtype) ||
        !is_number(param->dtype))
        return lade_err_set(
            err, LADE_E_PARAMETER,
            "%s: tensor %.200s has dtype %.32s, which cannot become %s of %s",
            row_file(j, r), row_name(j, r),
            row->dtype == LADE_DTYPE_UNKNOWN
                ? LADE_STRING(j->catalogue, pool, row->dtype_name)
                : lade_dtype_name((enum lade_dtype)row->dtype),
            lade_dtype_name((enum lade_dtype)param->dtype),
            LADE_STRING(j->shell, pool, param->name));
    if (!is_widening(row->dtype, param->dtype) && j->lossy++ == 0)
        j->first_lossy = r;
    return LADE_OK;
}

/* ---- rows ---- */

/* A bias of a module that is there but has none (left by quantisers). */
static bool is_spare_bias(const struct join *j, const char *name)
{
    char weight[LADE_NAME_MAX];
    size_t n = strlen(name);
    uint32_t value;

    if (n < 5 || n + 3 > sizeof(weight) || strcmp(name + n - 5, ".bias") != 0)
        return false;
    snprintf(weight, sizeof(weight), "%.*s.weight", (int)(n - 5), name);
    return lade_map_get(&j->expected, weight, strlen(weight), &value);
}

static void drop(struct join *j, uint64_t r, const char *name,
                 struct lade_route *route)
{
    uint32_t alias;

    route->part = UINT32_MAX;
    route->parts = 0;
    if (lade_map_get(&j->aliases, name, strlen(name), &alias)) {
        route->reason = LADE_ROUTE_TIED;
    } else if (is_spare_bias(j, name)) {
        route->reason = LADE_ROUTE_BIAS;
        if (j->biases++ == 0)
            j->first_bias = r;
    } else {
        route->reason = LADE_ROUTE_UNKNOWN;
        if (j->unknown++ == 0)
            j->first_unknown = r;
        j->quantised |= lade_hint_is_quantised(name);
    }
    if (j->rows[r].dtype == LADE_DTYPE_UNKNOWN && j->strange++ == 0)
        j->first_strange = r;
}

static int join_row(struct join *j, uint64_t r, lade_err *err)
{
    struct lade_route route = {.part = UINT32_MAX};
    char name[LADE_NAME_MAX];
    uint32_t rule = 0, index;
    int rc = LADE_OK;

    if (!lade_mapper_map(&j->mapper, row_name(j, r), name, sizeof(name),
                         &rule)) {
        route.reason = LADE_ROUTE_RULE;
        route.rule = (uint16_t)rule;
    } else if (!lade_map_get(&j->expected, name, strlen(name), &index)) {
        drop(j, r, name, &route);
    } else {
        struct target *target = LADE_VEC_AT(&j->targets, struct target, index);
        if (target->filled)
            return lade_err_set(err, LADE_E_PARAMETER,
                                "%s: tensor %.200s is a second source of %s "
                                "after renaming",
                                row_file(j, r), row_name(j, r), target->name);
        rc = check_fit(j, r, target, err);
        target->filled = true;
        route.part = target->part;
        route.parts = target->parts;
        route.expert = target->expert;
    }
    if (rc == LADE_OK && lade_vec_push(&j->routes, &route, err) == NULL)
        rc = LADE_E_MEMORY;
    return rc;
}

/* ---- what is missing, what is unknown ---- */

static const char *missing_name(void *ctx, uint64_t i)
{
    const struct join *j = ctx;
    const struct target *t = LADE_VEC_AT(&j->targets, struct target, i);

    return t->filled ? NULL : t->name;
}

static const char *expected_name(void *ctx, uint64_t i)
{
    const struct join *j = ctx;

    return LADE_VEC_AT(&j->targets, struct target, i)->name;
}

static const char *unknown_name(void *ctx, uint64_t i)
{
    const struct join *j = ctx;
    const struct lade_route *route =
        LADE_VEC_AT(&j->routes, struct lade_route, i);

    return route->reason == LADE_ROUTE_UNKNOWN ? row_name(j, i) : NULL;
}

static int find_missing(struct join *j, const struct target **first,
                        lade_err *err)
{
    *first = NULL;
    for (uint64_t i = 0; i < j->targets.count; i++) {
        const struct target *t = LADE_VEC_AT(&j->targets, struct target, i);
        if (t->filled || j->parts[t->part].optional)
            continue;
        if (*first == NULL)
            *first = t;
        struct lade_missing missing = {t->part, t->expert};
        if (lade_vec_push(&j->missing, &missing, err) == NULL)
            return LADE_E_MEMORY;
    }
    return LADE_OK;
}

/* "tensor X (expert 3 of P) is missing; 7 in all". */
static void say_missing(struct join *j, const struct target *first, char *out,
                        size_t size)
{
    const struct lade_shell_part *part = &j->parts[first->part];
    const char *param =
        LADE_STRING(j->shell, pool, j->params[part->param].name);
    const char *twin =
        j->unknown
            ? lade_hint_nearest(first->name, j->routes.count, unknown_name, j)
            : NULL;
    char expert[48] = "";
    bool tied =
        j->shell->untied_by_checkpoint && part->param == j->shell->tie_from;

    if (part->experts)
        snprintf(expert, sizeof(expert), "expert %u of ", first->expert);
    snprintf(out, size,
             "tensor %.200s is missing, needed for %s%.200s; %llu missing in "
             "all%s%.200s%s%s",
             first->name, expert, param, (unsigned long long)j->missing.count,
             twin ? " (the files have " : "", twin ? twin : "", twin ? ")" : "",
             tied ? " (the config ties the head to it, but the files hold "
                    "only the head)"
                  : "");
}

static void say_unknown(struct join *j, char *out, size_t size)
{
    const char *name = row_name(j, j->first_unknown);
    const char *near =
        lade_hint_nearest(name, j->targets.count, missing_name, j);

    if (near == NULL)
        near = lade_hint_nearest(name, j->targets.count, expected_name, j);
    snprintf(out, size,
             "%s: tensor %.200s is unknown to this model; %llu unknown in "
             "all%s%.200s%s%s",
             row_file(j, j->first_unknown), name,
             (unsigned long long)j->unknown,
             near ? " (nearest expected name: " : "", near ? near : "",
             near ? ")" : "",
             j->quantised ? "; the files carry scales, but the config "
                            "declares no quantisation"
                          : "");
}

static int judge(struct join *j, bool strict, lade_err *err)
{
    char missing[640] = "", unknown[640] = "";
    const struct target *first;
    int rc = find_missing(j, &first, err);

    if (rc != LADE_OK)
        return rc;
    if (first != NULL)
        say_missing(j, first, missing, sizeof(missing));
    if (j->unknown > 0)
        say_unknown(j, unknown, sizeof(unknown));
    if (strict && (first != NULL || j->unknown > 0))
        return lade_err_set(err, LADE_E_PARAMETER, "%.480s%s%.480s", missing,
                            missing[0] && unknown[0] ? "; " : "", unknown);
    if (missing[0])
        lade_warn("%s", missing);
    if (unknown[0])
        lade_warn("%s", unknown);
    return LADE_OK;
}

static void warn_rest(const struct join *j)
{
    if (j->biases > 0)
        lade_warn("%llu bias tensors have no parameter in this model and are "
                  "not loaded (the first is %.200s)",
                  (unsigned long long)j->biases, row_name(j, j->first_bias));
    if (j->lossy > 0) {
        const struct lade_row *row = &j->rows[j->first_lossy];
        const struct lade_route *route =
            LADE_VEC_AT(&j->routes, struct lade_route, j->first_lossy);
        const struct lade_shell_param *param =
            &j->params[j->parts[route->part].param];
        lade_warn("%llu tensors lose precision on the way to the engine's "
                  "dtype (the first is %.200s, %s to %s)",
                  (unsigned long long)j->lossy, row_name(j, j->first_lossy),
                  lade_dtype_name((enum lade_dtype)row->dtype),
                  lade_dtype_name((enum lade_dtype)param->dtype));
    }
    if (j->strange > 0)
        lade_warn("%llu tensors of unknown dtype are not needed and were "
                  "passed over (the first is %.200s)",
                  (unsigned long long)j->strange,
                  row_name(j, j->first_strange));
}

/* ---- the gate ---- */

static int pack(const struct join *j, struct lade_routes **routes,
                lade_err *err)
{
    struct lade_routes head = {.blob.kind = LADE_BLOB_ROUTES};
    const struct lade_section sections[] = {
        {&head.routes, j->routes.data, j->routes.count,
         sizeof(struct lade_route)},
        {&head.missing, j->missing.data, j->missing.count,
         sizeof(struct lade_missing)},
    };

    *routes = lade_blob_pack(j->mem, &head, sizeof(head), sections, 2, err);
    return *routes ? LADE_OK : LADE_E_MEMORY;
}

int lade_route_build(const struct lade_shards *shards,
                     const struct lade_catalogue *catalogue,
                     const struct lade_shell *shell, bool strict,
                     struct lade_mem *mem, struct lade_routes **routes,
                     lade_err *err)
{
    struct join j = {.shards = shards,
                     .catalogue = catalogue,
                     .shell = shell,
                     .rows = LADE_ITEMS(catalogue, rows, struct lade_row),
                     .parts = LADE_ITEMS(shell, parts, struct lade_shell_part),
                     .params =
                         LADE_ITEMS(shell, params, struct lade_shell_param),
                     .mem = mem};
    int rc;

    lade_arena_init(&j.arena, mem, LADE_TAG_TEMP);
    lade_map_init(&j.expected, mem);
    lade_map_init(&j.aliases, mem);
    lade_vec_init(&j.targets, mem, LADE_TAG_TEMP, sizeof(struct target));
    lade_vec_init(&j.routes, mem, LADE_TAG_TEMP, sizeof(struct lade_route));
    lade_vec_init(&j.missing, mem, LADE_TAG_TEMP, sizeof(struct lade_missing));
    LADE_TRY(lade_mapper_init(&j.mapper, shell, mem, err));
    LADE_TRY(expect_names(&j, err));
    for (uint64_t r = 0; r < catalogue->rows.count; r++)
        LADE_TRY(join_row(&j, r, err));
    LADE_TRY(judge(&j, strict, err));
    warn_rest(&j);
    LADE_TRY(pack(&j, routes, err));
out:
    lade_mapper_fini(&j.mapper);
    lade_vec_fini(&j.targets);
    lade_vec_fini(&j.routes);
    lade_vec_fini(&j.missing);
    lade_map_fini(&j.expected);
    lade_map_fini(&j.aliases);
    lade_arena_fini(&j.arena);
    return rc;
}
