/*
 * Gates 1 and 2. In: the path and the wish. Out: the shard list on every rank,
 * the catalogue once per node.
 *
 * Rank 0 alone looks for files; afterwards the first rank of every node makes
 * sure that it sees the same ones, because a node that holds an old copy would
 * load old weights without a word.
 */
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

#include <errno.h>
#include <string.h>

#include "base/host.h"
#include "base/log.h"
#include "catalogue/gather.h"
#include "load/session.h"

static int spread_shards_all(struct lade_session *s, lade_err *err)
{
    uint64_t size = s->shards ? s->shards->blob.size : 0;
    int rc = LADE_OK;

    LADE_TRY(
        lade_comm_bcast_all(s->comm, &size, sizeof size, 0, "locate", err));
    if (!s->shards)
        s->shards = lade_alloc(s->mem, LADE_TAG_CATALOGUE, size, err);
    LADE_TRY(lade_session_settle_all(s, "locate", err));
    LADE_TRY(lade_comm_bcast_all(s->comm, s->shards, size, 0, "locate", err));
    LADE_TRY(lade_blob_check(s->shards, size, LADE_BLOB_SHARDS, err));
out:
    return rc;
}

/* Is the file that this node sees the one that rank 0 saw? A copy on the
 * node's own disk may have another time, the same file may not. */
static int compare_shard(struct lade_session *s, uint32_t i, lade_err *err)
{
    const struct lade_shard *shard =
        &LADE_ITEMS(s->shards, shards, struct lade_shard)[i];
    const char *name = LADE_STRING(s->shards, pool, shard->name);
    char path[PATH_MAX], host[64];
    struct stat st;
    int rc = LADE_OK;

    LADE_TRY(lade_shard_path(s->shards, i, path, sizeof path, err));
    lade_host_name(host, sizeof host);
    if (stat(path, &st) != 0)
        return lade_err_set(err,
                            errno == ENOENT ? LADE_E_CHECKPOINT : LADE_E_IO,
                            "%s: not there for node %s (%s), but rank 0 sees "
                            "it; every node needs the same files",
                            path, host, strerror(errno));
    if ((uint64_t)st.st_size != shard->size)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%s: node %s sees %" PRIu64
                            " bytes, rank 0 %" PRIu64
                            "; the file changed or the nodes hold different "
                            "copies",
                            name, host, (uint64_t)st.st_size, shard->size);
    int64_t mtime =
        (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    bool same = (uint64_t)st.st_dev == shard->dev && st.st_ino == shard->ino;
    if (same && mtime != shard->mtime_ns)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%s: changed while starting (node %s sees another "
                            "modification time than rank 0)",
                            name, host);
out:
    return rc;
}

static void compare_shards(struct lade_session *s, lade_err *err)
{
    for (uint32_t i = 0; i < s->shards->shards.count; i++)
        if (compare_shard(s, i, err) != LADE_OK)
            return;
}

int lade_gate_locate_all(struct lade_session *s, lade_err *err)
{
    int rc = LADE_OK;

    if (s->comm->rank == 0)
        lade_locate(s->path, &s->set.locate, s->mem, &s->shards, &s->index,
                    err);
    LADE_TRY(lade_session_settle_all(s, "locate", err));
    LADE_TRY(spread_shards_all(s, err));
    if (lade_session_leads(s))
        compare_shards(s, err);
    rc = err->status;
    s->in.shards = s->shards;
out:
    return rc;
}

int lade_gate_catalogue_all(struct lade_session *s, lade_err *err)
{
    struct lade_catalogue *catalogue = NULL;
    int rc = LADE_OK;

    LADE_TRY(lade_catalogue_build_all(s->comm, s->shards, s->index, s->mem,
                                      &s->node, &catalogue, err));
    LADE_TRY(
        lade_session_hold_all(s, catalogue, &s->catalogue, "catalogue", err));
    s->in.catalogue = LADE_CATALOGUE(s);
    lade_free(s->mem, s->index);
    s->index = NULL;
    lade_log(LADE_LOG_INFO, "catalogue",
             "%" PRIu64 " tensors in %" PRIu64 " files",
             LADE_CATALOGUE(s)->rows.count, s->shards->shards.count);
out:
    return rc;
}
