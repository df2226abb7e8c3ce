/*
 * Expressions over a config.json: integers and booleans, checked int64.
 *
 *   + - * /   (division exact, else an error)   %   cdiv(a, b)
 *   == != < <= > >=   && || !   x ?? y (key absent or null)   in LIST
 *   dotted config paths, LIST[i], names and functions of `let`, text only in
 *   equality ("gemma3_text")
 *
 * The same evaluator serves family files and the models of lade synth. A fault
 * names what was evaluated and where.
 */
#ifndef LADE_MODEL_EXPR_H
#define LADE_MODEL_EXPR_H

#include "base/json.h"

struct lade_expr_scope {
    const cJSON *config;   /* object: paths are looked up here first, */
    const cJSON *fallback; /* then here (text_config), may be NULL */
    const cJSON *let;      /* object name -> expression text; "moe(l)" defines a function */
    /* innermost first; loop variables and function arguments */
    const struct lade_expr_bound {
        const char *name;
        int64_t value;
        const struct lade_expr_bound *next;
    } *bound;
    const char *what; /* for errors: "family llama" */
};

/* Evaluates `text` to an integer (booleans are 0 and 1). LADE_E_CHECKPOINT on a fault that the
 * config causes (key absent, not a whole number, division not exact), naming key and expression;
 * LADE_E_USAGE on a fault of the text itself. */
int lade_expr_eval(const struct lade_expr_scope *scope, const char *text, int64_t *value,
                   lade_err *err);
/* Syntax only; for checks when a family file is loaded. */
int lade_expr_check(const char *text, lade_err *err);

/* A JSON value that is a number, a boolean or an expression text. */
int lade_expr_value(const struct lade_expr_scope *scope, const cJSON *item, int64_t *value,
                    lade_err *err);

/* Replaces {name} in `pattern` by the values of bound names; unknown {names} are an error. */
int lade_expr_format(const struct lade_expr_scope *scope, const char *pattern, char *out,
                     size_t size, lade_err *err);

#endif
