/*
 * In: a session. Out: the parameters and aliases of this rank, one at a time.
 *
 * A head of the checkpoint's own that turned out to equal the embedding is
 * shown as an alias, not as a parameter.
 */
#include <string.h>

#include "base/map.h"
#include "load/session.h"

static const struct lade_shell_param *params_of(const struct lade_session *s)
{
    return LADE_ITEMS(LADE_SHELL(s), params, struct lade_shell_param);
}

/* The parameter that became an alias; UINT32_MAX if there is none. */
static uint32_t hidden(const struct lade_session *s)
{
    const struct lade_shell *shell = LADE_SHELL(s);

    if (!s->tied)
        return UINT32_MAX;
    return shell->tie_from > shell->tie_to ? shell->tie_from : shell->tie_to;
}

static uint32_t tied_to(const struct lade_session *s)
{
    const struct lade_shell *shell = LADE_SHELL(s);

    return shell->tie_from > shell->tie_to ? shell->tie_to : shell->tie_from;
}

size_t lade_param_count(const lade_session *session)
{
    if (!session || !LADE_SHELL(session))
        return 0;
    return LADE_SHELL(session)->params.count - (session->tied ? 1 : 0);
}

int lade_param_get(const lade_session *session, size_t index, lade_param *param)
{
    const struct lade_session *s = session;

    if (index >= lade_param_count(s) || !s->placed)
        return LADE_E_USAGE;
    uint32_t i = (uint32_t)index + (index >= hidden(s) ? 1 : 0);
    const struct lade_shell_param *p = &params_of(s)[i];
    struct lade_coords at = lade_coords_of(&s->layout, s->rank);
    memset(param, 0, sizeof *param);
    param->name = LADE_STRING(LADE_SHELL(s), pool, p->name);
    param->dtype = lade_dtype_name(p->dtype);
    param->ndim = (uint32_t)lade_shell_shape(LADE_SHELL(s), &s->place, &at, i,
                                             param->shape);
    param->bytes = lade_shell_bytes(LADE_SHELL(s), &s->place, &at, i);
    param->data = s->target.data ? s->target.data[i] : NULL;
    return LADE_OK;
}

size_t lade_alias_count(const lade_session *session)
{
    if (!session || !LADE_SHELL(session))
        return 0;
    return LADE_SHELL(session)->aliases.count + (session->tied ? 1 : 0);
}

int lade_alias_get(const lade_session *session, size_t index, const char **name,
                   const char **param)
{
    const struct lade_session *s = session;
    const struct lade_shell *shell = s ? LADE_SHELL(s) : NULL;

    if (!shell || index >= lade_alias_count(s))
        return LADE_E_USAGE;
    if (index == shell->aliases.count) {
        *name = LADE_STRING(shell, pool, params_of(s)[hidden(s)].name);
        *param = LADE_STRING(shell, pool, params_of(s)[tied_to(s)].name);
        return LADE_OK;
    }
    const struct lade_shell_alias *alias =
        &LADE_ITEMS(shell, aliases, struct lade_shell_alias)[index];
    *name = LADE_STRING(shell, pool, alias->name);
    *param = LADE_STRING(shell, pool, params_of(s)[alias->param].name);
    return LADE_OK;
}

int lade_param_find(const lade_session *session, const char *name,
                    lade_param *param)
{
    const char *alias, *target;

    for (size_t i = 0; i < lade_alias_count(session); i++)
        if (lade_alias_get(session, i, &alias, &target) == LADE_OK &&
            strcmp(alias, name) == 0)
            name = target;
    for (size_t i = 0; i < lade_param_count(session); i++)
        if (lade_param_get(session, i, param) == LADE_OK &&
            strcmp(param->name, name) == 0)
            return LADE_OK;
    return LADE_E_USAGE;
}

int lade_param_digest(const lade_session *session, size_t index,
                      char digest[33])
{
    lade_param param;

    if (lade_param_get(session, index, &param) != LADE_OK || !param.data)
        return LADE_E_USAGE;
    lade_digest_text(lade_digest_of(param.data, param.bytes), digest);
    return LADE_OK;
}
