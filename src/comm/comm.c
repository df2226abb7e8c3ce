/*
 * In: bytes and statuses of one rank. Out: the same on all ranks. Nothing here
 * waits inside the back-end: operations start, are tested, and have a deadline.
 */
#include "comm/comm.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/host.h"

#define PIECE (UINT64_C(512) << 20) /* of long messages */
#define SPIN_NS UINT64_C(50000)
#define SLEEP_MAX_US 2000u
#define ROLL_CALL_NS UINT64_C(1000000000)

static int dead(const char *gate, lade_err *err)
{
    return lade_err_set(err, LADE_E_TIMEOUT,
                        "%s: an earlier deadline passed; ranks are lost", gate);
}

/* One turn of a wait: yields at first, then sleeps longer and longer. */
static void rest(uint64_t waited_ns, unsigned *sleep_us)
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
        rest(waited, &sleep_us);
    }
    return LADE_OK;
}

static uint64_t limit_of(const struct lade_comm *comm)
{
    return (uint64_t)(comm->timeout_s * 1e9);
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
                        "%s: %.0f s without an answer (--timeout)", gate,
                        comm->timeout_s);
}

/* ---- agreement ---- */

/* After a deadline: who is here tells rank 0, which lists the others. */
static void roll_call(struct lade_comm *comm, char *missing, size_t size)
{
    int64_t here = comm->rank;
    bool done;
    size_t used = 0;
    int count = 0;

    if (comm->rank != 0) {
        struct lade_request send = {0};
        if (comm->ops->send(comm->ctx, &here, sizeof(here), 0, LADE_MSG_ROLL,
                            &send, NULL) == LADE_OK)
            poll_for(comm, &send, ROLL_CALL_NS, &done, NULL);
        return;
    }
    struct lade_request *recvs =
        lade_alloc_array(NULL, LADE_TAG_TEMP, (uint64_t)comm->size,
                         sizeof(*recvs) + sizeof(here), NULL);
    if (recvs == NULL)
        return;
    int64_t *words = (int64_t *)(void *)(recvs + comm->size);
    uint64_t start = lade_now_ns();
    for (int r = 1; r < comm->size; r++)
        comm->ops->recv(comm->ctx, &words[r], sizeof(here), r, LADE_MSG_ROLL,
                        &recvs[r], NULL);
    for (int r = 1; r < comm->size; r++) {
        uint64_t passed = lade_now_ns() - start;
        poll_for(comm, &recvs[r],
                 passed < ROLL_CALL_NS ? ROLL_CALL_NS - passed : 0, &done,
                 NULL);
        if (done)
            continue;
        comm->ops->cancel(comm->ctx, &recvs[r]);
        if (count++ < 8) {
            int n = snprintf(missing + used, size - used, "%s%d",
                             used ? ", " : "", r);
            used += n > 0 && (size_t)n < size - used ? (size_t)n : 0;
        }
    }
    if (count > 8)
        snprintf(missing + used, size - used, " and %d more", count - 8);
    /* the receives may still write: nothing is freed after a lost rank */
}

static int lost(struct lade_comm *comm, const char *gate, lade_err *err)
{
    char missing[128] = "";

    roll_call(comm, missing, sizeof(missing));
    comm->dead = true;
    if (missing[0])
        return lade_err_set(err, LADE_E_TIMEOUT,
                            "%s: no word from rank %s for %.0f s (--timeout)",
                            gate, missing, comm->timeout_s);
    return lade_err_set(err, LADE_E_TIMEOUT,
                        "%s: %.0f s without an answer from all ranks "
                        "(--timeout)",
                        gate, comm->timeout_s);
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
    bool done;

    if (err->status != LADE_OK)
        sign(comm, gate, err);
    if (comm->dead)
        return err->status != LADE_OK ? err->status : dead(gate, err);
    mine = key_of(comm, err->status);
    int rc = comm->ops->allmin(comm->ctx, &mine, &least, 1, &req, &fault);
    if (rc == LADE_OK)
        rc = poll_for(comm, &req, limit_of(comm), &done, &fault);
    if (rc == LADE_OK && !done)
        rc = lost(comm, gate, &fault);
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
            rc = lade_comm_wait(comm, &req, gate, err);
    }
    return rc;
}

/* Rank 0: its own piece and everybody's. */
static int receive_pieces(struct lade_comm *comm, const void *mine,
                          struct lade_gathered *gathered, const char *gate,
                          lade_err *err)
{
    uint64_t total = 0;
    int rc = LADE_OK;

    for (int r = 0; r < comm->size; r++)
        total += gathered->sizes[r];
    gathered->bytes = lade_alloc(gathered->mem, LADE_TAG_TEMP, total, err);
    if (gathered->bytes == NULL)
        return LADE_E_MEMORY;
    if (gathered->sizes[0] > 0)
        memcpy(gathered->bytes, mine, gathered->sizes[0]);
    uint64_t at = gathered->sizes[0];
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
    int rc = LADE_OK;

    *gathered = (struct lade_gathered){.mem = mem};
    gathered->sizes = lade_alloc_array(mem, LADE_TAG_TEMP, (uint64_t)comm->size,
                                       sizeof(*gathered->sizes), err);
    if (gathered->sizes == NULL)
        LADE_TRY(LADE_E_MEMORY);
    LADE_TRY(lade_comm_allgather_all(comm, &bytes, gathered->sizes,
                                     sizeof(bytes), gate, err));
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
    int me = -1, rc, step = 1;

    LADE_TRY(lade_comm_bcast_all(comm, &block->size, sizeof(block->size), 0,
                                 gate, err));
    for (int i = 0; i < count; i++)
        if (ranks[i] == comm->rank)
            me = i;
    if (me < 0)
        return LADE_OK;
    if (me > 0) {
        block->data =
            lade_alloc(block->mem, LADE_TAG_CATALOGUE, block->size, err);
        if (block->data == NULL) /* the agreement ends the others' wait */
            return LADE_E_MEMORY;
    }
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
    return rc;
}
