/*
 * In: one name and the shell's rules. Out: the renamed name, or dropped.
 * Kinds apply in the order of enum lade_rule_kind; within a kind every rule is
 * tried in its order and sees what the one before made of the name. Mirrors
 * vLLM: models/utils.py, WeightsMapper._map_name.
 */
#include "route/mapper.h"

#include <stdio.h>
#include <string.h>

#define GROUPS 10

/* Rules stand in the shell as they were declared; `order` has them by kind. */
static void sort_rules(struct lade_mapper *mapper)
{
    const struct lade_shell_rule *rules =
        LADE_ITEMS(mapper->shell, rules, struct lade_shell_rule);

    for (uint32_t kind = LADE_RULE_REGEX; kind <= LADE_RULE_SUFFIX; kind++)
        for (uint32_t i = 0; i < mapper->shell->rules.count; i++)
            if (rules[i].kind == kind)
                mapper->order[mapper->rules++] = i;
}

int lade_mapper_init(struct lade_mapper *mapper, const struct lade_shell *shell,
                     struct lade_mem *mem, lade_err *err)
{
    const struct lade_shell_rule *rules =
        LADE_ITEMS(shell, rules, struct lade_shell_rule);
    uint64_t count = shell->rules.count;

    *mapper = (struct lade_mapper){.shell = shell, .mem = mem};
    if (count == 0)
        return LADE_OK;
    mapper->compiled = lade_alloc_array(mem, LADE_TAG_TEMP, count,
                                        sizeof(*mapper->compiled), err);
    mapper->order = lade_alloc_array(mem, LADE_TAG_TEMP, count,
                                     sizeof(*mapper->order), err);
    if (mapper->compiled == NULL || mapper->order == NULL)
        return LADE_E_MEMORY;
    sort_rules(mapper);
    for (uint64_t i = 0; i < count; i++) {
        const char *from = LADE_STRING(shell, pool, rules[i].from);
        if (rules[i].kind != LADE_RULE_REGEX)
            continue;
        if (regcomp(&mapper->compiled[i].regex, from, REG_EXTENDED) != 0)
            return lade_err_set(err, LADE_E_USAGE,
                                "family %s: '%s' is not a regular expression",
                                LADE_STRING(shell, pool, shell->family), from);
        mapper->compiled[i].ready = true;
    }
    return LADE_OK;
}

void lade_mapper_fini(struct lade_mapper *mapper)
{
    for (uint64_t i = 0;
         mapper->compiled != NULL && i < mapper->shell->rules.count; i++)
        if (mapper->compiled[i].ready)
            regfree(&mapper->compiled[i].regex);
    lade_free(mapper->mem, mapper->compiled);
    lade_free(mapper->mem, mapper->order);
    mapper->compiled = NULL;
    mapper->order = NULL;
}

/* Text under construction; what does not fit is cut and makes the name
 * unknown later. */
struct text {
    char *out;
    size_t size, used;
};

static void add(struct text *t, const char *from, size_t length)
{
    if (length > t->size - 1 - t->used)
        length = t->size - 1 - t->used;
    memcpy(t->out + t->used, from, length);
    t->used += length;
    t->out[t->used] = 0;
}

/* The replacement with \1 .. \9 filled in from the match. */
static void add_replacement(struct text *t, const char *to, const char *name,
                            const regmatch_t *groups)
{
    for (const char *c = to; *c; c++) {
        if (c[0] == '\\' && c[1] >= '0' && c[1] <= '9') {
            const regmatch_t *g = &groups[c[1] - '0'];
            if (g->rm_so >= 0)
                add(t, name + g->rm_so, (size_t)(g->rm_eo - g->rm_so));
            c++;
        } else {
            add(t, c, 1);
        }
    }
}

/* Replaces every match. The caller knows that there is one. */
static void replace_regex(const regex_t *regex, const char *name,
                          const char *to, struct text *t)
{
    regmatch_t groups[GROUPS];

    for (int flags = 0; regexec(regex, name, GROUPS, groups, flags) == 0;
         flags = REG_NOTBOL) {
        add(t, name, (size_t)groups[0].rm_so);
        add_replacement(t, to, name, groups);
        name += groups[0].rm_eo;
        if (groups[0].rm_eo == groups[0].rm_so) { /* an empty match */
            if (*name == 0)
                break;
            add(t, name++, 1);
        }
    }
    add(t, name, strlen(name));
}

/* Where a plain rule matches in name, or NULL. */
static const char *match_plain(uint32_t kind, const char *name,
                               const char *from)
{
    size_t n = strlen(name), m = strlen(from);

    switch (kind) {
    case LADE_RULE_SUBSTRING:
        return strstr(name, from);
    case LADE_RULE_PREFIX:
        return strncmp(name, from, m) == 0 ? name : NULL;
    default:
        return n >= m && strcmp(name + n - m, from) == 0 ? name + n - m : NULL;
    }
}

/* Does rule i match? For a plain rule *at is where. */
static bool matches(const struct lade_mapper *mapper, uint32_t i,
                    const char *name, const char **at)
{
    const struct lade_shell_rule *rule =
        &LADE_ITEMS(mapper->shell, rules, struct lade_shell_rule)[i];

    *at = NULL;
    if (rule->kind == LADE_RULE_REGEX) /* without groups it costs a tenth */
        return regexec(&mapper->compiled[i].regex, name, 0, NULL, 0) == 0;
    *at = match_plain(rule->kind, name,
                      LADE_STRING(mapper->shell, pool, rule->from));
    return *at != NULL;
}

/* Replaces what rule i matched; the result is in `out`. */
static void replace(const struct lade_mapper *mapper, uint32_t i,
                    const char *name, const char *at, struct text *t)
{
    const struct lade_shell_rule *rule =
        &LADE_ITEMS(mapper->shell, rules, struct lade_shell_rule)[i];
    const char *to = LADE_STRING(mapper->shell, pool, rule->to);

    if (rule->kind == LADE_RULE_REGEX) {
        replace_regex(&mapper->compiled[i].regex, name, to, t);
        return;
    }
    add(t, name, (size_t)(at - name));
    add(t, to, strlen(to));
    at += strlen(LADE_STRING(mapper->shell, pool, rule->from));
    add(t, at, strlen(at));
}

bool lade_mapper_map(const struct lade_mapper *mapper, const char *name,
                     char *out, size_t size, uint32_t *rule)
{
    const struct lade_shell_rule *rules =
        LADE_ITEMS(mapper->shell, rules, struct lade_shell_rule);
    char other[LADE_NAME_MAX];
    const char *at;

    snprintf(out, size, "%s", name);
    for (uint32_t k = 0; k < mapper->rules; k++) {
        uint32_t i = mapper->order[k];
        if (!matches(mapper, i, out, &at))
            continue;
        if (rules[i].to == UINT32_MAX) {
            *rule = i;
            return false;
        }
        struct text t = {other, sizeof(other), 0};
        replace(mapper, i, out, at, &t);
        snprintf(out, size, "%s", other);
    }
    return true;
}

bool lade_route_map(const struct lade_shell *shell, const char *name, char *out,
                    size_t size, uint32_t *rule)
{
    struct lade_mapper mapper;
    bool kept = true;

    snprintf(out, size, "%s", name); /* what remains if rules are no rules */
    if (lade_mapper_init(&mapper, shell, NULL, NULL) == LADE_OK)
        kept = lade_mapper_map(&mapper, name, out, size, rule);
    lade_mapper_fini(&mapper);
    return kept;
}
