/*
 * Gates 6 to 8. In: the plan. Out: parameters in memory, filled; ties settled;
 * declared against written.
 */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "check/reconcile.h"
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
    if (s->set.plan.stores)
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

/* Whether reads bypass the page cache is decided by the first rank of a node:
 * it is that node's cache that counts. */
static int choose_direct_all(struct lade_session *s, lade_err *err)
{
    int64_t mine = 0;
    int64_t *all = lade_alloc_array(s->mem, LADE_TAG_TEMP,
                                    (uint64_t)s->comm->size, sizeof *all, err);
    const char *wish = s->opt.direct && *s->opt.direct ? s->opt.direct : "auto";
    bool direct = false;
    int rc = LADE_OK;

    s->set.why.direct = "nothing is read";
    if (all && lade_session_leads(s) && s->set.reader != &lade_read_null)
        lade_read_direct_wanted(s->shards, wish, &direct, &s->set.why.direct,
                                err);
    mine = direct;
    LADE_TRY(lade_session_settle_all(s, "read", err));
    LADE_TRY(
        lade_comm_allgather_all(s->comm, &mine, all, sizeof mine, "read", err));
    s->set.direct = all[s->node.first] != 0;
out:
    lade_free(s->mem, all);
    return rc;
}

/* A node's number divided over its ranks, at least one each. */
static unsigned share_of(unsigned number, int locals)
{
    unsigned mine = number / (unsigned)locals;

    return mine ? mine : 1;
}

int lade_gate_share_all(struct lade_session *s, lade_err *err)
{
    int rc = LADE_OK;

    LADE_TRY(choose_direct_all(s, err));
    struct lade_share_job job = {
        .comm = s->comm,
        .node = &s->node,
        .in = &s->in,
        .plan = LADE_PLAN(s),
        .target = &s->target,
        .reader = s->set.reader,
        .read_options = {.threads = share_of(s->set.threads, s->node.locals),
                         .depth = share_of(s->set.depth, s->node.locals),
                         .direct = s->set.direct},
        .headers_only = !s->set.plan.stores && s->set.reader == &lade_read_null,
        .mem = s->mem,
        .trace = s->trace,
        .timeout_s = s->opt.timeout_s,
        .interrupt = s->opt.interrupt,
        .progress = s->rank == 0 ? s->opt.progress : NULL,
        .progress_ctx = s->opt.progress_ctx,
    };
    if (job.read_options.depth < job.read_options.threads)
        job.read_options.depth = job.read_options.threads;
    rc = lade_share_run_all(&job, &s->stats.share, err);
    s->stats.phase_s[LADE_PHASE_READ] = (double)s->stats.share.read_ns / 1e9;
    s->stats.phase_s[LADE_PHASE_SHARE] = (double)s->stats.share.share_ns / 1e9;
out:
    return rc;
}

int lade_gate_post_all(struct lade_session *s, lade_err *err)
{
    const struct lade_shell *shell = LADE_SHELL(s);
    const struct lade_shell_param *params =
        LADE_ITEMS(shell, params, struct lade_shell_param);

    if (!shell->untied_by_checkpoint || !s->set.processed ||
        !s->set.plan.stores || shell->tie_from == shell->tie_to)
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

    LADE_TRY(lade_reconcile(&s->in, s->rank, &s->target, s->mem, &sums, err));
    s->stats.padding = sums.padding;
    s->stats.missing = sums.missing;
    lade_log(LADE_LOG_DEBUG, "check",
             "%" PRIu64 " elements written once, %" PRIu64 " of padding",
             sums.elements, sums.padding);
out:
    return rc;
}
