/*
 * In: a pattern such as "model.layers.{l}.mlp.experts.{e}" and bound variables.
 * Out: the name with the numbers in it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "model/expr_eval.h"
#include "model/family.h"

static const struct lade_expr_bound *
find_bound(const struct lade_expr_scope *scope, const char *name, size_t length)
{
    const struct lade_expr_bound *b = scope->bound;

    while (b && !lade_text_is(b->name, name, length))
        b = b->next;
    return b;
}

int lade_expr_format_keep(const struct lade_expr_scope *scope,
                          const char *pattern, const char *keep, char *out,
                          size_t size, lade_err *err)
{
    const char *what = scope->what ? scope->what : "pattern";
    size_t used = 0;

    for (const char *at = pattern; *at && used < size;) {
        size_t plain = strcspn(at, "{");
        const char *close = at[plain] ? strchr(at + plain, '}') : NULL;
        if (at[plain] && !close)
            return lade_err_set(err, LADE_E_USAGE, "%s: { without } in \"%s\"",
                                what, pattern);
        size_t length = close ? (size_t)(close - at) - plain - 1 : 0;
        const char *name = at + plain + 1;
        const struct lade_expr_bound *b =
            close ? find_bound(scope, name, length) : NULL;
        bool kept = close && keep && lade_text_is(keep, name, length);
        if (close && !b && !kept)
            return lade_err_set(err, LADE_E_USAGE,
                                "%s: nothing named {%.*s} for \"%s\"", what,
                                (int)length, name, pattern);
        int n = kept || !close
                    ? snprintf(out + used, size - used, "%.*s",
                               (int)(plain + (kept ? length + 2 : 0)), at)
                    : snprintf(out + used, size - used, "%.*s%" PRId64,
                               (int)plain, at, b->value);
        used += n < 0 ? size : (size_t)n;
        at += plain + (close ? length + 2 : 0);
    }
    if (used >= size)
        return lade_err_set(err, LADE_E_USAGE,
                            "%s: the name made from \"%.100s\" is longer than "
                            "%zu characters",
                            what, pattern, size - 1);
    out[used] = '\0';
    return LADE_OK;
}

int lade_expr_format(const struct lade_expr_scope *scope, const char *pattern,
                     char *out, size_t size, lade_err *err)
{
    return lade_expr_format_keep(scope, pattern, NULL, out, size, err);
}
