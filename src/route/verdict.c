/*
 * In: a join of names that is complete. Out: one line about all that is wrong
 * with it, or warnings: the first tensor of each sort by name and file, how
 * many there are, what was probably meant.
 *
 * Mirrors vLLM: models/utils.py, AutoWeightsLoader._load_module (unknown
 * names); default_loader.py, DefaultModelLoader.load_weights (missing ones).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "route/hints.h"
#include "route/join.h"

#define TEXT 640

/* ---- does a row fit? ---- */

bool lade_fits_shape(const struct lade_row *row,
                     const struct lade_shell_part *part)
{
    uint64_t have, want;

    if (row->ndim == part->ndim &&
        memcmp(row->shape, part->shape, part->ndim * sizeof(part->shape[0])) ==
            0)
        return true;
    /* one element is one element: [], [1] and [1,1] are equal */
    return lade_shape_count(row->shape, row->ndim, &have) && have == 1 &&
           lade_shape_count(part->shape, part->ndim, &want) && want == 1;
}

static bool is_number(uint16_t dtype)
{
    return dtype == LADE_DTYPE_F16 || dtype == LADE_DTYPE_BF16 ||
           dtype == LADE_DTYPE_F32 || dtype == LADE_DTYPE_F64;
}

bool lade_fits_dtype(const struct lade_row *row,
                     const struct lade_shell_param *param, bool *lossy)
{
    bool widens =
        param->dtype == LADE_DTYPE_F64 ||
        (param->dtype == LADE_DTYPE_F32 && row->dtype != LADE_DTYPE_F64);

    if (row->dtype == param->dtype)
        return row->dtype != LADE_DTYPE_UNKNOWN;
    if (!is_number(row->dtype) || !is_number(param->dtype))
        return false;
    if (!widens)
        *lossy = true;
    return true;
}

/* ---- texts ---- */

static const char *param_name(const struct lade_join *j, uint32_t part)
{
    return LADE_STRING(j->shell, pool, j->params[j->parts[part].param].name);
}

static const char *dtype_of_row(const struct lade_join *j, uint64_t r)
{
    const struct lade_row *row = &j->rows[r];

    return row->dtype == LADE_DTYPE_UNKNOWN
               ? LADE_STRING(j->catalogue, pool, row->dtype_name)
               : lade_dtype_name((enum lade_dtype)row->dtype);
}

/* The whole shapes, not what one rank holds. */
static void say_misfit(const struct lade_join *j, char *out, size_t size)
{
    uint64_t r = j->misfits.first;
    const struct lade_shell_part *part = &j->parts[j->misfit_part];
    const char *engine = param_name(j, j->misfit_part);
    char have[160], want[160], more[64] = "";

    if (j->misfits.count > 1)
        snprintf(more, sizeof(more), "; %" PRIu64 " tensors do not fit",
                 j->misfits.count);
    if (!lade_fits_shape(&j->rows[r], part))
        snprintf(out, size,
                 "%.128s: tensor %.128s has shape %s, but the config needs %s "
                 "for %.128s%s",
                 lade_join_file(j, r), lade_join_name(j, r),
                 lade_shape_text(j->rows[r].shape, j->rows[r].ndim, have,
                                 sizeof(have)),
                 lade_shape_text(part->shape, part->ndim, want, sizeof(want)),
                 engine, more);
    else
        snprintf(
            out, size,
            "%.128s: tensor %.128s has dtype %.32s, which cannot become %s of "
            "%.128s%s",
            lade_join_file(j, r), lade_join_name(j, r), dtype_of_row(j, r),
            lade_dtype_name((enum lade_dtype)j->params[part->param].dtype),
            engine, more);
}

static const char *missing_name(void *ctx, uint64_t i)
{
    const struct lade_join *j = ctx;
    const struct lade_target *t =
        LADE_VEC_AT(&j->targets, struct lade_target, i);

    return t->row == LADE_NO_ROW && !j->parts[t->part].optional ? t->name
                                                                : NULL;
}

static const char *expected_name(void *ctx, uint64_t i)
{
    const struct lade_join *j = ctx;

    return LADE_VEC_AT(&j->targets, struct lade_target, i)->name;
}

static const char *unknown_name(void *ctx, uint64_t i)
{
    const struct lade_join *j = ctx;
    const struct lade_route *route =
        LADE_VEC_AT(&j->routes, struct lade_route, i);

    return route->reason == LADE_ROUTE_UNKNOWN ? lade_join_name(j, i) : NULL;
}

/* The head's name on disk if `first` is the embedding that it is tied to. */
static const char *tied_head(const struct lade_join *j,
                             const struct lade_target *first)
{
    const struct lade_shell *s = j->shell;

    if (!s->untied_by_checkpoint || j->parts[first->part].param != s->tie_from)
        return NULL;
    return LADE_STRING(s, pool, j->parts[j->params[s->tie_to].first_part].name);
}

static void say_missing(struct lade_join *j, const struct lade_target *first,
                        char *out, size_t size)
{
    const char *head = tied_head(j, first), *twin = NULL;
    char expert[32] = "", hint[256] = "";

    if (j->unknown.count)
        twin = lade_hint_nearest(first->name, j->routes.count, unknown_name, j);
    if (j->parts[first->part].experts)
        snprintf(expert, sizeof(expert), "expert %u of ", first->expert);
    if (head)
        snprintf(hint, sizeof(hint),
                 " (the config ties %.128s to it, and the files hold only "
                 "that)",
                 head);
    else if (twin)
        snprintf(hint, sizeof(hint), " (the files have %.128s)", twin);
    snprintf(out, size,
             "tensor %.128s is missing, needed for %s%.128s%s; %" PRIu64
             " missing in all",
             first->name, expert, param_name(j, first->part), hint, j->absent);
}

static void say_unknown(struct lade_join *j, char *out, size_t size)
{
    const char *name = lade_join_name(j, j->unknown.first);
    const char *near =
        lade_hint_nearest(name, j->targets.count, missing_name, j);
    char hint[192] = "";

    if (near == NULL)
        near = lade_hint_nearest(name, j->targets.count, expected_name, j);
    if (near)
        snprintf(hint, sizeof(hint), " (nearest expected name: %.128s)", near);
    snprintf(out, size,
             "%.128s: tensor %.128s is unknown to this model%s; %" PRIu64
             " unknown in all",
             lade_join_file(j, j->unknown.first), name, hint, j->unknown.count);
}

/* ---- the decision ---- */

static int find_missing(struct lade_join *j, const struct lade_target **first,
                        lade_err *err)
{
    *first = NULL;
    for (uint64_t i = 0; i < j->targets.count; i++) {
        const struct lade_target *t =
            LADE_VEC_AT(&j->targets, struct lade_target, i);
        uint64_t before = j->missing.count;
        if (t->row != LADE_NO_ROW)
            continue;
        for (uint32_t p = t->part; p < t->part + t->parts; p++) {
            struct lade_missing missing = {p, t->expert};
            if (j->parts[p].optional)
                continue;
            if (lade_vec_push(&j->missing, &missing, err) == NULL)
                return LADE_E_MEMORY;
        }
        if (j->missing.count > before && j->absent++ == 0)
            *first = t;
    }
    return LADE_OK;
}

/* Files of a quantised model under a config of a plain one: everything else
 * that is wrong follows from it, so this comes first. */
static const char *say_scales(const struct lade_join *j)
{
    const char *method = LADE_STRING(j->shell, pool, j->shell->quantization);

    return j->quantised && (*method == 0 || strcmp(method, "none") == 0)
               ? "the files carry scales, but the config declares no "
                 "quantisation: "
               : "";
}

static void warn_rest(const struct lade_join *j)
{
    if (j->biases.count > 0)
        lade_warn("%" PRIu64
                  " bias tensors have no parameter in this model and are "
                  "not loaded (the first is %.200s)",
                  j->biases.count, lade_join_name(j, j->biases.first));
    if (j->lossy.count > 0) {
        uint64_t r = j->lossy.first;
        const struct lade_route *route =
            LADE_VEC_AT(&j->routes, struct lade_route, r);
        uint32_t param = j->parts[route->part].param;
        lade_warn("%" PRIu64
                  " tensors lose precision on the way to the engine's "
                  "dtype (the first is %.200s, %s to %s)",
                  j->lossy.count, lade_join_name(j, r), dtype_of_row(j, r),
                  lade_dtype_name((enum lade_dtype)j->params[param].dtype));
    }
    if (j->strange.count > 0)
        lade_warn("%" PRIu64
                  " tensors of unknown dtype are not needed and were "
                  "passed over (the first is %.200s, %.32s)",
                  j->strange.count, lade_join_name(j, j->strange.first),
                  dtype_of_row(j, j->strange.first));
}

int lade_route_judge(struct lade_join *j, bool strict, lade_err *err)
{
    char missing[TEXT] = "", unknown[TEXT] = "", misfit[TEXT] = "";
    const struct lade_target *first;
    int rc = find_missing(j, &first, err);

    if (rc != LADE_OK)
        return rc;
    if (first != NULL)
        say_missing(j, first, missing, sizeof(missing));
    if (j->unknown.count > 0)
        say_unknown(j, unknown, sizeof(unknown));
    if (j->misfits.count > 0) {
        say_misfit(j, misfit, sizeof(misfit));
        return lade_err_set(err, LADE_E_PARAMETER, "%s%s%s%s%s%s",
                            say_scales(j), misfit, missing[0] ? "; " : "",
                            missing, unknown[0] ? "; " : "", unknown);
    }
    /* files of which nothing fits are of another model, strict or not */
    if ((strict || j->needed == 0) && (missing[0] || unknown[0]))
        return lade_err_set(err, LADE_E_PARAMETER, "%s%s%s%s", say_scales(j),
                            missing, missing[0] && unknown[0] ? "; " : "",
                            unknown);
    if (missing[0])
        lade_warn("%s", missing);
    if (unknown[0])
        lade_warn("%s%s", say_scales(j), unknown);
    warn_rest(j);
    return LADE_OK;
}
