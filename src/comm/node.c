/*
 * In: what each rank says of its machine. Out: which ranks share memory, and
 * memory that they share.
 */
#include <string.h>

#include "base/blob.h"
#include "base/host.h"
#include "base/shm.h"
#include "comm/comm.h"

int lade_node_find_all(struct lade_comm *comm, struct lade_mem *mem, int split,
                       struct lade_node *node, lade_err *err)
{
    size_t size = (size_t)comm->size;
    uint64_t mine = lade_host_key(), *keys = NULL;
    int rc = LADE_OK;

    memset(node, 0, sizeof(*node));
    node->mem = mem;
    if (split > 0) /* ranks of one machine as nodes in blocks */
        mine = (uint64_t)((int64_t)comm->rank * split / comm->size);
    keys = lade_alloc_array(mem, LADE_TAG_TEMP, size, sizeof(*keys), err);
    node->node_of =
        lade_alloc_array(mem, LADE_TAG_TEMP, size, sizeof(*node->node_of), err);
    node->firsts =
        lade_alloc_array(mem, LADE_TAG_TEMP, size, sizeof(*node->firsts), err);
    if (keys == NULL || node->node_of == NULL || node->firsts == NULL)
        rc = LADE_E_MEMORY;
    if (lade_agree_all(comm, "topo", err) != LADE_OK)
        LADE_TRY(err->status);
    LADE_TRY(
        lade_comm_allgather_all(comm, &mine, keys, sizeof(mine), "topo", err));
    for (int r = 0; r < comm->size; r++) {
        int n = 0;
        while (n < node->nodes && keys[node->firsts[n]] != keys[r])
            n++;
        if (n == node->nodes)
            node->firsts[node->nodes++] = r;
        node->node_of[r] = n;
    }
    node->index = node->node_of[comm->rank];
    node->first = node->firsts[node->index];
    for (int r = 0; r < comm->size; r++)
        if (node->node_of[r] == node->index) {
            node->local += r < comm->rank;
            node->locals++;
        }
out:
    lade_free(mem, keys);
    return rc;
}

void lade_node_fini(struct lade_node *node)
{
    lade_free(node->mem, node->node_of);
    lade_free(node->mem, node->firsts);
    node->node_of = node->firsts = NULL;
}

/* Where a node's first rank keeps the memory. */
struct address {
    int64_t pid, fd;
    uint64_t size;
};

int lade_node_shm_all(struct lade_comm *comm, const struct lade_node *node,
                      enum lade_tag tag, uint64_t size, struct lade_shm *shm,
                      const char *gate, lade_err *err)
{
    bool writable = tag != LADE_TAG_CATALOGUE; /* products are only looked at */
    struct address mine = {.fd = -1}, *all = NULL;
    int rc = LADE_OK;

    *shm = (struct lade_shm){.fd = -1};
    all = lade_alloc_array(node->mem, LADE_TAG_TEMP, (uint64_t)comm->size,
                           sizeof(*all), err);
    if (all != NULL && node->local == 0)
        lade_shm_create(shm, node->mem, tag, size ? size : 1, err);
    LADE_TRY(lade_agree_all(comm, gate, err));
    if (node->local == 0)
        mine = (struct address){shm->pid, shm->fd, shm->size};
    LADE_TRY(
        lade_comm_allgather_all(comm, &mine, all, sizeof(mine), gate, err));
    const struct address *from = &all[node->first];
    if (node->local != 0)
        lade_shm_attach(shm, from->pid, (int)from->fd, from->size, writable,
                        err);
    LADE_TRY(lade_agree_all(comm, gate, err));
    lade_shm_seal(shm);
out:
    lade_free(node->mem, all);
    if (rc != LADE_OK)
        lade_shm_detach(shm, node->mem, tag);
    return rc;
}

int lade_node_publish_all(struct lade_comm *comm, const struct lade_node *node,
                          void *blob, const void **product,
                          struct lade_shm *shm, const char *gate, lade_err *err)
{
    uint64_t size = 0;
    int64_t alone = node->locals == 1, all_alone = 0;
    struct lade_request req = {0};
    int rc;

    *shm = (struct lade_shm){.fd = -1};
    LADE_TRY(comm->ops->allmin(comm->ctx, &alone, &all_alone, 1, &req, err));
    LADE_TRY(lade_comm_wait(comm, &req, gate, err));
    if (all_alone) {
        *product = blob;
        return LADE_OK;
    }
    if (node->local == 0)
        size = ((const struct lade_blob *)blob)->size;
    LADE_TRY(lade_node_shm_all(comm, node, LADE_TAG_CATALOGUE, size, shm, gate,
                               err));
    if (node->local == 0)
        memcpy(shm->base, blob, size);
    LADE_TRY(lade_agree_all(comm, gate, err)); /* the copy is complete */
    *product = shm->base;
    lade_free(node->mem, blob);
out:
    return rc;
}
