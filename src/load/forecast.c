/*
 * In: a plan. Out: bytes, requests and opens of every rank; memory by tag;
 * and the refusal when a node's share of it does not fit.
 */
#include "load/forecast.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/host.h"
#include "base/log.h"
#include "check/reconcile.h"
#include "check/writer.h"
#include "load/target.h"

/* ---- traffic ---- */

static void note_messages(const struct lade_plan *plan, uint32_t index,
                          struct lade_rank_stats *ranks)
{
    const struct lade_stripe *stripe =
        &LADE_ITEMS(plan, stripes, struct lade_stripe)[index];
    const uint32_t *node_of = LADE_ITEMS(plan, node_of, uint32_t);

    for (uint32_t node = 0; node < plan->nodes; node++) {
        if (node == node_of[stripe->reader])
            continue;
        uint32_t to = lade_plan_receiver(plan, index, node);
        if (to == UINT32_MAX)
            continue;
        ranks[stripe->reader].share.sent_bytes += stripe->length;
        ranks[to].share.received_bytes += stripe->length;
    }
}

int lade_forecast_traffic(const struct lade_plan *plan, struct lade_mem *mem,
                          uint64_t shards, struct lade_rank_stats *ranks,
                          lade_err *err)
{
    const struct lade_stripe *stripes =
        LADE_ITEMS(plan, stripes, struct lade_stripe);
    uint64_t bits = shards * plan->ranks;
    uint64_t *seen =
        lade_alloc_array(mem, LADE_TAG_TEMP, bits / 64 + 1, sizeof *seen, err);

    if (!seen)
        return LADE_E_MEMORY;
    for (uint32_t i = 0; i < plan->stripes.count; i++) {
        const struct lade_stripe *stripe = &stripes[i];
        struct lade_rank_stats *reader = &ranks[stripe->reader];
        uint32_t bit = (uint32_t)(stripe->reader * shards + stripe->shard);
        reader->expected.read_bytes += stripe->length;
        reader->share.read.bytes += stripe->length;
        reader->expected.requests++;
        if (!lade_bit_get(seen, bit))
            reader->expected.opens++;
        lade_bit_set(seen, bit);
        if (stripe->kind == LADE_STRIPE_SHARED && plan->nodes > 1)
            note_messages(plan, i, ranks);
    }
    lade_free(mem, seen);
    return LADE_OK;
}

int lade_forecast_sum(const struct lade_plan *plan, struct lade_mem *mem,
                      uint64_t shards, struct lade_traffic *sum, lade_err *err)
{
    struct lade_rank_stats *ranks =
        lade_alloc_array(mem, LADE_TAG_TEMP, plan->ranks, sizeof *ranks, err);
    int rc = ranks ? LADE_OK : LADE_E_MEMORY;

    LADE_TRY(rc);
    LADE_TRY(lade_forecast_traffic(plan, mem, shards, ranks, err));
    *sum = (struct lade_traffic){0};
    for (uint32_t r = 0; r < plan->ranks; r++) {
        sum->read_bytes += ranks[r].expected.read_bytes;
        sum->requests += ranks[r].expected.requests;
        sum->opens += ranks[r].expected.opens;
        sum->sent_bytes += ranks[r].share.sent_bytes;
        sum->received_bytes += ranks[r].share.received_bytes;
    }
out:
    lade_free(mem, ranks);
    return rc;
}

int lade_forecast_counts(struct lade_session *s, lade_err *err)
{
    const struct lade_plan *plan = LADE_PLAN(s);
    struct lade_share_counts *counts = &s->stats.share;
    struct lade_rank_stats *ranks = lade_alloc_array(
        s->mem, LADE_TAG_TEMP, plan->ranks, sizeof *ranks, err);
    int rc = ranks ? LADE_OK : LADE_E_MEMORY;

    LADE_TRY(rc);
    LADE_TRY(lade_forecast_traffic(plan, s->mem, s->shards->shards.count, ranks,
                                   err));
    counts->read.bytes = ranks[s->rank].expected.read_bytes;
    counts->read.requests = ranks[s->rank].expected.requests;
    counts->read.opens = ranks[s->rank].expected.opens;
out:
    lade_free(s->mem, ranks);
    return rc;
}

/* ---- memory ---- */

static uint32_t ranks_on(const struct lade_session *s, uint32_t node,
                         uint32_t *first)
{
    uint32_t count = 0;

    for (uint32_t r = 0; r < s->world; r++) {
        if (s->node_of[r] != node)
            continue;
        if (count++ == 0)
            *first = r;
    }
    return count;
}

static uint64_t parameter_bytes(const struct lade_session *s, uint32_t rank)
{
    struct lade_coords at = lade_coords_of(&s->layout, rank);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < LADE_SHELL(s)->params.count; i++)
        sum += lade_shell_bytes(LADE_SHELL(s), &s->place, &at, i);
    return sum;
}

int lade_forecast_memory(struct lade_session *s, const struct lade_plan *plan,
                         uint32_t r, struct lade_rank_stats *stats,
                         lade_err *err)
{
    uint32_t node = s->node_of[r], first = r;
    uint32_t locals = ranks_on(s, node, &first);
    uint64_t total = 0;
    int rc = LADE_OK;

    LADE_TRY(lade_target_layout(&s->in, plan, r, s->mem, NULL, &total, err));
    stats->node_index = node;
    snprintf(stats->node, sizeof stats->node, "node%u", node);
    stats->parameters = LADE_SHELL(s)->params.count;
    stats->parameter_bytes = parameter_bytes(s, r);
    if (s->set.stores)
        stats->forecast[LADE_TAG_PARAMETERS] = total;
    stats->forecast[LADE_TAG_STAGING] =
        lade_session_bounce_bytes(s, (int)locals);
    if (r == first || s->set.plan.scope == LADE_SCOPE_RANK)
        stats->forecast[LADE_TAG_STAGING] +=
            lade_share_staging_bytes(plan, node, (int)locals);
    if (r == first)
        stats->forecast[LADE_TAG_CATALOGUE] =
            s->shards->blob.size + LADE_CATALOGUE(s)->blob.size +
            LADE_SHELL(s)->blob.size + LADE_ROUTES(s)->blob.size +
            plan->blob.size;
out:
    return rc;
}

/* The forecast of this rank: the products stand already, so what they needed
 * at most is known. */
static int forecast_own(struct lade_session *s, lade_err *err)
{
    struct lade_rank_stats *stats = &s->stats;
    bool leads = lade_session_leads(s);
    uint64_t count = LADE_SHELL(s)->params.count;
    int rc = LADE_OK;

    s->at =
        lade_alloc_array(s->mem, LADE_TAG_TEMP, count + 1, sizeof *s->at, err);
    if (!s->at)
        return LADE_E_MEMORY;
    LADE_TRY(lade_target_layout(&s->in, LADE_PLAN(s), s->rank, s->mem, s->at,
                                &s->target_bytes, err));
    stats->parameters = count;
    stats->parameter_bytes = parameter_bytes(s, s->rank);
    if (s->set.stores)
        stats->forecast[LADE_TAG_PARAMETERS] = s->target_bytes;
    stats->forecast[LADE_TAG_STAGING] =
        lade_session_bounce_bytes(s, s->node.locals);
    if (leads || s->set.plan.scope == LADE_SCOPE_RANK)
        stats->forecast[LADE_TAG_STAGING] += lade_share_staging_bytes(
            LADE_PLAN(s), (uint32_t)s->node.index, s->node.locals);
    stats->forecast[LADE_TAG_CATALOGUE] =
        lade_mem_peak(s->mem, LADE_TAG_CATALOGUE);
    stats->forecast[LADE_TAG_TEMP] = lade_mem_peak(s->mem, LADE_TAG_TEMP);
out:
    return rc;
}

struct node_need {
    uint64_t parameters, staging, catalogue;
};

static int refuse(const char *node, const struct node_need *need, uint64_t have,
                  const char *what, lade_err *err)
{
    char a[24], b[24], c[24], d[24], e[24];
    uint64_t sum = need->parameters + need->staging + need->catalogue;

    return lade_err_set(
        err, LADE_E_MEMORY,
        "node %s needs %s: parameters %s, staging %s, catalogue %s; %s %s; "
        "use more nodes or ranks, or a smaller --staging",
        node, lade_size_text(sum, a, sizeof a),
        lade_size_text(need->parameters, b, sizeof b),
        lade_size_text(need->staging, c, sizeof c),
        lade_size_text(need->catalogue, d, sizeof d), what,
        lade_size_text(have, e, sizeof e));
}

/* Against --memory (all of it), and against what is free (without the
 * products, which are allocated already). */
static void compare(const struct lade_session *s, const char *node,
                    struct node_need need, lade_err *err)
{
    uint64_t sum = need.parameters + need.staging + need.catalogue;
    uint64_t room = s->simulated ? UINT64_MAX : lade_host_memory_free(NULL);

    if (s->opt.memory > 0 && sum > s->opt.memory)
        refuse(node, &need, s->opt.memory, "--memory allows", err);
    else if (sum - need.catalogue > room)
        refuse(node, &need, room, "free is", err);
}

static void compare_node(const struct lade_session *s, uint32_t node,
                         const struct lade_rank_stats *ranks, lade_err *err)
{
    struct node_need need = {0};
    const char *name = "";

    for (uint32_t r = s->world; r-- > 0;) {
        if (s->node_of[r] != node)
            continue;
        need.parameters += ranks[r].forecast[LADE_TAG_PARAMETERS];
        need.staging += ranks[r].forecast[LADE_TAG_STAGING];
        need.catalogue += ranks[r].forecast[LADE_TAG_CATALOGUE];
        name = ranks[r].node;
    }
    compare(s, name, need, err);
}

int lade_gate_forecast_all(struct lade_session *s, lade_err *err)
{
    struct lade_rank_stats *all = s->predicted;
    int rc = LADE_OK;

    if (s->simulated) {
        for (uint32_t n = 0; n < s->nodes && err->status == LADE_OK; n++)
            compare_node(s, n, all, err);
        return err->status;
    }
    if (forecast_own(s, err) == LADE_OK)
        all =
            lade_alloc_array(s->mem, LADE_TAG_TEMP, s->world, sizeof *all, err);
    LADE_TRY(lade_session_settle_all(s, "plan", err));
    LADE_TRY(lade_comm_allgather_all(s->comm, &s->stats, all, sizeof s->stats,
                                     "plan", err));
    if (lade_session_leads(s))
        compare_node(s, (uint32_t)s->node.index, all, err);
    rc = err->status;
out:
    lade_free(s->mem, all);
    return rc;
}
