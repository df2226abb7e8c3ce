/*
 * The index file: which shard holds which tensor.
 */
#ifndef LADE_LOCATE_INDEX_H
#define LADE_LOCATE_INDEX_H

#include "base/map.h"
#include "locate/locate.h"

struct lade_index_file {
    struct lade_vec rows; /* struct lade_index_row; shard = place in files */
    struct lade_pool tensors; /* names of the rows */
    struct lade_vec files;    /* uint32_t into names: every file once */
    struct lade_pool names;
    struct lade_map known; /* file name -> place in files */
};

/* Reads weight_map. Every fault is a CHECKPOINT error that names the index.
 * Call fini also after a failure. */
int lade_index_read(const char *path, struct lade_index_file *index,
                    struct lade_mem *mem, lade_err *err);
void lade_index_fini(struct lade_index_file *index);

/* Name of file i; is a file named by the index? */
const char *lade_index_name(const struct lade_index_file *index, uint64_t i);
bool lade_index_names(const struct lade_index_file *index, const char *file);

#endif
