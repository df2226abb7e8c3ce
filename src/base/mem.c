/*
 * In: sizes and tags. Out: zeroed memory, booked. The only malloc of lade.
 */
#include "base/mem.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"

#define ALIGN 64u

struct lade_mem {
    _Atomic uint64_t now[LADE_TAGS], peak[LADE_TAGS];
    _Atomic uint64_t total, peak_total;
};

/* Stands before every block. */
struct head {
    uint64_t size;
    uint32_t tag;
    uint32_t magic;
    char pad[ALIGN - 16];
};
#define MAGIC 0x6c616465u

const char *lade_tag_name(enum lade_tag tag)
{
    static const char *const names[] = {"parameters", "catalogue", "staging",
                                        "temp",       "scales",    "cache"};
    return tag < LADE_TAGS ? names[tag] : "?";
}

struct lade_mem *lade_mem_new(void)
{
    return calloc(1, sizeof(struct lade_mem));
}

void lade_mem_free(struct lade_mem *mem)
{
    free(mem);
}

static void raise_peak(_Atomic uint64_t *peak, uint64_t value)
{
    uint64_t before = atomic_load(peak);

    while (value > before &&
           !atomic_compare_exchange_weak(peak, &before, value))
        ;
}

void lade_mem_book(struct lade_mem *mem, enum lade_tag tag, int64_t bytes)
{
    uint64_t add = (uint64_t)bytes;

    if (mem == NULL)
        return;
    raise_peak(&mem->peak[tag], atomic_fetch_add(&mem->now[tag], add) + add);
    raise_peak(&mem->peak_total, atomic_fetch_add(&mem->total, add) + add);
}

uint64_t lade_mem_now(const struct lade_mem *mem, enum lade_tag tag)
{
    return atomic_load(&mem->now[tag]);
}

uint64_t lade_mem_peak(const struct lade_mem *mem, enum lade_tag tag)
{
    return atomic_load(&mem->peak[tag]);
}

uint64_t lade_mem_peak_total(const struct lade_mem *mem)
{
    return atomic_load(&mem->peak_total);
}

static void *no_memory(enum lade_tag tag, uint64_t size, lade_err *err)
{
    lade_err_set(err, LADE_E_MEMORY, "cannot allocate %llu bytes for %s",
                 (unsigned long long)size, lade_tag_name(tag));
    return NULL;
}

void *lade_alloc(struct lade_mem *mem, enum lade_tag tag, size_t size,
                 lade_err *err)
{
    uint64_t whole;
    struct head *head = NULL;

    if (lade_add_u64(size, sizeof(*head) + ALIGN - 1, &whole))
        head = aligned_alloc(ALIGN, whole / ALIGN * ALIGN);
    if (head == NULL)
        return no_memory(tag, size, err);
    memset(head, 0, whole / ALIGN * ALIGN);
    head->size = size;
    head->tag = tag;
    head->magic = MAGIC;
    lade_mem_book(mem, tag, (int64_t)size);
    return head + 1;
}

void *lade_alloc_array(struct lade_mem *mem, enum lade_tag tag, uint64_t count,
                       size_t item, lade_err *err)
{
    uint64_t size;

    if (!lade_mul_u64(count, item, &size))
        return no_memory(tag, UINT64_MAX, err);
    return lade_alloc(mem, tag, size, err);
}

void lade_free(struct lade_mem *mem, void *ptr)
{
    struct head *head = ptr;

    if (ptr == NULL)
        return;
    head--;
    assert(head->magic == MAGIC); /* not ours, or freed before */
    lade_mem_book(mem, (enum lade_tag)head->tag, -(int64_t)head->size);
    head->magic = 0;
    free(head);
}

void *lade_realloc(struct lade_mem *mem, enum lade_tag tag, void *ptr,
                   size_t size, lade_err *err)
{
    void *fresh = lade_alloc(mem, tag, size, err);

    if (fresh != NULL && ptr != NULL) {
        const struct head *head = (const struct head *)ptr - 1;
        memcpy(fresh, ptr, size < head->size ? size : head->size);
        lade_free(mem, ptr);
    }
    return fresh;
}

static uint64_t page_round(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return bytes > UINT64_MAX - page ? 0 : lade_round_up(bytes, page);
}

void *lade_pages_alloc(struct lade_mem *mem, enum lade_tag tag, size_t bytes,
                       lade_err *err)
{
    uint64_t whole = page_round(bytes ? bytes : 1);
    void *base = MAP_FAILED;

    if (whole > 0)
        base = mmap(NULL, whole, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return no_memory(tag, bytes, err);
    madvise(base, whole, MADV_HUGEPAGE);
    lade_mem_book(mem, tag, (int64_t)whole);
    return base;
}

void lade_pages_free(struct lade_mem *mem, enum lade_tag tag, void *ptr,
                     size_t bytes)
{
    uint64_t whole = page_round(bytes ? bytes : 1);

    if (ptr == NULL)
        return;
    munmap(ptr, whole);
    lade_mem_book(mem, tag, -(int64_t)whole);
}

/* ---- arena ---- */

#define CHUNK (UINT64_C(64) << 10)

struct lade_arena_chunk {
    struct lade_arena_chunk *next;
    uint64_t used, size;
};

void lade_arena_init(struct lade_arena *arena, struct lade_mem *mem,
                     enum lade_tag tag)
{
    *arena = (struct lade_arena){.mem = mem, .tag = tag};
}

void *lade_arena_alloc(struct lade_arena *arena, size_t size, lade_err *err)
{
    struct lade_arena_chunk *chunk = arena->chunks;
    uint64_t whole;

    if (!lade_add_u64(size, 15, &whole))
        return no_memory(arena->tag, size, err);
    whole = whole / 16 * 16;
    if (chunk == NULL || chunk->size - chunk->used < whole) {
        uint64_t room = lade_max_u64(whole, CHUNK);
        if (!lade_add_u64(room, sizeof(*chunk) + 8, &room))
            return no_memory(arena->tag, size, err);
        chunk = lade_alloc(arena->mem, arena->tag, room, err);
        if (chunk == NULL)
            return NULL;
        chunk->size = room - sizeof(*chunk) - 8;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    void *block = (char *)chunk + sizeof(*chunk) + 8 + chunk->used;
    chunk->used += whole;
    return block;
}

char *lade_arena_strdup(struct lade_arena *arena, const char *text,
                        lade_err *err)
{
    size_t size = strlen(text) + 1;
    char *copy = lade_arena_alloc(arena, size, err);

    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

char *lade_arena_printf(struct lade_arena *arena, lade_err *err,
                        const char *fmt, ...)
{
    va_list args, again;

    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text =
        lade_arena_alloc(arena, length < 0 ? 1 : (size_t)length + 1, err);
    if (text != NULL && length >= 0)
        vsnprintf(text, (size_t)length + 1, fmt, again);
    va_end(again);
    return text;
}

void lade_arena_fini(struct lade_arena *arena)
{
    while (arena->chunks != NULL) {
        struct lade_arena_chunk *next = arena->chunks->next;
        lade_free(arena->mem, arena->chunks);
        arena->chunks = next;
    }
}

/* ---- vec ---- */

void lade_vec_init(struct lade_vec *vec, struct lade_mem *mem,
                   enum lade_tag tag, size_t item)
{
    *vec = (struct lade_vec){.mem = mem, .tag = tag, .item = item};
}

void *lade_vec_append(struct lade_vec *vec, const void *items, uint64_t count,
                      lade_err *err)
{
    uint64_t need, bytes;

    if (!lade_add_u64(vec->count, count, &need))
        return no_memory(vec->tag, count, err);
    if (need > vec->capacity || vec->data == NULL) {
        uint64_t room = lade_max_u64(need, lade_max_u64(16, vec->capacity));
        if (room < UINT64_MAX / 2 && need > vec->capacity)
            room = lade_max_u64(room, vec->capacity * 2);
        if (!lade_mul_u64(room, vec->item, &bytes))
            return no_memory(vec->tag, count, err);
        void *data = lade_realloc(vec->mem, vec->tag, vec->data, bytes, err);
        if (data == NULL)
            return NULL;
        vec->data = data;
        vec->capacity = room;
    }
    char *at = (char *)vec->data + vec->count * vec->item;
    if (items != NULL && count > 0)
        memcpy(at, items, count * vec->item);
    else
        memset(at, 0, count * vec->item);
    vec->count = need;
    return at;
}

void *lade_vec_push(struct lade_vec *vec, const void *item, lade_err *err)
{
    return lade_vec_append(vec, item, 1, err);
}

void lade_vec_fini(struct lade_vec *vec)
{
    lade_free(vec->mem, vec->data);
    vec->data = NULL;
    vec->count = vec->capacity = 0;
}

/* ---- pool ---- */

int lade_pool_init(struct lade_pool *pool, struct lade_mem *mem,
                   enum lade_tag tag, lade_err *err)
{
    lade_vec_init(&pool->chars, mem, tag, 1);
    return lade_vec_push(&pool->chars, "", err) ? LADE_OK : LADE_E_MEMORY;
}

int lade_pool_add(struct lade_pool *pool, const char *text, size_t length,
                  uint32_t *offset, lade_err *err)
{
    uint64_t at = pool->chars.count;

    if (length == 0) {
        *offset = 0;
        return LADE_OK;
    }
    if (length >= UINT32_MAX || at + length + 1 > UINT32_MAX)
        return lade_err_set(err, LADE_E_MEMORY,
                            "names take more than 4 GiB together");
    char *copy = lade_vec_append(&pool->chars, NULL, length + 1, err);
    if (copy == NULL)
        return LADE_E_MEMORY;
    memcpy(copy, text, length);
    *offset = (uint32_t)at;
    return LADE_OK;
}

const char *lade_pool_get(const struct lade_pool *pool, uint32_t offset)
{
    return (const char *)pool->chars.data + offset;
}

void lade_pool_fini(struct lade_pool *pool)
{
    lade_vec_fini(&pool->chars);
}
