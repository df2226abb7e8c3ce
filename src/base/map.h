/*
 * Hash map from byte strings to a uint32_t, open addressing, XXH3. The map
 * keeps pointers to the keys: they must outlive it.
 */
#ifndef LADE_BASE_MAP_H
#define LADE_BASE_MAP_H

#include "base/mem.h"

struct lade_map_slot {
    const char *key;
    uint32_t length, value;
};
struct lade_map {
    struct lade_mem *mem;
    struct lade_map_slot *slots;
    uint64_t count, capacity;
};

void lade_map_init(struct lade_map *map, struct lade_mem *mem);
/* Adds key -> value. If the key is there already, nothing changes and *old is
 * its value and *added false. old and added may be NULL. */
int lade_map_put(struct lade_map *map, const char *key, size_t length,
                 uint32_t value, uint32_t *old, bool *added, lade_err *err);
bool lade_map_get(const struct lade_map *map, const char *key, size_t length,
                  uint32_t *value);
void lade_map_fini(struct lade_map *map);

/* 64-bit and 128-bit digests of bytes (XXH3, seed 0). */
uint64_t lade_hash64(const void *data, size_t size);
struct lade_digest {
    uint64_t high, low;
};
struct lade_digest lade_digest_of(const void *data, size_t size);
/* 32 lower-case hex digits, high half first, and a terminating zero. */
void lade_digest_text(struct lade_digest digest, char out[33]);
/* Folds b into a: order matters. */
struct lade_digest lade_digest_join(struct lade_digest a, struct lade_digest b);

#endif
