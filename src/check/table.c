/*
 * In: the JSON tree of a report. Out: the table that people read: context lines
 * that begin with #, one line for each rank (or minimum, average and maximum
 * when there are many), phases with the slowest rank, the sums, and the verdict
 * as the last line.
 */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <string.h>

#include "check/report.h"
#include "check/writer.h"

#define RANKS_IN_FULL 16

static const char *word(const cJSON *at, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(at, name);

    return cJSON_IsString(item) ? item->valuestring : "";
}

static double value(const cJSON *at, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(at, name);

    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static const cJSON *part(const cJSON *at, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(at, name);
}

/* A size out of a ring of buffers, so that one line can show several. */
static const char *size_of(const cJSON *at, const char *name)
{
    static _Thread_local char ring[8][24];
    static _Thread_local unsigned next;
    char *out = ring[next++ % 8];

    return lade_size_text((uint64_t)value(at, name), out, sizeof ring[0]);
}

static void write_context(struct lade_writer *out, const cJSON *root)
{
    const cJSON *world = part(root, "world"), *files = part(root, "checkpoint");
    const cJSON *model = part(root, "model"), *read = part(root, "read");
    const cJSON *why = part(root, "reasons"), *plan = part(root, "plan");
    const char *launcher = word(world, "launcher"), *mpi = word(world, "mpi");
    const char *quantization = word(model, "quantization");
    bool plain = !*quantization || strcmp(quantization, "none") == 0;
    const char *direct = cJSON_IsTrue(part(read, "direct")) ? "on" : "off";

    lade_writer_print(out, "# lade %s  %s  %s\n", word(root, "lade"),
                      word(root, "verb"), word(root, "started"));
    if (*word(root, "command"))
        lade_writer_print(out, "# command     %s\n", word(root, "command"));
    lade_writer_print(out,
                      "# world       %.0f ranks on %.0f nodes, tp %.0f pp %.0f "
                      "dp %.0f ep %.0f%s%s%s%s\n",
                      value(world, "ranks"), value(world, "nodes"),
                      value(world, "tp"), value(world, "pp"),
                      value(world, "dp"), value(world, "ep"), *mpi ? ", " : "",
                      mpi, *launcher ? ", " : "", launcher);
    lade_writer_print(
        out, "# checkpoint  %s, %.0f files, %.0f tensors, %s, %s, %s\n",
        word(files, "format"), value(files, "files"), value(files, "tensors"),
        size_of(files, "tensor_bytes"), word(files, "filesystem"),
        word(files, "path"));
    lade_writer_print(
        out, "# model       %s, family %s, %s%s%s, %.0f parameters, %s\n",
        word(model, "architecture"), word(model, "family"),
        word(model, "dtype"), plain ? "" : ", ", plain ? "" : quantization,
        value(model, "parameters"), size_of(model, "parameter_bytes"));
    lade_writer_print(out, "# read        %s (%s), direct %s (%s)\n",
                      word(read, "engine"), word(why, "read"), direct,
                      word(why, "direct"));
    lade_writer_print(out, "# scope       %s (%s), %s\n", word(read, "scope"),
                      word(why, "scope"),
                      word(part(root, "share"), "transport"));
    lade_writer_print(out, "# device      %s (%s)\n", word(root, "device"),
                      word(why, "device"));
    lade_writer_print(
        out,
        "# plan        %.0f rounds, %.0f direct and %.0f shared "
        "stripes, digest %s\n",
        value(plan, "rounds"), value(part(plan, "stripes"), "direct"),
        value(part(plan, "stripes"), "shared"), word(plan, "digest"));
}

static void write_rank(struct lade_writer *out, const cJSON *rank, bool loaded)
{
    lade_writer_print(out, "%6.0f  %-16s %12s %12s %12s %12s",
                      value(rank, "rank"), word(rank, "node"),
                      size_of(rank, "parameter_bytes"),
                      size_of(rank, "read_bytes"), size_of(rank, "sent_bytes"),
                      size_of(rank, "received_bytes"));
    if (loaded)
        lade_writer_print(out, " %9.3f", value(rank, "load_s"));
    lade_writer_print(out, "\n");
}

static void write_spread(struct lade_writer *out, const cJSON *ranks,
                         const char *label, const char *key)
{
    char low_text[24], avg_text[24], high_text[24];
    double low = 0, high = 0, sum = 0;
    double low_rank = 0, high_rank = 0;
    const cJSON *rank = NULL;
    int count = 0;

    cJSON_ArrayForEach(rank, ranks)
    {
        double v = value(rank, key);
        sum += v;
        if (count == 0 || v < low) {
            low = v;
            low_rank = value(rank, "rank");
        }
        if (count == 0 || v > high) {
            high = v;
            high_rank = value(rank, "rank");
        }
        count++;
    }
    lade_writer_print(
        out, "%-12s %12s (rank %.0f) %12s %12s (rank %.0f)\n", label,
        lade_size_text((uint64_t)low, low_text, sizeof low_text), low_rank,
        lade_size_text(count ? (uint64_t)(sum / count) : 0, avg_text,
                       sizeof avg_text),
        lade_size_text((uint64_t)high, high_text, sizeof high_text), high_rank);
}

static void write_ranks(struct lade_writer *out, const cJSON *root, bool loaded)
{
    const cJSON *ranks = part(root, "ranks"), *rank = NULL;

    lade_writer_print(out, "#\n");
    if (cJSON_GetArraySize(ranks) > RANKS_IN_FULL) {
        lade_writer_print(out, "# of a rank     min               avg          "
                               "max\n");
        write_spread(out, ranks, "parameters", "parameter_bytes");
        write_spread(out, ranks, "read", "read_bytes");
        write_spread(out, ranks, "sent", "sent_bytes");
        write_spread(out, ranks, "received", "received_bytes");
        return;
    }
    lade_writer_print(out, "# %4s  %-16s %12s %12s %12s %12s%s\n", "rank",
                      "node", "parameters", "read", "sent", "received",
                      loaded ? "    load s" : "");
    cJSON_ArrayForEach(rank, ranks) write_rank(out, rank, loaded);
}

static void write_phases(struct lade_writer *out, const cJSON *root)
{
    const cJSON *phase = NULL;

    lade_writer_print(out, "#\n# %-10s %9s %9s %9s  %s\n", "phase", "min s",
                      "avg s", "max s", "rank of max");
    cJSON_ArrayForEach(phase, part(root, "phases")) lade_writer_print(
        out, "%-12s %9.3f %9.3f %9.3f  %.0f\n", word(phase, "name"),
        value(phase, "min_s"), value(phase, "avg_s"), value(phase, "max_s"),
        value(phase, "rank_of_max"));
}

static void write_traffic(struct lade_writer *out, const cJSON *root)
{
    const cJSON *read = part(root, "read"), *share = part(root, "share");
    const cJSON *plan = part(root, "plan");

    lade_writer_print(out, "#\n");
    lade_writer_print(out, "%-12s %s of %s needed, ratio %.4f\n", "read",
                      size_of(read, "bytes"), size_of(plan, "needed_bytes"),
                      value(read, "ratio"));
    lade_writer_print(out,
                      "%-12s payload %s, headers %s, gaps %s, alignment %s; "
                      "%.0f requests, %.0f opens\n",
                      "", size_of(read, "payload_bytes"),
                      size_of(read, "header_bytes"), size_of(read, "gap_bytes"),
                      size_of(read, "align_bytes"), value(read, "requests"),
                      value(read, "opens"));
    lade_writer_print(out,
                      "%-12s %s into parameters, %s of it read in place; %s "
                      "between nodes\n",
                      "delivered", size_of(share, "delivered_bytes"),
                      size_of(share, "direct_bytes"),
                      size_of(share, "internode_bytes"));
}

static void write_memory(struct lade_writer *out, const cJSON *root,
                         bool loaded)
{
    const cJSON *memory = part(root, "memory"), *tag = NULL;
    const cJSON *peak = part(memory, "peak_bytes");
    const cJSON *forecast = part(memory, "forecast_bytes");

    lade_writer_print(out, "#\n# %-10s %12s%s\n", "memory", "forecast",
                      loaded ? "         peak  rank of peak" : "");
    cJSON_ArrayForEach(tag, peak)
    {
        if (value(peak, tag->string) == 0 && value(forecast, tag->string) == 0)
            continue;
        lade_writer_print(out, "%-12s %12s", tag->string,
                          size_of(forecast, tag->string));
        if (loaded)
            lade_writer_print(out, " %12s  %.0f", size_of(peak, tag->string),
                              value(part(memory, "rank_of_max"), tag->string));
        lade_writer_print(out, "\n");
    }
}

/* Source elements by the number of ranks that hold them; storage alone. */
static void write_forecast(struct lade_writer *out, const cJSON *root)
{
    const cJSON *plan = part(root, "plan"), *row = NULL;
    const cJSON *time = part(part(plan, "forecast"), "storage_s_at_gib_per_s");

    lade_writer_print(out, "#\n");
    cJSON_ArrayForEach(row, part(plan, "elements_by_copies"))
    {
        lade_writer_print(out, "%-12s %.0f elements on %s ranks\n", "copies",
                          row->valuedouble, row->string);
    }
    cJSON_ArrayForEach(row, time)
    {
        lade_writer_print(out, "%-12s %.1f s at %s GiB/s for each node\n",
                          "storage", row->valuedouble, row->string);
    }
}

static void write_skipped(struct lade_writer *out, const cJSON *root)
{
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, part(root, "skipped"))
    {
        lade_writer_print(out, "%-12s %.0f tensors, %s: %s\n", "skipped",
                          value(row, "tensors"), size_of(row, "bytes"),
                          word(row, "reason"));
    }
}

void lade_table_write(struct lade_writer *out, const struct cJSON *root)
{
    bool loaded = strcmp(word(root, "verb"), "plan") != 0;

    write_context(out, root);
    write_ranks(out, root, loaded);
    if (loaded)
        write_phases(out, root);
    write_traffic(out, root);
    write_memory(out, root, loaded);
    if (!loaded)
        write_forecast(out, root);
    write_skipped(out, root);
    lade_writer_print(out, "verdict %s\n", word(root, "verdict"));
}
