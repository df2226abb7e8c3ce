/*
 * lade plan CHECKPOINT. In: options that describe a world. Out: the table of
 * predictions, or the report as JSON. One process, headers only.
 */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/log.h"
#include "cli/cli.h"
#include "load/session.h"

static int write_report(struct cli *cli, struct lade_session *session,
                        lade_err *err)
{
    char *text = NULL;
    int rc = LADE_OK;

    if (!cli->values.json || !session || !session->report)
        return LADE_OK;
    cJSON_AddItemToObject(session->report, "options",
                          lade_option_echo(&cli->set));
    LADE_TRY(lade_report_json(session, &text, err));
    LADE_TRY(lade_write_file(cli->values.json, text, strlen(text),
                             cli->values.force, err));
out:
    lade_text_free(text);
    return rc;
}

static int print_table(const struct cli *cli, lade_session *session,
                       lade_err *err)
{
    char *table = NULL;
    int rc = LADE_OK;

    if (cli->values.quiet)
        return LADE_OK;
    LADE_TRY(lade_report_table(session, &table, err));
    fputs(table, stdout);
out:
    lade_text_free(table);
    return rc;
}

int cmd_plan(struct cli *cli)
{
    lade_err err = LADE_ERR_INIT, own = LADE_ERR_INIT;
    lade_session *session = NULL;
    lade_options options;

    if (cli->rank != 0)
        return 0; /* under a launcher one process is enough */
    if (cli->word_count != 1)
        cli_usage(&err, "plan needs one CHECKPOINT, not %d", cli->word_count);
    else
        cli_check_output(cli, cli->values.json, &err);
    if (err.status != LADE_OK)
        return cli_fail(cli, &err);
    cli_options(cli, &options);
    options.command = cli_command_line(cli);
    int rc = lade_session_plan(&session, cli->words[0], &options,
                               cli->values.world, &err);
    if (rc == LADE_OK) {
        rc = lade_session_open_all(session, LADE_UPTO_FORECAST, &err);
        lade_session_outcome_all(session, &err);
    }
    write_report(cli, session, rc == LADE_OK ? &err : &own);
    if (rc == LADE_OK && err.status == LADE_OK)
        print_table(cli, session, &err);
    lade_close(session);
    return err.status == LADE_OK ? 0 : cli_fail(cli, &err);
}
