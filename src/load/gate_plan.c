/*
 * Gate 5. In: all products before. Out: the plan of this rank's island, once
 * per node; the same on every node of the world in scope world.
 *
 * Islands: the world, a node, or a rank. In a simulated world this process
 * computes all of them, one after the other, and keeps only what they add up
 * to (and the first plan, for inspect).
 */
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/host.h"
#include "base/log.h"
#include "load/forecast.h"
#include "load/session.h"
#include "load/target.h"

static const char *const scope_names[] = {"auto", "world", "node", "rank"};

/* What tells whether two nodes see the very same files. */
static uint64_t files_key(struct lade_session *s, lade_err *err)
{
    uint64_t key = lade_host_boot();
    char path[PATH_MAX];
    struct stat st;

    for (uint32_t i = 0; i < s->shards->shards.count; i++) {
        if (lade_shard_path(s->shards, i, path, sizeof path, err) != LADE_OK)
            return 0;
        if (stat(path, &st) != 0)
            memset(&st, 0, sizeof st);
        uint64_t words[3] = {key, st.st_dev, st.st_ino};
        key = lade_hash64(words, sizeof words);
    }
    return key;
}

static int choose_scope_all(struct lade_session *s, lade_err *err)
{
    const char *type = LADE_STRING(s->shards, pool, s->shards->filesystem);
    uint64_t mine = 0;
    uint64_t *all = NULL;
    bool same = true;
    int rc = LADE_OK;

    if (s->set.scope != LADE_SCOPE_AUTO) {
        s->set.why.scope = "as asked for";
        return LADE_OK;
    }
    all = lade_alloc_array(s->mem, LADE_TAG_TEMP, (uint64_t)s->comm->size,
                           sizeof *all, err);
    if (lade_session_leads(s) && all)
        mine = files_key(s, err);
    LADE_TRY(lade_session_settle_all(s, "plan", err));
    LADE_TRY(
        lade_comm_allgather_all(s->comm, &mine, all, sizeof mine, "plan", err));
    for (int n = 1; n < s->node.nodes; n++)
        same = same && all[s->node.firsts[n]] == all[0];
    s->set.scope = LADE_SCOPE_WORLD;
    if (s->nodes == 1)
        s->set.why.scope = "one node";
    else if (lade_host_is_network(type))
        s->set.why.scope = "a network file system, the same for all nodes";
    else if (s->simulated)
        s->set.why.scope = "supposing that all nodes see the same files";
    else if (same)
        s->set.why.scope = "all nodes see the same device and inodes";
    else {
        s->set.scope = LADE_SCOPE_NODE;
        s->set.why.scope = "every node has files of its own";
    }
out:
    lade_free(s->mem, all);
    return rc;
}

static bool in_island(const struct lade_session *s, uint32_t index, uint32_t r)
{
    switch (s->set.plan.scope) {
    case LADE_SCOPE_WORLD:
        return true;
    case LADE_SCOPE_NODE:
        return s->node_of[r] == index;
    default:
        return r == index;
    }
}

static int island_bits(struct lade_session *s, uint32_t index, uint64_t **bits,
                       lade_err *err)
{
    uint64_t words = lade_ceil_div(s->world, 64);
    uint64_t *island =
        lade_alloc_array(s->mem, LADE_TAG_TEMP, words, sizeof *island, err);

    if (!island)
        return LADE_E_MEMORY;
    for (uint32_t r = 0; r < s->world; r++)
        if (in_island(s, index, r))
            lade_bit_set(island, r);
    *bits = island;
    return LADE_OK;
}

/* The plan of island `index`: 0 for the world, a node, a rank. */
static int build_island(struct lade_session *s, uint32_t index,
                        struct lade_plan **plan, lade_err *err)
{
    uint64_t *island = NULL;
    int rc = LADE_OK;

    LADE_TRY(island_bits(s, index, &island, err));
    LADE_TRY(lade_plan_build(&s->in, &s->set.plan, island, s->mem, plan, err));
out:
    lade_free(s->mem, island);
    return rc;
}

/* All nodes must have computed the same plan before the first message. */
static int compare_plans_all(struct lade_session *s, lade_err *err)
{
    struct lade_digest mine = LADE_PLAN(s)->digest;
    struct lade_digest *all = lade_alloc_array(
        s->mem, LADE_TAG_TEMP, (uint64_t)s->comm->size, sizeof *all, err);
    char host[64], ours[33], first[33];
    int rc = LADE_OK;

    LADE_TRY(lade_session_settle_all(s, "plan", err));
    LADE_TRY(
        lade_comm_allgather_all(s->comm, &mine, all, sizeof mine, "plan", err));
    if (all[0].high != mine.high || all[0].low != mine.low) {
        lade_host_name(host, sizeof host);
        lade_digest_text(mine, ours);
        lade_digest_text(all[0], first);
        rc = lade_err_set(err, LADE_E_CHECKPOINT,
                          "node %s has another plan (%s) than rank 0 (%s): a "
                          "file changed while starting, or the nodes run "
                          "different builds of lade",
                          host, ours, first);
    }
out:
    lade_free(s->mem, all);
    return rc;
}

static void note_island(const struct lade_plan *plan,
                        struct lade_rank_stats *head)
{
    head->heads++;
    head->plan = plan->totals;
    head->rounds = plan->rounds;
    head->digest = plan->digest;
    lade_log(LADE_LOG_DEBUG, "plan",
             "%" PRIu64 " stripes in %" PRIu32 " rounds, %" PRIu64 " bytes",
             plan->stripes.count, plan->rounds, plan->totals.read_bytes);
}

/* In a simulated world: the numbers of every rank of one island. */
static int predict_island(struct lade_session *s, uint32_t index,
                          const struct lade_plan *plan, lade_err *err)
{
    uint32_t head = UINT32_MAX;
    int rc = LADE_OK;

    LADE_TRY(lade_forecast_traffic(plan, s->mem, s->shards->shards.count,
                                   s->predicted, err));
    for (uint32_t r = 0; r < s->world; r++) {
        if (!in_island(s, index, r))
            continue;
        head = head == UINT32_MAX ? r : head;
        LADE_TRY(lade_forecast_memory(s, plan, r, &s->predicted[r], err));
    }
    if (head != UINT32_MAX)
        note_island(plan, &s->predicted[head]);
out:
    return rc;
}

static int simulate(struct lade_session *s, lade_err *err)
{
    uint32_t islands = 1;
    int rc = LADE_OK;

    s->predicted = lade_alloc_array(s->mem, LADE_TAG_TEMP, s->world,
                                    sizeof *s->predicted, err);
    if (!s->predicted)
        return LADE_E_MEMORY;
    if (s->set.plan.scope == LADE_SCOPE_NODE)
        islands = s->nodes;
    else if (s->set.plan.scope == LADE_SCOPE_RANK)
        islands = s->world;
    for (uint32_t i = 0; i < islands; i++) {
        struct lade_plan *plan = NULL;
        LADE_TRY(build_island(s, i, &plan, err));
        rc = predict_island(s, i, plan, err);
        if (i == 0)
            s->plan = (struct lade_held){.blob = plan, .owned = true};
        else
            lade_free(s->mem, plan);
        if (rc != LADE_OK)
            goto out;
    }
out:
    return rc;
}

static bool heads_island(const struct lade_session *s)
{
    if (s->set.plan.scope == LADE_SCOPE_WORLD)
        return s->rank == 0;
    return s->set.plan.scope == LADE_SCOPE_RANK || lade_session_leads(s);
}

static int build_all(struct lade_session *s, lade_err *err)
{
    struct lade_plan *plan = NULL;
    int rc = LADE_OK;

    if (s->set.plan.scope == LADE_SCOPE_RANK) {
        LADE_TRY(build_island(s, s->rank, &plan, err));
        s->plan = (struct lade_held){.blob = plan, .owned = true};
    } else {
        if (lade_session_leads(s))
            build_island(s, (uint32_t)s->node.index, &plan, err);
        LADE_TRY(lade_session_settle_all(s, "plan", err));
        LADE_TRY(lade_session_hold_all(s, plan, &s->plan, "plan", err));
    }
    if (s->set.plan.scope == LADE_SCOPE_WORLD)
        LADE_TRY(compare_plans_all(s, err));
    if (!heads_island(s))
        goto out;
    note_island(LADE_PLAN(s), &s->stats);
    LADE_TRY(lade_forecast_sum(LADE_PLAN(s), s->mem, s->shards->shards.count,
                               &s->stats.expected, err));
out:
    return rc;
}

int lade_gate_plan_all(struct lade_session *s, lade_err *err)
{
    int rc = LADE_OK;

    LADE_TRY(choose_scope_all(s, err));
    s->set.plan.scope = s->set.scope;
    lade_log(LADE_LOG_INFO, "plan", "scope %s: %s", scope_names[s->set.scope],
             s->set.why.scope);
    LADE_TRY(lade_session_direct_all(s, err));
    if (s->rank == 0)
        lade_copies_count(&s->in, &s->copies);
    if (s->simulated)
        return simulate(s, err);
    LADE_TRY(build_all(s, err));
out:
    return rc;
}
