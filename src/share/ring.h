/*
 * The node's ring: slots for the shared stripes of three rounds, one flag per
 * stripe, and the lists of what this rank has to do, all taken from the plan.
 */
#ifndef LADE_SHARE_RING_H
#define LADE_SHARE_RING_H

#include <stdatomic.h>

#include "base/shm.h"
#include "comm/comm.h"
#include "plan/plan.h"
#include "share/board.h"

enum lade_slot_state { LADE_SLOT_EMPTY, LADE_SLOT_READY, LADE_SLOT_BAD };

#define LADE_NO_SLOT UINT32_MAX

/* One thing to do, in plan order. */
struct lade_duty {
    uint64_t slot; /* bytes from the start of the round's segment */
    uint32_t stripe;
    uint32_t flag; /* index of the stripe's flag, LADE_NO_SLOT if direct */
};

struct lade_ring {
    const struct lade_plan *plan;
    const struct lade_stripe *stripes;
    struct lade_board *board;
    int first_local, end_local; /* ranks that use this ring */
    _Atomic uint32_t *flags;
    unsigned char *segments;
    uint64_t segment_bytes;
    struct lade_vec reads, recvs, takes; /* struct lade_duty of this rank */
    uint32_t *pending; /* [rounds] duties of this rank that hold a slot */
    uint32_t done_rounds;
};

/* Shared stripes of a node: flags and ring bytes it needs. */
uint64_t lade_ring_bytes(const struct lade_plan *plan, uint32_t node);

/* Where a ring stands and whom it serves. */
struct lade_ring_site {
    const struct lade_plan *plan;
    const struct lade_node *node;
    struct lade_board *board;
    void *memory; /* lade_ring_bytes of zeroed, page-aligned memory */
    uint32_t rank;
    bool takes; /* what arrives is taken: the device stores, or counts */
};

int lade_ring_init(struct lade_ring *ring, const struct lade_ring_site *site,
                   struct lade_mem *mem, lade_err *err);
void lade_ring_fini(struct lade_ring *ring, struct lade_mem *mem);

/* May a stripe of this round be written? Yes when everyone who uses the ring
 * has finished the round that had the segment before. */
bool lade_ring_free(const struct lade_ring *ring, uint32_t round);

/* Address of the stripe's first byte; the status word behind it, which is not
 * aligned; the bytes from the one to the end of the other (one message). */
unsigned char *lade_ring_data(const struct lade_ring *ring,
                              const struct lade_duty *duty);
uint64_t lade_ring_status(const struct lade_ring *ring,
                          const struct lade_duty *duty);
void lade_ring_set_status(const struct lade_ring *ring,
                          const struct lade_duty *duty, uint64_t status);
uint64_t lade_ring_message(const struct lade_stripe *stripe);

/* A duty that held a slot is done. */
void lade_ring_done(struct lade_ring *ring, uint32_t round);
/* Publishes how many rounds are finished here; true if that changed. */
bool lade_ring_advance(struct lade_ring *ring, struct lade_board_rank *me);

#endif
