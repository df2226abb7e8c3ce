/*
 * Inside of the option table: one text becomes the value of one option.
 */
#ifndef LADE_BASE_OPTION_VALUE_H
#define LADE_BASE_OPTION_VALUE_H

#include "base/option.h"

/* Where the value of an option lies in the caller's struct. */
static inline void *lade_option_at(const struct lade_option_set *set,
                                   const struct lade_option *option)
{
    return (char *)set->values + option->at;
}

/* All values become zero, none is given. */
void lade_option_clear(struct lade_option_set *set);

/* Sets option `index`. text NULL stands for a flag without a value; source NULL
 * for a default; a second value from the same source joins a list. */
int lade_option_set_value(struct lade_option_set *set, int index,
                          const char *text, const char *source, lade_err *err);

#endif
