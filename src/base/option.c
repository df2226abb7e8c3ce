/*
 * In: a table, the environment, a settings file, the command line. Out: values
 * in the caller's struct, and where each came from. Nothing is ignored: what
 * is not in the table is an error (command line, settings) or a warning
 * (environment), with the nearest name.
 */
#include "base/option.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/log.h"
#include "base/option_value.h"

#define SETTINGS_LIMIT (UINT64_C(1) << 20)
#define MAX_OPTIONS 128

extern char **environ;

static const char by_line[] = "command line", by_environment[] = "environment",
                  by_settings[] = "settings";

static int find(const struct lade_option_set *set, const char *name,
                size_t length)
{
    for (int i = 0; i < set->count; i++)
        if (strlen(set->table[i].name) == length &&
            memcmp(set->table[i].name, name, length) == 0)
            return i;
    return -1;
}

static int unknown(const struct lade_option_set *set, const char *what,
                   const char *name, lade_err *err)
{
    const char *names[MAX_OPTIONS + 1];
    int count = 0;

    for (int i = 0; i < set->count && count < MAX_OPTIONS; i++)
        if (set->table[i].verbs & set->verb)
            names[count++] = set->table[i].name;
    names[count] = NULL;
    const char *near = lade_nearest(name, names);
    return lade_err_set(err, LADE_E_USAGE, "unknown %s --%s%s%s%s", what, name,
                        near ? "; did you mean --" : " (see --help)",
                        near ? near : "", near ? "?" : "");
}

/* Is `entry` ("LADE_EXPERT_MAP=x") the variable of option "expert-map"? */
static bool is_variable_of(const char *entry, size_t length, const char *name)
{
    if (strlen(name) != length - 5)
        return false;
    for (size_t i = 0; name[i] != 0; i++)
        if (entry[5 + i] !=
            (name[i] == '-' ? '_' : toupper((unsigned char)name[i])))
            return false;
    return true;
}

/* Variables of options that this verb does not take are for other verbs. */
static int from_variable(struct lade_option_set *set, const char *entry,
                         size_t length, lade_err *err)
{
    lade_err inner = LADE_ERR_INIT;

    for (int i = 0; i < set->count; i++) {
        if (!is_variable_of(entry, length, set->table[i].name))
            continue;
        if (!(set->table[i].verbs & set->verb))
            return LADE_OK;
        int rc = lade_option_set_value(set, i, entry + length + 1,
                                       by_environment, &inner);
        return rc == LADE_OK ? rc
                             : lade_err_set(err, rc, "environment %.*s: %s",
                                            (int)length, entry, inner.text);
    }
    lade_warn("%.*s in the environment is no option of lade; not used",
              (int)length, entry);
    return LADE_OK;
}

static int from_environment(struct lade_option_set *set, lade_err *err)
{
    int rc = LADE_OK;

    for (char **entry = environ; entry && *entry && rc == LADE_OK; entry++) {
        const char *equals = strchr(*entry, '=');
        if (equals != NULL && strncmp(*entry, "LADE_", 5) == 0)
            rc = from_variable(set, *entry, (size_t)(equals - *entry), err);
    }
    return rc;
}

/* One setting; lists may be arrays of text. */
static int from_setting(struct lade_option_set *set, int index,
                        const cJSON *item, lade_err *err)
{
    const cJSON *one = cJSON_IsArray(item) ? item->child : item;
    const struct lade_option *option = &set->table[index];
    char number[64];
    int64_t whole;
    int rc = LADE_OK;

    if (cJSON_IsArray(item) && option->kind != LADE_OPT_LIST)
        return lade_err_set(err, LADE_E_USAGE, "%s is a list, one is needed",
                            option->name);
    for (; one && rc == LADE_OK; one = cJSON_IsArray(item) ? one->next : NULL) {
        const char *text = one->valuestring;
        if (cJSON_IsBool(one))
            text = cJSON_IsTrue(one) ? "1" : "0";
        if (cJSON_IsNumber(one)) {
            if (lade_json_i64(one, &whole))
                snprintf(number, sizeof(number), "%lld", (long long)whole);
            else
                snprintf(number, sizeof(number), "%.15g", one->valuedouble);
            text = number;
        }
        if (text == NULL)
            return lade_err_set(err, LADE_E_USAGE,
                                "%s is not a text, number or boolean",
                                option->name);
        rc = lade_option_set_value(set, index, text, by_settings, err);
    }
    return rc;
}

/* Keys of options that this verb does not take are for other verbs; what
 * command line or environment gave stays. */
static int from_object(struct lade_option_set *set, const cJSON *root,
                       lade_err *err)
{
    int rc = LADE_OK;

    if (!cJSON_IsObject(root))
        return lade_err_set(err, LADE_E_USAGE, "not a JSON object");
    for (const cJSON *item = root->child; item && rc == LADE_OK;
         item = item->next) {
        int index = find(set, item->string, strlen(item->string));
        if (strcmp(item->string, "settings") == 0)
            rc = lade_err_set(err, LADE_E_USAGE,
                              "settings cannot name a further file");
        else if (index < 0)
            rc = unknown(set, "setting", item->string, err);
        else if ((set->table[index].verbs & set->verb) && !set->given[index])
            rc = from_setting(set, index, item, err);
    }
    return rc;
}

static int from_settings(struct lade_option_set *set, const char *path,
                         lade_err *err)
{
    lade_err inner = LADE_ERR_INIT;
    cJSON *root = NULL;
    int rc = lade_json_read(path, SETTINGS_LIMIT, &root, &inner);

    if (rc != LADE_OK)
        return lade_err_set(err, LADE_E_USAGE, "--settings: %s", inner.text);
    rc = from_object(set, root, &inner);
    cJSON_Delete(root);
    return rc == LADE_OK
               ? rc
               : lade_err_set(err, rc, "--settings %s: %s", path, inner.text);
}

struct words {
    const char **list;
    int max, *count;
};

static int add_word(struct words *words, const char *word, lade_err *err)
{
    if (*words->count == words->max)
        return lade_err_set(err, LADE_E_USAGE, "one word too many: %s", word);
    words->list[(*words->count)++] = word;
    return LADE_OK;
}

/* Two values for one option would mean that one is ignored. */
static int from_word(struct lade_option_set *set, int index, const char *text,
                     lade_err *err)
{
    const struct lade_option *option = &set->table[index];

    if (set->source[index] == by_line && option->kind != LADE_OPT_LIST &&
        (option->kind != LADE_OPT_FLAG || text != NULL))
        return lade_err_set(err, LADE_E_USAGE, "--%s is given twice",
                            option->name);
    return lade_option_set_value(set, index, text, by_line, err);
}

/* The word after an option is its value, unless it is an option itself. */
static int next_word(const struct lade_option *option, int argc, char **argv,
                     int *at, const char **text, lade_err *err)
{
    if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0)
        return lade_err_set(err, LADE_E_USAGE, "--%s needs a value (%s)",
                            option->name, option->metavar);
    *text = argv[++*at];
    return LADE_OK;
}

static int from_long(struct lade_option_set *set, int argc, char **argv,
                     int *at, lade_err *err)
{
    const char *name = argv[*at] + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const char *text = equals ? equals + 1 : NULL;
    char copy[128];
    int index = find(set, name, length), rc = LADE_OK;

    snprintf(copy, sizeof(copy), "%.*s", (int)lade_min_u64(length, 127), name);
    if (index < 0)
        return unknown(set, "option", copy, err);
    const struct lade_option *option = &set->table[index];
    if (!(option->verbs & set->verb))
        return lade_err_set(err, LADE_E_USAGE,
                            "--%s is an option of other verbs, not of this "
                            "one (see --help)",
                            copy);
    if (text == NULL && option->kind != LADE_OPT_FLAG)
        LADE_TRY(next_word(option, argc, argv, at, &text, err));
    LADE_TRY(from_word(set, index, text, err));
out:
    return rc;
}

static int from_letters(struct lade_option_set *set, int argc, char **argv,
                        int *at, lade_err *err)
{
    int rc = LADE_OK;

    for (const char *c = argv[*at] + 1; *c; c++) {
        int index = -1;
        for (int i = 0; i < set->count; i++)
            if (set->table[i].letter == *c && (set->table[i].verbs & set->verb))
                index = i;
        if (index < 0)
            return lade_err_set(err, LADE_E_USAGE,
                                "unknown option -%c (see --help)", *c);
        const struct lade_option *option = &set->table[index];
        bool flag = option->kind == LADE_OPT_FLAG;
        const char *text = flag || c[1] == 0 ? NULL : c + 1;
        if (!flag && text == NULL)
            LADE_TRY(next_word(option, argc, argv, at, &text, err));
        LADE_TRY(from_word(set, index, text, err));
        if (!flag)
            break;
    }
out:
    return rc;
}

static int from_command_line(struct lade_option_set *set, int argc, char **argv,
                             struct words *words, lade_err *err)
{
    bool only_words = false;
    int rc = LADE_OK;

    for (int at = 0; at < argc && rc == LADE_OK; at++) {
        const char *word = argv[at];
        if (only_words || word[0] != '-' || word[1] == 0)
            rc = add_word(words, word, err);
        else if (strcmp(word, "--") == 0)
            only_words = true;
        else if (word[1] == '-')
            rc = from_long(set, argc, argv, &at, err);
        else
            rc = from_letters(set, argc, argv, &at, err);
    }
    return rc;
}

int lade_option_parse(struct lade_option_set *set, int argc, char **argv,
                      const char **words, int max_words, int *word_count,
                      lade_err *err)
{
    struct words list = {words, max_words, word_count};
    int rc = LADE_OK, settings = find(set, "settings", strlen("settings"));

    *word_count = 0;
    if (set->count > MAX_OPTIONS)
        return lade_err_set(err, LADE_E_INTERNAL, "more than %d options",
                            MAX_OPTIONS);
    lade_option_clear(set);
    for (int i = 0; i < set->count; i++)
        if (set->table[i].initial != NULL)
            LADE_TRY(lade_option_set_value(set, i, set->table[i].initial, NULL,
                                           err));
    LADE_TRY(from_environment(set, err));
    LADE_TRY(from_command_line(set, argc, argv, &list, err));
    if (settings >= 0 && set->given[settings])
        LADE_TRY(from_settings(
            set, *(const char **)lade_option_at(set, &set->table[settings]),
            err));
out:
    return rc;
}
