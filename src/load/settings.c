/*
 * In: the options as the caller gave them. Out: numbers, defaults, the layout,
 * and the chosen back-ends. Everything that is wrong with the options alone is
 * said here, before any file is touched.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/option.h"
#include "load/session.h"

/* Index of `value` in `words`; NULL and "" are the first word. */
static int pick(const char *option, const char *value, const char *const *words,
                int *index, lade_err *err)
{
    if (!value || !*value) {
        *index = 0;
        return LADE_OK;
    }
    for (int i = 0; words[i]; i++)
        if (strcmp(value, words[i]) == 0) {
            *index = i;
            return LADE_OK;
        }
    const char *near = lade_nearest(value, words);
    return lade_err_set(err, LADE_E_USAGE, "--%s %s: no such value%s%s%s",
                        option, value, near ? "; did you mean " : "",
                        near ? near : "", near ? "?" : "");
}

static int set_words(struct lade_session *s, lade_err *err)
{
    static const char *const dtypes[] = {"auto", "bf16", "f16", "f32", NULL};
    static const char *const scopes[] = {"auto", "world", "node", "rank", NULL};
    static const char *const untils[] = {"processed", "loaded", NULL};
    static const char *const directs[] = {"auto", "on", "off", NULL};
    static const char *const places[] = {"linear", "round_robin", NULL};
    static const enum lade_dtype types[] = {LADE_DTYPE_UNKNOWN, LADE_DTYPE_BF16,
                                            LADE_DTYPE_F16, LADE_DTYPE_F32};
    int dtype, scope, until, direct, place, rc = LADE_OK;

    LADE_TRY(lade_format_find(s->opt.format && *s->opt.format ? s->opt.format
                                                              : "auto",
                              &s->set.locate.format, err));
    LADE_TRY(pick("dtype", s->opt.dtype, dtypes, &dtype, err));
    LADE_TRY(pick("scope", s->opt.scope, scopes, &scope, err));
    LADE_TRY(pick("until", s->opt.until, untils, &until, err));
    LADE_TRY(pick("direct", s->opt.direct, directs, &direct, err));
    LADE_TRY(
        pick("expert-placement", s->opt.expert_placement, places, &place, err));
    s->set.locate.ignore_index = s->opt.ignore_index != 0;
    s->set.model.dtype = types[dtype];
    s->set.model.family_file = s->opt.family;
    s->set.scope = (enum lade_scope)scope;
    s->set.processed = until == 0;
    s->set.strict = s->opt.no_strict == 0;
    s->layout.placement = (enum lade_placement_kind)place;
out:
    return rc;
}

static int set_layout(struct lade_session *s, lade_err *err)
{
    s->layout.world = s->world;
    s->layout.tp = s->opt.tp;
    s->layout.pp = s->opt.pp;
    s->layout.dp = s->opt.dp;
    s->layout.ep = s->opt.ep != 0;
    s->layout.redundant = s->opt.redundant_experts;
    s->layout.expert_map = s->opt.expert_map;
    return lade_layout_resolve(&s->layout, err);
}

static int set_backends(struct lade_session *s, lade_err *err)
{
    const char *device = s->opt.device ? s->opt.device : "auto";
    const char *read = s->opt.read ? s->opt.read : "auto";
    int rc = LADE_OK;

    LADE_TRY(
        lade_device_choose(device, &s->set.device, &s->set.why.device, err));
    s->set.stores = s->set.device->caps & LADE_DEVICE_STORES;
    if (!s->set.stores && strcmp(read, "auto") == 0) {
        LADE_TRY(
            lade_read_choose("null", &s->set.reader, &s->set.why.read, err));
        s->set.why.read = "nothing is delivered, so nothing is read";
    } else {
        LADE_TRY(lade_read_choose(read, &s->set.reader, &s->set.why.read, err));
    }
    /* where nothing is read either, the plan is the one of a real load */
    s->set.plan.stores = s->set.stores || s->set.reader == &lade_read_null;
    s->set.why.transport =
        s->comm->size > 1 ? "host memory travels by MPI" : "one process";
out:
    return rc;
}

static void set_sizes(struct lade_session *s)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    lade_plan_defaults(&s->set.plan);
    if (s->opt.block)
        s->set.plan.block = s->opt.block;
    if (s->opt.staging)
        s->set.plan.staging = s->opt.staging;
    s->set.threads = s->opt.threads;
    if (s->set.threads == 0)
        s->set.threads = cores < 4 ? 4 : cores > 16 ? 16 : (unsigned)cores;
    s->set.depth = s->opt.depth ? s->opt.depth : 32;
}

/* Blocks of ranks: nodes that are as equal as can be, the first ones larger. */
static int spread_ranks(struct lade_session *s, uint32_t nodes, lade_err *err)
{
    if (nodes > s->world)
        return lade_err_set(err, LADE_E_USAGE,
                            "--nodes %u: there are only %u ranks", nodes,
                            s->world);
    s->nodes = nodes ? nodes : 1;
    uint32_t small = s->world / s->nodes, more = s->world % s->nodes;
    for (uint32_t r = 0, node = 0, end = 0; r < s->world; r++) {
        if (r == end) {
            end += small + (node < more ? 1 : 0);
            node++;
        }
        s->node_of[r] = node - 1;
    }
    return LADE_OK;
}

static int set_nodes_all(struct lade_session *s, lade_err *err)
{
    int rc = LADE_OK;

    s->node_of = lade_alloc_array(s->mem, LADE_TAG_TEMP, s->world,
                                  sizeof *s->node_of, err);
    if (!s->node_of)
        rc = LADE_E_MEMORY;
    LADE_TRY(lade_session_settle_all(s, "options", err));
    if (s->opt.nodes > (uint32_t)s->comm->size && !s->simulated)
        lade_err_set(err, LADE_E_USAGE, "--nodes %u: there are only %d ranks",
                     s->opt.nodes, s->comm->size);
    LADE_TRY(lade_session_settle_all(s, "options", err));
    LADE_TRY(lade_node_find_all(
        s->comm, s->mem, s->simulated ? 0 : (int)s->opt.nodes, &s->node, err));
    if (s->simulated)
        return spread_ranks(s, s->opt.nodes, err);
    s->nodes = (uint32_t)s->node.nodes;
    for (uint32_t r = 0; r < s->world; r++)
        s->node_of[r] = (uint32_t)s->node.node_of[r];
out:
    return rc;
}

static int set_local(struct lade_session *s, lade_err *err)
{
    int rc = LADE_OK;

    LADE_TRY(set_words(s, err));
    LADE_TRY(set_layout(s, err));
    set_sizes(s);
    LADE_TRY(set_backends(s, err));
out:
    return rc;
}

int lade_gate_settings_all(struct lade_session *s, lade_err *err)
{
    int rc = LADE_OK;

    set_local(s, err);
    LADE_TRY(lade_session_settle_all(s, "options", err));
    LADE_TRY(set_nodes_all(s, err));
    s->in.layout = &s->layout;
    s->in.node_of = s->node_of;
    s->in.nodes = s->nodes;
out:
    return rc;
}
