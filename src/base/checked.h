/*
 * Checked arithmetic for numbers that come from files and options. Each
 * function returns false on overflow and then leaves *out alone.
 */
#ifndef LADE_BASE_CHECKED_H
#define LADE_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool lade_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t result;

    if (__builtin_add_overflow(a, b, &result))
        return false;
    *out = result;
    return true;
}

static inline bool lade_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t result;

    if (__builtin_mul_overflow(a, b, &result))
        return false;
    *out = result;
    return true;
}

static inline uint64_t lade_ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static inline uint64_t lade_round_up(uint64_t a, uint64_t unit)
{
    return lade_ceil_div(a, unit) * unit;
}

static inline uint64_t lade_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t lade_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
