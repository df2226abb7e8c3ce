/*
 * The collectives on real MPI, at any number of ranks: agreement in every
 * order of faults, uneven and empty pieces, nodes and what they share.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/clock.h"
#include "base/shm.h"
#include "comm/comm.h"
#include "lade_mpi.h"

static int failures;

/* Memory that is refused is a result here, not the end of the program. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

#define CHECK(what)                                                            \
    do {                                                                       \
        if (!(what)) {                                                         \
            fprintf(stderr, "rank %d: %s:%d: not so: %s\n", comm->rank,        \
                    __FILE__, __LINE__, #what);                                \
            failures++;                                                        \
        }                                                                      \
    } while (0)

static void nobody_fails(struct lade_comm *comm)
{
    lade_err err = LADE_ERR_INIT;

    CHECK(lade_agree_all(comm, "gate", &err) == LADE_OK);
    CHECK(err.status == LADE_OK && err.text[0] == 0);
}

/* Long waits make ranks listen for a roll call that never comes; what listens
 * is kept over agreements and taken back by lade_comm_free. */
static void slow_agreements(struct lade_comm *comm)
{
    lade_err err = LADE_ERR_INIT;

    for (int slow = 0; slow < 2; slow++) { /* rank 0 waits, then the others */
        if (comm->rank == (slow == 0 ? comm->size - 1 : 0))
            lade_sleep_us(300000);
        CHECK(lade_agree_all(comm, "slow", &err) == LADE_OK);
    }
    CHECK(comm->size == 1 || comm->roll != NULL);
    CHECK(!comm->dead);
}

/* Ranks `a` and `b` fail with these statuses; `winner`'s error is everyone's.
 */
static void two_fail(struct lade_comm *comm, int a, int as, int b, int bs,
                     int winner)
{
    lade_err err = LADE_ERR_INIT;
    char want[64];

    if (comm->rank == a)
        lade_err_set(&err, as, "fault of %d", a);
    else if (comm->rank == b)
        lade_err_set(&err, bs, "fault of %d", b);
    snprintf(want, sizeof(want), "fault of %d", winner);
    CHECK(lade_agree_all(comm, "plan", &err) == (winner == a ? as : bs));
    CHECK(strcmp(err.text, want) == 0);
    CHECK(err.rank == winner);
    CHECK(strcmp(err.gate, "plan") == 0);
    CHECK(err.node[0] != 0);
}

static void faults(struct lade_comm *comm)
{
    int last = comm->size - 1;

    two_fail(comm, 0, LADE_E_IO, -1, 0, 0);
    two_fail(comm, last, LADE_E_CHECKPOINT, -1, 0, last);
    if (comm->size == 1)
        return;
    two_fail(comm, 0, LADE_E_PARAMETER, last, LADE_E_IO, 0);
    /* a lost rank and MPI itself yield to any cause */
    two_fail(comm, 0, LADE_E_TIMEOUT, last, LADE_E_IO, last);
    two_fail(comm, 0, LADE_E_MPI, last, LADE_E_USAGE, last);
    two_fail(comm, 0, LADE_E_MPI, last, LADE_E_TIMEOUT, 0);
}

static void broadcast(struct lade_comm *comm)
{
    static unsigned char buf[100003];
    lade_err err = LADE_ERR_INIT;
    const size_t sizes[] = {0, 1, 4096, sizeof(buf)};

    for (size_t i = 0; i < 4; i++)
        for (int root = 0; root < comm->size; root += comm->size / 2 + 1) {
            memset(buf, comm->rank == root ? 7 + root : 0, sizeof(buf));
            CHECK(lade_comm_bcast_all(comm, buf, sizes[i], root, "t", &err) ==
                  LADE_OK);
            CHECK(sizes[i] == 0 || (buf[0] == (unsigned char)(7 + root) &&
                                    buf[sizes[i] - 1] == buf[0]));
        }
}

/* Rank r gives r % 4 * 1000 bytes of value r: some give nothing. */
static void gather(struct lade_comm *comm)
{
    unsigned char mine[3000];
    uint64_t bytes = (uint64_t)(comm->rank % 4) * 1000;
    struct lade_gathered all;
    lade_err err = LADE_ERR_INIT;

    memset(mine, comm->rank, sizeof(mine));
    CHECK(lade_comm_gather_all(comm, NULL, mine, bytes, &all, "t", &err) ==
          LADE_OK);
    CHECK((all.bytes != NULL) == (comm->rank == 0));
    for (uint64_t r = 0, at = 0; r < (uint64_t)comm->size; r++) {
        CHECK(all.sizes[r] == r % 4 * 1000);
        for (uint64_t b = 0; all.bytes && b < all.sizes[r]; b++)
            CHECK((unsigned char)all.bytes[at + b] == (unsigned char)r);
        at += all.sizes[r];
    }
    lade_gathered_fini(&all);
}

static void spread(struct lade_comm *comm)
{
    int ranks[64], count = 0;
    lade_err err = LADE_ERR_INIT;
    struct lade_block block = {0};

    for (int r = 0; r < comm->size; r += 3)
        ranks[count++] = r;
    if (comm->rank == 0) {
        block.size = 5000;
        block.data = lade_alloc(NULL, LADE_TAG_TEMP, block.size, &err);
        memset(block.data, 'x', block.size);
    }
    CHECK(lade_comm_spread_all(comm, &block, ranks, count, "t", &err) ==
          LADE_OK);
    CHECK(block.size == 5000);
    CHECK((block.data != NULL) == (comm->rank % 3 == 0));
    if (block.data != NULL)
        CHECK(((char *)block.data)[0] == 'x' &&
              ((char *)block.data)[4999] == 'x');
    lade_free(NULL, block.data);
}

/* A size that no rank can allocate: every rank leaves with the same cause, and
 * nobody waits for a peer that gave up. */
static void refused_memory(struct lade_comm *comm)
{
    const uint64_t much = UINT64_C(1) << 60;
    int ranks[64], last = comm->size - 1;
    struct lade_gathered all;
    struct lade_block block = {0};
    lade_err err = LADE_ERR_INIT;
    char byte = 'x';

    CHECK(lade_comm_gather_all(comm, NULL, &byte, comm->rank == last ? much : 1,
                               &all, "t", &err) == LADE_E_MEMORY);
    CHECK(err.status == LADE_E_MEMORY && err.rank == 0);
    CHECK(strstr(err.text, "cannot allocate") != NULL);
    CHECK(all.bytes == NULL && all.sizes == NULL && !comm->dead);
    if (comm->size >= 32) { /* sizes whose sum is too large to be a number */
        err = (lade_err)LADE_ERR_INIT;
        CHECK(lade_comm_gather_all(comm, NULL, &byte, much, &all, "t", &err) ==
              LADE_E_MEMORY);
    }
    if (comm->size == 1)
        return;
    for (int r = 0; r < comm->size; r++)
        ranks[r] = r;
    err = (lade_err)LADE_ERR_INIT;
    if (comm->rank == 0)
        block = (struct lade_block){.data = &byte, .size = much};
    CHECK(lade_comm_spread_all(comm, &block, ranks, comm->size, "t", &err) ==
          LADE_E_MEMORY);
    CHECK(err.rank == 1 && !comm->dead);
    CHECK((block.data == NULL) == (comm->rank != 0));
}

/* Messages of one pair with one tag arrive in order; to oneself as well. */
static void messages(struct lade_comm *comm)
{
    struct lade_request sends[3] = {0}, recvs[3] = {0};
    int to = (comm->rank + 1) % comm->size;
    int from = (comm->rank + comm->size - 1) % comm->size;
    int out[3], in[3] = {0};
    lade_err err = LADE_ERR_INIT;

    for (int i = 0; i < 3; i++) {
        out[i] = comm->rank * 10 + i;
        CHECK(comm->ops->send(comm->ctx, &out[i], sizeof(int), to, 77,
                              &sends[i], &err) == LADE_OK);
    }
    for (int i = 0; i < 3; i++)
        CHECK(comm->ops->recv(comm->ctx, &in[i], sizeof(int), from, 77,
                              &recvs[i], &err) == LADE_OK);
    for (int i = 0; i < 3; i++) {
        CHECK(lade_comm_wait(comm, &recvs[i], "t", &err) == LADE_OK);
        CHECK(lade_comm_wait(comm, &sends[i], "t", &err) == LADE_OK);
        CHECK(in[i] == from * 10 + i);
    }
}

static void check_node(struct lade_comm *comm, const struct lade_node *node)
{
    struct lade_mem *mem = node->mem;
    lade_err err = LADE_ERR_INIT;
    struct lade_shm shm;
    int mates = 0;

    CHECK(node->firsts[node->index] == node->first);
    CHECK(node->node_of[comm->rank] == node->index);
    for (int r = 0; r < comm->size; r++)
        mates += node->node_of[r] == node->index;
    CHECK(mates == node->locals);
    CHECK(lade_node_shm_all(comm, node, LADE_TAG_STAGING, 8192, &shm, "t",
                            &err) == LADE_OK);
    int *words = shm.base;
    words[node->local] = comm->rank + 1;
    lade_agree_all(comm, "t", &err);
    for (int r = 0, i = 0; r < comm->size; r++)
        if (node->node_of[r] == node->index)
            CHECK(words[i++] == r + 1);
    lade_agree_all(comm, "t", &err);
    lade_shm_detach(&shm, mem, LADE_TAG_STAGING);
}

static void publish(struct lade_comm *comm, const struct lade_node *node)
{
    struct lade_blob head = {.kind = LADE_BLOB_PLAN};
    struct lade_span span;
    const struct lade_blob *product = NULL;
    lade_err err = LADE_ERR_INIT;
    struct lade_shm shm;
    void *blob = NULL;
    char text[9000];

    memset(text, node->index, sizeof(text));
    struct lade_section section = {&span, text, sizeof(text), 1};
    if (node->local == 0)
        blob =
            lade_blob_pack(node->mem, &head, sizeof(head), &section, 1, &err);
    CHECK(lade_node_publish_all(comm, node, blob, (const void **)&product, &shm,
                                "t", &err) == LADE_OK);
    CHECK(lade_blob_check(product, product->size, LADE_BLOB_PLAN, &err) ==
          LADE_OK);
    CHECK(((const char *)product)[product->size - 1] == node->index);
    lade_agree_all(comm, "t", &err);
    if (shm.base == NULL)
        lade_free(node->mem, (void *)(uintptr_t)product);
    lade_shm_detach(&shm, node->mem, LADE_TAG_CATALOGUE);
}

static void nodes(struct lade_comm *comm)
{
    for (int split = 0; split <= comm->size; split = split * 2 + 1) {
        struct lade_mem *mem = lade_mem_new();
        lade_err err = LADE_ERR_INIT;
        struct lade_node node;
        CHECK(lade_node_find_all(comm, mem, split, &node, &err) == LADE_OK);
        CHECK(node.nodes == (split ? split : 1));
        check_node(comm, &node);
        publish(comm, &node);
        lade_node_fini(&node);
        for (int t = 0; t < LADE_TAGS; t++)
            CHECK(lade_mem_now(mem, (enum lade_tag)t) == 0);
        lade_mem_free(mem);
    }
}

int main(int argc, char **argv)
{
    lade_err err = LADE_ERR_INIT;
    int given, total = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    struct lade_comm *comm = lade_comm_mpi_new(MPI_COMM_WORLD, &err);
    if (comm == NULL)
        return 1;
    comm->timeout_s = 50;
    nobody_fails(comm);
    slow_agreements(comm);
    faults(comm);
    broadcast(comm);
    gather(comm);
    spread(comm);
    refused_memory(comm);
    messages(comm);
    nodes(comm);
    nobody_fails(comm);
    MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    lade_comm_free(comm);
    MPI_Finalize();
    return total != 0;
}
