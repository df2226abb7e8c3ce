/*
 * The collective side of the gate: headers dealt over the ranks, rows brought
 * together.
 */
#ifndef LADE_CATALOGUE_GATHER_H
#define LADE_CATALOGUE_GATHER_H

#include "catalogue/catalogue.h"
#include "comm/comm.h"

/* Every rank parses shards rank, rank + size, ...; rank 0 merges; the first
 * rank of each node gets the catalogue, the others
 * NULL. Agrees after each step: on return all ranks have the same status. */
int lade_catalogue_build_all(struct lade_comm *comm,
                             const struct lade_shards *shards,
                             const struct lade_index *index_on_rank0,
                             struct lade_mem *mem, const struct lade_node *node,
                             struct lade_catalogue **catalogue, lade_err *err);

#endif
