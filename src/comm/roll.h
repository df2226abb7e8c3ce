/*
 * The slow end of an agreement: who is here when somebody is missing. Inside
 * this room only.
 */
#ifndef LADE_COMM_ROLL_H
#define LADE_COMM_ROLL_H

#include "comm/comm.h"

#define LADE_ROLL_TEXT 96

/* One turn of a wait: yields at first, then sleeps longer and longer.
 * *sleep_us starts at 50. */
void lade_comm_rest(uint64_t waited_ns, unsigned *sleep_us);

/* Goes on waiting for `req`, a collective that all ranks take part in, and
 * answers rank 0 meanwhile. When rank 0 or this rank has waited `limit_ns`, the
 * roll is called: *done is false and `missing` ("1, 5", "" when everybody is
 * here after all) the same text on all ranks that rank 0 reaches. */
int lade_roll_wait(struct lade_comm *comm, struct lade_request *req,
                   uint64_t limit_ns, char missing[LADE_ROLL_TEXT], bool *done,
                   lade_err *err);

/* Takes back what listens; only while no rank is lost. */
void lade_roll_free(struct lade_comm *comm);

#endif
