/*
 * Host bodies of the strided copy and the casts: the reference, always built.
 */
#include "kernels/unpack.h"

uint64_t lade_unpack_copy_host(const struct lade_unpack *u, unsigned bytes)
{
    const unsigned char *from = u->from;
    unsigned char *to = u->to;
    uint64_t first, last, done = 0;

    lade_unpack_runs(u, &first, &last);
    for (uint64_t j = first; j < last; j++) {
        uint64_t element, count = lade_unpack_run(u, j, &element);
        if (count == 0)
            continue;
        memcpy(to + lade_unpack_to(u, j, element) * bytes,
               from + (element - u->low) * bytes, count * bytes);
        done += count;
    }
    return done;
}

uint64_t lade_unpack_cast_host(const struct lade_unpack *u,
                               enum lade_number from, enum lade_number to)
{
    uint64_t first, last, done = 0;

    lade_unpack_runs(u, &first, &last);
    for (uint64_t j = first; j < last; j++) {
        uint64_t element, count = lade_unpack_run(u, j, &element);
        uint64_t at = count ? lade_unpack_to(u, j, element) : 0;
        for (uint64_t i = 0; i < count; i++)
            lade_number_put(
                u->to, at + i, to,
                lade_number_get(u->from, element - u->low + i, from));
        done += count;
    }
    return done;
}
