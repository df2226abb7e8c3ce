/*
 * In: a table, the environment, a settings file, the command line. Out: values
 * in the caller's struct, and where each came from. Nothing is ignored: what
 * is not in the table is an error (command line, settings) or a warning
 * (environment), with the nearest name.
 */
#include "base/option.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/log.h"

#define SETTINGS_LIMIT (UINT64_C(1) << 20)
#define MAX_OPTIONS 128

extern char **environ;

unsigned lade_edit_distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b);
    unsigned char row[256];

    if (m > 254 || n > 254)
        return strcmp(a, b) == 0 ? 0 : 255;
    for (size_t j = 0; j <= n; j++)
        row[j] = (unsigned char)j;
    for (size_t i = 1; i <= m; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned char)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1u < best)
                best = row[j] + 1u;
            if (row[j - 1] + 1u < best)
                best = row[j - 1] + 1u;
            diagonal = row[j];
            row[j] = (unsigned char)best;
        }
    }
    return row[n];
}

const char *lade_nearest(const char *word, const char *const *words)
{
    const char *best = NULL;
    unsigned least = (unsigned)strlen(word) / 2 + 1;

    for (; *words; words++) {
        unsigned distance = lade_edit_distance(word, *words);
        bool starts =
            strlen(word) >= 3 && strncmp(word, *words, strlen(word)) == 0;
        if (starts && distance > 1)
            distance = 1;
        if (distance <= least && (best == NULL || distance < least)) {
            best = *words;
            least = distance;
        }
    }
    return best;
}

int lade_option_size(const char *text, uint64_t *bytes, lade_err *err)
{
    static const char units[] = "KMGT";
    uint64_t number = 0, factor = 1;
    const char *c = text;

    for (; isdigit((unsigned char)*c); c++)
        if (!lade_mul_u64(number, 10, &number) ||
            !lade_add_u64(number, (uint64_t)(*c - '0'), &number))
            return lade_err_set(err, LADE_E_USAGE, "%s is too large", text);
    if (c == text)
        return lade_err_set(err, LADE_E_USAGE,
                            "'%s' is not a size (a whole number, then K, M, G "
                            "or T)",
                            text);
    if (*c != 0) {
        const char *unit = strchr(units, toupper((unsigned char)*c));
        if (unit == NULL || c[1] != 0)
            return lade_err_set(err, LADE_E_USAGE,
                                "'%s' is not a size (a whole number, then K, "
                                "M, G or T)",
                                text);
        for (const char *u = units; u <= unit; u++)
            factor *= 1024;
    }
    if (!lade_mul_u64(number, factor, bytes))
        return lade_err_set(err, LADE_E_USAGE, "%s is too large", text);
    return LADE_OK;
}

/* ---- values ---- */

static void *value_at(const struct lade_option_set *set,
                      const struct lade_option *option)
{
    return (char *)set->values + option->at;
}

static int out_of_range(const struct lade_option *option, const char *text,
                        lade_err *err)
{
    return lade_err_set(err, LADE_E_USAGE, "--%s %s: must be %llu .. %llu",
                        option->name, text, (unsigned long long)option->min,
                        (unsigned long long)option->max);
}

static int set_number(struct lade_option_set *set,
                      const struct lade_option *option, const char *text,
                      lade_err *err)
{
    uint64_t number = 0;
    lade_err inner = LADE_ERR_INIT;
    const char *c = text;

    if (option->kind == LADE_OPT_SIZE) {
        if (lade_option_size(text, &number, &inner) != LADE_OK)
            return lade_err_set(err, LADE_E_USAGE, "--%s: %s", option->name,
                                inner.text);
    } else {
        for (; isdigit((unsigned char)*c) && number <= UINT32_MAX; c++)
            number = number * 10 + (uint64_t)(*c - '0');
        if (c == text || *c != 0)
            return lade_err_set(err, LADE_E_USAGE,
                                "--%s '%s' is not a whole number", option->name,
                                text);
    }
    if ((option->min != 0 || option->max != 0) &&
        (number < option->min || number > option->max))
        return out_of_range(option, text, err);
    if (option->kind == LADE_OPT_SIZE)
        *(uint64_t *)value_at(set, option) = number;
    else if (number > UINT32_MAX)
        return out_of_range(option, text, err);
    else
        *(uint32_t *)value_at(set, option) = (uint32_t)number;
    return LADE_OK;
}

static int set_seconds(struct lade_option_set *set,
                       const struct lade_option *option, const char *text,
                       lade_err *err)
{
    char *end;

    errno = 0;
    double seconds = strtod(text, &end);
    if (errno != 0 || end == text || *end != 0 || !isfinite(seconds) ||
        seconds < 0 || !(isdigit((unsigned char)*text) || *text == '.'))
        return lade_err_set(err, LADE_E_USAGE,
                            "--%s '%s' is not a number of seconds",
                            option->name, text);
    if ((option->min != 0 || option->max != 0) &&
        (seconds < (double)option->min || seconds > (double)option->max))
        return out_of_range(option, text, err);
    *(double *)value_at(set, option) = seconds;
    return LADE_OK;
}

static int set_choice(struct lade_option_set *set,
                      const struct lade_option *option, const char *text,
                      lade_err *err)
{
    char all[256] = "";
    size_t used = 0;

    for (int i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(text, option->choices[i]) == 0) {
            *(int *)value_at(set, option) = i;
            return LADE_OK;
        }
        int n = snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
                         option->choices[i]);
        used += n > 0 && (size_t)n < sizeof(all) - used ? (size_t)n : 0;
    }
    const char *near = lade_nearest(text, option->choices);
    return lade_err_set(err, LADE_E_USAGE, "--%s %s: not one of %s%s%s%s",
                        option->name, text, all, near ? "; did you mean " : "",
                        near ? near : "", near ? "?" : "");
}

static int set_flag(struct lade_option_set *set,
                    const struct lade_option *option, const char *text,
                    lade_err *err)
{
    bool on =
        text == NULL || strcmp(text, "1") == 0 || strcmp(text, "true") == 0;

    if (!on && strcmp(text, "0") != 0 && strcmp(text, "false") != 0)
        return lade_err_set(err, LADE_E_USAGE,
                            "--%s takes no value (or 0 or 1), not '%s'",
                            option->name, text);
    *(bool *)value_at(set, option) = on;
    return LADE_OK;
}

static int set_text(struct lade_option_set *set,
                    const struct lade_option *option, const char *text,
                    bool more, lade_err *err)
{
    const char **value = value_at(set, option);

    *value = more && *value
                 ? lade_arena_printf(set->arena, err, "%s\n%s", *value, text)
                 : lade_arena_strdup(set->arena, text, err);
    return *value ? LADE_OK : LADE_E_MEMORY;
}

static int set_value(struct lade_option_set *set, int index, const char *text,
                     const char *source, lade_err *err)
{
    const struct lade_option *option = &set->table[index];
    bool again = set->source[index] == source && source != NULL;
    int rc;

    switch (option->kind) {
    case LADE_OPT_FLAG:
        rc = set_flag(set, option, text, err);
        break;
    case LADE_OPT_SECONDS:
        rc = set_seconds(set, option, text, err);
        break;
    case LADE_OPT_CHOICE:
        rc = set_choice(set, option, text, err);
        break;
    case LADE_OPT_TEXT:
    case LADE_OPT_LIST:
        rc = set_text(set, option, text, option->kind == LADE_OPT_LIST && again,
                      err);
        break;
    default:
        rc = set_number(set, option, text, err);
        break;
    }
    if (rc == LADE_OK && source != NULL) {
        set->given[index] = true;
        set->source[index] = source;
    }
    return rc;
}

/* ---- sources ---- */

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

static void environment_name(const char *name, char *out, size_t size)
{
    int n = snprintf(out, size, "LADE_%s", name);

    for (int i = 0; i < n && (size_t)i < size; i++)
        out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
}

static int from_environment(struct lade_option_set *set, lade_err *err)
{
    char name[128];

    for (char **entry = environ; entry && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        bool known = false;
        if (equals == NULL || strncmp(*entry, "LADE_", 5) != 0)
            continue;
        for (int i = 0; i < set->count; i++) {
            environment_name(set->table[i].name, name, sizeof(name));
            size_t length = (size_t)(equals - *entry);
            if (strlen(name) != length || memcmp(name, *entry, length) != 0)
                continue;
            known = true;
            if (!(set->table[i].verbs & set->verb))
                continue;
            int rc = set_value(set, i, equals + 1, "environment", err);
            if (rc != LADE_OK)
                return rc;
        }
        if (!known)
            lade_warn("%.*s in the environment is no option of lade",
                      (int)(equals - *entry), *entry);
    }
    return LADE_OK;
}

/* One setting; lists may be arrays of text. */
static int from_setting(struct lade_option_set *set, int index,
                        const cJSON *item, lade_err *err)
{
    const cJSON *one = cJSON_IsArray(item) ? item->child : item;
    char number[64];
    int rc = LADE_OK;

    for (; one && rc == LADE_OK; one = cJSON_IsArray(item) ? one->next : NULL) {
        const char *text = one->valuestring;
        if (cJSON_IsBool(one))
            text = cJSON_IsTrue(one) ? "1" : "0";
        if (cJSON_IsNumber(one)) {
            snprintf(number, sizeof(number), "%.15g", one->valuedouble);
            text = number;
        }
        if (text == NULL)
            return lade_err_set(err, LADE_E_USAGE,
                                "--settings: %s: not a text, number or "
                                "boolean",
                                set->table[index].name);
        rc = set_value(set, index, text, "settings", err);
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
    if (!cJSON_IsObject(root))
        rc = lade_err_set(err, LADE_E_USAGE,
                          "--settings: %s: not a JSON object", path);
    for (const cJSON *item = rc == LADE_OK ? root->child : NULL;
         item && rc == LADE_OK; item = item->next) {
        int index = find(set, item->string, strlen(item->string));
        if (index < 0)
            rc = unknown(set, "setting", item->string, err);
        else if ((set->table[index].verbs & set->verb) && !set->given[index])
            rc = from_setting(set, index, item, err);
    }
    cJSON_Delete(root);
    return rc;
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

static int from_long(struct lade_option_set *set, int argc, char **argv,
                     int *at, lade_err *err)
{
    const char *name = argv[*at] + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    char copy[128];
    int index = find(set, name, length);

    snprintf(copy, sizeof(copy), "%.*s", (int)length, name);
    if (index < 0)
        return unknown(set, "option", copy, err);
    const struct lade_option *option = &set->table[index];
    if (!(option->verbs & set->verb))
        return lade_err_set(err, LADE_E_USAGE,
                            "--%s is no option of this verb (see --help)",
                            copy);
    const char *text = equals ? equals + 1 : NULL;
    if (text == NULL && option->kind != LADE_OPT_FLAG) {
        if (*at + 1 >= argc)
            return lade_err_set(err, LADE_E_USAGE, "--%s needs a value (%s)",
                                copy, option->metavar ? option->metavar : "");
        text = argv[++*at];
    }
    if (set->source[index] != NULL && option->kind != LADE_OPT_LIST &&
        strcmp(set->source[index], "command line") == 0)
        return lade_err_set(err, LADE_E_USAGE, "--%s is given twice", copy);
    return set_value(set, index, text, "command line", err);
}

static int from_letters(struct lade_option_set *set, int argc, char **argv,
                        int *at, lade_err *err)
{
    for (const char *c = argv[*at] + 1; *c; c++) {
        int index = -1;
        for (int i = 0; i < set->count; i++)
            if (set->table[i].letter == *c && (set->table[i].verbs & set->verb))
                index = i;
        if (index < 0)
            return lade_err_set(err, LADE_E_USAGE,
                                "unknown option -%c (see --help)", *c);
        if (set->table[index].kind == LADE_OPT_FLAG) {
            int rc = set_value(set, index, NULL, "command line", err);
            if (rc != LADE_OK)
                return rc;
            continue;
        }
        const char *text = c[1] ? c + 1 : *at + 1 < argc ? argv[++*at] : NULL;
        if (text == NULL)
            return lade_err_set(err, LADE_E_USAGE, "-%c needs a value (%s)", *c,
                                set->table[index].metavar);
        return set_value(set, index, text, "command line", err);
    }
    return LADE_OK;
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
    for (int i = 0; i < set->count; i++)
        if (set->table[i].initial != NULL)
            LADE_TRY(set_value(set, i, set->table[i].initial, NULL, err));
    LADE_TRY(from_environment(set, err));
    LADE_TRY(from_command_line(set, argc, argv, &list, err));
    if (settings >= 0 && set->given[settings])
        LADE_TRY(from_settings(
            set, *(const char **)value_at(set, &set->table[settings]), err));
out:
    return rc;
}

/* ---- help and echo ---- */

void lade_option_help(const struct lade_option *table, int count, unsigned verb,
                      void *out_file)
{
    FILE *out = out_file;

    for (int i = 0; i < count; i++) {
        char left[64], letter[8] = "    ";
        const struct lade_option *option = &table[i];
        if (!(option->verbs & verb))
            continue;
        if (option->letter)
            snprintf(letter, sizeof(letter), "-%c, ", option->letter);
        snprintf(left, sizeof(left), "%s--%s%s%s", letter, option->name,
                 option->metavar ? " " : "",
                 option->metavar ? option->metavar : "");
        fprintf(out, "  %-34s %s", left, option->help);
        if (option->initial != NULL)
            fprintf(out, " (%s)", option->initial);
        fputc('\n', out);
    }
}

static cJSON *echo_value(const struct lade_option_set *set,
                         const struct lade_option *option)
{
    const void *value = value_at(set, option);

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
