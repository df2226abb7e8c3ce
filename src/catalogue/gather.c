/*
 * In: the shard list. Out: the catalogue, once per node. Each header is read
 * once in the cluster.
 */
#include "catalogue/gather.h"

#include <string.h>

#define GATE "catalogue"

/* Rank 0: the parts lie one after the other in `all`; copies give each its
 * alignment. */
static int merge_all(const struct lade_shards *shards,
                     const struct lade_index *index, const char *all,
                     const uint64_t *sizes, int count, struct lade_mem *mem,
                     struct lade_catalogue **catalogue, lade_err *err)
{
    struct lade_catalogue **parts = lade_alloc_array(
        mem, LADE_TAG_TEMP, (uint64_t)count, sizeof(*parts), err);
    int rc = parts ? LADE_OK : LADE_E_MEMORY;

    for (int r = 0; rc == LADE_OK && r < count; all += sizes[r], r++) {
        parts[r] = lade_alloc(mem, LADE_TAG_TEMP, sizes[r], err);
        if (parts[r] == NULL) {
            rc = LADE_E_MEMORY;
            break;
        }
        memcpy(parts[r], all, sizes[r]);
        rc = lade_blob_check(parts[r], sizes[r], LADE_BLOB_CATALOGUE, err);
    }
    if (rc == LADE_OK)
        rc = lade_catalogue_merge(shards, index,
                                  (const struct lade_catalogue *const *)parts,
                                  count, mem, catalogue, err);
    for (int r = 0; parts != NULL && r < count; r++)
        lade_free(mem, parts[r]);
    lade_free(mem, parts);
    return rc;
}

int lade_catalogue_build_all(struct lade_comm *comm,
                             const struct lade_shards *shards,
                             const struct lade_index *index_on_rank0,
                             struct lade_mem *mem, const int *firsts, int nodes,
                             struct lade_catalogue **catalogue, lade_err *err)
{
    struct lade_catalogue *part = NULL, *whole = NULL;
    void *block = NULL;
    uint64_t *sizes = NULL, size = 0;
    char *all = NULL;
    int rc;

    lade_catalogue_scan(shards, (uint32_t)comm->rank, (uint32_t)comm->size, mem,
                        &part, err);
    if (err->status == LADE_OK)
        sizes = lade_alloc_array(mem, LADE_TAG_TEMP, (uint64_t)comm->size,
                                 sizeof(*sizes), err);
    LADE_TRY(lade_agree_all(comm, GATE, err));
    LADE_TRY(lade_comm_gather_all(comm, mem, part, part->blob.size, 0, &all,
                                  sizes, GATE, err));
    if (comm->rank == 0)
        merge_all(shards, index_on_rank0, all, sizes, comm->size, mem, &whole,
                  err);
    LADE_TRY(lade_agree_all(comm, GATE, err));
    block = whole;
    size = whole ? whole->blob.size : 0;
    LADE_TRY(lade_comm_spread_all(comm, mem, &block, &size, firsts, nodes, GATE,
                                  err));
    *catalogue = block;
out:
    lade_free(mem, part);
    lade_free(mem, sizes);
    lade_free(mem, all);
    if (rc != LADE_OK)
        lade_free(mem, whole);
    return rc;
}
