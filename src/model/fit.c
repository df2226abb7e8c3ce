/*
 * In: what the modules ask of the layout ("9 heads by tp"), as they are met.
 * Out: fine, or one refusal that names the first misfit and the tp sizes that
 * fit the whole model, not only this module.
 *
 * Mirrors the checks of vLLM: linear.py and parallel_state.py divide(),
 * vocab_parallel_embedding.py, fused_moe/layer.py, and the attention classes of
 * the models.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "model/family.h"

#define LIMITS_MAX 64 /* distinct ones; a model has a handful */
#define TP_MAX 1024
#define NAMED_MAX 20

static bool divides(uint64_t size, uint64_t by)
{
    return by != 0 && size % by == 0;
}

static bool satisfied(const struct lade_limit *limit, uint64_t tp, uint64_t dp)
{
    uint64_t kv = limit->b;

    switch (limit->type) {
    case LADE_LIMIT_QKV:
        return divides(limit->a, tp) &&
               (tp < kv ? divides(kv, tp) : divides(tp, kv));
    case LADE_LIMIT_MOE:
        return divides(limit->a, tp * dp);
    default:
        return divides(limit->a, tp);
    }
}

static int remember(struct lade_build *b, const struct lade_limit *limit,
                    lade_err *err)
{
    for (uint64_t i = 0; i < b->limits.count; i++) {
        const struct lade_limit *old =
            LADE_VEC_AT(&b->limits, struct lade_limit, i);
        if (old->type == limit->type && old->a == limit->a &&
            old->b == limit->b)
            return LADE_OK;
    }
    if (b->limits.count >= LIMITS_MAX)
        return LADE_OK; // the misfit itself is still found
    return lade_vec_push(&b->limits, limit, err) ? LADE_OK : LADE_E_MEMORY;
}

int lade_build_limit(struct lade_build *b, struct lade_limit limit,
                     lade_err *err, const char *what, ...)
{
    va_list args;
    int rc = LADE_OK;

    LADE_TRY(remember(b, &limit, err));
    if (*b->misfit || satisfied(&limit, b->layout->tp, b->layout->dp))
        return LADE_OK;
    va_start(args, what);
    vsnprintf(b->misfit, sizeof b->misfit, what, args);
    va_end(args);
out:
    return rc;
}

/* Index of the first `refuse` rule of the family that is true at this tp, or
 * -1. */
static int refused(const struct lade_build *b, uint32_t tp, int *index,
                   lade_err *err)
{
    const cJSON *rule = NULL;
    struct lade_expr_scope scope = b->scope;
    struct lade_expr_bound dp = {"dp", b->layout->dp, scope.bound};
    struct lade_expr_bound bound = {"tp", tp, &dp};
    int64_t is = 0;
    int i = 0, rc = LADE_OK;

    *index = -1;
    scope.bound = &bound;
    cJSON_ArrayForEach(
        rule, cJSON_GetObjectItemCaseSensitive(b->family->root, "refuse"))
    {
        LADE_TRY(lade_expr_value(
            &scope, cJSON_GetObjectItemCaseSensitive(rule, "if"), &is, err));
        if (is && *index < 0)
            *index = i;
        i++;
    }
out:
    return rc;
}

static bool fits(const struct lade_build *b, uint32_t tp)
{
    int rule = -1;

    for (uint64_t i = 0; i < b->limits.count; i++) {
        if (!satisfied(LADE_VEC_AT(&b->limits, struct lade_limit, i), tp,
                       b->layout->dp))
            return false;
    }
    return refused(b, tp, &rule, NULL) == LADE_OK && rule < 0;
}

static void list_sizes(const struct lade_build *b, char *out, size_t size)
{
    size_t used = 0;
    int named = 0;

    *out = '\0';
    for (uint32_t tp = 1; tp <= TP_MAX; tp++) {
        if (!fits(b, tp))
            continue;
        if (named++ == NAMED_MAX) {
            snprintf(out + used, size - used, " ...");
            return;
        }
        int n = snprintf(out + used, size - used, " %" PRIu32, tp);
        used += n > 0 ? (size_t)n : 0;
    }
    if (!named)
        snprintf(out, size, " none");
}

static const char *reason(const struct lade_build *b, int rule)
{
    const cJSON *rules =
        cJSON_GetObjectItemCaseSensitive(b->family->root, "refuse");

    return cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(rules, rule),
                                            "why")
        ->valuestring;
}

int lade_build_fits(struct lade_build *b, lade_err *err)
{
    struct lade_expr_scope scope = b->scope;
    struct lade_expr_bound bound[2] = {{"tp", b->layout->tp, &bound[1]},
                                       {"dp", b->layout->dp, scope.bound}};
    char sizes[256], dp[32] = "";
    int rule = -1, rc = LADE_OK;

    LADE_TRY(refused(b, b->layout->tp, &rule, err));
    if (!*b->misfit && rule < 0)
        return LADE_OK;
    if (!*b->misfit) {
        scope.bound = bound;
        LADE_TRY(lade_expr_format(&scope, reason(b, rule), b->misfit,
                                  sizeof b->misfit, err));
    }
    list_sizes(b, sizes, sizeof sizes);
    if (b->layout->dp > 1)
        snprintf(dp, sizeof dp, " with dp %" PRIu32, b->layout->dp);
    return lade_err_set(err, LADE_E_USAGE, "%s; tp sizes that fit%s:%s",
                        b->misfit, dp, sizes);
out:
    return rc;
}
