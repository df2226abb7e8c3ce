/*
 * Gate 6: carries out the plan. Reads stripes, shares them over the node's ring
 * and between nodes, takes boxes out of them into the parameters; watches the
 * health of all ranks. Collective.
 */
#ifndef LADE_SHARE_SHARE_H
#define LADE_SHARE_SHARE_H

#include "base/clock.h"
#include "base/shm.h"
#include "comm/comm.h"
#include "plan/plan.h"
#include "read/read.h"

/* Where the parameters of this rank are, and how much of each was written. */
struct lade_target {
    void **data; /* [params] address, NULL when the device stores nothing */
    uint32_t *first_cell; /* [params + 1] cells are (local slot, part) pairs of
                             a parameter: first_cell[p] + slot * parts + (part -
                             first_part) */
    uint64_t *written;    /* [cells] elements written so far */
};

struct lade_share_job {
    struct lade_comm *comm;
    const struct lade_node *node;
    const struct lade_plan_input *in;
    const struct lade_plan *plan; /* this rank's island */
    struct lade_target *target;
    const struct lade_read_ops *reader;
    struct lade_read_options read_options;
    bool headers_only; /* null device and null reader: no payload moves */
    struct lade_mem *mem;
    struct lade_trace *trace;
    double timeout_s;
    const int *interrupt; /* set by a signal handler to the status; or NULL */
    void (*progress)(void *ctx, uint64_t done_bytes,
                     uint64_t total_bytes); /* rank 0; may be NULL */
    void *progress_ctx;
};

struct lade_share_counts {
    struct lade_read_counts read;
    uint64_t direct_bytes; /* read straight into parameters */
    uint64_t sent_bytes, received_bytes;
    uint64_t copied_bytes; /* taken out of the ring by the CPU */
    uint64_t delivered_bytes;
    uint64_t cast_elements; /* converted with loss */
    uint64_t read_ns,
        share_ns; /* time with a read, a message or a copy in flight */
};

/* Bytes of staging memory that a node (scope rank: a rank) needs for this plan:
 * ring, flags, health. Exact; `locals` ranks share the node. */
uint64_t lade_share_staging_bytes(const struct lade_plan *plan, uint32_t node,
                                  int locals);

/* On return every rank has the same status (it ends with the agreement). */
int lade_share_run_all(const struct lade_share_job *job,
                       struct lade_share_counts *counts, lade_err *err);

#endif
