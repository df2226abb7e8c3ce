/*
 * Sets of ranks, each distinct one stored once. Open addressing over hashes.
 */
#include "topo/topo.h"

#include <string.h>

#include "base/map.h"

static uint32_t *slots(const struct lade_sets *sets)
{
    return sets->hash.data;
}

int lade_sets_init(struct lade_sets *sets, uint32_t ranks, struct lade_mem *mem,
                   lade_err *err)
{
    sets->ranks = ranks;
    sets->words = (ranks + 63) / 64;
    lade_vec_init(&sets->bits, mem, LADE_TAG_TEMP,
                  sets->words * sizeof(uint64_t));
    lade_vec_init(&sets->hash, mem, LADE_TAG_TEMP, sizeof(uint32_t));
    return lade_vec_append(&sets->hash, NULL, 64, err) ? LADE_OK
                                                       : LADE_E_MEMORY;
}

const uint64_t *lade_sets_get(const struct lade_sets *sets, uint32_t index)
{
    return (const uint64_t *)sets->bits.data + (uint64_t)index * sets->words;
}

/* The slot of a set equal to `bits`, or the free one where it belongs. */
static uint32_t *find(const struct lade_sets *sets, const uint64_t *bits)
{
    size_t size = sets->words * sizeof(uint64_t);
    uint64_t mask = sets->hash.count - 1, at = lade_hash64(bits, size) & mask;

    while (slots(sets)[at] != 0 &&
           memcmp(lade_sets_get(sets, slots(sets)[at] - 1), bits, size) != 0)
        at = (at + 1) & mask;
    return &slots(sets)[at];
}

static int grow(struct lade_sets *sets, lade_err *err)
{
    uint64_t count = sets->hash.count;

    if (lade_vec_append(&sets->hash, NULL, count, err) == NULL)
        return LADE_E_MEMORY;
    memset(slots(sets), 0, sets->hash.count * sizeof(uint32_t));
    for (uint32_t i = 0; i < sets->bits.count; i++)
        *find(sets, lade_sets_get(sets, i)) = i + 1;
    return LADE_OK;
}

int lade_sets_add(struct lade_sets *sets, const uint64_t *bits, uint32_t *index,
                  lade_err *err)
{
    uint32_t *slot = find(sets, bits);

    if (*slot != 0) {
        *index = *slot - 1;
        return LADE_OK;
    }
    if (lade_vec_push(&sets->bits, bits, err) == NULL)
        return LADE_E_MEMORY;
    *index = (uint32_t)(sets->bits.count - 1);
    *slot = *index + 1;
    if (sets->bits.count * 2 > sets->hash.count)
        return grow(sets, err);
    return LADE_OK;
}

void lade_sets_fini(struct lade_sets *sets)
{
    lade_vec_fini(&sets->bits);
    lade_vec_fini(&sets->hash);
}
