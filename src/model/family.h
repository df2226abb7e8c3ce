/*
 * Inside of the model room: what a family file holds once it was checked, and
 * the path from there to a shell. Users include model/model.h.
 */
#ifndef LADE_MODEL_FAMILY_H
#define LADE_MODEL_FAMILY_H

#include "model/expr.h"

/* As lade_expr_format, but {keep} stays in the text as it is. */
int lade_expr_format_keep(const struct lade_expr_scope *scope,
                          const char *pattern, const char *keep, char *out,
                          size_t size, lade_err *err);

#endif
