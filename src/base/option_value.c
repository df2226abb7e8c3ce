/*
 * In: a text for an option. Out: its value in the caller's struct, or an error
 * that names the option, what was found and what is possible.
 */
#include "base/option_value.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

#define MOST_SECONDS 1e9

static int no_size(const char *text, lade_err *err)
{
    return lade_err_set(err, LADE_E_USAGE,
                        "'%s' is not a size (a whole number, then K, M, G or "
                        "T)",
                        text);
}

int lade_option_size(const char *text, uint64_t *bytes, lade_err *err)
{
    static const char units[] = "KkMmGgTt";
    uint64_t number = 0, factor = 1;
    bool fits = true;
    const char *c = text;

    for (; *c >= '0' && *c <= '9'; c++)
        fits = fits && lade_mul_u64(number, 10, &number) &&
               lade_add_u64(number, (uint64_t)(*c - '0'), &number);
    if (c == text)
        return no_size(text, err);
    if (*c != 0) {
        const char *unit = strchr(units, *c);
        if (unit == NULL || c[1] != 0)
            return no_size(text, err);
        factor = UINT64_C(1024) << 10 * ((unit - units) / 2);
    }
    if (!fits || !lade_mul_u64(number, factor, &number))
        return lade_err_set(err, LADE_E_USAGE, "%s is too large", text);
    *bytes = number;
    return LADE_OK;
}

static uint64_t top_of(const struct lade_option *option)
{
    uint64_t top = option->kind == LADE_OPT_U32 ? UINT32_MAX : UINT64_MAX;

    return option->max != 0 && option->max < top ? option->max : top;
}

static int out_of_range(const struct lade_option *option, const char *text,
                        lade_err *err)
{
    return lade_err_set(err, LADE_E_USAGE, "--%s %s: must be %llu .. %llu",
                        option->name, text, (unsigned long long)option->min,
                        (unsigned long long)top_of(option));
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
        for (; isdigit((unsigned char)*c); c++)
            if (number <= UINT32_MAX) /* beyond, more digits change nothing */
                number = number * 10 + (uint64_t)(*c - '0');
        if (c == text || *c != 0)
            return lade_err_set(err, LADE_E_USAGE,
                                "--%s '%s' is not a whole number", option->name,
                                text);
    }
    if (number < option->min || number > top_of(option))
        return out_of_range(option, text, err);
    if (option->kind == LADE_OPT_SIZE)
        *(uint64_t *)lade_option_at(set, option) = number;
    else
        *(uint32_t *)lade_option_at(set, option) = (uint32_t)number;
    return LADE_OK;
}

static int set_seconds(struct lade_option_set *set,
                       const struct lade_option *option, const char *text,
                       lade_err *err)
{
    double seconds = 0, digit = 1;
    const char *c = text;

    /* no strtod: it takes hexadecimal, and the decimal point of a locale */
    for (; isdigit((unsigned char)*c) && seconds < MOST_SECONDS; c++)
        seconds = seconds * 10 + (*c - '0');
    bool number = c > text;
    if (number && *c == '.')
        for (c++; isdigit((unsigned char)*c); c++)
            seconds += (*c - '0') * (digit /= 10);
    if (!number || *c != 0 || c[-1] == '.' || seconds >= MOST_SECONDS)
        return lade_err_set(err, LADE_E_USAGE,
                            "--%s '%s' is not a number of seconds below 1e9",
                            option->name, text);
    if (seconds < (double)option->min ||
        (option->max != 0 && seconds > (double)option->max))
        return out_of_range(option, text, err);
    *(double *)lade_option_at(set, option) = seconds;
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
            *(int *)lade_option_at(set, option) = i;
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
    *(bool *)lade_option_at(set, option) = on;
    return LADE_OK;
}

static int set_text(struct lade_option_set *set,
                    const struct lade_option *option, const char *text,
                    bool more, lade_err *err)
{
    const char **value = lade_option_at(set, option);

    if (text[0] == 0)
        return lade_err_set(err, LADE_E_USAGE, "--%s needs a value (%s)",
                            option->name, option->metavar);
    char *copy = more && *value ? lade_arena_printf(set->arena, err, "%s\n%s",
                                                    *value, text)
                                : lade_arena_strdup(set->arena, text, err);
    if (copy == NULL)
        return LADE_E_MEMORY;
    *value = copy;
    return LADE_OK;
}

int lade_option_set_value(struct lade_option_set *set, int index,
                          const char *text, const char *source, lade_err *err)
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

void lade_option_clear(struct lade_option_set *set)
{
    static const size_t sizes[] = {
        [LADE_OPT_FLAG] = sizeof(bool),     [LADE_OPT_U32] = sizeof(uint32_t),
        [LADE_OPT_SIZE] = sizeof(uint64_t), [LADE_OPT_SECONDS] = sizeof(double),
        [LADE_OPT_TEXT] = sizeof(char *),   [LADE_OPT_CHOICE] = sizeof(int),
        [LADE_OPT_LIST] = sizeof(char *),
    };

    memset(set->given, 0, sizeof(set->given));
    memset(set->source, 0, sizeof(set->source));
    for (int i = 0; i < set->count; i++)
        memset(lade_option_at(set, &set->table[i]), 0,
               sizes[set->table[i].kind]);
}
