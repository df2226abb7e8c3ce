/*
 * The index file: which shard holds which tensor.
 */
#ifndef LADE_LOCATE_INDEX_H
#define LADE_LOCATE_INDEX_H

#include "locate/locate.h"

struct lade_index_file {
    struct lade_pool *pool; /* tensor names */
    struct lade_vec rows; /* struct lade_index_row; shard = position in files */
    struct lade_vec files;   /* uint32_t: names in `names`, each once */
    struct lade_pool *names; /* file names */
};

/* Reads weight_map. Every fault is a CHECKPOINT error that names the index. */
int lade_index_read(const char *path, struct lade_index_file *index,
                    struct lade_mem *mem, lade_err *err);

#endif
