/*
 * In: the table, or a set of values. Out: help text; the values that were
 * given, as JSON for the report.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "base/option_value.h"

#define HELP_COLUMN 29
#define HELP_WIDTH 80

/* Words from HELP_COLUMN on, broken before HELP_WIDTH; `at` is where we are. */
static void wrapped(FILE *out, const char *text, int at)
{
    while (*text == ' ')
        text++;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (at > HELP_COLUMN && at + 1 + length > HELP_WIDTH) {
            fputc('\n', out);
            at = 0;
        }
        if (at < HELP_COLUMN)
            at += fprintf(out, "%*s", HELP_COLUMN - at, "");
        else
            at += fprintf(out, " ");
        at += fprintf(out, "%.*s", length, text);
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

void lade_option_help(const struct lade_option *table, int count, unsigned verb,
                      void *out_file)
{
    FILE *out = out_file;

    for (int i = 0; i < count; i++) {
        char left[64], text[512], letter[8] = "    ";
        const struct lade_option *option = &table[i];
        bool told = option->initial == NULL || strstr(option->help, "default");
        if (!(option->verbs & verb))
            continue;
        if (option->letter)
            snprintf(letter, sizeof(letter), "-%c, ", option->letter);
        snprintf(left, sizeof(left), "%s--%s%s%s", letter, option->name,
                 option->metavar ? " " : "",
                 option->metavar ? option->metavar : "");
        snprintf(text, sizeof(text), "%s%s%s%s", option->help,
                 told ? "" : " (default ", told ? "" : option->initial,
                 told ? "" : ")");
        int at = fprintf(out, "  %s ", left);
        if (at > HELP_COLUMN) {
            fputc('\n', out);
            at = 0;
        }
        wrapped(out, text, at);
    }
}

static cJSON *echo_list(const char *lines)
{
    cJSON *list = cJSON_CreateArray(), *string;

    while (list != NULL && *lines) {
        size_t length = strcspn(lines, "\n");
        char *line = cJSON_malloc(length + 1);
        if (line == NULL)
            break;
        memcpy(line, lines, length);
        line[length] = 0;
        string = cJSON_CreateString(line);
        cJSON_AddItemToArray(list, string);
        cJSON_free(line);
        lines += length + (lines[length] == '\n');
    }
    return list;
}

static cJSON *echo_value(const struct lade_option_set *set,
                         const struct lade_option *option)
{
    const void *value = lade_option_at(set, option);

    switch (option->kind) {
    case LADE_OPT_FLAG:
        return cJSON_CreateBool(*(const bool *)value);
    case LADE_OPT_U32:
        return cJSON_CreateNumber(*(const uint32_t *)value);
    case LADE_OPT_SIZE:
        return cJSON_CreateNumber((double)*(const uint64_t *)value);
    case LADE_OPT_SECONDS:
        return cJSON_CreateNumber(*(const double *)value);
    case LADE_OPT_CHOICE:
        return cJSON_CreateString(option->choices[*(const int *)value]);
    case LADE_OPT_LIST:
        return echo_list(*(const char *const *)value);
    default:
        return cJSON_CreateString(*(const char *const *)value);
    }
}

struct cJSON *lade_option_echo(const struct lade_option_set *set)
{
    cJSON *object = cJSON_CreateObject();

    for (int i = 0; i < set->count; i++)
        if (set->given[i])
            cJSON_AddItemToObject(object, set->table[i].name,
                                  echo_value(set, &set->table[i]));
    return object;
}
