/*
 * In: argc, argv, the launcher's variables. Out: an exit code, the same on all
 * ranks.
 *
 * Finds the verb, reads the options before MPI is started, so that a mistake in
 * them costs nothing and is told once: each rank knows from its launcher
 * whether it is rank 0. The only file besides comm_mpi.c that knows mpi.h.
 */
#include <mpi.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lade_mpi.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "cli/cli.h"

int cli_interrupt;

struct verb {
    const char *name;
    enum cli_verb bit;
    int (*run)(struct cli *cli);
};

static const struct verb verbs[] = {
    {"load", CLI_LOAD, cmd_load},
    {"plan", CLI_PLAN, cmd_plan},
    {"inspect", CLI_INSPECT, cmd_inspect},
    {"synth", CLI_SYNTH, cmd_synth},
};
static const char *const verb_names[] = {"load",  "plan", "inspect",
                                         "synth", "help", NULL};
static const char *const later[] = {"bench",  "verify", "save",   "serve",
                                    "attach", "refit",  "report", NULL};

/* ---- errors ---- */

static void print_error(const struct cli *cli, const lade_err *err)
{
    char line[sizeof(lade_err) + 128];
    bool red = cli->values.color == 0 && isatty(STDERR_FILENO);

    lade_err_line(err, line, sizeof line);
    fprintf(stderr, "%s%s%s\n", red ? "\033[31m" : "", line,
            red ? "\033[0m" : "");
    fflush(stderr);
}

int cli_fail(const struct cli *cli, const lade_err *err)
{
    if (cli->rank == 0)
        print_error(cli, err);
    return lade_exit_code(err->status);
}

/* Nobody can be asked any more who tells it: the lowest rank that is alive is
 * the first to wake up, and ends the others. True if it did meanwhile. */
static bool told_by_another(int rank)
{
    int steps = rank > 0 ? 40 * (rank < 10 ? rank : 10) + 20 : 1;

    for (int i = 0; i < steps && cli_interrupt == 0; i++)
        lade_sleep_us(50000);
    return cli_interrupt != 0;
}

int cli_fail_all(const struct cli *cli, const struct lade_comm *comm,
                 const lade_err *err)
{
    bool mine = comm->rank == 0;

    if (comm->dead)
        mine = !told_by_another(comm->rank);
    if (mine)
        print_error(cli, err);
    return lade_exit_code(err->status);
}

int cli_check_output(const struct cli *cli, const char *path, lade_err *err)
{
    char folder[4096];
    struct stat st;

    if (!path)
        return LADE_OK;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return cli_usage(err, "%s: is a directory", path);
    if (stat(path, &st) == 0 && !cli->values.force)
        return cli_usage(err, "%s: exists; --force overwrites it", path);
    if (strlen(path) >= sizeof folder)
        return cli_usage(err, "%s: the name is too long", path);
    memcpy(folder, path, strlen(path) + 1);
    char *slash = strrchr(folder, '/');
    if (!slash)
        memcpy(folder, ".", 2);
    else
        slash[slash == folder ? 1 : 0] = '\0';
    if (stat(folder, &st) != 0)
        return cli_usage(err, "%s: its folder %s: %s", path, folder,
                         strerror(errno));
    if (access(folder, W_OK) != 0)
        return cli_usage(err, "%s: its folder %s cannot be written: %s", path,
                         folder, strerror(errno));
    return LADE_OK;
}

/* ---- signals ---- */

static void on_signal(int number)
{
    int status = number == SIGINT ? LADE_E_INTERRUPT : LADE_E_TERMINATED;

    __atomic_store_n(&cli_interrupt, status, __ATOMIC_RELAXED);
}

static void install_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

/* ---- ranks ---- */

int cli_comm_open_all(struct cli *cli, struct lade_comm **comm, lade_err *err)
{
    int level = 0, size = 0, rc = LADE_OK;

    if (!cli->launched) {
        install_signals();
        *comm = lade_comm_self_new(err);
        return *comm ? LADE_OK : err->status;
    }
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return lade_err_set(err, LADE_E_MPI, "MPI_Init_thread failed");
    install_signals(); /* after MPI, which has handlers of its own */
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (cli->size > 0 && size != cli->size)
        return lade_err_set(err, LADE_E_MPI,
                            "the launcher (%s) started %d ranks but MPI sees "
                            "%d; under srun try --mpi=pmix, else start with "
                            "the mpirun of this MPI",
                            cli->launcher, cli->size, size);
    if (level < MPI_THREAD_FUNNELED)
        return lade_err_set(err, LADE_E_MPI,
                            "this MPI offers no thread level FUNNELED; reading "
                            "threads need it");
    *comm = lade_comm_mpi_new(MPI_COMM_WORLD, err);
    if (!*comm)
        rc = err->status;
    return rc;
}

int cli_comm_close(struct cli *cli, struct lade_comm *comm, int code)
{
    bool dead = comm && comm->dead;
    int started = 0;

    fflush(stdout);
    if (cli->launched)
        MPI_Initialized(&started);
    if (dead && started) {
        int abort_code = code > 0 && code <= 125 ? code : 75;
        MPI_Abort(MPI_COMM_WORLD, abort_code);
    }
    lade_comm_free(comm);
    if (started)
        MPI_Finalize();
    return code;
}

/* ---- verbs ---- */

static int unknown_verb(const struct cli *cli, const char *word)
{
    lade_err err = LADE_ERR_INIT;

    for (int i = 0; later[i]; i++)
        if (strcmp(word, later[i]) == 0) {
            cli_usage(&err,
                      "%s: not in this version; there are load, plan, "
                      "inspect and synth",
                      word);
            return cli_fail(cli, &err);
        }
    const char *near = lade_nearest(word, verb_names);
    cli_usage(&err, "%s: no such verb%s%s%s", word,
              near ? "; did you mean " : "; try lade --help", near ? near : "",
              near ? "?" : "");
    return cli_fail(cli, &err);
}

static bool asks(const char *word, const char *name, const char *letter)
{
    return strcmp(word, name) == 0 || strcmp(word, letter) == 0;
}

/* --help and --version anywhere before "--". */
static bool answer(const struct cli *cli, const struct verb *verb)
{
    for (int i = 1; i < cli->argc && strcmp(cli->argv[i], "--") != 0; i++) {
        bool help = asks(cli->argv[i], "--help", "-h");
        bool version = asks(cli->argv[i], "--version", "-V");
        if (!help && !version)
            continue;
        if (cli->rank == 0 && version)
            printf("lade %s\n", lade_version());
        else if (cli->rank == 0 && verb)
            cli_help_verb(stdout, verb->bit, verb->name);
        else if (cli->rank == 0)
            cli_help(stdout);
        return true;
    }
    return false;
}

static const struct verb *find_verb(const char *word)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verbs[i].name, word) == 0)
            return &verbs[i];
    return NULL;
}

static void set_up_log(const struct cli *cli)
{
    char node[64];
    enum lade_level level = (enum lade_level)cli->values.log;

    if (cli->values.verbose && level < LADE_LOG_INFO)
        level = LADE_LOG_INFO;
    if (cli->values.quiet)
        level = LADE_LOG_ERROR;
    lade_host_name(node, sizeof node);
    lade_log_setup(level, cli->rank, cli->size, node);
}

static int run_verb(struct cli *cli, const struct verb *verb)
{
    lade_err err = LADE_ERR_INIT;

    cli->verb = verb->bit;
    cli->verb_name = verb->name;
    cli->mem = lade_mem_new();
    if (!cli->mem)
        return lade_exit_code(LADE_E_MEMORY);
    lade_arena_init(&cli->arena, cli->mem, LADE_TAG_TEMP);
    cli->set = (struct lade_option_set){
        .table = cli_table,
        .count = cli_table_count,
        .verb = verb->bit,
        .values = &cli->values,
        .arena = &cli->arena,
    };
    lade_log_setup(LADE_LOG_WARN, cli->rank, cli->size, "");
    int rc = lade_option_parse(&cli->set, cli->argc - 2, cli->argv + 2,
                               cli->words, 4, &cli->word_count, &err);
    if (rc == LADE_OK) {
        set_up_log(cli);
        rc = cli_check(cli, &err);
    }
    int code = rc == LADE_OK ? verb->run(cli) : cli_fail(cli, &err);
    lade_arena_fini(&cli->arena);
    lade_mem_free(cli->mem);
    return code;
}

int main(int argc, char **argv)
{
    struct cli cli = {.argc = argc, .argv = argv, .size = 1};
    const struct verb *verb = argc > 1 ? find_verb(argv[1]) : NULL;
    lade_err err = LADE_ERR_INIT;

    cli.launched = lade_host_launcher(&cli.rank, &cli.size, &cli.launcher);
    if (argc > 2 && strcmp(argv[1], "help") == 0 && find_verb(argv[2])) {
        verb = find_verb(argv[2]);
        if (cli.rank == 0)
            cli_help_verb(stdout, verb->bit, verb->name);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "help") == 0) {
        if (cli.rank == 0)
            cli_help(stdout);
        return 0;
    }
    if (answer(&cli, verb))
        return 0;
    if (argc < 2) {
        cli_usage(&err, "no verb; try lade --help");
        return cli_fail(&cli, &err);
    }
    if (!verb)
        return unknown_verb(&cli, argv[1]);
    return run_verb(&cli, verb);
}
