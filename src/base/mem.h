/*
 * Accounted memory: every byte of bulk memory is allocated here, under a tag,
 * so that the report can show forecast against peak. The only file that calls
 * malloc and mmap for memory is mem.c (and shm.c for shared segments).
 * Thread-safe.
 */
#ifndef LADE_BASE_MEM_H
#define LADE_BASE_MEM_H

#include "base/status.h"

enum lade_tag {
    LADE_TAG_PARAMETERS,
    LADE_TAG_CATALOGUE, /* products of the gates: shards, rows, shell, plan */
    LADE_TAG_STAGING,   /* ring and bounce buffers */
    LADE_TAG_TEMP,
    LADE_TAG_SCALES,
    LADE_TAG_CACHE,
    LADE_TAGS
};

/* "parameters", "catalogue", ... */
const char *lade_tag_name(enum lade_tag tag);

struct lade_mem; /* one account book; one per session */

struct lade_mem *lade_mem_new(void); /* NULL when out of memory */
void lade_mem_free(struct lade_mem *mem);

/* Zeroed memory of `size` bytes (size 0 gives a valid pointer), or NULL with
 * LADE_E_MEMORY in *err. Free with lade_free. 64-byte aligned. */
void *lade_alloc(struct lade_mem *mem, enum lade_tag tag, size_t size,
                 lade_err *err);
/* As above for count items of `item` bytes, overflow checked. */
void *lade_alloc_array(struct lade_mem *mem, enum lade_tag tag, uint64_t count,
                       size_t item, lade_err *err);
/* Grows or shrinks; new bytes are zero; ptr may be NULL. On failure returns
 * NULL and ptr stays. */
void *lade_realloc(struct lade_mem *mem, enum lade_tag tag, void *ptr,
                   size_t size, lade_err *err);
void lade_free(struct lade_mem *mem, void *ptr); /* NULL is fine */

/* Bulk pages (mmap, zeroed, page aligned); bytes is rounded up to pages. */
void *lade_pages_alloc(struct lade_mem *mem, enum lade_tag tag, size_t bytes,
                       lade_err *err);
void lade_pages_free(struct lade_mem *mem, enum lade_tag tag, void *ptr,
                     size_t bytes);

/* For memory that others allocate (shared segments, a caller's device): book
 * it. */
void lade_mem_book(struct lade_mem *mem, enum lade_tag tag, int64_t bytes);

uint64_t lade_mem_now(const struct lade_mem *mem, enum lade_tag tag);
uint64_t lade_mem_peak(const struct lade_mem *mem, enum lade_tag tag);
uint64_t lade_mem_peak_total(const struct lade_mem *mem);

/* An arena: many small allocations, freed whole. Memory is zeroed. */
struct lade_arena {
    struct lade_mem *mem;
    enum lade_tag tag;
    struct lade_arena_chunk *chunks;
};
void lade_arena_init(struct lade_arena *arena, struct lade_mem *mem,
                     enum lade_tag tag);
void *lade_arena_alloc(struct lade_arena *arena, size_t size, lade_err *err);
char *lade_arena_strdup(struct lade_arena *arena, const char *text,
                        lade_err *err);
char *lade_arena_printf(struct lade_arena *arena, lade_err *err,
                        const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void lade_arena_fini(struct lade_arena *arena);

/* A growing array of items of one size. */
struct lade_vec {
    struct lade_mem *mem;
    enum lade_tag tag;
    size_t item;
    void *data;
    uint64_t count, capacity;
};
void lade_vec_init(struct lade_vec *vec, struct lade_mem *mem,
                   enum lade_tag tag, size_t item);
/* Appends a copy of *item (or zeroes if NULL); returns its address, valid until
 * the next push; NULL with *err filled. */
void *lade_vec_push(struct lade_vec *vec, const void *item, lade_err *err);
/* Appends `count` items at once; same return. */
void *lade_vec_append(struct lade_vec *vec, const void *items, uint64_t count,
                      lade_err *err);
void lade_vec_fini(struct lade_vec *vec);
#define LADE_VEC_AT(vec, type, i) (&((type *)(vec)->data)[i])

/* A pool of zero-terminated strings in one growing char array; a string is
 * known by its offset (uint32_t), so that a pool can be copied and shared.
 * Offset 0 is the empty string. */
struct lade_pool {
    struct lade_vec chars;
};
int lade_pool_init(struct lade_pool *pool, struct lade_mem *mem,
                   enum lade_tag tag, lade_err *err);
int lade_pool_add(struct lade_pool *pool, const char *text, size_t length,
                  uint32_t *offset,
                  lade_err *err); /* refuses to grow past 4 GiB */
const char *lade_pool_get(const struct lade_pool *pool, uint32_t offset);
void lade_pool_fini(struct lade_pool *pool);

#endif
