/*
 * The rename rules of a shell, compiled once.
 */
#ifndef LADE_ROUTE_MAPPER_H
#define LADE_ROUTE_MAPPER_H

#include <regex.h>

#include "route/route.h"

#define LADE_NAME_MAX 4096 /* longer names are known to no family */

struct lade_mapper {
    const struct lade_shell *shell;
    struct lade_mem *mem;
    struct {
        regex_t regex;
        bool ready;
    } * compiled;    /* per rule */
    uint32_t *order; /* rules in the order in which they apply */
    uint32_t rules;  /* how many */
};

int lade_mapper_init(struct lade_mapper *mapper, const struct lade_shell *shell,
                     struct lade_mem *mem, lade_err *err);
void lade_mapper_fini(struct lade_mapper *mapper);
/* As lade_route_map. out and name must not overlap. */
bool lade_mapper_map(const struct lade_mapper *mapper, const char *name,
                     char *out, size_t size, uint32_t *rule);

#endif
