/*
 * Open addressing over XXH3 hashes; digests of bytes.
 */
#include "base/map.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

uint64_t lade_hash64(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

struct lade_digest lade_digest_of(const void *data, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(data, size);

    return (struct lade_digest){hash.high64, hash.low64};
}

void lade_digest_text(struct lade_digest digest, char out[33])
{
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)digest.high,
             (unsigned long long)digest.low);
}

struct lade_digest lade_digest_join(struct lade_digest a, struct lade_digest b)
{
    const uint64_t words[4] = {a.high, a.low, b.high, b.low};

    return lade_digest_of(words, sizeof(words));
}

void lade_map_init(struct lade_map *map, struct lade_mem *mem)
{
    *map = (struct lade_map){.mem = mem};
}

static struct lade_map_slot *find(struct lade_map_slot *slots,
                                  uint64_t capacity, const char *key,
                                  size_t length)
{
    uint64_t at = lade_hash64(key, length) & (capacity - 1);

    while (slots[at].key != NULL && (slots[at].length != length ||
                                     memcmp(slots[at].key, key, length) != 0))
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static int grow(struct lade_map *map, lade_err *err)
{
    uint64_t capacity = map->capacity ? map->capacity * 2 : 64;
    struct lade_map_slot *slots = lade_alloc_array(
        map->mem, LADE_TAG_TEMP, capacity, sizeof(*slots), err);

    if (slots == NULL)
        return LADE_E_MEMORY;
    for (uint64_t i = 0; i < map->capacity; i++)
        if (map->slots[i].key != NULL)
            *find(slots, capacity, map->slots[i].key, map->slots[i].length) =
                map->slots[i];
    lade_free(map->mem, map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return LADE_OK;
}

int lade_map_put(struct lade_map *map, const char *key, size_t length,
                 uint32_t value, uint32_t *old, bool *added, lade_err *err)
{
    if (length > UINT32_MAX)
        return lade_err_set(err, LADE_E_MEMORY, "a key of %llu bytes",
                            (unsigned long long)length);
    if ((map->count + 1) * 3 > map->capacity * 2) {
        int rc = grow(map, err);
        if (rc != LADE_OK)
            return rc;
    }
    struct lade_map_slot *slot = find(map->slots, map->capacity, key, length);
    bool fresh = slot->key == NULL;
    if (fresh) {
        *slot = (struct lade_map_slot){key, (uint32_t)length, value};
        map->count++;
    } else if (old != NULL) {
        *old = slot->value;
    }
    if (added != NULL)
        *added = fresh;
    return LADE_OK;
}

bool lade_map_get(const struct lade_map *map, const char *key, size_t length,
                  uint32_t *value)
{
    if (map->capacity == 0)
        return false;
    const struct lade_map_slot *slot =
        find(map->slots, map->capacity, key, length);
    if (slot->key == NULL)
        return false;
    *value = slot->value;
    return true;
}

void lade_map_fini(struct lade_map *map)
{
    lade_free(map->mem, map->slots);
    map->slots = NULL;
    map->count = map->capacity = 0;
}
