/*
 * Gates 6 to 8. In: the plan. Out: parameters in memory, filled; ties settled;
 * declared against written.
 */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "check/reconcile.h"
#include "load/forecast.h"
#include "load/session.h"
#include "load/target.h"
#include "post/retie.h"

static int allocate(struct lade_session *s, lade_err *err)
{
    const struct lade_device_ops *device = s->set.device;
    const char *reason = NULL;
    int rc = LADE_OK;

    LADE_TRY(device->open(&s->device_ctx, &reason, err));
    s->device_open = true;
    if (s->set.stores)
        LADE_TRY(device->alloc(s->device_ctx, s->mem, s->target_bytes, &s->base,
                               err));
    LADE_TRY(lade_target_init(&s->target, &s->in, s->rank, s->base, s->at,
                              s->mem, err));
out:
    return rc;
}

int lade_gate_target_all(struct lade_session *s, lade_err *err)
{
    return allocate(s, err);
}

int lade_gate_share_all(struct lade_session *s, lade_err *err)
{
    struct lade_share_job job = {
        .comm = s->comm,
        .node = &s->node,
        .in = &s->in,
        .plan = LADE_PLAN(s),
        .target = &s->target,
        .reader = s->set.reader,
        .read_options = lade_session_read_options(s, s->node.locals),
        .headers_only = !s->set.stores && s->set.reader == &lade_read_null,
        .mem = s->mem,
        .trace = s->trace,
        .timeout_s = s->opt.timeout_s,
        .interrupt = s->opt.interrupt,
        .progress = s->rank == 0 ? s->opt.progress : NULL,
        .progress_ctx = s->opt.progress_ctx,
    };
    int rc = lade_share_run_all(&job, &s->stats.share, err);
    s->stats.share.read.opens += s->probe_opens;
    if (rc == LADE_OK && job.headers_only)
        rc = lade_forecast_counts(s, err);
    s->stats.phase_s[LADE_PHASE_READ] = (double)s->stats.share.read_ns / 1e9;
    s->stats.phase_s[LADE_PHASE_SHARE] = (double)s->stats.share.share_ns / 1e9;
    return rc;
}

int lade_gate_post_all(struct lade_session *s, lade_err *err)
{
    const struct lade_shell *shell = LADE_SHELL(s);
    const struct lade_shell_param *params =
        LADE_ITEMS(shell, params, struct lade_shell_param);

    if (!shell->untied_by_checkpoint || !s->set.processed || !s->set.stores ||
        shell->tie_from == shell->tie_to)
        return LADE_OK;
    /* the parameter that comes first in the model is the storage that stays */
    uint32_t from = shell->tie_from, to = shell->tie_to;
    if (from > to) {
        from = shell->tie_to;
        to = shell->tie_from;
    }
    struct lade_coords at = lade_coords_of(&s->layout, s->rank);
    struct lade_tie tie = {
        .from = s->target.data[from],
        .to = s->target.data[to],
        .from_bytes = lade_shell_bytes(shell, &s->place, &at, from),
        .to_bytes = lade_shell_bytes(shell, &s->place, &at, to),
        .from_name = LADE_STRING(shell, pool, params[from].name),
        .to_name = LADE_STRING(shell, pool, params[to].name),
    };
    return lade_retie_all(s->comm, &tie, &s->tied, err);
}

int lade_gate_check_all(struct lade_session *s, lade_err *err)
{
    struct lade_reconciled sums = {0};
    int rc = LADE_OK;

    /* storage alone is measured: nothing was delivered. Headers alone are
     * counted as a load would be, and reconciled like one. */
    if (!s->set.stores && s->set.reader != &lade_read_null)
        return LADE_OK;
    LADE_TRY(lade_reconcile(&s->in, s->rank, &s->target, s->mem, &sums, err));
    s->stats.padding = sums.padding;
    s->stats.missing = sums.missing;
    lade_log(LADE_LOG_DEBUG, "check",
             "%" PRIu64 " elements written once, %" PRIu64 " of padding",
             sums.elements, sums.padding);
out:
    return rc;
}
