/*
 * Words for the person who reads the error: what a name was probably meant to
 * be. Each name is looked at once or twice; how many are compared letter by
 * letter is bounded.
 */
#ifndef LADE_ROUTE_HINTS_H
#define LADE_ROUTE_HINTS_H

#include <stdbool.h>
#include <stdint.h>

/* The candidate nearest to `name` among get(ctx, 0 .. count-1) (NULL entries
 * are passed over), or NULL if none is near. Names of the same layer come
 * first; at most a few thousand are compared. */
const char *lade_hint_nearest(const char *name, uint64_t count,
                              const char *(*get)(void *ctx, uint64_t i),
                              void *ctx);

/* Does the name end like a scale or a packed weight of a quantised layer? */
bool lade_hint_is_quantised(const char *name);

#endif
