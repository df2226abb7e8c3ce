/*
 * In: a checkpoint, options, a number of ranks. Out: the report of what a load
 * there would do, computed by this process alone from headers.
 */
#include <inttypes.h>

#include "load/session.h"

#define MOST_RANKS UINT64_C(65536)

/* The world: as asked for, or the product of the sizes. */
static int world_of(struct lade_session *s, uint32_t ranks, lade_err *err)
{
    uint64_t world = ranks;
    const uint32_t sizes[] = {s->opt.tp, s->opt.pp, s->opt.dp};

    if (world == 0) {
        world = 1;
        for (int i = 0; i < 3 && world <= MOST_RANKS; i++)
            world *= sizes[i] ? sizes[i] : 1;
    }
    if (world > MOST_RANKS)
        return lade_err_set(err, LADE_E_USAGE,
                            "a world of %" PRIu64 " ranks: at most %" PRIu64
                            " can be planned",
                            world, MOST_RANKS);
    s->world = (uint32_t)world;
    s->simulated = true;
    return LADE_OK;
}

int lade_session_plan(struct lade_session **session, const char *path,
                      const lade_options *options, uint32_t ranks,
                      lade_err *err)
{
    struct lade_session *s = NULL;
    int rc = LADE_OK;

    *session = NULL;
    rc = lade_session_new(&s, path, options, NULL, err);
    if (rc == LADE_OK)
        rc = world_of(s, ranks, err);
    *session = s;
    return rc;
}

int lade_plan_json(const char *path, const lade_options *options,
                   uint32_t ranks, char **text, lade_err *err)
{
    lade_err own = LADE_ERR_INIT;
    struct lade_session *s = NULL;

    *text = NULL;
    err = err ? err : &own;
    *err = (lade_err)LADE_ERR_INIT;
    int rc = lade_session_plan(&s, path, options, ranks, err);
    if (rc == LADE_OK) {
        rc = lade_session_open_all(s, LADE_UPTO_FORECAST, err);
        lade_session_outcome_all(s, err);
    }
    if (rc == LADE_OK)
        rc = lade_report_json(s, text, err);
    lade_close(s);
    return rc;
}
