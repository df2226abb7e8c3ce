/*
 * The program. main.c finds the verb and is the only file here that knows
 * mpi.h; options.c holds the one table; each verb has a file.
 */
#ifndef LADE_CLI_CLI_H
#define LADE_CLI_CLI_H

#include <stdio.h>

#include "base/option.h"
#include "comm/comm.h"

enum cli_verb {
    CLI_LOAD = 1,
    CLI_PLAN = 2,
    CLI_INSPECT = 4,
    CLI_SYNTH = 8,
};

/* One member for each row of the table. */
struct cli_values {
    uint32_t tp, pp, dp, redundant_experts, threads, depth, nodes, world, seed;
    bool ep, no_strict, ignore_index, force, verbose, quiet, tiny;
    int expert_placement, read, direct, scope, device, dtype, until;
    int color, fill, log;
    uint64_t block, memory, staging;
    double timeout;
    const char *format, *expert_map, *family, *digests, *json, *trace, *progress;
    const char *settings, *preset, *model, *out, *set, *show, *name;
};

extern const struct lade_option cli_table[];
extern const int cli_table_count;

/* One run of the program on one rank. */
struct cli {
    int argc;
    char **argv;
    enum cli_verb verb;
    const char *verb_name;
    struct cli_values values;
    struct lade_option_set set;
    struct lade_mem *mem;
    struct lade_arena arena;
    const char *words[4];
    int word_count;

    bool launched;  /* by mpirun, srun, ... */
    int rank, size; /* as the launcher's variables say; 0 of 1 without one */
    const char *launcher;
};

/* Set by SIGINT and SIGTERM to the status that the job is to end with. */
extern int cli_interrupt;

/* main.c: the ranks. Without a launcher this is one rank and MPI is not
 * started. */
int cli_comm_open_all(struct cli *cli, struct lade_comm **comm, lade_err *err);
/* Ends MPI, or the whole job when an agreement is impossible (comm->dead).
 * Returns the exit code of the process. */
int cli_comm_close(struct cli *cli, struct lade_comm *comm, int code);

/* Prints the error line once for the job; returns the exit code. */
int cli_fail(const struct cli *cli, const lade_err *err);
/* The same for an error that all ranks of `comm` hold. */
int cli_fail_all(const struct cli *cli, const struct lade_comm *comm,
                 const lade_err *err);
/* Fills *err with a usage error; returns LADE_E_USAGE. */
int cli_usage(lade_err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Values of the table as options of the library. */
void cli_options(const struct cli *cli, lade_options *options);
/* The word of a CHOICE option. */
const char *cli_choice(const char *name, int index);
/* Was it given by command line, environment or settings file? */
bool cli_given(const struct cli *cli, const char *name);
/* "lade load --tp 2 /models/x" */
const char *cli_command_line(struct cli *cli);
/* Options that exclude one another, numbers that cannot be. */
int cli_check(const struct cli *cli, lade_err *err);

/* A file that will be written: USAGE when it exists without --force or its
 * folder does not. path may be NULL. */
int cli_check_output(const struct cli *cli, const char *path, lade_err *err);

void cli_help(FILE *out);
void cli_help_verb(FILE *out, enum cli_verb verb, const char *name);

/* Progress on stderr; ctx is the struct. */
struct cli_progress {
    double every_s; /* 0: a bar, redrawn */
    bool on, drawn;
    uint64_t start_ns, last_ns;
};
int cli_progress_init(struct cli_progress *progress, const struct cli *cli,
                      lade_err *err);
void cli_progress_show(void *ctx, uint64_t done, uint64_t total);
void cli_progress_clear(struct cli_progress *progress);

int cmd_load(struct cli *cli);
int cmd_plan(struct cli *cli);
int cmd_inspect(struct cli *cli);
int cmd_synth(struct cli *cli);

#endif
