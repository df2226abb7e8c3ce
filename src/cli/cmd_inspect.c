/*
 * lade inspect CHECKPOINT. In: which products, a name pattern. Out: the
 * products as text, one item a line, each under a header line that begins with
 * #. Opens only the gates that are needed for what is shown.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "check/writer.h"
#include "cli/cli.h"
#include "load/session.h"

struct product {
    const char *name;
    int upto; /* enum lade_phase_limit; 0: needs no checkpoint */
    void (*print)(const struct lade_session *s, const char *glob);
};

static bool matches(const char *glob, const char *name)
{
    return !glob || fnmatch(glob, name, 0) == 0;
}

static void print_files(const struct lade_session *s, const char *glob)
{
    const struct lade_shard *shards =
        LADE_ITEMS(s->shards, shards, struct lade_shard);
    char size[24];

    printf("# files in %s (%s)\n", LADE_STRING(s->shards, pool, s->shards->dir),
           LADE_STRING(s->shards, pool, s->shards->filesystem));
    for (uint64_t i = 0; i < s->shards->shards.count; i++) {
        const char *name = LADE_STRING(s->shards, pool, shards[i].name);
        if (matches(glob, name))
            printf("%s  %" PRIu64 "  %s\n", name, shards[i].size,
                   lade_size_text(shards[i].size, size, sizeof size));
    }
}

static void print_tensors(const struct lade_session *s, const char *glob)
{
    const struct lade_catalogue *catalogue = LADE_CATALOGUE(s);
    const struct lade_row *rows = LADE_ITEMS(catalogue, rows, struct lade_row);
    const struct lade_shard *shards =
        LADE_ITEMS(s->shards, shards, struct lade_shard);
    char shape[160];

    printf("# tensors: name, dtype, shape, file, offset, bytes\n");
    for (uint64_t i = 0; i < catalogue->rows.count; i++) {
        const struct lade_row *row = &rows[i];
        const char *name = LADE_STRING(catalogue, pool, row->name);
        if (!matches(glob, name))
            continue;
        const char *dtype = row->dtype == LADE_DTYPE_UNKNOWN
                                ? LADE_STRING(catalogue, pool, row->dtype_name)
                                : lade_dtype_name((enum lade_dtype)row->dtype);
        printf("%s  %s  %s  %s  %" PRIu64 "  %" PRIu64 "\n", name, dtype,
               lade_shape_text(row->shape, row->ndim, shape, sizeof shape),
               LADE_STRING(s->shards, pool, shards[row->shard].name),
               row->offset, row->length);
    }
}

static void print_config(const struct lade_session *s, const char *glob)
{
    const struct lade_shell *shell = LADE_SHELL(s);
    const char *quantization = LADE_STRING(shell, pool, shell->quantization);

    (void)glob;
    printf("# config\n");
    printf("architecture  %s\n", LADE_STRING(shell, pool, shell->architecture));
    printf("family  %s\n", LADE_STRING(shell, pool, shell->family));
    printf("dtype  %s\n", lade_dtype_name((enum lade_dtype)shell->dtype));
    printf("quantization  %s\n", *quantization ? quantization : "none");
    printf("experts  %" PRIu32 "\n", shell->experts);
    printf("parameters  %" PRIu64 "\n", shell->params.count);
    printf("aliases  %" PRIu64 "\n", shell->aliases.count);
}

static void print_families(const struct lade_session *s, const char *glob)
{
    (void)s;
    printf("# families\n");
    for (const struct lade_embedded *f = lade_families; f->name; f++)
        if (matches(glob, f->name))
            printf("%s\n", f->name);
}

static void print_parts(const struct lade_session *s,
                        const struct lade_shell_param *param)
{
    static const char *const axes[] = {"whole", "tp", "kv", "moe tp"};
    const struct lade_shell *shell = LADE_SHELL(s);
    const struct lade_shell_part *parts =
        LADE_ITEMS(shell, parts, struct lade_shell_part);
    char shape[160];

    for (uint32_t i = 0; i < param->parts; i++) {
        const struct lade_shell_part *part = &parts[param->first_part + i];
        printf("    %s  %s", LADE_STRING(shell, pool, part->name),
               lade_shape_text(part->shape, part->ndim, shape, sizeof shape));
        if (part->axis == LADE_AXIS_NONE)
            printf("  whole%s\n", part->optional ? ", optional" : "");
        else
            printf("  dim %u cut by %s, %" PRIu64 " each, to %" PRIu64 "%s\n",
                   part->cut, axes[part->axis & 3], part->piece, part->start,
                   part->optional ? ", optional" : "");
    }
}

static void print_shell(const struct lade_session *s, const char *glob)
{
    const struct lade_shell *shell = LADE_SHELL(s);
    const struct lade_shell_param *params =
        LADE_ITEMS(shell, params, struct lade_shell_param);
    const struct lade_shell_alias *aliases =
        LADE_ITEMS(shell, aliases, struct lade_shell_alias);
    struct lade_coords at = lade_coords_of(&s->layout, 0);
    uint64_t dims[LADE_MAX_DIMS];
    char shape[160];

    printf("# parameters: name, dtype, shape on rank 0, layer; then the parts "
           "on disk\n");
    for (uint32_t i = 0; i < shell->params.count; i++) {
        const char *name = LADE_STRING(shell, pool, params[i].name);
        if (!matches(glob, name))
            continue;
        int ndim = lade_shell_shape(shell, &s->place, &at, i, dims);
        printf("%s  %s  %s  %" PRIu32 "\n", name,
               lade_dtype_name((enum lade_dtype)params[i].dtype),
               lade_shape_text(dims, ndim, shape, sizeof shape),
               params[i].layer);
        print_parts(s, &params[i]);
    }
    for (uint64_t i = 0; i < shell->aliases.count; i++)
        if (matches(glob, LADE_STRING(shell, pool, aliases[i].name)))
            printf("%s  is  %s\n", LADE_STRING(shell, pool, aliases[i].name),
                   LADE_STRING(shell, pool, params[aliases[i].param].name));
}

static void print_route(const struct lade_session *s,
                        const struct lade_route *route)
{
    const struct lade_shell *shell = LADE_SHELL(s);
    const struct lade_shell_part *parts =
        LADE_ITEMS(shell, parts, struct lade_shell_part);
    const struct lade_shell_param *params =
        LADE_ITEMS(shell, params, struct lade_shell_param);
    const struct lade_shell_rule *rules =
        LADE_ITEMS(shell, rules, struct lade_shell_rule);

    if (route->part == UINT32_MAX) {
        printf("dropped: %s",
               lade_route_reason_text((enum lade_route_reason)route->reason));
        if (route->reason == LADE_ROUTE_RULE &&
            route->rule < shell->rules.count)
            printf(" (%s)", LADE_STRING(shell, pool, rules[route->rule].why));
        printf("\n");
        return;
    }
    const struct lade_shell_part *part = &parts[route->part];
    printf("%s", LADE_STRING(shell, pool, params[part->param].name));
    if (part->experts)
        printf(" expert %" PRIu32, route->expert);
    printf("\n");
}

static void print_routes(const struct lade_session *s, const char *glob)
{
    const struct lade_catalogue *catalogue = LADE_CATALOGUE(s);
    const struct lade_row *rows = LADE_ITEMS(catalogue, rows, struct lade_row);
    const struct lade_route *routes =
        LADE_ITEMS(LADE_ROUTES(s), routes, struct lade_route);

    printf("# routes: tensor -> parameter\n");
    for (uint64_t i = 0; i < catalogue->rows.count; i++) {
        const char *name = LADE_STRING(catalogue, pool, rows[i].name);
        if (!matches(glob, name))
            continue;
        printf("%s -> ", name);
        print_route(s, &routes[i]);
    }
}

static uint32_t members(const struct lade_plan *plan, uint32_t set)
{
    const uint64_t *bits = lade_plan_set(plan, set);
    uint32_t count = 0;

    for (uint32_t r = 0; r < plan->ranks; r++)
        count += lade_bit_get(bits, r);
    return count;
}

static void print_plan(const struct lade_session *s, const char *glob)
{
    static const char *const scopes[] = {"auto", "world", "node", "rank"};
    const struct lade_plan *plan = LADE_PLAN(s);
    const struct lade_catalogue *catalogue = LADE_CATALOGUE(s);
    const struct lade_row *rows = LADE_ITEMS(catalogue, rows, struct lade_row);
    const struct lade_shard *shards =
        LADE_ITEMS(s->shards, shards, struct lade_shard);
    const struct lade_stripe *stripes =
        LADE_ITEMS(plan, stripes, struct lade_stripe);

    printf("# plan of the first sharing group (scope %s): round, kind, file, "
           "offset, bytes, reader, ranks that need it, first tensor\n",
           scopes[s->set.scope]);
    for (uint64_t i = 0; i < plan->stripes.count; i++) {
        const struct lade_stripe *stripe = &stripes[i];
        const char *name =
            LADE_STRING(catalogue, pool, rows[stripe->first_row].name);
        if (!matches(glob, name))
            continue;
        printf("%" PRIu32 "  %s  %s  %" PRIu64 "  %" PRIu32 "  %" PRIu32
               "  %" PRIu32 "  %s%s\n",
               stripe->round,
               stripe->kind == LADE_STRIPE_DIRECT ? "direct" : "shared",
               LADE_STRING(s->shards, pool, shards[stripe->shard].name),
               stripe->offset, stripe->length, stripe->reader,
               members(plan, stripe->set), name,
               stripe->rows > 1 ? " ..." : "");
    }
}

static const struct product products[] = {
    {"files", LADE_UPTO_LOCATE, print_files},
    {"tensors", LADE_UPTO_CATALOGUE, print_tensors},
    {"config", LADE_UPTO_MODEL, print_config},
    {"families", 0, print_families},
    {"shell", LADE_UPTO_MODEL, print_shell},
    {"routes", LADE_UPTO_ROUTE, print_routes},
    {"plan", LADE_UPTO_PLAN, print_plan},
};
#define PRODUCTS (sizeof products / sizeof products[0])

/* Which of them the list names. */
static int choose(const char *list, bool chosen[PRODUCTS], lade_err *err)
{
    const char *names[PRODUCTS + 1] = {0};
    const char *at = list;

    for (size_t i = 0; i < PRODUCTS; i++)
        names[i] = products[i].name;
    while (*at) {
        size_t length = strcspn(at, ","), found = PRODUCTS;
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        for (size_t i = 0; i < PRODUCTS; i++)
            if (strcmp(word, products[i].name) == 0)
                found = i;
        if (found == PRODUCTS) {
            const char *near = lade_nearest(word, names);
            return cli_usage(err, "--show %s: no such product%s%s%s", word,
                             near ? "; did you mean " : "", near ? near : "",
                             near ? "?" : "");
        }
        chosen[found] = true;
        at += length + (at[length] == ',' ? 1 : 0);
    }
    return LADE_OK;
}

static int open_gates(struct cli *cli, int upto, lade_session **session,
                      lade_err *err)
{
    lade_options options;
    int rc = LADE_OK;

    if (upto == 0)
        return LADE_OK;
    cli_options(cli, &options);
    LADE_TRY(lade_session_plan(session, cli->words[0], &options,
                               cli->values.world, err));
    LADE_TRY(lade_session_open_all(*session, (enum lade_phase_limit)upto, err));
out:
    return rc;
}

int cmd_inspect(struct cli *cli)
{
    bool chosen[PRODUCTS] = {false};
    const char *show = cli->values.show ? cli->values.show : "files,tensors";
    lade_session *session = NULL;
    lade_err err = LADE_ERR_INIT;
    int upto = 0;

    if (cli->rank != 0)
        return 0;
    choose(show, chosen, &err);
    for (size_t i = 0; i < PRODUCTS; i++)
        if (chosen[i] && products[i].upto > upto)
            upto = products[i].upto;
    if (upto > 0 && cli->word_count != 1)
        cli_usage(&err, "inspect needs one CHECKPOINT, not %d",
                  cli->word_count);
    if (err.status == LADE_OK)
        open_gates(cli, upto, &session, &err);
    for (size_t i = 0; i < PRODUCTS && err.status == LADE_OK; i++)
        if (chosen[i])
            products[i].print(session, cli->values.name);
    lade_close(session);
    return err.status == LADE_OK ? 0 : cli_fail(cli, &err);
}
