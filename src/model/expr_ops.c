/*
 * In: the values on both sides of an operator of an expression. Out: a value,
 * or the fault in words: one of the text (the family file is wrong), or one of
 * the config (a key absent, a number that does not fit). Division is exact,
 * every operation is checked.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/expr_eval.h"

static const char *what_of(const struct lade_eval *e)
{
    return e->scope && e->scope->what ? e->scope->what : "expression";
}

/* A fault of the text. */
int lade_eval_bad_text(const struct lade_eval *e, const char *why)
{
    return lade_err_set(e->err, LADE_E_USAGE,
                        "%s: expression \"%.200s\": %s at character %d",
                        what_of(e), e->text, why, (int)(e->at - e->text) + 1);
}

/* A fault of the config's values. */
int lade_eval_bad_value(const struct lade_eval *e, const char *why)
{
    return lade_err_set(e->err, LADE_E_CHECKPOINT,
                        "config.json: %s in \"%.200s\" (%s)", why, e->text,
                        what_of(e));
}

/* "key rope_theta is not a whole number"; a literal has no key. */
static int bad_kind(const struct lade_eval *e, const struct lade_value *v,
                    const char *needed)
{
    const char *verb = v->key ? " is not " : "not ";
    char where[160] = "", why[384], what[128] = "";

    if (v->key)
        snprintf(where, sizeof where, "key %.*s",
                 v->key_length < 120 ? v->key_length : 120, v->key);
    if (v->kind == LADE_VALUE_ABSENT) {
        snprintf(why, sizeof why, "%s is absent, but it is needed", where);
        return lade_eval_bad_value(e, why);
    }
    if (v->kind == LADE_VALUE_TEXT)
        snprintf(what, sizeof what, " but the text \"%.*s\"",
                 v->length < 80 ? v->length : 80, v->text);
    else if (v->kind != LADE_VALUE_OTHER)
        snprintf(what, sizeof what, " but a %s",
                 v->kind == LADE_VALUE_LIST ? "list" : "number");
    snprintf(why, sizeof why, "%s%s%s%s", where, verb, needed, what);
    return lade_eval_bad_value(e, why);
}

int lade_eval_need_integer(const struct lade_eval *e,
                           const struct lade_value *v)
{
    if (!e->live || v->kind == LADE_VALUE_INTEGER)
        return LADE_OK;
    return bad_kind(e, v, "a whole number");
}

struct lade_value lade_eval_value_of(const cJSON *item, const char *key,
                                     size_t length)
{
    struct lade_value v = {
        .kind = LADE_VALUE_OTHER, .key = key, .key_length = (int)length};

    if (!item || cJSON_IsNull(item)) {
        v.kind = LADE_VALUE_ABSENT;
    } else if (cJSON_IsBool(item)) {
        v.kind = LADE_VALUE_INTEGER;
        v.number = cJSON_IsTrue(item);
    } else if (lade_json_i64(item, &v.number)) {
        v.kind = LADE_VALUE_INTEGER;
    } else if (cJSON_IsString(item)) {
        v.kind = LADE_VALUE_TEXT;
        v.text = item->valuestring;
        v.length = (int)strlen(v.text);
    } else if (cJSON_IsArray(item)) {
        v.kind = LADE_VALUE_LIST;
        v.list = item;
    }
    return v;
}

int lade_eval_cdiv(const struct lade_eval *e, const struct lade_eval_args *args,
                   struct lade_value *out)
{
    int64_t a = args->values[0], b = args->values[1];

    if (args->count != 2)
        return lade_eval_bad_text(e, "cdiv takes two arguments");
    if (!e->live)
        return LADE_OK;
    if (a < 0 || b <= 0)
        return lade_eval_bad_value(e, "cdiv of a negative number or by zero");
    *out = (struct lade_value){.number = a / b + (a % b != 0)};
    return LADE_OK;
}

int lade_eval_pick(const struct lade_eval *e, struct lade_value *list,
                   int64_t index)
{
    const cJSON *item = NULL;
    char why[96];

    if (!e->live || list->kind == LADE_VALUE_ABSENT)
        return LADE_OK;
    if (list->kind != LADE_VALUE_LIST)
        return bad_kind(e, list, "a list");
    int size = list->list ? cJSON_GetArraySize(list->list) : 0;
    if (index < 0 || index >= size) {
        snprintf(why, sizeof why,
                 "element %" PRId64 " of a list of %d elements", index, size);
        return lade_eval_bad_value(e, why);
    }
    item = cJSON_GetArrayItem(list->list, (int)index);
    *list = lade_eval_value_of(item, list->key, (size_t)list->key_length);
    return LADE_OK;
}

static int divide(const struct lade_eval *e, char op, int64_t a, int64_t b,
                  int64_t *out)
{
    char why[96];

    if (b == 0)
        return lade_eval_bad_value(e, "division by zero");
    if (b == -1) { // INT64_MIN / -1 is undefined
        if (op == '%')
            *out = 0;
        else if (__builtin_sub_overflow(INT64_C(0), a, out))
            return lade_eval_bad_value(e, "a number beyond 64 bits");
        return LADE_OK;
    }
    if (op == '/' && a % b != 0) {
        snprintf(why, sizeof why, "%" PRId64 " is not a multiple of %" PRId64,
                 a, b);
        return lade_eval_bad_value(e, why);
    }
    *out = op == '/' ? a / b : a % b;
    return LADE_OK;
}

int lade_eval_arithmetic(const struct lade_eval *e, char op,
                         struct lade_value *left,
                         const struct lade_value *right)
{
    int64_t a = left->number, b = right->number, r = 0;
    bool over = false;
    int rc = LADE_OK;

    LADE_TRY(lade_eval_need_integer(e, left));
    LADE_TRY(lade_eval_need_integer(e, right));
    if (!e->live)
        return LADE_OK;
    if (op == '+')
        over = __builtin_add_overflow(a, b, &r);
    else if (op == '-')
        over = __builtin_sub_overflow(a, b, &r);
    else if (op == '*')
        over = __builtin_mul_overflow(a, b, &r);
    else
        LADE_TRY(divide(e, op, a, b, &r));
    if (over)
        return lade_eval_bad_value(e, "a number beyond 64 bits");
    *left = (struct lade_value){.number = r};
out:
    return rc;
}

static bool equal(const struct lade_value *a, const struct lade_value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == LADE_VALUE_INTEGER)
        return a->number == b->number;
    return a->kind == LADE_VALUE_TEXT && a->length == b->length &&
           memcmp(a->text, b->text, (size_t)a->length) == 0;
}

static int need_comparable(const struct lade_eval *e,
                           const struct lade_value *v)
{
    if (v->kind == LADE_VALUE_INTEGER || v->kind == LADE_VALUE_TEXT)
        return LADE_OK;
    return bad_kind(e, v, "a number or a text");
}

static int contains(const struct lade_eval *e, const struct lade_value *list,
                    struct lade_value *out)
{
    const cJSON *item = NULL;
    bool found = false;

    if (list->kind != LADE_VALUE_LIST)
        return bad_kind(e, list, "a list");
    cJSON_ArrayForEach(item, list->list)
    {
        struct lade_value v = lade_eval_value_of(item, "[]", 2);
        found = found || equal(&v, out);
    }
    *out = (struct lade_value){.number = found};
    return LADE_OK;
}

int lade_eval_relate(const struct lade_eval *e, enum lade_relation op,
                     struct lade_value *left, const struct lade_value *right)
{
    int64_t a = left->number, b = right->number;
    int rc = LADE_OK;

    LADE_TRY(need_comparable(e, left));
    if (op == LADE_REL_IN)
        return contains(e, right, left);
    LADE_TRY(need_comparable(e, right));
    if (op == LADE_REL_EQ || op == LADE_REL_NE) {
        *left = (struct lade_value){.number = equal(left, right) ==
                                              (op == LADE_REL_EQ)};
        return LADE_OK;
    }
    LADE_TRY(lade_eval_need_integer(e, left));
    LADE_TRY(lade_eval_need_integer(e, right));
    bool is = op == LADE_REL_LE   ? a <= b
              : op == LADE_REL_GE ? a >= b
              : op == LADE_REL_LT ? a < b
                                  : a > b;
    *left = (struct lade_value){.number = is};
out:
    return rc;
}
