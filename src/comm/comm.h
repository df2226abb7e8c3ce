/*
 * How ranks talk. A back-end is a small const vtable over bytes: self (one
 * rank), MPI (comm_mpi.c, the only file of the library that knows mpi.h), or a
 * caller's own functions. Above it, this room gives the collectives that the
 * gates use, each with a deadline, none of them blocking inside MPI.
 */
#ifndef LADE_COMM_COMM_H
#define LADE_COMM_COMM_H

#include "base/mem.h"

#define LADE_COMM_VERSION 1

/* One operation in flight. The back-end owns `handle`. Zero-initialise. */
struct lade_request {
    void *handle;
    uint64_t word[2]; /* room for a back-end that needs no allocation */
    bool active;
};

/* All slots are required. Starting calls return at once; the buffers stay the
 * back-end's until test says done. Status MPI on failure with *err filled. */
struct lade_comm_ops {
    const char *name;
    unsigned version; /* LADE_COMM_VERSION */
    int (*send)(void *ctx, const void *buf, size_t bytes, int to, int tag,
                struct lade_request *req, lade_err *err);
    int (*recv)(void *ctx, void *buf, size_t bytes, int from, int tag,
                struct lade_request *req, lade_err *err);
    /* in place: root's bytes to all */
    int (*bcast)(void *ctx, void *buf, size_t bytes, int root,
                 struct lade_request *req, lade_err *err);
    /* equal sizes; `all` has ranks * bytes */
    int (*allgather)(void *ctx, const void *mine, void *all, size_t bytes,
                     struct lade_request *req, lade_err *err);
    /* element-wise minimum of `count` int64_t */
    int (*allmin)(void *ctx, const int64_t *mine, int64_t *all, int count,
                  struct lade_request *req, lade_err *err);
    int (*test)(void *ctx, struct lade_request *req, bool *done, lade_err *err);
    /* takes back an operation that will never end: a receive that nobody sends
     * to, at the end; anything before abandon */
    void (*cancel)(void *ctx, struct lade_request *req);
    void (*close)(void *ctx);
};

struct lade_comm {
    const struct lade_comm_ops *ops;
    void *ctx;
    int rank, size;
    double timeout_s;     /* longest wait of a collective */
    bool dead;            /* a deadline passed: nothing may be sent any more */
    char description[96]; /* "Open MPI 4.1.4", "self" */
    struct lade_roll *roll; /* of this room; NULL until an agreement is slow */
};

/* Tags of point-to-point messages, by room. */
enum lade_message {
    LADE_MSG_GATHER = 1,
    LADE_MSG_SPREAD,
    LADE_MSG_HEALTH,
    LADE_MSG_ROLL,
    LADE_MSG_STRIPES = 1000
};
#define LADE_MSG_STRIPES_COUNT                                                 \
    30000 /* MPI guarantees tags up to 32767 only                              \
           */

/* One rank, no MPI. */
struct lade_comm *lade_comm_self_new(lade_err *err);
void lade_comm_free(struct lade_comm *comm);

/* Waits for `req` with growing sleep (50 us .. 2 ms) up to comm->timeout_s; on
 * the deadline fills *err with LADE_E_TIMEOUT ("<gate>: ..."), marks the comm
 * dead. */
int lade_comm_wait(struct lade_comm *comm, struct lade_request *req,
                   const char *gate, lade_err *err);

/* The agreement after each gate. Every rank passes its own *err (status 0 if
 * fine). Afterwards all ranks hold the same *err: status 0, or the error of the
 * lowest failing rank, where TIMEOUT and MPI yield to any other. err->rank,
 * node and gate are filled for the loser. Returns err->status. When a rank does
 * not arrive within the deadline the others get LADE_E_TIMEOUT naming the gate
 * and the missing ranks; then comm->dead is set and only the program may end
 * the job. */
int lade_agree_all(struct lade_comm *comm, const char *gate, lade_err *err);

int lade_comm_bcast_all(struct lade_comm *comm, void *buf, uint64_t bytes,
                        int root, const char *gate,
                        lade_err *err); /* pieces below 1 GiB */
int lade_comm_allgather_all(struct lade_comm *comm, const void *mine, void *all,
                            size_t bytes, const char *gate, lade_err *err);
/* What all ranks gave. On rank 0 the pieces one after the other in rank order;
 * the sizes are known to all. Free with lade_gathered_fini. */
struct lade_gathered {
    struct lade_mem *mem;
    char *bytes;     /* NULL on other ranks */
    uint64_t *sizes; /* [size] */
};
/* Every rank contributes `bytes` (may differ). Tag TEMP. Rank 0 without memory
 * for it is an error of all ranks, agreed here. */
int lade_comm_gather_all(struct lade_comm *comm, struct lade_mem *mem,
                         const void *mine, uint64_t bytes,
                         struct lade_gathered *gathered, const char *gate,
                         lade_err *err);
void lade_gathered_fini(struct lade_gathered *gathered);

/* A block that goes from rank 0 to the listed ranks (the first of each node)
 * along a binomial tree: ranks[0] == 0. Called by all; ranks not listed keep
 * data NULL. Receivers get it allocated from mem with tag CATALOGUE; the size
 * is known to all on return. One without memory for it is an error of all
 * ranks, agreed here. */
struct lade_block {
    struct lade_mem *mem;
    void *data;
    uint64_t size;
};
int lade_comm_spread_all(struct lade_comm *comm, struct lade_block *block,
                         const int *ranks, int count, const char *gate,
                         lade_err *err);

/* The ranks of one node, and what they share. */
struct lade_node {
    int index; /* of this rank's node, nodes numbered by their first rank */
    int nodes;
    int local, locals; /* this rank's place on its node, and the ranks there */
    int first;         /* world rank of the node's first rank */
    int *node_of;      /* [size] */
    int *firsts;       /* [nodes] */
    struct lade_mem *mem;
};

/* Groups ranks by lade_host_key; with split > 0 instead into `split` nodes in
 * blocks (for tests and for one machine with several memory domains). */
int lade_node_find_all(struct lade_comm *comm, struct lade_mem *mem, int split,
                       struct lade_node *node, lade_err *err);
void lade_node_fini(struct lade_node *node);

/* Memory of `size` bytes shared by the node's ranks, made by its first rank.
 * Writable for all, except with tag CATALOGUE: then for the first rank only. */
struct lade_shm;
int lade_node_shm_all(struct lade_comm *comm, const struct lade_node *node,
                      enum lade_tag tag, uint64_t size, struct lade_shm *shm,
                      const char *gate, lade_err *err);
/* Publishes a product: the first rank of each node passes its blob (allocated,
 * any tag), everyone else NULL. Afterwards *product points to one read-only
 * copy per node and the private one is freed. With one rank on every node the
 * private blobs are kept as they are. *shm is for detaching. */
int lade_node_publish_all(struct lade_comm *comm, const struct lade_node *node,
                          void *blob, const void **product,
                          struct lade_shm *shm, const char *gate,
                          lade_err *err);

#endif
