/*
 * In: the tree of a family file. Out: fine, or what is wrong with it: unknown
 * keys, kinds and names, unbalanced patterns, expressions that do not parse,
 * two modules at one path. After this the tree is walked without further doubt.
 */
#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "model/family.h"

#define DEPTH_MAX 4
#define LIST_MAX 64

/* Variables that patterns may use here, innermost first. */
struct names {
    const char *name;
    const struct names *outer;
};

struct check {
    const struct lade_family *family;
    const char *at; /* module or rule at hand, for errors */
    lade_err *err;
};

static int bad(const struct check *c, const char *key, const char *why,
               const char *what)
{
    return lade_err_set(c->err, LADE_E_USAGE, "%s, %s: %s%s%s%s%s",
                        c->family->what, c->at, key ? key : "", key ? ": " : "",
                        why, what ? " " : "", what ? what : "");
}

/* ---- patterns ----------------------------------------------------------- */

static bool known_name(const struct names *names, const char *name,
                       size_t length)
{
    for (; names; names = names->outer) {
        if (strlen(names->name) == length &&
            memcmp(names->name, name, length) == 0)
            return true;
    }
    return false;
}

static int check_pattern(const struct check *c, const char *key,
                         const char *text, const struct names *names)
{
    char name[64];

    if (!*text || strlen(text) >= LADE_NAME_MAX)
        return bad(c, key, "a name of 1 to 255 characters is needed", NULL);
    for (const char *p = text; *p; p++) {
        if (*p == '}')
            return bad(c, key, "} without { in", text);
        if (*p != '{')
            continue;
        size_t n = strcspn(p + 1, "{}");
        if (p[1 + n] != '}')
            return bad(c, key, "{ without } in", text);
        if (!known_name(names, p + 1, n)) {
            snprintf(name, sizeof name, "{%.*s}", (int)(n < 48 ? n : 48),
                     p + 1);
            return bad(c, key, "no variable of this place is named", name);
        }
        p += 1 + n;
    }
    return LADE_OK;
}

/* ---- values by type ----------------------------------------------------- */

static int check_expr(const struct check *c, const char *key, const cJSON *item)
{
    lade_err why = LADE_ERR_INIT;
    int64_t number;

    if (cJSON_IsBool(item) || lade_json_i64(item, &number))
        return LADE_OK;
    if (!cJSON_IsString(item))
        return bad(c, key, "an expression is needed", NULL);
    if (lade_expr_check(item->valuestring, &why) != LADE_OK)
        return bad(c, key, why.text, NULL);
    return LADE_OK;
}

static bool is_word(const char *text)
{
    return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_.-") == strlen(text);
}

static int check_text(const struct check *c, const struct lade_key *key,
                      const cJSON *item, const struct names *names)
{
    const char *text = item->valuestring;

    switch (key->type) {
    case LADE_KEY_PATTERN:
    case LADE_KEY_PATTERNS:
        return check_pattern(c, key->name, text, names);
    case LADE_KEY_NAMES:
        return is_word(text) ? LADE_OK
                             : bad(c, key->name, "not a plain name:", text);
    case LADE_KEY_DTYPE:
        return lade_dtype_is_float(lade_dtype_find(text))
                   ? LADE_OK
                   : bad(c, key->name, "unknown type", text);
    case LADE_KEY_STAGE:
        if (strcmp(text, "first") == 0 || strcmp(text, "last") == 0)
            return LADE_OK;
        if (strncmp(text, "layer ", 6) != 0 ||
            lade_expr_check(text + 6, NULL) != LADE_OK)
            return bad(c, key->name, "first, last or layer EXPRESSION, not",
                       text);
        return LADE_OK;
    default:
        return LADE_OK;
    }
}

static bool is_list(enum lade_key_type type)
{
    return type == LADE_KEY_EXPRS || type == LADE_KEY_PATTERNS ||
           type == LADE_KEY_NAMES;
}

static int check_one(const struct check *c, const struct lade_key *key,
                     const cJSON *item, const struct names *names)
{
    if (key->type == LADE_KEY_EXPR || key->type == LADE_KEY_EXPRS)
        return check_expr(c, key->name, item);
    if (key->type == LADE_KEY_BOOL)
        return cJSON_IsBool(item)
                   ? LADE_OK
                   : bad(c, key->name, "true or false is needed", NULL);
    if (!cJSON_IsString(item))
        return bad(c, key->name, "a text is needed", NULL);
    return check_text(c, key, item, names);
}

static int check_value(const struct check *c, const struct lade_key *key,
                       const cJSON *item, const struct names *names)
{
    const cJSON *each = NULL;
    int rc = LADE_OK;

    if (key->type == LADE_KEY_SPECIAL)
        return LADE_OK;
    if (!is_list(key->type))
        return check_one(c, key, item, names);
    int count = cJSON_IsArray(item) ? cJSON_GetArraySize(item) : 0;
    if (count < 1 || count > LADE_MODULE_PARTS)
        return bad(c, key->name, "a list of 1 to 8 is needed", NULL);
    cJSON_ArrayForEach(each, item) LADE_TRY(check_one(c, key, each, names));
out:
    return rc;
}

/* ---- objects ------------------------------------------------------------ */

static const struct lade_key *find_key(const struct lade_key *keys,
                                       const char *name)
{
    for (; keys && keys->name; keys++) {
        if (strcmp(keys->name, name) == 0)
            return keys;
    }
    return NULL;
}

static int unknown_key(const struct check *c, const char *name,
                       const struct lade_key *keys, const struct lade_key *more)
{
    const char *words[LIST_MAX + 1] = {NULL};
    int count = 0;

    for (; keys && keys->name && count < LIST_MAX; keys++)
        words[count++] = keys->name;
    for (; more && more->name && count < LIST_MAX; more++)
        words[count++] = more->name;
    const char *near = lade_nearest(name, words);
    char hint[96] = "";
    if (near)
        snprintf(hint, sizeof hint, "(nearest: %s)", near);
    return bad(c, name, "unknown key", near ? hint : NULL);
}

/* Every key is known and of its type, every required one is there. */
static int check_object(const struct check *c, const cJSON *object,
                        const struct lade_key *keys,
                        const struct lade_key *more, const struct names *names,
                        const struct names *inner)
{
    const cJSON *item = NULL;
    int rc = LADE_OK;

    if (!cJSON_IsObject(object))
        return bad(c, NULL, "an object is needed", NULL);
    cJSON_ArrayForEach(item, object)
    {
        const struct lade_key *key = find_key(keys, item->string);
        if (!key)
            key = find_key(more, item->string);
        if (!key)
            return unknown_key(c, item->string, keys, more);
        bool disk = strcmp(key->name, "disk") == 0;
        LADE_TRY(check_value(c, key, item, disk ? inner : names));
    }
    for (int list = 0; list < 2; list++) {
        const struct lade_key *key = list ? more : keys;
        for (; key && key->name; key++) {
            if (key->required &&
                !cJSON_GetObjectItemCaseSensitive(object, key->name))
                return bad(c, key->name, "this key is needed", NULL);
        }
    }
out:
    return rc;
}

static const struct lade_key module_keys[] = {
    {"at", LADE_KEY_PATTERN, true},      {"kind", LADE_KEY_TEXT, true},
    {"if", LADE_KEY_EXPR, false},        {"stage", LADE_KEY_STAGE, false},
    {"disk", LADE_KEY_PATTERN, false},   {"also", LADE_KEY_PATTERNS, false},
    {"dtype", LADE_KEY_DTYPE, false},    {"optional", LADE_KEY_BOOL, false},
    {"quantised", LADE_KEY_BOOL, false}, {NULL, LADE_KEY_TEXT, false}};
static const struct lade_key block_keys[] = {
    {"for", LADE_KEY_TEXT, true},
    {"if", LADE_KEY_EXPR, false},
    {"stage", LADE_KEY_STAGE, false},
    {"modules", LADE_KEY_SPECIAL, true},
    {NULL, LADE_KEY_TEXT, false}};

/* ---- modules ------------------------------------------------------------ */

static int unknown_kind(const struct check *c, const char *name)
{
    const char *words[LIST_MAX + 1] = {NULL};
    char hint[96] = "";
    int count = 0;

    for (const struct lade_kind *k = lade_kinds; k->name && count < LIST_MAX;
         k++)
        words[count++] = k->name;
    const char *near = lade_nearest(name, words);
    if (near)
        snprintf(hint, sizeof hint, " (nearest: %s)", near);
    return lade_err_set(c->err, LADE_E_USAGE, "%s, %s: unknown kind %.60s%s",
                        c->family->what, c->at, name, hint);
}

/* As many names as sizes, and as many as the kind has. */
static int check_parts(const struct check *c, const cJSON *module,
                       const char *kind)
{
    const cJSON *parts = cJSON_GetObjectItemCaseSensitive(module, "parts");
    const cJSON *out = cJSON_GetObjectItemCaseSensitive(module, "out");
    int count = cJSON_GetArraySize(parts);

    if (strcmp(kind, "merged") == 0 && count != cJSON_GetArraySize(out))
        return bad(c, "parts", "as many names as sizes in out are needed",
                   NULL);
    if ((strcmp(kind, "qkv") == 0 || strcmp(kind, "experts") == 0) &&
        count != 3)
        return bad(c, "parts", "three names are needed", NULL);
    return LADE_OK;
}

static int check_experts(const struct check *c, const cJSON *module)
{
    const cJSON *disk = cJSON_GetObjectItemCaseSensitive(module, "disk");

    if (!disk || !strstr(disk->valuestring, "{e}"))
        return bad(c, "disk", "the name of an expert with {e} is needed", NULL);
    return LADE_OK;
}

static int check_module(struct check *c, const cJSON *module,
                        const struct names *names)
{
    const struct names expert = {"e", names};
    const cJSON *kind_item = cJSON_GetObjectItemCaseSensitive(module, "kind");
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(module, "at");
    const struct lade_kind *kind;
    int rc = LADE_OK;

    c->at = cJSON_IsString(at) ? at->valuestring : "a module without at";
    if (!cJSON_IsString(kind_item))
        return bad(c, "kind", "this key is needed", NULL);
    kind = lade_kind_find(kind_item->valuestring);
    if (!kind)
        return unknown_kind(c, kind_item->valuestring);
    bool experts = strcmp(kind->name, "experts") == 0;
    LADE_TRY(check_object(c, module, module_keys, kind->keys, names,
                          experts ? &expert : names));
    LADE_TRY(check_parts(c, module, kind->name));
    if (experts)
        LADE_TRY(check_experts(c, module));
    if (cJSON_GetObjectItemCaseSensitive(module, "tied_if") &&
        !cJSON_GetObjectItemCaseSensitive(module, "tied_to"))
        return bad(c, "tied_if", "tied_to is needed with it", NULL);
out:
    return rc;
}

bool lade_range_parse(const char *text, struct lade_range *range)
{
    const char *in = strstr(text, " in "), *dots = strstr(text, "..");
    size_t name = strcspn(text, " ");

    if (!in || !dots || dots < in + 4 || text + name != in || name == 0 ||
        name >= sizeof range->name || isdigit((unsigned char)*text))
        return false;
    in += 4;
    if ((size_t)(dots - in) >= sizeof range->from ||
        strlen(dots + 2) >= sizeof range->to)
        return false;
    snprintf(range->name, sizeof range->name, "%.*s", (int)name, text);
    snprintf(range->from, sizeof range->from, "%.*s", (int)(dots - in), in);
    snprintf(range->to, sizeof range->to, "%s", dots + 2);
    return lade_expr_check(range->from, NULL) == LADE_OK &&
           lade_expr_check(range->to, NULL) == LADE_OK;
}

/* Two modules at one path: allowed only if conditions tell them apart. */
static int check_twice(struct check *c, const cJSON *module)
{
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(module, "at");

    if (!at || cJSON_GetObjectItemCaseSensitive(module, "if"))
        return LADE_OK;
    for (const cJSON *other = module->next; other; other = other->next) {
        const cJSON *too = cJSON_GetObjectItemCaseSensitive(other, "at");
        if (too && !cJSON_GetObjectItemCaseSensitive(other, "if") &&
            strcmp(too->valuestring, at->valuestring) == 0) {
            c->at = at->valuestring;
            return bad(c, NULL, "two modules are at this path", NULL);
        }
    }
    return LADE_OK;
}

/* Modules and blocks of a list; blocks hold lists of their own. */
static int check_list(struct check *c, const cJSON *list,
                      const struct names *names, int depth, bool stage)
{
    const cJSON *item = NULL;
    int rc = LADE_OK;

    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) == 0)
        return bad(c, "modules", "a list of modules is needed", NULL);
    if (depth > DEPTH_MAX)
        return bad(c, "modules", "nested too deep", NULL);
    cJSON_ArrayForEach(item, list)
    {
        const cJSON *loop = cJSON_GetObjectItemCaseSensitive(item, "for");
        bool staged = stage || cJSON_GetObjectItemCaseSensitive(item, "stage");
        struct lade_range range;
        if (!loop) {
            LADE_TRY(check_module(c, item, names));
            if (!staged)
                return bad(c, "stage", "this key is needed", NULL);
            continue;
        }
        c->at = cJSON_IsString(loop) ? loop->valuestring : "a block";
        if (!cJSON_IsString(loop) ||
            !lade_range_parse(loop->valuestring, &range))
            return bad(c, "for", "NAME in FROM..TO is needed", NULL);
        const struct names inner = {range.name, names};
        LADE_TRY(check_object(c, item, block_keys, NULL, names, names));
        LADE_TRY(check_list(c,
                            cJSON_GetObjectItemCaseSensitive(item, "modules"),
                            &inner, depth + 1, staged));
    }
    cJSON_ArrayForEach(item, list) LADE_TRY(check_twice(c, item));
out:
    return rc;
}

/* ---- the rest of the file ----------------------------------------------- */

static const struct lade_key family_keys[] = {
    {"family", LADE_KEY_TEXT, true},
    {"about", LADE_KEY_TEXT, false},
    {"architectures", LADE_KEY_NAMES, true},
    {"text_config", LADE_KEY_BOOL, false},
    {"let", LADE_KEY_SPECIAL, false},
    {"names", LADE_KEY_SPECIAL, false},
    {"drop", LADE_KEY_SPECIAL, false},
    {"refuse", LADE_KEY_SPECIAL, false},
    {"modules", LADE_KEY_SPECIAL, true},
    {NULL, LADE_KEY_TEXT, false}};
static const struct lade_key rule_keys[] = {{"kind", LADE_KEY_TEXT, true},
                                            {"from", LADE_KEY_TEXT, true},
                                            {"to", LADE_KEY_TEXT, true},
                                            {NULL, LADE_KEY_TEXT, false}};
static const struct lade_key drop_keys[] = {{"kind", LADE_KEY_TEXT, true},
                                            {"from", LADE_KEY_TEXT, true},
                                            {"why", LADE_KEY_TEXT, true},
                                            {NULL, LADE_KEY_TEXT, false}};
static const struct lade_key refuse_keys[] = {{"if", LADE_KEY_EXPR, true},
                                              {"why", LADE_KEY_PATTERN, true},
                                              {NULL, LADE_KEY_TEXT, false}};

static bool is_regex(const char *text)
{
    regex_t regex;

    if (regcomp(&regex, text, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    regfree(&regex);
    return true;
}

static int check_rules(struct check *c, const char *name,
                       const struct lade_key *keys)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(c->family->root, name);
    const cJSON *rule = NULL;
    int rc = LADE_OK;

    c->at = name;
    if (list && (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > LIST_MAX))
        return bad(c, NULL, "a list of at most 64 rules is needed", NULL);
    cJSON_ArrayForEach(rule, list)
    {
        LADE_TRY(check_object(c, rule, keys, NULL, NULL, NULL));
        const cJSON *kind = cJSON_GetObjectItemCaseSensitive(rule, "kind");
        if (lade_rule_kind_find(kind->valuestring) < 0)
            return bad(c, "kind", "regex, substring, prefix or suffix, not",
                       kind->valuestring);
        const char *from =
            cJSON_GetObjectItemCaseSensitive(rule, "from")->valuestring;
        if (!*from)
            return bad(c, "from", "a text is needed", NULL);
        if (strcmp(kind->valuestring, "regex") == 0 && !is_regex(from))
            return bad(c, "from", "not a regular expression:", from);
    }
out:
    return rc;
}

/* Texts of `refuse` may show tp, dp and what `let` defines without arguments.
 */
static int check_refuse(struct check *c)
{
    struct names names[LIST_MAX + 2] = {{"tp", NULL}, {"dp", &names[0]}};
    const cJSON *list =
        cJSON_GetObjectItemCaseSensitive(c->family->root, "refuse");
    const cJSON *let = cJSON_GetObjectItemCaseSensitive(c->family->root, "let");
    const cJSON *item = NULL;
    int count = 2, rc = LADE_OK;

    cJSON_ArrayForEach(item, let)
    {
        names[count] = (struct names){item->string, &names[count - 1]};
        count++;
    }
    c->at = "refuse";
    if (list && !cJSON_IsArray(list))
        return bad(c, NULL, "a list of rules is needed", NULL);
    cJSON_ArrayForEach(item, list) LADE_TRY(
        check_object(c, item, refuse_keys, NULL, &names[count - 1], NULL));
out:
    return rc;
}

static int check_let(struct check *c)
{
    const cJSON *let = cJSON_GetObjectItemCaseSensitive(c->family->root, "let");
    const cJSON *item = NULL;
    int rc = LADE_OK;

    c->at = "let";
    if (let && (!cJSON_IsObject(let) || cJSON_GetArraySize(let) > LIST_MAX))
        return bad(c, NULL, "an object of at most 64 definitions is needed",
                   NULL);
    cJSON_ArrayForEach(item, let)
    {
        size_t name = strcspn(item->string, "(");
        if (name == 0 || isdigit((unsigned char)*item->string) ||
            strspn(item->string,
                   "abcdefghijklmnopqrstuvwxyz"
                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != name ||
            (item->string[name] && !strchr(item->string, ')')))
            return bad(c, item->string, "NAME or NAME(ARGUMENTS) is needed",
                       NULL);
        LADE_TRY(check_expr(c, item->string, item));
    }
out:
    return rc;
}

int lade_family_check(const struct lade_family *family, lade_err *err)
{
    struct check c = {family, "top level", err};
    int rc = LADE_OK;

    LADE_TRY(check_object(&c, family->root, family_keys, NULL, NULL, NULL));
    LADE_TRY(check_let(&c));
    LADE_TRY(check_rules(&c, "names", rule_keys));
    LADE_TRY(check_rules(&c, "drop", drop_keys));
    LADE_TRY(check_refuse(&c));
    c.at = "top level";
    LADE_TRY(check_list(
        &c, cJSON_GetObjectItemCaseSensitive(family->root, "modules"), NULL, 1,
        false));
out:
    return rc;
}
