/*
 * lade load CHECKPOINT. In: options and ranks. Out: the table on rank 0's
 * stdout, the files that were asked for, an exit code that is the same on all
 * ranks.
 */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/log.h"
#include "cli/cli.h"
#include "load/session.h"

const char *cli_command_line(struct cli *cli)
{
    lade_err err = LADE_ERR_INIT;
    const char *line = "lade";

    for (int i = 1; i < cli->argc && line; i++)
        line =
            lade_arena_printf(&cli->arena, &err, "%s %s", line, cli->argv[i]);
    return line ? line : "lade";
}

/* Rank 0 writes; the agreement after it tells the others. */
static int write_text(const struct cli *cli, const char *path, const char *text,
                      lade_err *err)
{
    if (!path || !text)
        return LADE_OK;
    return lade_write_file(path, text, strlen(text), cli->values.force, err);
}

static int check_outputs_all(struct cli *cli, struct lade_comm *comm,
                             lade_err *err)
{
    const struct cli_values *v = &cli->values;

    if (comm->rank == 0 && cli_check_output(cli, v->json, err) == LADE_OK &&
        cli_check_output(cli, v->digests, err) == LADE_OK)
        cli_check_output(cli, v->trace, err);
    return lade_agree_all(comm, "options", err);
}

/* Digests and trace are made by all ranks together, so both are asked for even
 * when the first cannot be written. */
static int write_extras_all(struct cli *cli, struct lade_comm *comm,
                            lade_session *session, lade_err *err)
{
    const struct cli_values *v = &cli->values;
    char *digests = NULL, *trace = NULL;
    int rc = LADE_OK;

    if (v->digests)
        LADE_TRY(lade_digests_json_all(session, &digests, err));
    if (v->trace)
        LADE_TRY(lade_trace_json_all(session, &trace, err));
    if (comm->rank == 0 && write_text(cli, v->digests, digests, err) == LADE_OK)
        write_text(cli, v->trace, trace, err);
    rc = lade_agree_all(comm, "report", err);
out:
    lade_text_free(digests);
    lade_text_free(trace);
    return rc;
}

/* The report, also of a load that failed. */
static void write_report(struct cli *cli, struct lade_session *session,
                         lade_err *err)
{
    lade_err own = LADE_ERR_INIT;
    char *text = NULL;

    if (!session || !session->report || !cli->values.json)
        return;
    cJSON_AddItemToObject(session->report, "options",
                          lade_option_echo(&cli->set));
    if (lade_report_json(session, &text, &own) == LADE_OK)
        write_text(cli, cli->values.json, text, &own);
    if (own.status != LADE_OK)
        lade_err_set(err, own.status, "%s", own.text);
    lade_text_free(text);
}

static void print_table(const struct cli *cli, const lade_session *session)
{
    lade_err err = LADE_ERR_INIT;
    char *table = NULL;

    if (cli->values.quiet ||
        lade_report_table(session, &table, &err) != LADE_OK)
        return;
    fputs(table, stdout);
    fflush(stdout);
    lade_text_free(table);
}

static int load_all(struct cli *cli, struct lade_comm *comm,
                    struct cli_progress *progress, lade_err *err)
{
    lade_session *session = NULL;
    lade_options options;

    cli_options(cli, &options);
    options.command = cli_command_line(cli);
    options.interrupt = &cli_interrupt;
    options.progress = progress->on ? cli_progress_show : NULL;
    options.progress_ctx = progress;
    int rc = lade_open_all(&session, cli->words[0], &options, comm, err);
    if (rc == LADE_OK)
        rc = lade_load_all(session, err);
    cli_progress_clear(progress);
    if (rc == LADE_OK)
        rc = write_extras_all(cli, comm, session, err);
    if (comm->rank == 0)
        write_report(cli, session, err);
    if (rc == LADE_OK && cli->values.json)
        rc = lade_agree_all(comm, "report", err);
    if (rc == LADE_OK && comm->rank == 0)
        print_table(cli, session);
    lade_close(session);
    return rc;
}

int cmd_load(struct cli *cli)
{
    struct cli_progress progress;
    struct lade_comm *comm = NULL;
    lade_err err = LADE_ERR_INIT;
    int code;

    if (cli->word_count != 1)
        cli_usage(&err, "load needs one CHECKPOINT, not %d", cli->word_count);
    else
        cli_progress_init(&progress, cli, &err);
    if (err.status != LADE_OK)
        return cli_fail(cli, &err);
    if (cli_comm_open_all(cli, &comm, &err) != LADE_OK) {
        code = cli_fail(cli, &err);
        return cli_comm_close(cli, NULL, code);
    }
    comm->timeout_s = cli->values.timeout;
    if (check_outputs_all(cli, comm, &err) == LADE_OK)
        load_all(cli, comm, &progress, &err);
    code = err.status == LADE_OK ? 0 : cli_fail_all(cli, comm, &err);
    return cli_comm_close(cli, comm, code);
}
