/*
 * In: the shard list. Out: the catalogue, once per node. Each header is read
 * once in the cluster.
 *
 * After a failed step every rank still goes to the agreement that follows it:
 * an error of one rank must not leave the others waiting.
 */
#include "catalogue/gather.h"

#define GATE "catalogue"

/* Rank 0. Blobs are multiples of 8 bytes long, so that each is aligned. */
static int merge_parts(const struct lade_shards *shards,
                       const struct lade_index *index,
                       const struct lade_gathered *in, int count,
                       struct lade_mem *mem, struct lade_catalogue **catalogue,
                       lade_err *err)
{
    const char *at = in->bytes;
    const struct lade_catalogue **parts = lade_alloc_array(
        mem, LADE_TAG_TEMP, (uint64_t)count, sizeof(*parts), err);
    int rc = LADE_OK;

    if (parts == NULL)
        return LADE_E_MEMORY;
    for (int r = 0; r < count; at += in->sizes[r], r++) {
        if (in->sizes[r] % 8 != 0)
            LADE_TRY(lade_err_set(err, LADE_E_INTERNAL,
                                  "the part of rank %d has %llu bytes", r,
                                  (unsigned long long)in->sizes[r]));
        parts[r] = (const void *)at;
        LADE_TRY(
            lade_blob_check(parts[r], in->sizes[r], LADE_BLOB_CATALOGUE, err));
    }
    LADE_TRY(
        lade_catalogue_merge(shards, index, parts, count, mem, catalogue, err));
out:
    lade_free(mem, parts);
    return rc;
}

int lade_catalogue_build_all(struct lade_comm *comm,
                             const struct lade_shards *shards,
                             const struct lade_index *index_on_rank0,
                             struct lade_mem *mem, const struct lade_node *node,
                             struct lade_catalogue **catalogue, lade_err *err)
{
    struct lade_catalogue *part = NULL, *whole = NULL;
    struct lade_gathered gathered = {.mem = mem};
    struct lade_block block = {.mem = mem};
    int rc;

    lade_catalogue_scan(shards, (uint32_t)comm->rank, (uint32_t)comm->size, mem,
                        &part, err);
    LADE_TRY(lade_agree_all(comm, GATE, err));
    rc = lade_comm_gather_all(comm, mem, part, part->blob.size, &gathered, GATE,
                              err);
    if (rc == LADE_OK && comm->rank == 0)
        merge_parts(shards, index_on_rank0, &gathered, comm->size, mem, &whole,
                    err);
    LADE_TRY(lade_agree_all(comm, GATE, err));
    block.data = whole;
    block.size = whole ? whole->blob.size : 0;
    lade_comm_spread_all(comm, &block, node->firsts, node->nodes, GATE, err);
    LADE_TRY(lade_agree_all(comm, GATE, err));
    *catalogue = block.data;
    block.data = NULL;
    whole = NULL;
out:
    lade_free(mem, part);
    lade_gathered_fini(&gathered);
    lade_free(mem, block.data ? block.data : whole);
    return rc;
}
