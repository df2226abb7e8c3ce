/*
 * Data files compiled in (families, presets); src/embed.cmake writes the
 * tables. Each ends with a row whose name is NULL; text is zero-terminated.
 */
#ifndef LADE_BASE_EMBED_H
#define LADE_BASE_EMBED_H

#include <stddef.h>

struct lade_embedded {
    const char *name;
    const char *text;
    size_t length;
};
extern const struct lade_embedded lade_families[];
extern const struct lade_embedded lade_presets[];

#endif
