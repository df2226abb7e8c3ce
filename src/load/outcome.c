/*
 * In: a session that ended, well or not. Out: on rank 0 the report as a JSON
 * tree; the texts of the public API.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "base/host.h"
#include "base/log.h"
#include "check/digest.h"
#include "check/writer.h"
#include "load/session.h"

static void fill_own(struct lade_session *s)
{
    struct lade_rank_stats *stats = &s->stats;

    stats->node_index = s->node.node_of ? (uint32_t)s->node.index : 0;
    for (int tag = 0; tag < LADE_TAGS; tag++)
        stats->peak[tag] = lade_mem_peak(s->mem, (enum lade_tag)tag);
    stats->peak_total = lade_mem_peak_total(s->mem);
    stats->process_bytes = lade_host_process_peak();
    stats->phase_s[LADE_PHASE_TOTAL] =
        (double)(lade_now_ns() - s->start_ns) / 1e9;
}

/* Warnings that only other ranks have: rank 0 repeats each text once. */
static void repeat_warnings(const char *texts, uint64_t size)
{
    for (const char *at = texts; at < texts + size; at += strlen(at) + 1) {
        bool known = false;
        for (int i = 0; i < lade_warn_count() && !known; i++)
            known = strcmp(lade_warn_get(i), at) == 0;
        if (!known)
            lade_warn("%s", at);
    }
}

static int gather_warnings_all(struct lade_session *s, lade_err *err)
{
    struct lade_writer mine;
    struct lade_gathered all = {.mem = s->mem};
    uint64_t total = 0;
    int rc = LADE_OK;

    lade_writer_init(&mine, s->mem);
    for (int i = 0; s->rank > 0 && i < lade_warn_count(); i++)
        lade_writer_bytes(&mine, lade_warn_get(i),
                          strlen(lade_warn_get(i)) + 1);
    LADE_TRY(lade_comm_gather_all(s->comm, s->mem,
                                  mine.chars.data ? mine.chars.data : "",
                                  mine.chars.count, &all, "check", err));
    for (int r = 0; r < s->comm->size; r++)
        total += all.sizes[r];
    if (all.bytes)
        repeat_warnings(all.bytes, total);
out:
    lade_gathered_fini(&all);
    lade_writer_fini(&mine);
    return rc;
}

static struct cJSON *make_report(struct lade_session *s,
                                 const lade_err *failure,
                                 const struct lade_rank_stats *stats)
{
    static const char *const scopes[] = {"auto", "world", "node", "rank"};
    struct lade_report_facts facts = {
        .verb = s->simulated ? "plan" : "load",
        .command = s->opt.command,
        .launcher = s->opt.launcher,
        .started = s->started,
        .err = failure,
        .layout = &s->layout,
        .ranks = s->world,
        .nodes = s->nodes,
        .ep = s->placed ? s->place.ep : 1,
        .mpi = s->simulated ? "" : s->comm->description,
        .shards = s->shards,
        .catalogue = LADE_CATALOGUE(s),
        .shell = LADE_SHELL(s),
        .routes = LADE_ROUTES(s),
        .copies = &s->copies,
        .stats = stats,
        .engine = s->set.reader ? s->set.reader->name : "",
        .scope = scopes[s->set.scope],
        .transport = s->simulated && s->world > 1 ? "mpi" : s->comm->ops->name,
        .device = s->set.device ? s->set.device->name : "",
        .direct = s->set.direct,
        .predicted = s->simulated,
        .why = {s->set.why.read, s->set.why.direct, s->set.why.scope,
                s->set.why.device, s->set.why.transport},
    };
    return lade_report_build(&facts);
}

/* The statistics of all ranks on rank 0; its own alone if the others cannot be
 * asked any more. */
static void gather_all(struct lade_session *s, struct lade_rank_stats *all,
                       lade_err *err)
{
    struct lade_gathered stats;

    if (lade_comm_gather_all(s->comm, s->mem, &s->stats, sizeof s->stats,
                             &stats, "check", err) != LADE_OK)
        return;
    if (stats.bytes && all)
        memcpy(all, stats.bytes, (uint64_t)s->comm->size * sizeof *all);
    lade_gathered_fini(&stats);
}

void lade_session_outcome_all(struct lade_session *s, const lade_err *failure)
{
    lade_err err = LADE_ERR_INIT;
    struct lade_rank_stats *all = NULL;

    fill_own(s);
    if (!s->comm->dead && s->comm->size > 1)
        gather_warnings_all(s, &err);
    if (s->rank == 0)
        all = lade_alloc_array(s->mem, LADE_TAG_TEMP, s->world, sizeof *all,
                               &err);
    if (all)
        all[0] = s->stats;
    if (!s->comm->dead && s->comm->size > 1)
        gather_all(s, all, &err);
    if (s->rank != 0 || !all)
        goto out;
    cJSON_Delete(s->report);
    s->report = make_report(s, failure, s->predicted ? s->predicted : all);
out:
    lade_free(s->mem, all);
}

/* ---- public ---- */

static int no_report(lade_err *err)
{
    return lade_err_set(err, LADE_E_USAGE,
                        "the report is on rank 0, after lade_open_all or "
                        "lade_load_all");
}

int lade_report_json(const lade_session *session, char **text, lade_err *err)
{
    *text = NULL;
    if (!session || !session->report)
        return no_report(err);
    *text = cJSON_Print(session->report);
    return *text ? LADE_OK
                 : lade_err_set(err, LADE_E_MEMORY, "no memory for a report");
}

int lade_report_table(const lade_session *session, char **text, lade_err *err)
{
    struct lade_writer out;

    *text = NULL;
    if (!session || !session->report)
        return no_report(err);
    lade_writer_init(&out, session->mem);
    lade_table_write(&out, session->report);
    int rc = lade_writer_take(&out, text, NULL, err);
    lade_writer_fini(&out);
    return rc;
}

/* Joins one text of every rank with commas, on rank 0. */
static int join_texts_all(struct lade_session *s, struct lade_writer *mine,
                          struct lade_writer *joined, const char *gate,
                          lade_err *err)
{
    struct lade_gathered all = {.mem = s->mem};
    uint64_t at = 0;
    int rc = LADE_OK;

    if (mine->err.status != LADE_OK)
        lade_err_set(err, mine->err.status, "%s", mine->err.text);
    LADE_TRY(lade_session_settle_all(s, gate, err));
    LADE_TRY(lade_comm_gather_all(s->comm, s->mem, mine->chars.data,
                                  mine->chars.count, &all, gate, err));
    for (int r = 0; all.bytes && r < s->comm->size; r++) {
        if (r > 0 && all.sizes[r] > 0 && joined->chars.count > 0)
            lade_writer_print(joined, ",\n");
        lade_writer_bytes(joined, all.bytes + at, all.sizes[r]);
        at += all.sizes[r];
    }
out:
    lade_gathered_fini(&all);
    return rc;
}

static int own_digests(struct lade_session *s, struct lade_writer *out,
                       lade_err *err)
{
    size_t count = lade_param_count(s), aliases = lade_alias_count(s);
    struct lade_digest_param *params =
        lade_alloc_array(s->mem, LADE_TAG_TEMP, count + 1, sizeof *params, err);
    const char **names = lade_alloc_array(s->mem, LADE_TAG_TEMP,
                                          2 * aliases + 1, sizeof *names, err);
    int rc = params && names ? LADE_OK : LADE_E_MEMORY;

    LADE_TRY(rc);
    for (size_t i = 0; i < count; i++) {
        lade_param p;
        lade_param_get(s, i, &p);
        params[i] = (struct lade_digest_param){
            .name = p.name,
            .dtype = lade_dtype_find(p.dtype),
            .ndim = (int)p.ndim,
            .data = p.data,
            .bytes = p.bytes,
        };
        memcpy(params[i].shape, p.shape, sizeof p.shape);
    }
    for (size_t i = 0; i < aliases; i++)
        lade_alias_get(s, i, &names[i], &names[aliases + i]);
    struct lade_digest_rank rank = {s->rank, params,          count,
                                    names,   names + aliases, aliases};
    lade_digest_rank_write(out, &rank);
out:
    lade_free(s->mem, params);
    lade_free(s->mem, names);
    return rc;
}

int lade_digests_json_all(lade_session *session, char **text, lade_err *err)
{
    struct lade_session *s = session;
    struct lade_writer mine, joined, file;
    int rc = LADE_OK;

    *text = NULL;
    lade_writer_init(&mine, s->mem);
    lade_writer_init(&joined, s->mem);
    lade_writer_init(&file, s->mem);
    if (!s->base)
        lade_err_set(err, LADE_E_USAGE,
                     "digests need parameters in memory: after lade_load_all, "
                     "and not with device null");
    else
        own_digests(s, &mine, err);
    LADE_TRY(join_texts_all(s, &mine, &joined, "check", err));
    if (s->rank == 0) {
        lade_digest_file_write(&file, s->set.processed ? "processed" : "loaded",
                               &s->layout, s->place.ep, joined.chars.data,
                               joined.chars.count);
        rc = lade_writer_take(&file, text, NULL, err);
    }
out:
    lade_writer_fini(&mine);
    lade_writer_fini(&joined);
    lade_writer_fini(&file);
    return rc;
}

int lade_trace_json_all(lade_session *session, char **text, lade_err *err)
{
    struct lade_session *s = session;
    struct lade_writer mine, joined, file;
    char *events = NULL;
    size_t length = 0;
    int rc = LADE_OK;

    *text = NULL;
    lade_writer_init(&mine, s->mem);
    lade_writer_init(&joined, s->mem);
    lade_writer_init(&file, s->mem);
    if (!s->trace)
        lade_err_set(err, LADE_E_USAGE, "the option trace was not set");
    else if (lade_trace_text(s->trace, s->start_ns, &events, &length, err) ==
             LADE_OK)
        lade_writer_bytes(&mine, events, length);
    LADE_TRY(join_texts_all(s, &mine, &joined, "check", err));
    if (s->rank == 0) {
        lade_writer_print(&file, "{\"traceEvents\":[\n");
        lade_writer_bytes(&file, joined.chars.data, joined.chars.count);
        lade_writer_print(&file, "\n]}\n");
        rc = lade_writer_take(&file, text, NULL, err);
    }
out:
    lade_free(s->mem, events);
    lade_writer_fini(&mine);
    lade_writer_fini(&joined);
    lade_writer_fini(&file);
    return rc;
}
