/*
 * In: nothing. Out: the one table of options. Command line, LADE_* variables,
 * settings file, --help, the man page (compared by a test) and the echo in the
 * report all come from it. Only what has something behind it stands here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "load/session.h"

#define AT(member) offsetof(struct cli_values, member)
#define LAYOUT (CLI_LOAD | CLI_PLAN | CLI_INSPECT)
#define ALL (CLI_LOAD | CLI_PLAN | CLI_INSPECT | CLI_SYNTH)
#define MANY 65536u

static const char *const placements[] = {"linear", "round_robin", NULL};
static const char *const reads[] = {"auto", "pread", "null", NULL};
static const char *const autos[] = {"auto", "on", "off", NULL};
static const char *const scopes[] = {"auto", "world", "node", "rank", NULL};
static const char *const devices[] = {"auto", "host", "cuda", "null", NULL};
static const char *const dtypes[] = {"auto", "bf16", "f16", "f32", NULL};
static const char *const untils[] = {"processed", "loaded", NULL};
static const char *const colors[] = {"auto", "off", NULL};
static const char *const fills[] = {"zero-sparse", "lade-fill-1", NULL};
static const char *const levels[] = {"error", "warn",  "info",
                                     "debug", "trace", NULL};

#define FLAG(name, letter, verbs, member, help)                                \
    {                                                                          \
        name, letter, NULL, help, LADE_OPT_FLAG, verbs, AT(member), 0, 0,      \
            NULL, NULL                                                         \
    }
#define U32(name, metavar, verbs, member, min, max, help)                      \
    {                                                                          \
        name, 0, metavar, help, LADE_OPT_U32, verbs, AT(member), min, max,     \
            NULL, NULL                                                         \
    }
#define SIZE(name, verbs, member, min, help)                                   \
    {                                                                          \
        name, 0, "SIZE", help, LADE_OPT_SIZE, verbs, AT(member), min,          \
            UINT64_C(1) << 60, NULL, NULL                                      \
    }
#define TEXT(name, metavar, verbs, member, help)                               \
    {                                                                          \
        name, 0, metavar, help, LADE_OPT_TEXT, verbs, AT(member), 0, 0, NULL,  \
            NULL                                                               \
    }
#define CHOICE(name, metavar, verbs, member, words, initial, help)             \
    {                                                                          \
        name, 0, metavar, help, LADE_OPT_CHOICE, verbs, AT(member), 0, 0,      \
            words, initial                                                     \
    }

const struct lade_option cli_table[] = {
    /* the layout */
    U32("tp", "N", LAYOUT, tp, 1, MANY,
        "tensor-parallel size (default: the number of ranks, if no size is "
        "given)"),
    U32("pp", "N", LAYOUT, pp, 1, MANY, "pipeline stages (default 1)"),
    U32("dp", "N", LAYOUT, dp, 1, MANY, "data-parallel replicas (default 1)"),
    FLAG("ep", 0, LAYOUT, ep, "whole experts, spread over all dp*tp ranks"),
    CHOICE("expert-placement", "P", LAYOUT, expert_placement, placements,
           "linear", "linear or round_robin"),
    U32("redundant-experts", "N", LAYOUT, redundant_experts, 0, MANY,
        "extra expert slots in all (EPLB)"),
    TEXT("expert-map", "FILE", LAYOUT, expert_map,
         "JSON: physical to logical experts, a list or a list per layer"),
    U32("nodes", "N", LAYOUT, nodes, 1, MANY,
        "plan: spread the ranks over N nodes, in blocks; load: treat them so"),
    U32("world", "N", CLI_PLAN | CLI_INSPECT, world, 1, MANY,
        "ranks of the world to plan (default: the product of the sizes)"),
    /* the checkpoint */
    {"format", 0, "F", "auto, hf or safetensors", LADE_OPT_TEXT, LAYOUT,
     AT(format), 0, 0, NULL, "auto"},
    TEXT("family", "FILE", LAYOUT, family, "a model family of your own (JSON)"),
    CHOICE("dtype", "T", LAYOUT, dtype, dtypes, "auto",
           "dtype of the engine: auto, bf16, f16 or f32"),
    FLAG("no-strict", 0, LAYOUT, no_strict,
         "missing and unknown tensors only warn"),
    FLAG("ignore-index", 0, LAYOUT, ignore_index,
         "all files count, not those of the index"),
    /* how it is read */
    CHOICE("read", "E", LAYOUT, read, reads, "auto",
           "read engine: auto, pread or null (reads nothing)"),
    CHOICE("direct", "D", LAYOUT, direct, autos, "auto",
           "past the page cache: auto, on or off"),
    CHOICE("scope", "S", LAYOUT, scope, scopes, "auto",
           "who shares one read: auto, world, node or rank"),
    U32("threads", "N", LAYOUT, threads, 1, 1024,
        "reading threads of a node, divided over its ranks"),
    U32("depth", "N", LAYOUT, depth, 1, 65536,
        "reads in flight of a node, divided over its ranks"),
    SIZE("block", LAYOUT, block, 4096, "longest single read"),
    SIZE("staging", LAYOUT, staging, 65536, "bytes in flight of a node"),
    SIZE("memory", LAYOUT, memory, 1,
         "refuse when a node needs more than this"),
    CHOICE("device", "D", LAYOUT, device, devices, "auto",
           "where parameters go: auto, host, cuda or null (nowhere)"),
    CHOICE("until", "STATE", CLI_LOAD, until, untils, "processed",
           "stop when loaded or processed"),
    {"timeout", 0, "SEC", "longest wait without progress", LADE_OPT_SECONDS,
     CLI_LOAD, AT(timeout), 0, 0, NULL, "300"},
    /* what is told */
    TEXT("digests", "FILE", CLI_LOAD, digests,
         "write a digest of every parameter of every rank"),
    TEXT("json", "FILE", CLI_LOAD | CLI_PLAN, json, "write the report"),
    TEXT("trace", "FILE", CLI_LOAD, trace,
         "write time spans (Chrome trace events)"),
    TEXT("show", "LIST", CLI_INSPECT, show,
         "what: files,tensors,config,families,shell,routes,plan"),
    TEXT("name", "GLOB", CLI_INSPECT, name,
         "only names that match, as *.mlp.*"),
    /* synth */
    TEXT("preset", "NAME", CLI_SYNTH, preset, "a model that lade knows"),
    TEXT("model", "FILE", CLI_SYNTH, model, "a model file of your own"),
    TEXT("out", "DIR", CLI_SYNTH, out, "where the checkpoint goes"),
    FLAG("tiny", 0, CLI_SYNTH, tiny, "the small form of the model"),
    {"set", 0, "KEY=VALUE", "change a key of config.json; may be repeated",
     LADE_OPT_LIST, CLI_SYNTH, AT(set), 0, 0, NULL, NULL},
    CHOICE("fill", "F", CLI_SYNTH, fill, fills, "zero-sparse",
           "zero-sparse (no disk blocks) or lade-fill-1 (values from names)"),
    U32("seed", "N", CLI_SYNTH, seed, 0, UINT32_MAX,
        "seed of lade-fill-1 (default 0)"),
    /* general */
    FLAG("force", 0, CLI_LOAD | CLI_PLAN | CLI_SYNTH, force,
         "overwrite files that exist"),
    TEXT("progress", "P", CLI_LOAD, progress,
         "auto (a bar on a terminal), off, or a line every so many seconds"),
    TEXT("settings", "FILE", ALL, settings,
         "JSON object with option names as keys"),
    FLAG("verbose", 'v', ALL, verbose, "tell what is done (as --log info)"),
    FLAG("quiet", 'q', ALL, quiet, "errors only, no table"),
    CHOICE("log", "LEVEL", ALL, log, levels, "warn",
           "error, warn, info, debug or trace"),
    CHOICE("color", "C", ALL, color, colors, "auto",
           "auto (on a terminal) or off"),
};
const int cli_table_count = sizeof cli_table / sizeof cli_table[0];

static int row_of(const char *name)
{
    for (int i = 0; i < cli_table_count; i++)
        if (strcmp(cli_table[i].name, name) == 0)
            return i;
    return -1;
}

const char *cli_choice(const char *name, int index)
{
    return cli_table[row_of(name)].choices[index];
}

bool cli_given(const struct cli *cli, const char *name)
{
    return cli->set.given[row_of(name)];
}

int cli_usage(lade_err *err, const char *fmt, ...)
{
    char text[sizeof err->text];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return lade_err_set(err, LADE_E_USAGE, "%s", text);
}

void cli_options(const struct cli *cli, lade_options *options)
{
    const struct cli_values *v = &cli->values;

    *options = (lade_options)LADE_OPTIONS_INIT;
    options->tp = v->tp;
    options->pp = v->pp;
    options->dp = v->dp;
    options->ep = v->ep;
    options->expert_placement =
        cli_choice("expert-placement", v->expert_placement);
    options->redundant_experts = v->redundant_experts;
    options->expert_map = v->expert_map;
    options->format = v->format;
    options->family = v->family;
    options->dtype = cli_choice("dtype", v->dtype);
    options->no_strict = v->no_strict;
    options->ignore_index = v->ignore_index;
    options->read = cli_choice("read", v->read);
    options->direct = cli_choice("direct", v->direct);
    options->scope = cli_choice("scope", v->scope);
    options->device = cli_choice("device", v->device);
    options->threads = v->threads;
    options->depth = v->depth;
    options->block = v->block;
    options->staging = v->staging;
    options->memory = v->memory;
    options->until = cli_choice("until", v->until);
    options->timeout_s = v->timeout;
    options->nodes = v->nodes;
    options->trace = v->trace != NULL;
    options->launcher = cli->launcher;
}

/* Pairs that exclude one another, by name. */
static int check_pairs(const struct cli *cli, lade_err *err)
{
    const struct cli_values *v = &cli->values;

    if (v->verbose && v->quiet)
        return cli_usage(err, "--verbose and --quiet exclude one another");
    if (v->expert_map && v->redundant_experts)
        return cli_usage(err, "--expert-map and --redundant-experts exclude "
                              "one another: the map says how many slots "
                              "there are");
    if (v->digests && strcmp(cli_choice("device", v->device), "null") == 0)
        return cli_usage(err, "--digests and --device null exclude one "
                              "another: no parameter is in memory");
    if (v->direct == 1 && strcmp(cli_choice("read", v->read), "null") == 0)
        return cli_usage(err, "--direct on and --read null exclude one "
                              "another: nothing is read");
    if (v->redundant_experts && !v->ep)
        return cli_usage(err, "--redundant-experts needs --ep: without it "
                              "every rank has a part of all experts");
    return LADE_OK;
}

int cli_check(const struct cli *cli, lade_err *err)
{
    const struct cli_values *v = &cli->values;
    int rc = LADE_OK;

    enum lade_format format;

    LADE_TRY(check_pairs(cli, err));
    if (v->format)
        LADE_TRY(lade_format_find(v->format, &format, err));
    if (cli_given(cli, "timeout") && !(v->timeout > 0))
        return cli_usage(err, "--timeout: needs more than 0 seconds");
    if (v->staging && v->block && v->block > v->staging)
        return cli_usage(err,
                         "--block %llu is more than --staging %llu: a read "
                         "must fit into the bytes in flight",
                         (unsigned long long)v->block,
                         (unsigned long long)v->staging);
    if (cli->verb == CLI_SYNTH)
        return rc;
    struct lade_layout layout = {.tp = v->tp, .pp = v->pp, .dp = v->dp};
    layout.world = (uint32_t)cli->size;
    if (cli->verb != CLI_LOAD)
        layout.world = v->world;
    if (layout.world > 0)
        LADE_TRY(lade_layout_resolve(&layout, err));
    if (v->nodes > layout.world && layout.world > 0)
        return cli_usage(err, "--nodes %u: there are only %u ranks", v->nodes,
                         layout.world);
out:
    return rc;
}
