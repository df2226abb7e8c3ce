/*
 * Where each parameter of a rank stands in the one block that holds them all.
 */
#ifndef LADE_LOAD_TARGET_H
#define LADE_LOAD_TARGET_H

#include "plan/plan.h"
#include "share/share.h"

/* at[param] (may be NULL) is the distance from a page-aligned base; *total is
 * the size of the block. A parameter stands at a page plus the residue that
 * most of its direct bytes have in their files, so that they can be read into
 * place without the page cache. Pure. */
int lade_target_layout(const struct lade_plan_input *in,
                       const struct lade_plan *plan, uint32_t rank,
                       struct lade_mem *mem, uint64_t *at, uint64_t *total,
                       lade_err *err);

/* Cells and counters of a rank; data addresses are base + at[param], or NULL
 * when base is. */
int lade_target_init(struct lade_target *target,
                     const struct lade_plan_input *in, uint32_t rank,
                     void *base, const uint64_t *at, struct lade_mem *mem,
                     lade_err *err);
void lade_target_fini(struct lade_target *target, struct lade_mem *mem);

#endif
