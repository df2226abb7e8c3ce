/*
 * Products of the gates are blobs: one block of memory, a head struct followed
 * by flat arrays, with offsets instead of pointers. A blob can be copied,
 * broadcast, hashed and mapped by the neighbours of a node as it is.
 */
#ifndef LADE_BASE_BLOB_H
#define LADE_BASE_BLOB_H

#include "base/mem.h"

/* First member of every product. */
struct lade_blob {
    uint64_t size; /* bytes of the whole blob */
    uint32_t kind; /* enum lade_blob_kind: refuses a mix-up */
    uint32_t reserved;
};

enum lade_blob_kind {
    LADE_BLOB_SHARDS = 1,
    LADE_BLOB_INDEX,
    LADE_BLOB_CATALOGUE,
    LADE_BLOB_TOPO,
    LADE_BLOB_SHELL,
    LADE_BLOB_ROUTES,
    LADE_BLOB_PLAN,
};

/* An array inside a blob. */
struct lade_span {
    uint64_t at;    /* bytes from the start of the blob, 8-byte aligned */
    uint64_t count; /* items */
};

#define LADE_ITEMS(product, span, type)                                        \
    ((const type *)((const char *)(product) + (product)->span.at))

/* String `offset` of the pool stored in span `pool`. */
#define LADE_STRING(product, pool, offset)                                     \
    ((const char *)(product) + (product)->pool.at + (offset))

struct lade_section {
    struct lade_span *span; /* member of the head that describes this array */
    const void *items;
    uint64_t count;
    size_t item; /* bytes */
};

/* Packs head and sections into one new block (tag CATALOGUE; free with
 * lade_free). head starts with a struct lade_blob whose kind is set. Returns
 * NULL with *err filled. */
void *lade_blob_pack(struct lade_mem *mem, void *head, size_t head_size,
                     const struct lade_section *sections, int count,
                     lade_err *err);

/* A copy of a blob that arrived from elsewhere is usable only after this:
 * checks size, kind. */
int lade_blob_check(const void *blob, uint64_t size, enum lade_blob_kind kind,
                    lade_err *err);

#endif
