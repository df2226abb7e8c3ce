/*
 * Memory that runs out: scarce_left allocations succeed, then none does. The
 * test is linked with --wrap=aligned_alloc, which base/mem.c asks for all that
 * it gives.
 */
#ifndef LADE_TESTS_SCARCE_H
#define LADE_TESTS_SCARCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static uint64_t scarce_left = UINT64_MAX;

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    if (scarce_left == 0)
        return NULL;
    scarce_left--;
    return __real_aligned_alloc(alignment, size);
}

/* All that is booked, whatever its tag. */
static inline uint64_t scarce_booked(const struct lade_mem *mem)
{
    uint64_t all = 0;

    for (int t = 0; t < LADE_TAGS; t++)
        all += lade_mem_now(mem, (enum lade_tag)t);
    return all;
}

#endif
