/*
 * In: the text of an expression, a config.json, definitions (`let`) and bound
 * variables. Out: one int64.
 *
 * One pass, recursive descent, no tree: what is not needed (the other side of
 * ?? && ||) is parsed but not evaluated. Depth, steps and length are bounded
 * and every operation is checked, because both the text and the config may come
 * from strangers. A definition sees the config, other definitions and its own
 * arguments, never the variables of its user; it must not refer to itself.
 *
 * From loosest to tightest:  ??   ||   &&   == != < <= > >= in   + -   * / %
 * ! -   [index]
 */
#include "model/expr.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "model/expr_eval.h"

static int coalesce(struct lade_eval *e, struct lade_value *out);

/* ---- lexer -------------------------------------------------------------- */

static void skip_blanks(struct lade_eval *e)
{
    while (*e->at == ' ' || *e->at == '\t')
        e->at++;
}

static bool starts_name(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}
static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Takes the operator if it is next. */
static bool take(struct lade_eval *e, const char *op)
{
    size_t n = strlen(op);

    skip_blanks(e);
    if (strncmp(e->at, op, n) != 0)
        return false;
    if (starts_name(*op) && in_name(e->at[n]))
        return false;
    e->at += n;
    return true;
}

static int expect(struct lade_eval *e, const char *op)
{
    char why[32];

    if (take(e, op))
        return LADE_OK;
    snprintf(why, sizeof why, "%s expected", op);
    return lade_eval_bad_text(e, why);
}

static int deeper(struct lade_eval *e)
{
    if (++e->depth > LADE_EXPR_MAX_DEPTH)
        return lade_eval_bad_text(e, "nested too deep");
    if (++*e->steps > LADE_EXPR_MAX_STEPS)
        return lade_eval_bad_text(e, "takes too many steps");
    return LADE_OK;
}

/* ---- names -------------------------------------------------------------- */

static const cJSON *member(const cJSON *object, const char *name, size_t length)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, object)
    {
        if (item->string && lade_text_is(item->string, name, length))
            return item;
    }
    return NULL;
}

/* Follows a dotted path; NULL where it ends early. */
static const cJSON *follow(const cJSON *object, const char *path, size_t length)
{
    while (object) {
        const char *dot = memchr(path, '.', length);
        size_t n = dot ? (size_t)(dot - path) : length;
        if (!cJSON_IsObject(object))
            return NULL;
        object = member(object, path, n);
        if (!dot)
            break;
        length -= n + 1;
        path = dot + 1;
    }
    return object;
}

static struct lade_value from_config(const struct lade_eval *e,
                                     const char *path, size_t length)
{
    const cJSON *item = follow(e->scope->config, path, length);

    if (!item || cJSON_IsNull(item)) {
        const cJSON *other = follow(e->scope->fallback, path, length);
        item = other ? other : item;
    }
    return lade_eval_value_of(item, path, length);
}

/* ---- definitions -------------------------------------------------------- */

/* Names of the arguments of "moe(l, m)", from its bracket on. */
static bool parameters(const char *at, struct lade_eval_args *args)
{
    args->count = 0;
    do {
        at++;
        at += strspn(at, " ");
        size_t n = strcspn(at, " ,)");
        if (n == 0 || n >= sizeof args->names[0] ||
            args->count == LADE_EXPR_MAX_ARGS)
            return false;
        memcpy(args->names[args->count], at, n);
        args->names[args->count++][n] = '\0';
        at += n;
        at += strspn(at, " ");
    } while (*at == ',');
    return *at == ')' && at[1] == '\0';
}

static const cJSON *definition(const struct lade_eval *e, const char *name,
                               size_t length, bool call)
{
    const cJSON *item = NULL;

    if (!e->scope)
        return NULL;
    cJSON_ArrayForEach(item, e->scope->let)
    {
        size_t n = item->string ? strcspn(item->string, "(") : 0;
        if (n == length && memcmp(item->string, name, n) == 0 &&
            (item->string[n] == '(') == call)
            return item;
    }
    return NULL;
}

static int whole(struct lade_eval *e, struct lade_value *out)
{
    int rc = LADE_OK;

    if (strlen(e->text) > LADE_EXPR_MAX_LENGTH)
        return lade_eval_bad_text(e, "too long");
    LADE_TRY(coalesce(e, out));
    skip_blanks(e);
    if (*e->at)
        return lade_eval_bad_text(e, "something unexpected");
out:
    return rc;
}

/* Evaluates the body of a definition with these variables. */
static int enter(const struct lade_eval *e, const cJSON *item,
                 const struct lade_expr_bound *bound, struct lade_value *out)
{
    struct lade_eval_frame frame = {item, e->frame};
    struct lade_eval inner = *e;
    int rc = LADE_OK;

    for (const struct lade_eval_frame *f = e->frame; f; f = f->outer) {
        if (f->definition == item)
            return lade_eval_bad_text(e, "a definition that refers to itself");
    }
    if (!cJSON_IsString(item)) {
        *out = lade_eval_value_of(item, item->string, strlen(item->string));
        return LADE_OK;
    }
    inner.frame = &frame;
    inner.bound = bound;
    LADE_TRY(deeper(&inner));
    inner.text = inner.at = item->valuestring;
    LADE_TRY(whole(&inner, out));
out:
    return rc;
}

static int call(struct lade_eval *e, const char *name, size_t length,
                const struct lade_eval_args *given, struct lade_value *out)
{
    const cJSON *item = definition(e, name, length, true);
    struct lade_expr_bound bound[LADE_EXPR_MAX_ARGS];
    struct lade_eval_args wanted;

    if (!e->live)
        return LADE_OK;
    if (!item)
        return lade_eval_bad_text(
            e, "unknown function before the bracket that ends");
    if (!parameters(strchr(item->string, '('), &wanted) ||
        wanted.count != given->count)
        return lade_eval_bad_text(e, "wrong number of arguments");
    for (int i = 0; i < wanted.count; i++)
        bound[i] = (struct lade_expr_bound){wanted.names[i], given->values[i],
                                            i > 0 ? &bound[i - 1] : NULL};
    return enter(e, item, &bound[wanted.count - 1], out);
}

static int read_arguments(struct lade_eval *e, struct lade_eval_args *args)
{
    struct lade_value v = {0};
    int rc = LADE_OK;

    args->count = 0;
    do {
        if (args->count == LADE_EXPR_MAX_ARGS)
            return lade_eval_bad_text(e, "too many arguments");
        LADE_TRY(coalesce(e, &v));
        LADE_TRY(lade_eval_need_integer(e, &v));
        args->values[args->count++] = v.number;
    } while (take(e, ","));
    LADE_TRY(expect(e, ")"));
out:
    return rc;
}

/* ---- operands ----------------------------------------------------------- */

static int variable(struct lade_eval *e, const char *name, size_t length,
                    struct lade_value *out)
{
    const cJSON *item;

    if (!e->live)
        return LADE_OK;
    if (++*e->steps > LADE_EXPR_MAX_STEPS)
        return lade_eval_bad_text(e, "takes too many steps");
    for (const struct lade_expr_bound *b = e->bound; b; b = b->next) {
        if (lade_text_is(b->name, name, length)) {
            *out = (struct lade_value){.number = b->value};
            return LADE_OK;
        }
    }
    item = definition(e, name, length, false);
    if (item)
        return enter(e, item, NULL, out);
    *out = from_config(e, name, length);
    return LADE_OK;
}

static int name_or_call(struct lade_eval *e, struct lade_value *out)
{
    struct lade_eval_args args = {0};
    const char *name = e->at;
    int rc = LADE_OK;

    while (in_name(*e->at) || (*e->at == '.' && starts_name(e->at[1])))
        e->at++;
    size_t length = (size_t)(e->at - name);
    if (lade_text_is("true", name, length) ||
        lade_text_is("false", name, length)) {
        *out = (struct lade_value){.number = length == 4};
        return LADE_OK;
    }
    if (!take(e, "("))
        return variable(e, name, length, out);
    LADE_TRY(read_arguments(e, &args));
    if (lade_text_is("cdiv", name, length))
        return lade_eval_cdiv(e, &args, out);
    LADE_TRY(call(e, name, length, &args, out));
out:
    return rc;
}

static int number(struct lade_eval *e, struct lade_value *out)
{
    int64_t n = 0;

    for (; isdigit((unsigned char)*e->at); e->at++) {
        if (__builtin_mul_overflow(n, INT64_C(10), &n) ||
            __builtin_add_overflow(n, (int64_t)(*e->at - '0'), &n))
            return lade_eval_bad_text(e, "a number beyond 64 bits");
    }
    if (in_name(*e->at) || *e->at == '.')
        return lade_eval_bad_text(e, "not a whole number");
    *out = (struct lade_value){.number = n};
    return LADE_OK;
}

static int quoted(struct lade_eval *e, char quote, struct lade_value *out)
{
    const char *end = strchr(e->at, quote);

    if (!end)
        return lade_eval_bad_text(e, "text without an end");
    *out = (struct lade_value){
        .kind = LADE_VALUE_TEXT, .text = e->at, .length = (int)(end - e->at)};
    e->at = end + 1;
    return LADE_OK;
}

static int primary(struct lade_eval *e, struct lade_value *out)
{
    int rc = LADE_OK;

    skip_blanks(e);
    if (isdigit((unsigned char)*e->at))
        return number(e, out);
    if (starts_name(*e->at))
        return name_or_call(e, out);
    if (take(e, "\""))
        return quoted(e, '"', out);
    if (take(e, "'"))
        return quoted(e, '\'', out);
    if (take(e, "[")) {
        *out = (struct lade_value){.kind = LADE_VALUE_LIST};
        return expect(e, "]");
    }
    if (!take(e, "("))
        return lade_eval_bad_text(e, "a value expected");
    LADE_TRY(coalesce(e, out));
    LADE_TRY(expect(e, ")"));
out:
    return rc;
}

static int postfix(struct lade_eval *e, struct lade_value *out)
{
    struct lade_value index = {0};
    int rc = LADE_OK;

    LADE_TRY(primary(e, out));
    while (take(e, "[")) {
        LADE_TRY(coalesce(e, &index));
        LADE_TRY(lade_eval_need_integer(e, &index));
        LADE_TRY(expect(e, "]"));
        LADE_TRY(lade_eval_pick(e, out, index.number));
    }
out:
    return rc;
}

static int unary(struct lade_eval *e, struct lade_value *out)
{
    bool negate = false, invert = false;
    int rc = LADE_OK;

    skip_blanks(e);
    if (e->at[0] == '!' && e->at[1] != '=')
        invert = take(e, "!");
    else
        negate = take(e, "-");
    if (!negate && !invert)
        return postfix(e, out);
    LADE_TRY(deeper(e));
    LADE_TRY(unary(e, out));
    e->depth--;
    LADE_TRY(lade_eval_need_integer(e, out));
    if (!e->live)
        return LADE_OK;
    if (invert)
        *out = (struct lade_value){.number = !out->number};
    else if (__builtin_sub_overflow(INT64_C(0), out->number, &out->number))
        return lade_eval_bad_value(e, "a number beyond 64 bits");
out:
    return rc;
}

/* ---- operators ---------------------------------------------------------- */

static int product(struct lade_eval *e, struct lade_value *out)
{
    struct lade_value right = {0};
    int rc = LADE_OK;

    LADE_TRY(unary(e, out));
    for (;;) {
        char op = take(e, "*")   ? '*'
                  : take(e, "/") ? '/'
                  : take(e, "%") ? '%'
                                 : 0;
        if (!op)
            return LADE_OK;
        LADE_TRY(unary(e, &right));
        LADE_TRY(lade_eval_arithmetic(e, op, out, &right));
    }
out:
    return rc;
}

static int sum(struct lade_eval *e, struct lade_value *out)
{
    struct lade_value right = {0};
    int rc = LADE_OK;

    LADE_TRY(product(e, out));
    for (;;) {
        char op = take(e, "+") ? '+' : take(e, "-") ? '-' : 0;
        if (!op)
            return LADE_OK;
        LADE_TRY(product(e, &right));
        LADE_TRY(lade_eval_arithmetic(e, op, out, &right));
    }
out:
    return rc;
}

static const char *const relations[LADE_RELATIONS] = {
    "==", "!=", "<=", ">=", "<", ">", "in"};

static int comparison(struct lade_eval *e, struct lade_value *out)
{
    struct lade_value right = {0};
    int rc = LADE_OK, op = 0;

    LADE_TRY(sum(e, out));
    while (op < LADE_RELATIONS && !take(e, relations[op]))
        op++;
    if (op == LADE_RELATIONS)
        return LADE_OK;
    LADE_TRY(sum(e, &right));
    if (e->live)
        LADE_TRY(lade_eval_relate(e, (enum lade_relation)op, out, &right));
out:
    return rc;
}

/* && and ||: the right side is evaluated only if it decides. */
static int logic(struct lade_eval *e, bool any, struct lade_value *out)
{
    struct lade_value right = {0};
    bool live = e->live;
    int rc = LADE_OK;

    LADE_TRY(any ? logic(e, false, out) : comparison(e, out));
    while (take(e, any ? "||" : "&&")) {
        LADE_TRY(lade_eval_need_integer(e, out));
        bool decided = (out->number != 0) == any;
        e->live = live && !decided;
        LADE_TRY(any ? logic(e, false, &right) : comparison(e, &right));
        LADE_TRY(lade_eval_need_integer(e, &right));
        e->live = live;
        *out = (struct lade_value){.number = decided ? any : right.number != 0};
    }
out:
    e->live = live;
    return rc;
}

static int coalesce(struct lade_eval *e, struct lade_value *out)
{
    struct lade_value right = {0};
    bool live = e->live;
    int rc = LADE_OK;

    LADE_TRY(deeper(e));
    LADE_TRY(logic(e, true, out));
    while (take(e, "??")) {
        e->live = live && out->kind == LADE_VALUE_ABSENT;
        LADE_TRY(logic(e, true, &right));
        if (e->live)
            *out = right;
        e->live = live;
    }
    e->depth--;
out:
    e->live = live;
    return rc;
}

/* ---- entry points ------------------------------------------------------- */

int lade_expr_eval(const struct lade_expr_scope *scope, const char *text,
                   int64_t *value, lade_err *err)
{
    unsigned steps = 0;
    struct lade_eval e = {.scope = scope,
                          .bound = scope->bound,
                          .text = text,
                          .at = text,
                          .steps = &steps,
                          .live = true,
                          .err = err};
    struct lade_value v = {0};
    int rc = LADE_OK;

    LADE_TRY(whole(&e, &v));
    LADE_TRY(lade_eval_need_integer(&e, &v));
    *value = v.number;
out:
    return rc;
}

int lade_expr_check(const char *text, lade_err *err)
{
    unsigned steps = 0;
    struct lade_eval e = {
        .text = text, .at = text, .steps = &steps, .err = err};
    struct lade_value v = {0};

    return whole(&e, &v);
}

int lade_expr_value(const struct lade_expr_scope *scope, const cJSON *item,
                    int64_t *value, lade_err *err)
{
    if (cJSON_IsString(item))
        return lade_expr_eval(scope, item->valuestring, value, err);
    if (cJSON_IsBool(item)) {
        *value = cJSON_IsTrue(item);
        return LADE_OK;
    }
    if (lade_json_i64(item, value))
        return LADE_OK;
    return lade_err_set(err, LADE_E_USAGE,
                        "%s: a number, true, false or an expression expected",
                        scope->what ? scope->what : "expression");
}
