/*
 * In: the settings, the files. Out: how this rank reads: its part of the node's
 * threads, and whether the page cache is passed by.
 */
#include "load/session.h"

/* A node's number divided over its ranks, at least one each. */
static unsigned share_of(unsigned number, int locals)
{
    unsigned mine = number / (unsigned)(locals > 0 ? locals : 1);

    return mine ? mine : 1;
}

struct lade_read_options lade_session_read_options(const struct lade_session *s,
                                                   int locals)
{
    struct lade_read_options options = {
        .threads = share_of(s->set.threads, locals),
        .depth = share_of(s->set.depth, locals),
        .direct = s->set.direct,
    };

    if (options.depth < options.threads)
        options.depth = options.threads;
    return options;
}

uint64_t lade_session_bounce_bytes(const struct lade_session *s, int locals)
{
    if (!s->set.direct || s->set.reader == &lade_read_null)
        return 0;
    return lade_session_read_options(s, locals).threads * LADE_READ_BOUNCE;
}

/* It is a node's own cache that counts, so its first rank decides. */
int lade_session_direct_all(struct lade_session *s, lade_err *err)
{
    int64_t mine = 0;
    int64_t *all = lade_alloc_array(s->mem, LADE_TAG_TEMP,
                                    (uint64_t)s->comm->size, sizeof *all, err);
    const char *wish = s->opt.direct && *s->opt.direct ? s->opt.direct : "auto";
    struct lade_read_choice choice = {.reason = "nothing is read"};
    int rc = LADE_OK;

    if (all && lade_session_leads(s) && s->set.reader != &lade_read_null)
        lade_read_direct_wanted(s->shards, wish, &choice, err);
    s->set.why.direct = choice.reason;
    s->probe_opens = choice.opens;
    mine = choice.direct;
    LADE_TRY(lade_session_settle_all(s, "plan", err));
    LADE_TRY(
        lade_comm_allgather_all(s->comm, &mine, all, sizeof mine, "plan", err));
    s->set.direct = all[s->node.first] != 0;
out:
    lade_free(s->mem, all);
    return rc;
}
