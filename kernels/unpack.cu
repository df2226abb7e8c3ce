/*
 * Device side of unpack.h: one thread block per run, threads over its
 * elements. Same inline body as the host, so equal bits.
 */
#include "kernels/unpack.h"

#define THREADS 256

__global__ static void copy_runs(struct lade_unpack u, unsigned bytes,
                                 uint64_t first)
{
    uint64_t j = first + blockIdx.x, element;
    uint64_t count = lade_unpack_run(&u, j, &element);
    if (count == 0)
        return;
    const unsigned char *from =
        (const unsigned char *)u.from + (element - u.low) * bytes;
    unsigned char *to =
        (unsigned char *)u.to + lade_unpack_to(&u, j, element) * bytes;
    for (uint64_t i = threadIdx.x; i < count * bytes; i += blockDim.x)
        to[i] = from[i];
}

__global__ static void cast_runs(struct lade_unpack u, enum lade_number from,
                                 enum lade_number to, uint64_t first)
{
    uint64_t j = first + blockIdx.x, element;
    uint64_t count = lade_unpack_run(&u, j, &element);
    if (count == 0)
        return;
    uint64_t at = lade_unpack_to(&u, j, element);
    for (uint64_t i = threadIdx.x; i < count; i += blockDim.x)
        lade_number_put(u.to, at + i, to,
                        lade_number_get(u.from, element - u.low + i, from));
}

/* Launches on `stream`; returns the launch status. */
extern "C" int lade_unpack_copy_cuda(const struct lade_unpack *u,
                                     unsigned bytes, void *stream)
{
    uint64_t first, last;

    lade_unpack_runs(u, &first, &last);
    if (first == last)
        return 0;
    copy_runs<<<(unsigned)(last - first), THREADS, 0, (cudaStream_t)stream>>>(
        *u, bytes, first);
    return (int)cudaGetLastError();
}

extern "C" int lade_unpack_cast_cuda(const struct lade_unpack *u,
                                     enum lade_number from,
                                     enum lade_number to, void *stream)
{
    uint64_t first, last;

    lade_unpack_runs(u, &first, &last);
    if (first == last)
        return 0;
    cast_runs<<<(unsigned)(last - first), THREADS, 0, (cudaStream_t)stream>>>(
        *u, from, to, first);
    return (int)cudaGetLastError();
}
