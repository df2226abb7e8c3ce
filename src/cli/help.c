/*
 * In: a verb. Out: its help. The options come from the table.
 */
#include <stdio.h>

#include "cli/cli.h"

struct usage {
    enum cli_verb verb;
    const char *words, *text;
};

static const struct usage usages[] = {
    {CLI_LOAD, "CHECKPOINT",
     "Loads a checkpoint into the parameters of all ranks: reads every byte\n"
     "once, hands it to the ranks that need it, checks that every element of\n"
     "every parameter was written, and reports. Start it alone, under mpirun,\n"
     "or under srun --mpi=pmix.\n"},
    {CLI_PLAN, "CHECKPOINT",
     "Tells what a load would do and need in a whole world of ranks, from one\n"
     "process that reads headers only: bytes, requests, memory of each "
     "rank.\n"},
    {CLI_INSPECT, "CHECKPOINT",
     "Prints what the gates make of a checkpoint: its files and tensors, the\n"
     "model's parameters, where each tensor goes, and the plan.\n"},
    {CLI_SYNTH, "--preset NAME --out DIR",
     "Writes a checkpoint that needs no download: a known model in its true\n"
     "size without disk blocks, or small with values made from names.\n"},
};

void cli_help(FILE *out)
{
    fprintf(out,
            "usage: lade VERB [options] CHECKPOINT\n\n"
            "Loads a large-language-model checkpoint into the parameters of N "
            "ranks.\n\n"
            "verbs:\n"
            "  load      load it and report\n"
            "  plan      what a load would do, for any number of ranks\n"
            "  inspect   print files, tensors, parameters, routes or the plan\n"
            "  synth     write a checkpoint for tests\n"
            "  help      help of a verb: lade help load\n\n"
            "  --help, --version\n\n"
            "An option --some-name can also be given as LADE_SOME_NAME in the "
            "environment,\n"
            "or as \"some-name\" in the JSON file of --settings. Sizes take K, "
            "M, G, T (1024).\n\n"
            "examples:\n"
            "  lade load /models/qwen3-0.6b\n"
            "  mpirun -n 8 lade load --tp 2 --dp 4 --ep --json report.json "
            "/models/qwen3-30b-a3b\n"
            "  lade plan --tp 8 --dp 8 --ep --nodes 8 /models/qwen3-30b-a3b\n"
            "  lade synth --preset qwen3-30b-a3b --tiny --fill lade-fill-1 "
            "--out /tmp/tiny\n");
}

void cli_help_verb(FILE *out, enum cli_verb verb, const char *name)
{
    for (size_t i = 0; i < sizeof usages / sizeof usages[0]; i++)
        if (usages[i].verb == verb)
            fprintf(out, "usage: lade %s [options] %s\n\n%s\noptions:\n", name,
                    usages[i].words, usages[i].text);
    lade_option_help(cli_table, cli_table_count, verb, out);
}
