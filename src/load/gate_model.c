/*
 * Gates 3 and 4. In: config.json, the catalogue. Out: the shell and the routes,
 * once per node, and this rank's placement of the experts.
 *
 * Rank 0 reads config.json and the text travels: one file, one reader, and all
 * ranks certainly have the same one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "load/session.h"

#define CONFIG_LIMIT (UINT64_C(16) << 20)

static int refuse(const char *path, const char *what, lade_err *err)
{
    bool absent = errno == ENOENT || errno == ENOTDIR;

    return lade_err_set(err, absent ? LADE_E_CHECKPOINT : LADE_E_IO,
                        "%s: cannot be %s: %s", path, what, strerror(errno));
}

static int read_whole(int fd, const char *path, char *text, uint64_t size,
                      lade_err *err)
{
    uint64_t got = 0;

    while (got < size) {
        ssize_t n = pread(fd, text + got, size - got, (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return refuse(path, "read", err);
        if (n == 0)
            return lade_err_set(err, LADE_E_CHECKPOINT,
                                "%s: became shorter while it was read", path);
        got += (uint64_t)n;
    }
    return LADE_OK;
}

static int read_config(struct lade_session *s, lade_err *err)
{
    const char *path = LADE_STRING(s->shards, pool, s->shards->config);
    struct stat st;
    int fd = -1, rc = LADE_OK;

    if (!*path)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%s: no config.json beside the weights; it says "
                            "what the tensors mean",
                            LADE_STRING(s->shards, pool, s->shards->dir));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse(path, "opened", err);
    if (fstat(fd, &st) != 0) {
        rc = refuse(path, "examined", err);
        goto out;
    }
    if ((uint64_t)st.st_size > CONFIG_LIMIT) {
        rc = lade_err_set(err, LADE_E_CHECKPOINT,
                          "%s: has %" PRIu64 " bytes, more than the %" PRIu64
                          " that a config.json may have",
                          path, (uint64_t)st.st_size, CONFIG_LIMIT);
        goto out;
    }
    s->config_length = (uint64_t)st.st_size;
    s->config =
        lade_alloc(s->mem, LADE_TAG_CATALOGUE, s->config_length + 1, err);
    if (!s->config) {
        rc = LADE_E_MEMORY;
        goto out;
    }
    LADE_TRY(read_whole(fd, path, s->config, s->config_length, err));
out:
    close(fd);
    return rc;
}

static int spread_config_all(struct lade_session *s, lade_err *err)
{
    int rc = LADE_OK;

    LADE_TRY(lade_comm_bcast_all(s->comm, &s->config_length,
                                 sizeof s->config_length, 0, "model", err));
    if (!s->config)
        s->config =
            lade_alloc(s->mem, LADE_TAG_CATALOGUE, s->config_length + 1, err);
    LADE_TRY(lade_session_settle_all(s, "model", err));
    LADE_TRY(lade_comm_bcast_all(s->comm, s->config, s->config_length, 0,
                                 "model", err));
out:
    return rc;
}

static int build_shell(struct lade_session *s, struct lade_shell **shell,
                       lade_err *err)
{
    cJSON *config = NULL;
    int rc = LADE_OK;

    LADE_TRY(lade_json_parse(s->config, s->config_length, "config.json",
                             LADE_E_CHECKPOINT, &config, err));
    LADE_TRY(lade_model_build(config, &s->set.model, &s->layout,
                              LADE_CATALOGUE(s), s->mem, shell, err));
out:
    cJSON_Delete(config);
    return rc;
}

int lade_gate_model_all(struct lade_session *s, lade_err *err)
{
    struct lade_shell *shell = NULL;
    int rc = LADE_OK;

    if (s->comm->rank == 0)
        read_config(s, err);
    LADE_TRY(lade_session_settle_all(s, "model", err));
    LADE_TRY(spread_config_all(s, err));
    if (lade_session_leads(s))
        build_shell(s, &shell, err);
    LADE_TRY(lade_session_settle_all(s, "model", err));
    LADE_TRY(lade_session_hold_all(s, shell, &s->shell, "model", err));
    LADE_TRY(lade_model_placement(LADE_SHELL(s), &s->layout, s->mem, &s->place,
                                  err));
    s->placed = true;
    s->in.shell = LADE_SHELL(s);
    s->in.place = &s->place;
out:
    return rc;
}

int lade_gate_route_all(struct lade_session *s, lade_err *err)
{
    struct lade_routes *routes = NULL;
    int rc = LADE_OK;

    if (lade_session_leads(s))
        lade_route_build(s->shards, LADE_CATALOGUE(s), LADE_SHELL(s),
                         s->set.strict, s->mem, &routes, err);
    LADE_TRY(lade_session_settle_all(s, "route", err));
    LADE_TRY(lade_session_hold_all(s, routes, &s->routes, "route", err));
    s->in.routes = LADE_ROUTES(s);
out:
    return rc;
}
