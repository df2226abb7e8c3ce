/*
 * Gate 8, first half: declared against written. Pure.
 */
#ifndef LADE_CHECK_RECONCILE_H
#define LADE_CHECK_RECONCILE_H

#include "plan/box.h"
#include "plan/plan.h"
#include "share/share.h"

/* A cell is what one part of a parameter writes into one local expert slot
 * (slot 0 without experts). Numbers of cells of parameter p on a rank, and the
 * slots. */
uint32_t lade_cell_slots(const struct lade_plan_input *in, uint32_t rank,
                         uint32_t param);
/* The logical expert in a slot of a rank. */
uint32_t lade_cell_expert(const struct lade_plan_input *in, uint32_t rank,
                          uint32_t param, uint32_t slot);

struct lade_reconciled {
    uint64_t elements; /* written, each once */
    uint64_t padding;  /* elements of parameters that no tensor fills: zero */
    uint64_t missing;  /* cells that are absent on disk (strict off) */
};

/* Every element of every parameter of `rank` must have been written exactly
 * once, from the part that fills it; what no part fills is padding. PARAMETER
 * names parameter, part and expert of the first cell that lacks elements, and
 * how many cells do; INTERNAL if one got too many. */
int lade_reconcile(const struct lade_plan_input *in, uint32_t rank,
                   const struct lade_target *target, struct lade_mem *mem,
                   struct lade_reconciled *sums, lade_err *err);

#endif
