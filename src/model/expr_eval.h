/*
 * Inside of the expression evaluator: values, the state of an evaluation, and
 * the operators (expr_ops.c). Users include model/expr.h.
 */
#ifndef LADE_MODEL_EXPR_EVAL_H
#define LADE_MODEL_EXPR_EVAL_H

#include <string.h>

#include "model/expr.h"

/* Limits: both the texts and the config may come from strangers. */
#define LADE_EXPR_MAX_LENGTH 1024
#define LADE_EXPR_MAX_DEPTH 64
#define LADE_EXPR_MAX_STEPS 20000
#define LADE_EXPR_MAX_ARGS 4

enum lade_value_kind {
    LADE_VALUE_INTEGER,
    LADE_VALUE_TEXT,
    LADE_VALUE_LIST,
    LADE_VALUE_ABSENT,
    LADE_VALUE_OTHER
};

struct lade_value {
    enum lade_value_kind kind;
    int64_t number;
    const char *text; /* TEXT: its characters */
    int length;
    int key_length;
    const char *key;   /* where in the config it stands, NULL if it does not */
    const cJSON *list; /* LIST: NULL for the empty one */
};

/* Definitions that are being evaluated, innermost first. */
struct lade_eval_frame {
    const cJSON *definition;
    const struct lade_eval_frame *outer;
};

struct lade_eval {
    const struct lade_expr_scope *scope;
    const struct lade_expr_bound *bound;
    const struct lade_eval_frame *frame;
    const char *text, *at;
    unsigned *steps;
    int depth;
    bool live; /* false: syntax only */
    lade_err *err;
};

/* Variables of a function of `let`. */
struct lade_eval_args {
    int count;
    char names[LADE_EXPR_MAX_ARGS][32];
    int64_t values[LADE_EXPR_MAX_ARGS];
};

enum lade_relation {
    LADE_REL_EQ,
    LADE_REL_NE,
    LADE_REL_LE,
    LADE_REL_GE,
    LADE_REL_LT,
    LADE_REL_GT,
    LADE_REL_IN,
    LADE_RELATIONS
};

static inline bool lade_text_is(const char *name, const char *text,
                                size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

/* A fault of the text (USAGE), with its place; one of the config's values
 * (CHECKPOINT). */
int lade_eval_bad_text(const struct lade_eval *e, const char *why);
int lade_eval_bad_value(const struct lade_eval *e, const char *why);
int lade_eval_need_integer(const struct lade_eval *e,
                           const struct lade_value *v);

struct lade_value lade_eval_value_of(const cJSON *item, const char *key,
                                     size_t length);

/* *left = *left op *right; op is one of + - * / % */
int lade_eval_arithmetic(const struct lade_eval *e, char op,
                         struct lade_value *left,
                         const struct lade_value *right);
int lade_eval_relate(const struct lade_eval *e, enum lade_relation op,
                     struct lade_value *left, const struct lade_value *right);
int lade_eval_cdiv(const struct lade_eval *e, const struct lade_eval_args *args,
                   struct lade_value *out);
/* *list becomes its element. */
int lade_eval_pick(const struct lade_eval *e, struct lade_value *list,
                   int64_t index);

#endif
