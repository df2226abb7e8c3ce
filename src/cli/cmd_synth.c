/*
 * lade synth --preset NAME --out DIR. In: options. Out: a checkpoint.
 */
#include <stdio.h>
#include <string.h>

#include "check/writer.h"
#include "cli/cli.h"
#include "synth/synth.h"

#define MOST_SETS 256

/* Repeated options arrive joined by line breaks. */
static int split_sets(struct cli *cli, const char **sets, int *count,
                      lade_err *err)
{
    char *at = NULL;

    *count = 0;
    if (!cli->values.set || !*cli->values.set)
        return LADE_OK;
    at = lade_arena_strdup(&cli->arena, cli->values.set, err);
    if (!at)
        return LADE_E_MEMORY;
    while (at) {
        char *end = strchr(at, '\n');
        if (*count == MOST_SETS)
            return cli_usage(err, "--set: more than %d of them", MOST_SETS);
        if (end)
            *end = '\0';
        sets[(*count)++] = at;
        at = end ? end + 1 : NULL;
    }
    return LADE_OK;
}

static int check(const struct cli *cli, lade_err *err)
{
    const struct cli_values *v = &cli->values;

    if (cli->word_count != 0)
        return cli_usage(err, "synth takes no CHECKPOINT; --out names the "
                              "folder");
    if (!v->preset == !v->model)
        return cli_usage(err, "synth needs --preset or --model, one of them");
    if (!v->out)
        return cli_usage(err, "synth needs --out DIR");
    return LADE_OK;
}

int cmd_synth(struct cli *cli)
{
    const struct cli_values *v = &cli->values;
    const char *sets[MOST_SETS];
    struct lade_synth_report report = {0};
    struct lade_synth_wish wish = {
        .preset = v->preset,
        .model_file = v->model,
        .out = v->out,
        .sets = sets,
        .fill = v->fill == 0 ? LADE_SYNTH_ZERO_SPARSE : LADE_SYNTH_FILL_1,
        .seed = v->seed,
        .threads = v->threads,
        .tiny = v->tiny,
        .force = v->force,
    };
    lade_err err = LADE_ERR_INIT;
    char size[24];

    if (cli->rank != 0)
        return 0;
    if (check(cli, &err) == LADE_OK &&
        split_sets(cli, sets, &wish.set_count, &err) == LADE_OK)
        lade_synth_write(&wish, cli->mem, &report, &err);
    if (err.status != LADE_OK)
        return cli_fail(cli, &err);
    if (!v->quiet)
        printf("# %s%s\n%s: %u files, %llu tensors, %s in %.2f s\n",
               report.model, v->tiny ? ", tiny" : "", v->out, report.files,
               (unsigned long long)report.tensors,
               lade_size_text(report.bytes, size, sizeof size), report.seconds);
    return 0;
}
