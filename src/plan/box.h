/*
 * What one rank takes of one disk tensor, as a strided copy. All numbers are
 * elements. Mirrors the slicing rules of the engine (vLLM: linear.py,
 * parameter.py, vocab_parallel_embedding.py, fused_moe/layer.py); the vectors
 * in mpi_tests hold them against it.
 */
#ifndef LADE_PLAN_BOX_H
#define LADE_PLAN_BOX_H

#include "model/model.h"

/* run j (0 <= j < runs) copies `run` elements from src + j * src_step of the
 * tensor to dst + j * dst_step of the parameter. */
struct lade_box {
    uint64_t src, dst;
    uint64_t runs, run;
    uint64_t src_step, dst_step;
};

/* The box of `part` on the rank `at` in expert slot `slot` (0 if none). Returns
 * false if the rank takes nothing of it. Does not look at who owns the expert:
 * see lade_box_slots. */
bool lade_box_of(const struct lade_shell *shell,
                 const struct lade_shell_part *part,
                 const struct lade_coords *at, uint32_t slot,
                 struct lade_box *box);

/* The same for piece number `index` of the part's axis: what all ranks with
 * that piece take. */
bool lade_box_piece(const struct lade_shell *shell,
                    const struct lade_shell_part *part, uint64_t index,
                    uint32_t slot, struct lade_box *box);

/* The local slots of the rank `at` that hold logical expert `expert` of the
 * parameter: at most `max` are written to `slots`; returns how many there are.
 * For a part without experts: one slot, number 0. */
uint32_t lade_box_slots(const struct lade_shell *shell,
                        const struct lade_placement *place,
                        const struct lade_shell_part *part, uint32_t expert,
                        const struct lade_coords *at, uint32_t *slots,
                        uint32_t max);

#endif
