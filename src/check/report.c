/*
 * In: the facts of a load, on rank 0: products, statistics of every rank,
 * reasons. Out: the report as a JSON tree, schema 1. Every key is there in
 * every report, also in that of a load that failed at its first gate.
 */
#include "check/report.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static void number(cJSON *at, const char *name, uint64_t value)
{
    cJSON_AddNumberToObject(at, name, (double)value);
}

static void text(cJSON *at, const char *name, const char *value)
{
    cJSON_AddStringToObject(at, name, value ? value : "");
}

/* Seconds to the microsecond: more digits are noise. */
static void seconds(cJSON *at, const char *name, double value)
{
    cJSON_AddNumberToObject(at, name,
                            (double)(uint64_t)(value * 1e6 + 0.5) / 1e6);
}

static void add_head(cJSON *root, const struct lade_report_facts *f)
{
    int status = f->err ? f->err->status : LADE_OK;

    number(root, "schema", 1);
    text(root, "lade", LADE_VERSION);
    text(root, "verb", f->verb);
    text(root, "command", f->command);
    text(root, "started", f->started);
    text(root, "verdict", lade_status_name(status));
    if (status == LADE_OK) {
        cJSON_AddNullToObject(root, "error");
        return;
    }
    cJSON *error = cJSON_AddObjectToObject(root, "error");
    cJSON_AddNumberToObject(error, "code", lade_exit_code(status));
    text(error, "name", lade_status_name(status));
    cJSON_AddNumberToObject(error, "rank", f->err->rank);
    text(error, "node", f->err->node);
    text(error, "gate", f->err->gate);
    text(error, "text", f->err->text);
}

static void add_world(cJSON *root, const struct lade_report_facts *f)
{
    cJSON *world = cJSON_AddObjectToObject(root, "world");

    number(world, "ranks", f->ranks);
    number(world, "nodes", f->nodes);
    number(world, "tp", f->layout->tp);
    number(world, "pp", f->layout->pp);
    number(world, "dp", f->layout->dp);
    number(world, "ep", f->ep);
    text(world, "launcher", f->launcher);
    text(world, "mpi", f->mpi);
}

/* Dropped rows by reason. A drop rule of a family counts under its own text. */
struct skipped {
    const char *reason;
    uint64_t tensors, bytes;
};

static uint32_t collect_skipped(const struct lade_report_facts *f,
                                struct skipped *list, uint32_t limit)
{
    const struct lade_row *rows =
        LADE_ITEMS(f->catalogue, rows, struct lade_row);
    const struct lade_route *routes =
        LADE_ITEMS(f->routes, routes, struct lade_route);
    const struct lade_shell_rule *rules =
        LADE_ITEMS(f->shell, rules, struct lade_shell_rule);
    uint32_t count = 0;

    for (uint64_t i = 0; i < f->routes->routes.count; i++) {
        const struct lade_route *route = &routes[i];
        if (route->part != UINT32_MAX)
            continue;
        const char *reason = lade_route_reason_text(route->reason);
        if (route->reason == LADE_ROUTE_RULE &&
            route->rule < f->shell->rules.count)
            reason = LADE_STRING(f->shell, pool, rules[route->rule].why);
        uint32_t at = 0;
        while (at < count && strcmp(list[at].reason, reason) != 0)
            at++;
        if (at == limit)
            at = limit - 1;
        if (at == count)
            list[count++].reason = reason;
        list[at].tensors++;
        list[at].bytes += rows[i].length;
    }
    if (f->catalogue->shadowed > 0 && count < limit)
        list[count++] = (struct skipped){"the index names another file",
                                         f->catalogue->shadowed,
                                         f->catalogue->shadowed_bytes};
    return count;
}

static void add_skipped(cJSON *root, const struct lade_report_facts *f,
                        uint64_t *tensors)
{
    struct skipped list[32] = {0};
    cJSON *skipped = cJSON_AddArrayToObject(root, "skipped");
    uint32_t count = f->routes && f->catalogue && f->shell
                         ? collect_skipped(f, list, 32)
                         : 0;

    *tensors = 0;
    for (uint32_t i = 0; i < count; i++) {
        cJSON *row = cJSON_CreateObject();
        text(row, "reason", list[i].reason);
        number(row, "tensors", list[i].tensors);
        number(row, "bytes", list[i].bytes);
        cJSON_AddItemToArray(skipped, row);
        *tensors += list[i].tensors;
    }
}

static void add_checkpoint(cJSON *root, const struct lade_report_facts *f,
                           uint64_t dropped)
{
    cJSON *at = cJSON_AddObjectToObject(root, "checkpoint");
    const struct lade_shards *shards = f->shards;
    const char *formats[] = {"auto", "hf", "safetensors"};
    const char *format = "";

    if (shards && shards->format < 3)
        format = formats[shards->format];
    text(at, "format", format);
    text(at, "path", shards ? LADE_STRING(shards, pool, shards->dir) : "");
    number(at, "files", shards ? shards->shards.count : 0);
    number(at, "tensors",
           f->catalogue ? f->catalogue->rows.count + f->catalogue->shadowed
                        : 0);
    number(at, "tensor_bytes", f->catalogue ? f->catalogue->tensor_bytes : 0);
    number(at, "dropped_tensors", dropped);
    text(at, "filesystem",
         shards ? LADE_STRING(shards, pool, shards->filesystem) : "");
}

static void add_model(cJSON *root, const struct lade_report_facts *f)
{
    cJSON *at = cJSON_AddObjectToObject(root, "model");
    const struct lade_shell *shell = f->shell;

    text(at, "architecture",
         shell ? LADE_STRING(shell, pool, shell->architecture) : "");
    text(at, "family", shell ? LADE_STRING(shell, pool, shell->family) : "");
    text(at, "quantization",
         shell ? LADE_STRING(shell, pool, shell->quantization) : "");
    text(at, "dtype", shell ? lade_dtype_name(shell->dtype) : "");
    number(at, "parameters", f->copies ? f->copies->elements : 0);
    number(at, "parameter_bytes", f->copies ? f->copies->bytes : 0);
}

/* Sums over the ranks. */
struct sums {
    struct lade_share_counts share;
    struct lade_plan_totals plan;
    struct lade_traffic expected;
    uint64_t rounds, heads, padding, missing;
    struct lade_digest digest;
    double read_s;
};

static void add_share(struct lade_share_counts *sum,
                      const struct lade_share_counts *one)
{
    sum->read.bytes += one->read.bytes;
    sum->read.align_bytes += one->read.align_bytes;
    sum->read.copied_bytes += one->read.copied_bytes;
    sum->read.requests += one->read.requests;
    sum->read.opens += one->read.opens;
    sum->read.busy_ns += one->read.busy_ns;
    sum->read.fallbacks += one->read.fallbacks;
    sum->direct_bytes += one->direct_bytes;
    sum->sent_bytes += one->sent_bytes;
    sum->received_bytes += one->received_bytes;
    sum->copied_bytes += one->copied_bytes;
    sum->delivered_bytes += one->delivered_bytes;
    sum->cast_elements += one->cast_elements;
}

static void add_plan_totals(struct lade_plan_totals *sum,
                            const struct lade_plan_totals *one)
{
    /* needed_bytes is the world's in every island: not a sum */
    sum->needed_bytes = lade_max_u64(sum->needed_bytes, one->needed_bytes);
    sum->read_bytes += one->read_bytes;
    sum->gap_bytes += one->gap_bytes;
    sum->direct_stripes += one->direct_stripes;
    sum->shared_stripes += one->shared_stripes;
    sum->direct_bytes += one->direct_bytes;
    sum->shared_bytes += one->shared_bytes;
    sum->delivered_bytes += one->delivered_bytes;
    sum->internode_bytes += one->internode_bytes;
    sum->messages += one->messages;
}

static struct sums sum_up(const struct lade_report_facts *f)
{
    struct sums sums = {0};

    for (uint32_t r = 0; f->stats && r < f->ranks; r++) {
        const struct lade_rank_stats *one = &f->stats[r];
        double read_s = one->phase_s[LADE_PHASE_READ];
        add_share(&sums.share, &one->share);
        add_plan_totals(&sums.plan, &one->plan);
        sums.expected.read_bytes += one->expected.read_bytes;
        sums.expected.requests += one->expected.requests;
        sums.expected.opens += one->expected.opens;
        sums.rounds = lade_max_u64(sums.rounds, one->rounds);
        sums.padding += one->padding;
        sums.missing += one->missing;
        sums.read_s = read_s > sums.read_s ? read_s : sums.read_s;
        if (one->heads == 0)
            continue;
        sums.digest = sums.heads ? lade_digest_join(sums.digest, one->digest)
                                 : one->digest;
        sums.heads += one->heads;
    }
    return sums;
}

static void add_copies(cJSON *plan, const struct lade_copies *copies)
{
    cJSON *at = cJSON_AddObjectToObject(plan, "elements_by_copies");

    for (uint32_t i = 0; copies && i < copies->count; i++) {
        char name[24];
        snprintf(name, sizeof name, "%" PRIu64, copies->rows[i].copies);
        number(at, name, copies->rows[i].elements);
    }
}

static void add_plan(cJSON *root, const struct lade_report_facts *f,
                     const struct sums *sums)
{
    cJSON *at = cJSON_AddObjectToObject(root, "plan");
    char digest[33] = "";

    if (sums->heads > 0)
        lade_digest_text(sums->digest, digest);
    text(at, "digest", digest);
    number(at, "rounds", sums->rounds);
    number(at, "islands", sums->heads);
    cJSON *stripes = cJSON_AddObjectToObject(at, "stripes");
    number(stripes, "direct", sums->plan.direct_stripes);
    number(stripes, "shared", sums->plan.shared_stripes);
    number(at, "needed_bytes", sums->plan.needed_bytes);
    cJSON *forecast = cJSON_AddObjectToObject(at, "forecast");
    uint64_t header = f->catalogue ? f->catalogue->header_bytes : 0;
    uint64_t files = f->shards ? f->shards->shards.count : 0;
    number(forecast, "read_bytes",
           sums->heads ? sums->plan.read_bytes + header : 0);
    number(forecast, "gap_bytes", sums->plan.gap_bytes);
    number(forecast, "direct_bytes", sums->plan.direct_bytes);
    number(forecast, "shared_bytes", sums->plan.shared_bytes);
    number(forecast, "delivered_bytes", sums->plan.delivered_bytes);
    number(forecast, "internode_bytes", sums->plan.internode_bytes);
    number(forecast, "messages", sums->plan.messages);
    number(forecast, "requests", sums->expected.requests);
    number(forecast, "opens", sums->heads ? sums->expected.opens + files : 0);
    /* an estimate: storage alone, at so many GiB/s for each node */
    double node_bytes =
        (double)sums->plan.read_bytes / (f->nodes ? f->nodes : 1);
    cJSON *time = cJSON_AddObjectToObject(forecast, "storage_s_at_gib_per_s");
    seconds(time, "1", node_bytes / 1073741824.0);
    seconds(time, "5", node_bytes / 5368709120.0);
    seconds(time, "25", node_bytes / 26843545600.0);
    add_copies(at, f->copies);
}

static void add_read(cJSON *root, const struct lade_report_facts *f,
                     const struct sums *sums)
{
    cJSON *at = cJSON_AddObjectToObject(root, "read");
    const struct lade_read_counts *read = &sums->share.read;
    uint64_t header = f->catalogue ? f->catalogue->header_bytes : 0;
    uint64_t files = f->catalogue && f->shards ? f->shards->shards.count : 0;
    uint64_t asked = f->predicted ? sums->plan.read_bytes : read->bytes;
    uint64_t align = read->align_bytes;
    uint64_t gap = asked > 0 ? sums->plan.gap_bytes : 0;
    uint64_t bytes = asked + header, needed = sums->plan.needed_bytes;
    uint64_t payload = asked > align + gap ? asked - align - gap : 0;

    text(at, "engine", f->engine);
    cJSON_AddBoolToObject(at, "direct", f->direct);
    text(at, "scope", f->scope);
    number(at, "bytes", bytes);
    number(at, "payload_bytes", payload);
    number(at, "header_bytes", header);
    number(at, "gap_bytes", gap);
    number(at, "align_bytes", align);
    number(at, "bounced_bytes", read->copied_bytes);
    number(at, "requests",
           f->predicted ? sums->expected.requests : read->requests);
    number(at, "opens",
           files + (f->predicted ? sums->expected.opens : read->opens));
    number(at, "direct_refused_files", read->fallbacks);
    cJSON_AddNumberToObject(at, "ratio",
                            needed ? (double)bytes / (double)needed : 0);
    seconds(at, "seconds", sums->read_s);
}

static void add_sharing(cJSON *root, const struct lade_report_facts *f,
                        const struct sums *sums)
{
    cJSON *at = cJSON_AddObjectToObject(root, "share");
    bool plan = f->predicted;

    text(at, "transport", f->transport);
    number(at, "internode_bytes",
           plan ? sums->plan.internode_bytes : sums->share.sent_bytes);
    number(at, "copied_bytes", sums->share.copied_bytes);
    number(at, "direct_bytes",
           plan ? sums->plan.direct_bytes : sums->share.direct_bytes);
    number(at, "delivered_bytes",
           plan ? sums->plan.delivered_bytes : sums->share.delivered_bytes);
    number(at, "cast_elements", sums->share.cast_elements);
    number(at, "padding_elements", sums->padding);
    number(at, "missing_parts", sums->missing);
}

static void add_memory(cJSON *root, const struct lade_report_facts *f)
{
    cJSON *at = cJSON_AddObjectToObject(root, "memory");
    cJSON *peak = cJSON_AddObjectToObject(at, "peak_bytes");
    cJSON *who = cJSON_AddObjectToObject(at, "rank_of_max");
    cJSON *forecast = cJSON_AddObjectToObject(at, "forecast_bytes");
    uint64_t process = 0;

    for (int tag = 0; tag <= LADE_TAGS; tag++) {
        const char *name =
            tag < LADE_TAGS ? lade_tag_name((enum lade_tag)tag) : "total";
        uint64_t most = 0, expected = 0, rank = 0;
        for (uint32_t r = 0; f->stats && r < f->ranks; r++) {
            const struct lade_rank_stats *one = &f->stats[r];
            uint64_t now = one->peak_total, will = 0;
            for (int i = 0; i < LADE_TAGS; i++)
                will += one->forecast[i];
            if (tag < LADE_TAGS) {
                now = one->peak[tag];
                will = one->forecast[tag];
            }
            if (now > most) {
                most = now;
                rank = r;
            }
            expected = lade_max_u64(expected, will);
            process = lade_max_u64(process, one->process_bytes);
        }
        number(peak, name, most);
        number(who, name, rank);
        number(forecast, name, expected);
    }
    number(at, "process_bytes", process);
}

static void add_phases(cJSON *root, const struct lade_report_facts *f)
{
    cJSON *phases = cJSON_AddArrayToObject(root, "phases");

    for (int phase = 0; phase < LADE_PHASES; phase++) {
        double low = 0, high = 0, sum = 0;
        uint32_t rank = 0;
        for (uint32_t r = 0; f->stats && r < f->ranks; r++) {
            double s = f->stats[r].phase_s[phase];
            sum += s;
            if (r == 0 || s < low)
                low = s;
            if (s > high) {
                high = s;
                rank = r;
            }
        }
        cJSON *row = cJSON_CreateObject();
        text(row, "name", lade_phase_name((enum lade_phase)phase));
        seconds(row, "min_s", low);
        seconds(row, "avg_s", f->ranks ? sum / f->ranks : 0);
        seconds(row, "max_s", high);
        number(row, "rank_of_max", rank);
        cJSON_AddItemToArray(phases, row);
    }
}

static void add_ranks(cJSON *root, const struct lade_report_facts *f)
{
    cJSON *ranks = cJSON_AddArrayToObject(root, "ranks");

    for (uint32_t r = 0; f->stats && r < f->ranks; r++) {
        const struct lade_rank_stats *one = &f->stats[r];
        cJSON *row = cJSON_CreateObject();
        number(row, "rank", r);
        text(row, "node", one->node);
        number(row, "node_index", one->node_index);
        number(row, "parameters", one->parameters);
        number(row, "parameter_bytes", one->parameter_bytes);
        number(row, "read_bytes", one->share.read.bytes);
        number(row, "sent_bytes", one->share.sent_bytes);
        number(row, "received_bytes", one->share.received_bytes);
        seconds(row, "load_s", one->phase_s[LADE_PHASE_TOTAL]);
        number(row, "peak_bytes", one->peak_total);
        cJSON_AddItemToArray(ranks, row);
    }
}

static void add_reasons(cJSON *root, const struct lade_report_facts *f)
{
    cJSON *at = cJSON_AddObjectToObject(root, "reasons");

    text(at, "read", f->why.read);
    text(at, "direct", f->why.direct);
    text(at, "scope", f->why.scope);
    text(at, "device", f->why.device);
    text(at, "transport", f->why.transport);
}

struct cJSON *lade_report_build(const struct lade_report_facts *f)
{
    cJSON *root = cJSON_CreateObject();
    uint64_t dropped = 0;

    if (!root)
        return NULL;
    struct sums sums = sum_up(f);
    add_head(root, f);
    add_world(root, f);
    cJSON *skipped = cJSON_CreateObject();
    add_skipped(skipped, f, &dropped);
    add_checkpoint(root, f, dropped);
    add_model(root, f);
    add_plan(root, f, &sums);
    add_read(root, f, &sums);
    add_sharing(root, f, &sums);
    text(root, "device", f->device);
    add_memory(root, f);
    add_phases(root, f);
    add_ranks(root, f);
    cJSON_AddItemToObject(root, "skipped",
                          cJSON_DetachItemFromObject(skipped, "skipped"));
    cJSON_Delete(skipped);
    cJSON *warnings = cJSON_AddArrayToObject(root, "warnings");
    for (int i = 0; i < lade_warn_count(); i++)
        cJSON_AddItemToArray(warnings, cJSON_CreateString(lade_warn_get(i)));
    add_reasons(root, f);
    return root;
}
