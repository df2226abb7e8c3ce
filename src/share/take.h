/*
 * What this rank takes out of a stripe: the rows under it, their parts, this
 * rank's boxes, copied or cast into the parameters and counted.
 */
#ifndef LADE_SHARE_TAKE_H
#define LADE_SHARE_TAKE_H

#include "share/share.h"

struct lade_taker {
    const struct lade_plan_input *in;
    const struct lade_target *target;
    struct lade_coords at;
    uint32_t *slots; /* local slots of one expert */
    uint32_t max_slots;
    uint64_t delivered_bytes, cast_elements;
};

int lade_taker_init(struct lade_taker *taker, const struct lade_plan_input *in,
                    const struct lade_target *target, uint32_t rank,
                    struct lade_mem *mem, lade_err *err);
void lade_taker_fini(struct lade_taker *taker, struct lade_mem *mem);

/* Copies this rank's boxes out of a stripe whose bytes are at `data` (NULL:
 * nothing was moved, only count). */
void lade_take(struct lade_taker *taker, const struct lade_stripe *stripe,
               const unsigned char *data);

/* Address in this rank's parameter for a direct stripe; NULL if the plan does
 * not fit the parameters (a fault of ours). */
void *lade_take_address(struct lade_taker *taker,
                        const struct lade_stripe *stripe);
/* A direct read arrived. */
void lade_take_count(struct lade_taker *taker,
                     const struct lade_stripe *stripe);

#endif
