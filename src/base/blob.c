/*
 * In: a head and its arrays. Out: one block with offsets.
 */
#include "base/blob.h"

#include <string.h>

#include "base/checked.h"

void *lade_blob_pack(struct lade_mem *mem, void *head, size_t head_size,
                     const struct lade_section *sections, int count,
                     lade_err *err)
{
    uint64_t size = lade_round_up(head_size, 8), bytes;

    for (int i = 0; i < count; i++) {
        sections[i].span->at = size;
        sections[i].span->count = sections[i].count;
        if (!lade_mul_u64(sections[i].count, sections[i].item, &bytes) ||
            bytes > UINT64_MAX - size - 8) {
            lade_err_set(err, LADE_E_MEMORY, "a product is too large");
            return NULL;
        }
        size += lade_round_up(bytes, 8);
    }
    ((struct lade_blob *)head)->size = size;
    char *block = lade_alloc(mem, LADE_TAG_CATALOGUE, size, err);
    if (block == NULL)
        return NULL;
    memcpy(block, head, head_size);
    for (int i = 0; i < count; i++)
        if (sections[i].count > 0)
            memcpy(block + sections[i].span->at, sections[i].items,
                   sections[i].count * sections[i].item);
    return block;
}

int lade_blob_check(const void *blob, uint64_t size, enum lade_blob_kind kind,
                    lade_err *err)
{
    const struct lade_blob *head = blob;

    if (size < sizeof(*head) || head->size != size ||
        head->kind != (uint32_t)kind)
        return lade_err_set(
            err, LADE_E_INTERNAL,
            "a product of kind %d and %llu bytes arrived as kind %u and %llu",
            (int)kind, (unsigned long long)size,
            size < sizeof(*head) ? 0 : head->kind,
            (unsigned long long)(size < sizeof(*head) ? 0 : head->size));
    return LADE_OK;
}
