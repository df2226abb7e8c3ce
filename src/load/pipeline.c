/*
 * In: a path, options, ranks. Out: a session whose gates were passed in order.
 *
 * After each gate all ranks agree: the error of the lowest failing rank wins
 * and all leave together. Nothing is retried and nothing reaches back.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "base/host.h"
#include "base/log.h"
#include "load/session.h"
#include "load/target.h"

struct gate {
    const char *name;
    enum lade_phase phase; /* LADE_PHASES: counts in no phase of its own */
    int (*run_all)(struct lade_session *s, lade_err *err);
};

static const struct gate open_gates[] = {
    {"options", LADE_PHASES, lade_gate_settings_all},
    {"locate", LADE_PHASE_LOCATE, lade_gate_locate_all},
    {"catalogue", LADE_PHASE_CATALOGUE, lade_gate_catalogue_all},
    {"model", LADE_PHASE_MODEL, lade_gate_model_all},
    {"route", LADE_PHASE_ROUTE, lade_gate_route_all},
    {"plan", LADE_PHASE_PLAN, lade_gate_plan_all},
    {"plan", LADE_PHASE_PLAN, lade_gate_forecast_all},
};

static const struct gate load_gates[] = {
    {"memory", LADE_PHASES, lade_gate_target_all},
    {"read", LADE_PHASES, lade_gate_share_all},
    {"post", LADE_PHASE_POST, lade_gate_post_all},
    {"check", LADE_PHASE_CHECK, lade_gate_check_all},
};

int lade_session_settle_all(struct lade_session *s, const char *gate,
                            lade_err *err)
{
    bool agreed = err->status != LADE_OK && (err->rank >= 0 || s->comm->dead);

    return agreed ? err->status : lade_agree_all(s->comm, gate, err);
}

int lade_session_hold_all(struct lade_session *s, void *blob,
                          struct lade_held *held, const char *gate,
                          lade_err *err)
{
    if (s->simulated) {
        held->blob = blob;
        held->owned = true;
        return LADE_OK;
    }
    return lade_node_publish_all(s->comm, &s->node, blob, &held->blob,
                                 &held->shm, gate, err);
}

static void held_drop(struct lade_session *s, struct lade_held *held)
{
    if (held->owned || !held->shm.base)
        lade_free(s->mem, (void *)(uintptr_t)held->blob);
    else
        lade_shm_detach(&held->shm, s->mem, LADE_TAG_CATALOGUE);
    *held = (struct lade_held){.shm = {.fd = -1}};
}

static int run_gate_all(struct lade_session *s, const struct gate *gate,
                        lade_err *err)
{
    uint64_t start = lade_now_ns();

    /* a signal is looked at where all ranks meet, never before: a rank that
     * left a gate out would leave its peers alone in it */
    gate->run_all(s, err);
    if (s->opt.interrupt && *(const volatile int *)s->opt.interrupt != 0)
        lade_err_set(err, *s->opt.interrupt, "stopped by %s",
                     *s->opt.interrupt == LADE_E_INTERRUPT ? "SIGINT"
                                                           : "SIGTERM");
    int rc = lade_session_settle_all(s, gate->name, err);
    uint64_t end = lade_now_ns();
    if (gate->phase < LADE_PHASES)
        s->stats.phase_s[gate->phase] += (double)(end - start) / 1e9;
    lade_trace_span(s->trace, gate->name, start, end, 0);
    s->stats.phase_s[LADE_PHASE_TOTAL] = (double)(end - s->start_ns) / 1e9;
    return rc;
}

int lade_session_open_all(struct lade_session *s, enum lade_phase_limit last,
                          lade_err *err)
{
    int rc = LADE_OK;

    for (int i = 0; i <= (int)last; i++)
        LADE_TRY(run_gate_all(s, &open_gates[i], err));
out:
    return rc;
}

/* ---- life of a session ---- */

static int copy_text(struct lade_session *s, const char **text, lade_err *err)
{
    if (!*text)
        return LADE_OK;
    *text = lade_arena_strdup(&s->arena, *text, err);
    return *text ? LADE_OK : LADE_E_MEMORY;
}

static int copy_options(struct lade_session *s, const lade_options *options,
                        lade_err *err)
{
    const char **texts[] = {&s->opt.expert_placement,
                            &s->opt.expert_map,
                            &s->opt.format,
                            &s->opt.family,
                            &s->opt.dtype,
                            &s->opt.read,
                            &s->opt.direct,
                            &s->opt.scope,
                            &s->opt.device,
                            &s->opt.until,
                            &s->opt.command,
                            &s->opt.launcher,
                            &s->path};
    lade_options defaults = LADE_OPTIONS_INIT;
    int rc = LADE_OK;

    s->opt = defaults;
    if (options && options->size > sizeof defaults)
        return lade_err_set(err, LADE_E_USAGE,
                            "options of %zu bytes: the program was built with "
                            "a newer lade.h than this library (%zu bytes)",
                            options->size, sizeof defaults);
    if (options)
        memcpy(&s->opt, options, options->size);
    s->opt.size = sizeof defaults;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        LADE_TRY(copy_text(s, texts[i], err));
    if (s->opt.timeout_s <= 0)
        s->opt.timeout_s = 300;
out:
    return rc;
}

static void note_start(struct lade_session *s)
{
    struct timespec now;
    struct tm utc;

    s->start_ns = lade_now_ns();
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(s->started, sizeof s->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

int lade_session_new(struct lade_session **session, const char *path,
                     const lade_options *options, struct lade_comm *comm,
                     lade_err *err)
{
    struct lade_mem *mem = lade_mem_new();
    struct lade_session *s =
        mem ? lade_alloc(mem, LADE_TAG_TEMP, sizeof *s, err) : NULL;
    int rc = LADE_OK;

    if (!s) {
        lade_mem_free(mem);
        return lade_err_set(err, LADE_E_MEMORY, "no memory for a session");
    }
    s->mem = mem;
    lade_arena_init(&s->arena, mem, LADE_TAG_TEMP);
    s->path = path;
    s->nodes = 1;
    s->set.why.read = s->set.why.direct = s->set.why.scope = "";
    s->set.why.device = s->set.why.transport = "";
    note_start(s);
    if (!comm)
        comm = s->own_comm = lade_comm_self_new(err);
    if (!comm) {
        rc = LADE_E_MEMORY;
        goto out;
    }
    s->comm = comm;
    s->rank = (uint32_t)comm->rank;
    s->world = (uint32_t)comm->size;
    LADE_TRY(copy_options(s, options, err));
    comm->timeout_s = s->opt.timeout_s;
    lade_host_name(s->stats.node, sizeof s->stats.node);
    if (s->opt.trace)
        s->trace = lade_trace_new(mem, comm->rank, err);
    lade_host_raise_limits();
out:
    *session = s;
    return rc;
}

static void drop_target(struct lade_session *s)
{
    if (s->base)
        s->set.device->release(s->device_ctx, s->mem, s->base, s->target_bytes);
    if (s->device_open)
        s->set.device->close(s->device_ctx);
    lade_target_fini(&s->target, s->mem);
    lade_free(s->mem, s->at);
}

void lade_close(lade_session *session)
{
    struct lade_session *s = session;

    if (!s)
        return;
    /* after a lost rank reads may still be under way into this memory, and MPI
     * may still write: the program is about to end and nothing is taken back */
    if (s->comm && s->comm->dead)
        return;
    struct lade_mem *mem = s->mem;
    cJSON_Delete(s->report);
    drop_target(s);
    if (s->placed)
        lade_placement_fini(&s->place);
    held_drop(s, &s->plan);
    held_drop(s, &s->routes);
    held_drop(s, &s->shell);
    held_drop(s, &s->catalogue);
    lade_free(mem, s->predicted);
    lade_free(mem, s->config);
    lade_free(mem, s->index);
    lade_free(mem, s->shards);
    lade_free(mem, s->node_of);
    lade_node_fini(&s->node);
    lade_trace_free(s->trace);
    lade_comm_free(s->own_comm);
    lade_arena_fini(&s->arena);
    lade_free(mem, s);
    lade_mem_free(mem);
}

/* ---- public ---- */

int lade_open_all(lade_session **session, const char *path,
                  const lade_options *options, lade_comm *comm, lade_err *err)
{
    lade_err own = LADE_ERR_INIT;
    struct lade_session *s = NULL;

    *session = NULL;
    err = err ? err : &own;
    *err = (lade_err)LADE_ERR_INIT;
    lade_session_new(&s, path, options, comm, err);
    *session = s;
    if (!s || !s->comm)
        return err->status;
    int rc = lade_session_settle_all(s, "options", err);
    if (rc == LADE_OK)
        rc = lade_session_open_all(s, LADE_UPTO_FORECAST, err);
    s->opened = rc == LADE_OK;
    lade_session_outcome_all(s, err);
    return rc;
}

int lade_load_all(lade_session *session, lade_err *err)
{
    lade_err own = LADE_ERR_INIT;
    struct lade_session *s = session;
    int rc = LADE_OK;

    err = err ? err : &own;
    *err = (lade_err)LADE_ERR_INIT;
    if (!s || !s->opened || s->loaded)
        return lade_err_set(err, LADE_E_USAGE,
                            "lade_load_all: the session is not open, or was "
                            "loaded already");
    s->loaded = true;
    for (size_t i = 0; i < sizeof load_gates / sizeof load_gates[0]; i++)
        LADE_TRY(run_gate_all(s, &load_gates[i], err));
out:
    lade_session_outcome_all(s, err);
    return rc;
}
