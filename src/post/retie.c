/*
 * In: two loaded parameters on every rank. Out: whether they are the same on
 * all ranks, agreed. A rank alone cannot decide: its rows may be equal where
 * its neighbour's are not, and a model with the head tied on some ranks only is
 * no model.
 *
 * Mirrors vLLM: model_loader/utils.py, process_weights_after_loading; the
 * models' tie_weights.
 */
#include "post/retie.h"

#include <string.h>

#include "base/log.h"

static bool equal(const struct lade_tie *tie)
{
    if (tie->from_bytes != tie->to_bytes || !tie->from || !tie->to)
        return false;
    return memcmp(tie->from, tie->to, tie->from_bytes) == 0;
}

int lade_retie_all(struct lade_comm *comm, const struct lade_tie *tie,
                   bool *tied, lade_err *err)
{
    struct lade_request request = {0};
    int64_t mine = equal(tie), all = 0;
    int rc = LADE_OK;

    LADE_TRY(comm->ops->allmin(comm->ctx, &mine, &all, 1, &request, err));
    LADE_TRY(lade_comm_wait(comm, &request, "post", err));
    *tied = all == 1;
    if (!*tied && comm->rank == 0)
        lade_warn("config.json ties %s to %s but the checkpoint has both, and "
                  "they differ; both are kept",
                  tie->to_name, tie->from_name);
out:
    return rc;
}
