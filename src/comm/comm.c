/*
 * In: bytes and statuses of one rank. Out: the same on all ranks. Nothing here
 * waits inside the back-end: operations start, are tested, and have a deadline.
 */
#include "comm/comm.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/host.h"
#include "comm/roll.h"

#define PIECE (UINT64_C(512) << 20) /* of long messages */
#define SPIN_NS UINT64_C(50000)
#define SLEEP_MAX_US 2000u
#define PATIENCE_NS UINT64_C(100000000) /* before an agreement is slow */
#define LONGEST_S 1e9                   /* a timeout that is never reached */

static int dead(const char *gate, lade_err *err)
{
    return lade_err_set(err, LADE_E_TIMEOUT,
                        "%s: an earlier deadline passed; ranks are lost", gate);
}

void lade_comm_rest(uint64_t waited_ns, unsigned *sleep_us)
{
    if (waited_ns < SPIN_NS) {
        sched_yield();
        return;
    }
    lade_sleep_us(*sleep_us);
    if (*sleep_us < SLEEP_MAX_US)
        *sleep_us *= 2;
}

/* Tests until done or `limit_ns` have passed; *done says which. */
static int poll_for(struct lade_comm *comm, struct lade_request *req,
                    uint64_t limit_ns, bool *done, lade_err *err)
{
    uint64_t start = lade_now_ns(), waited = 0;
    unsigned sleep_us = 50;

    *done = !req->active;
    while (!*done) {
        int rc = comm->ops->test(comm->ctx, req, done, err);
        if (rc != LADE_OK)
            return rc;
        if (*done)
            break;
        waited = lade_now_ns() - start;
        if (waited > limit_ns)
            break;
        lade_comm_rest(waited, &sleep_us);
    }
    return LADE_OK;
}

static uint64_t limit_of(const struct lade_comm *comm)
{
    double seconds = comm->timeout_s < LONGEST_S ? comm->timeout_s : LONGEST_S;

    return seconds > 0 ? (uint64_t)(seconds * 1e9) : 0;
}

int lade_comm_wait(struct lade_comm *comm, struct lade_request *req,
                   const char *gate, lade_err *err)
{
    bool done;

    if (comm->dead)
        return dead(gate, err);
    int rc = poll_for(comm, req, limit_of(comm), &done, err);
    if (rc != LADE_OK || done)
        return rc;
    comm->dead = true;
    return lade_err_set(err, LADE_E_TIMEOUT,
                        "%s: %g s without an answer (--timeout)", gate,
                        comm->timeout_s);
}

/* ---- agreement ---- */

/* After a deadline; `missing` names who never came, as far as known. */
static int lost(struct lade_comm *comm, const char *missing, const char *gate,
                lade_err *err)
{
    comm->dead = true;
    if (missing[0])
        return lade_err_set(err, LADE_E_TIMEOUT,
                            "%s: no word from rank %s for %g s (--timeout)",
                            gate, missing, comm->timeout_s);
    return lade_err_set(err, LADE_E_TIMEOUT,
                        "%s: %g s without an answer from all ranks "
                        "(--timeout)",
                        gate, comm->timeout_s);
}

/* Waits for all ranks to come; who is early listens for the roll. */
static int meet(struct lade_comm *comm, struct lade_request *req,
                const char *gate, lade_err *err)
{
    uint64_t limit = limit_of(comm);
    uint64_t early = lade_min_u64(limit, PATIENCE_NS);
    char missing[LADE_ROLL_TEXT];
    bool done;
    int rc = poll_for(comm, req, early, &done, err);

    if (rc == LADE_OK && !done)
        rc = lade_roll_wait(comm, req, limit - early, missing, &done, err);
    return rc != LADE_OK || done ? rc : lost(comm, missing, gate, err);
}

static void sign(struct lade_comm *comm, const char *gate, lade_err *err)
{
    if (err->gate[0] == 0)
        snprintf(err->gate, sizeof(err->gate), "%s", gate);
    if (err->rank < 0)
        err->rank = comm->rank;
    if (err->node[0] == 0)
        lade_host_name(err->node, sizeof(err->node));
}

/* What the agreement minimises: nothing failed, a lost rank or MPI, the rest;
 * among equals the lowest rank. */
static int64_t key_of(const struct lade_comm *comm, int status)
{
    bool weak = status == LADE_E_TIMEOUT || status == LADE_E_MPI;

    if (status == LADE_OK)
        return INT64_MAX;
    return (weak ? INT64_C(1) << 32 : 0) + comm->rank;
}

int lade_agree_all(struct lade_comm *comm, const char *gate, lade_err *err)
{
    struct lade_request req = {0};
    int64_t mine, least = 0;
    lade_err fault = LADE_ERR_INIT; /* of the agreement itself */

    if (err->status != LADE_OK)
        sign(comm, gate, err);
    if (comm->dead)
        return err->status != LADE_OK ? err->status : dead(gate, err);
    mine = key_of(comm, err->status);
    int rc = comm->ops->allmin(comm->ctx, &mine, &least, 1, &req, &fault);
    if (rc == LADE_OK)
        rc = meet(comm, &req, gate, &fault);
    if (rc == LADE_OK && least == INT64_MAX)
        return LADE_OK;
    if (rc == LADE_OK) {
        lade_err winner = *err;
        rc = lade_comm_bcast_all(comm, &winner, sizeof(winner),
                                 (int)(least & 0xffffffff), gate, &fault);
        if (rc == LADE_OK)
            *err = winner;
    }
    if (rc != LADE_OK && err->status == LADE_OK) {
        sign(comm, gate, &fault);
        *err = fault;
    }
    return err->status;
}

/* ---- collectives ---- */

int lade_comm_bcast_all(struct lade_comm *comm, void *buf, uint64_t bytes,
                        int root, const char *gate, lade_err *err)
{
    int rc = LADE_OK;

    if (comm->dead)
        return dead(gate, err);
    for (uint64_t at = 0; rc == LADE_OK && at < bytes; at += PIECE) {
        struct lade_request req = {0};
        size_t size = (size_t)(bytes - at < PIECE ? bytes - at : PIECE);
        rc = comm->ops->bcast(comm->ctx, (char *)buf + at, size, root, &req,
                              err);
        if (rc == LADE_OK)
            rc = lade_comm_wait(comm, &req, gate, err);
    }
    return rc;
}

int lade_comm_allgather_all(struct lade_comm *comm, const void *mine, void *all,
                            size_t bytes, const char *gate, lade_err *err)
{
    struct lade_request req = {0};

    if (comm->dead)
        return dead(gate, err);
    int rc = comm->ops->allgather(comm->ctx, mine, all, bytes, &req, err);
    return rc == LADE_OK ? lade_comm_wait(comm, &req, gate, err) : rc;
}

/* A long message, one way. */
struct passage {
    void *buf;
    uint64_t bytes;
    int peer, tag;
    bool send;
};

static int wait_for_peer(struct lade_comm *comm, struct lade_request *req,
                         int peer, const char *gate, lade_err *err)
{
    char name[16];
    bool done;

    if (comm->dead)
        return dead(gate, err);
    int rc = poll_for(comm, req, limit_of(comm), &done, err);
    if (rc != LADE_OK || done)
        return rc;
    snprintf(name, sizeof(name), "%d", peer);
    return lost(comm, name, gate, err);
}

/* As pieces, one after the other. */
static int pass(struct lade_comm *comm, const struct passage *way,
                const char *gate, lade_err *err)
{
    int rc = LADE_OK;

    for (uint64_t at = 0; rc == LADE_OK && at < way->bytes; at += PIECE) {
        uint64_t left = way->bytes - at;
        size_t size = (size_t)(left < PIECE ? left : PIECE);
        char *piece = (char *)way->buf + at;
        struct lade_request req = {0};
        if (way->send)
            rc = comm->ops->send(comm->ctx, piece, size, way->peer, way->tag,
                                 &req, err);
        else
            rc = comm->ops->recv(comm->ctx, piece, size, way->peer, way->tag,
                                 &req, err);
        if (rc == LADE_OK)
            rc = wait_for_peer(comm, &req, way->peer, gate, err);
    }
    return rc;
}

/* Before a transfer: who could not allocate what it is to receive says so
 * here, or its peers would wait for it until they give up. */
static int agree_room_all(struct lade_comm *comm, lade_err *room,
                          const char *gate, lade_err *err)
{
    int rc = lade_agree_all(comm, gate, room);

    if (rc != LADE_OK && err != NULL && err->status == LADE_OK)
        *err = *room;
    return rc;
}

/* Rank 0: room for the pieces of all. */
static void make_room(const struct lade_comm *comm,
                      struct lade_gathered *gathered, lade_err *err)
{
    uint64_t total = 0;
    bool fits = true;

    for (int r = 0; fits && r < comm->size; r++)
        fits = lade_add_u64(total, gathered->sizes[r], &total);
    gathered->bytes = lade_alloc(gathered->mem, LADE_TAG_TEMP,
                                 fits ? total : UINT64_MAX, err);
}

/* Rank 0: its own piece and everybody's. */
static int receive_pieces(struct lade_comm *comm, const void *mine,
                          struct lade_gathered *gathered, const char *gate,
                          lade_err *err)
{
    uint64_t at = gathered->sizes[0];
    int rc = LADE_OK;

    if (at > 0)
        memcpy(gathered->bytes, mine, at);
    for (int r = 1; r < comm->size && rc == LADE_OK; r++) {
        const struct passage way = {gathered->bytes + at, gathered->sizes[r], r,
                                    LADE_MSG_GATHER, false};
        rc = pass(comm, &way, gate, err);
        at += gathered->sizes[r];
    }
    return rc;
}

int lade_comm_gather_all(struct lade_comm *comm, struct lade_mem *mem,
                         const void *mine, uint64_t bytes,
                         struct lade_gathered *gathered, const char *gate,
                         lade_err *err)
{
    union {
        const void *in;
        void *out;
    } text = {.in = mine}; /* sending does not write */
    const struct passage way = {text.out, bytes, 0, LADE_MSG_GATHER, true};
    lade_err room = LADE_ERR_INIT;
    int rc = LADE_OK;

    *gathered = (struct lade_gathered){.mem = mem};
    gathered->sizes = lade_alloc_array(mem, LADE_TAG_TEMP, (uint64_t)comm->size,
                                       sizeof(*gathered->sizes), err);
    if (gathered->sizes == NULL)
        LADE_TRY(LADE_E_MEMORY);
    LADE_TRY(lade_comm_allgather_all(comm, &bytes, gathered->sizes,
                                     sizeof(bytes), gate, err));
    if (comm->rank == 0)
        make_room(comm, gathered, &room);
    LADE_TRY(agree_room_all(comm, &room, gate, err));
    if (comm->rank == 0)
        LADE_TRY(receive_pieces(comm, mine, gathered, gate, err));
    else
        LADE_TRY(pass(comm, &way, gate, err));
out:
    if (rc != LADE_OK)
        lade_gathered_fini(gathered);
    return rc;
}

void lade_gathered_fini(struct lade_gathered *gathered)
{
    lade_free(gathered->mem, gathered->bytes);
    lade_free(gathered->mem, gathered->sizes);
    gathered->bytes = NULL;
    gathered->sizes = NULL;
}

int lade_comm_spread_all(struct lade_comm *comm, struct lade_block *block,
                         const int *ranks, int count, const char *gate,
                         lade_err *err)
{
    lade_err room = LADE_ERR_INIT;
    int me = -1, rc, step = 1;

    LADE_TRY(lade_comm_bcast_all(comm, &block->size, sizeof(block->size), 0,
                                 gate, err));
    for (int i = 0; i < count; i++)
        if (ranks[i] == comm->rank)
            me = i;
    if (me > 0)
        block->data =
            lade_alloc(block->mem, LADE_TAG_CATALOGUE, block->size, &room);
    LADE_TRY(agree_room_all(comm, &room, gate, err));
    if (me < 0)
        return LADE_OK;
    /* binomial tree: in step s, places below s send to place + s */
    for (; rc == LADE_OK && step < count; step *= 2) {
        struct passage way = {block->data, block->size, 0, LADE_MSG_SPREAD,
                              me < step};
        if (me >= 2 * step || (me < step && me + step >= count))
            continue;
        way.peer = ranks[me < step ? me + step : me - step];
        rc = pass(comm, &way, gate, err);
    }
out:
    if (rc != LADE_OK && me > 0) {
        if (!comm->dead) /* else a receive may still write */
            lade_free(block->mem, block->data);
        block->data = NULL;
    }
    return rc;
}
