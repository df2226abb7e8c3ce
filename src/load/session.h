/*
 * What a load knows, gate by gate. The gates below fill it in this order; each
 * reads what stands above its own product and nothing else.
 *
 * lade plan runs the same gates in one process for a whole world: then
 * `simulated` is set, the communicator is alone, and `world`, `nodes` and
 * `node_of` are those of the world that is asked about.
 */
#ifndef LADE_LOAD_SESSION_H
#define LADE_LOAD_SESSION_H

#include "base/shm.h"
#include "check/report.h"
#include "comm/comm.h"
#include "device/device.h"
#include "locate/locate.h"

struct cJSON;

/* One copy of a product per node; `owned`: private memory of this rank. */
struct lade_held {
    const void *blob;
    struct lade_shm shm;
    bool owned;
};

/* The options, read: words as numbers, defaults filled in. */
struct lade_settings {
    struct lade_locate_wish locate;
    struct lade_model_wish model;
    enum lade_scope scope;
    bool strict, processed;
    unsigned threads, depth; /* of a node */
    struct lade_plan_options plan;
    const struct lade_device_ops *device;
    const struct lade_read_ops *reader;
    bool stores; /* the device keeps what arrives */
    bool direct;
    struct {
        const char *read, *direct, *scope, *device, *transport;
    } why;
};

struct lade_session {
    struct lade_mem *mem;
    struct lade_arena arena; /* texts of the options */
    struct lade_comm *comm, *own_comm;
    lade_options opt; /* every text is a copy in the arena */
    const char *path;
    bool simulated;
    char started[32];
    uint64_t start_ns;
    struct lade_trace *trace;

    struct lade_settings set;
    struct lade_node node;
    uint32_t world, nodes, rank;
    uint32_t *node_of; /* [world] */
    struct lade_layout layout;

    struct lade_shards *shards;
    struct lade_index *index; /* rank 0, until the catalogue stands */
    struct lade_held catalogue, shell, routes, plan;
    char *config; /* text of config.json, all ranks */
    uint64_t config_length;
    struct lade_placement place;
    bool placed;
    struct lade_plan_input in;

    uint64_t *at;          /* [params] bytes from the base to the parameter */
    uint64_t target_bytes; /* of this rank, page-aligned pieces */
    void *device_ctx;
    bool device_open;
    void *base;
    struct lade_target target;
    uint64_t probe_opens; /* of weight files, to see whether they are cached */
    bool opened, loaded;
    bool tied; /* the checkpoint's own head equals the embedding */

    struct lade_rank_stats stats;
    struct lade_rank_stats *predicted; /* simulated: [world] */
    struct lade_copies copies;
    struct cJSON *report; /* rank 0 */
};

#define LADE_CATALOGUE(s) ((const struct lade_catalogue *)(s)->catalogue.blob)
#define LADE_SHELL(s) ((const struct lade_shell *)(s)->shell.blob)
#define LADE_ROUTES(s) ((const struct lade_routes *)(s)->routes.blob)
#define LADE_PLAN(s) ((const struct lade_plan *)(s)->plan.blob)

/* First rank of its node: it builds the products for its neighbours. */
static inline bool lade_session_leads(const struct lade_session *s)
{
    return s->node.local == 0;
}

/* The agreement after a gate: not made again when *err is agreed already. */
int lade_session_settle_all(struct lade_session *s, const char *gate,
                            lade_err *err);
/* Passes a leader's blob to its node; frees the private copy. */
int lade_session_hold_all(struct lade_session *s, void *blob,
                          struct lade_held *held, const char *gate,
                          lade_err *err);

/* A session without products; comm may be NULL. */
int lade_session_new(struct lade_session **session, const char *path,
                     const lade_options *options, struct lade_comm *comm,
                     lade_err *err);

/* The gates. Each returns this rank's status; the runner agrees. */
int lade_gate_settings_all(struct lade_session *s, lade_err *err);
int lade_gate_locate_all(struct lade_session *s, lade_err *err);
int lade_gate_catalogue_all(struct lade_session *s, lade_err *err);
int lade_gate_model_all(struct lade_session *s, lade_err *err);
int lade_gate_route_all(struct lade_session *s, lade_err *err);
int lade_gate_plan_all(struct lade_session *s, lade_err *err);
int lade_gate_forecast_all(struct lade_session *s, lade_err *err);
int lade_gate_target_all(struct lade_session *s, lade_err *err);
int lade_gate_share_all(struct lade_session *s, lade_err *err);
int lade_gate_post_all(struct lade_session *s, lade_err *err);
int lade_gate_check_all(struct lade_session *s, lade_err *err);

/* How a rank reads that shares its node with `locals` ranks in all. */
struct lade_read_options lade_session_read_options(const struct lade_session *s,
                                                   int locals);
/* Staging memory of its reading threads. */
uint64_t lade_session_bounce_bytes(const struct lade_session *s, int locals);
/* Decides s->set.direct, node by node. */
int lade_session_direct_all(struct lade_session *s, lade_err *err);

/* Runs the gates from locate up to and with `last`; without communicator this
 * is what inspect and plan do. */
enum lade_phase_limit {
    LADE_UPTO_LOCATE = 1,
    LADE_UPTO_CATALOGUE,
    LADE_UPTO_MODEL,
    LADE_UPTO_ROUTE,
    LADE_UPTO_PLAN,
    LADE_UPTO_FORECAST,
};
int lade_session_open_all(struct lade_session *s, enum lade_phase_limit last,
                          lade_err *err);

/* Gathers the statistics and makes the report on rank 0; *failure is what the
 * load ended with. Does nothing but the local part when the comm is dead. */
void lade_session_outcome_all(struct lade_session *s, const lade_err *failure);
/* A session of a simulated world of `ranks` ranks (0: the product of the
 * sizes); its gates are run by lade_session_open_all. Set also after a failure,
 * as by lade_open_all. */
int lade_session_plan(struct lade_session **session, const char *path,
                      const lade_options *options, uint32_t ranks,
                      lade_err *err);

#endif
