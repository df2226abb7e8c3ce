/*
 * How often each source element lies in a parameter, over all ranks: what a
 * layout must deliver, computed from routes and placement alone. Pure.
 */
#ifndef LADE_CHECK_COPIES_H
#define LADE_CHECK_COPIES_H

#include "plan/plan.h"

struct lade_copies {
    struct {
        uint64_t copies, elements;
    } rows[64]; /* ascending by copies; more kinds are added to the last */
    uint32_t count;
    uint64_t elements; /* all source elements that some rank holds */
    uint64_t bytes;    /* of these, in the parameters' dtypes, each once */
};

void lade_copies_count(const struct lade_plan_input *in,
                       struct lade_copies *copies);

#endif
