/*
 * The strided copy out of a slot, and the casts on the way. One inline body
 * for host and device, so that both give the same bits; the host's functions
 * (unpack_host.c) are the reference, unpack.cu launches the same body.
 *
 * Numbers are elements unless they say bytes. Rounding is to nearest, ties to
 * even; what is too large for F16 becomes infinity; NaN stays NaN (quiet).
 */
#ifndef LADE_KERNELS_UNPACK_H
#define LADE_KERNELS_UNPACK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define LADE_BOTH __host__ __device__ static inline
#else
#define LADE_BOTH static inline
#endif

/* Element kinds of the casts. */
enum lade_number { LADE_F16, LADE_BF16, LADE_F32, LADE_F64, LADE_NUMBERS };

/* Run j takes elements src + j * src_step .. + run of the tensor to
 * dst + j * dst_step of the parameter, as far as they lie in the window
 * [low, high) of the tensor's elements. `from` is the address of element low.
 */
struct lade_unpack {
    const void *from;
    void *to;
    uint64_t src, dst, runs, run, src_step, dst_step;
    uint64_t low, high;
};

LADE_BOTH float lade_bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

LADE_BOTH uint32_t lade_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

LADE_BOTH float lade_bf16_float(uint16_t bits)
{
    return lade_bits_float((uint32_t)bits << 16);
}

LADE_BOTH uint16_t lade_float_bf16(float value)
{
    uint32_t bits = lade_float_bits(value);

    if ((bits & 0x7fffffffu) > 0x7f800000u) /* the engine's quiet NaN */
        return 0x7fc0u;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

LADE_BOTH float lade_f16_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t rest = bits & 0x7fffu;

    if (rest >= 0x7c00u) /* infinity, NaN */
        return lade_bits_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest >= 0x400u)
        return lade_bits_float(sign | ((rest << 13) + (112u << 23)));
    /* below the normals: rest * 2^-24, exact in F32 */
    float small = (float)rest * 5.9604644775390625e-8f;
    return lade_bits_float(sign | lade_float_bits(small));
}

LADE_BOTH uint16_t lade_float_f16(float value)
{
    uint32_t bits = lade_float_bits(value);
    uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;

    if (rest > 0x7f800000u) /* NaN: keep what fits of the payload, quiet */
        return (uint16_t)(sign | 0x7e00u | (rest >> 13 & 0x3ffu));
    if (rest >= 0x477ff000u) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00u);
    if (rest >= 0x38800000u) { /* a normal F16 */
        uint32_t even = rest >> 13 & 1u;
        return (uint16_t)(sign | (rest + 0xfffu + even - (112u << 23)) >> 13);
    }
    if (rest < 0x33000000u) /* below half of the smallest */
        return (uint16_t)sign;
    uint32_t shift = 126u - (rest >> 23); /* 14 .. 24 */
    uint32_t whole = (rest & 0x7fffffu) | 0x800000u;
    uint32_t kept = whole >> shift, lost = whole & ((1u << shift) - 1u);
    uint32_t half = 1u << (shift - 1u);
    kept += lost > half || (lost == half && (kept & 1u));
    return (uint16_t)(sign | kept);
}

/* Element i of an array of kind `kind`, as double (exact) and back. */
LADE_BOTH double lade_number_get(const void *array, uint64_t i,
                                 enum lade_number kind)
{
    const unsigned char *at = (const unsigned char *)array;
    uint16_t half;
    float single;
    double wide;

    switch (kind) {
    case LADE_F16:
        memcpy(&half, at + i * 2, 2);
        return (double)lade_f16_float(half);
    case LADE_BF16:
        memcpy(&half, at + i * 2, 2);
        return (double)lade_bf16_float(half);
    case LADE_F32:
        memcpy(&single, at + i * 4, 4);
        return (double)single;
    default:
        memcpy(&wide, at + i * 8, 8);
        return wide;
    }
}

/* F64 to a half goes over F32, as the engine's tensor library does. */
LADE_BOTH void lade_number_put(void *array, uint64_t i, enum lade_number kind,
                               double value)
{
    unsigned char *at = (unsigned char *)array;
    float single = (float)value;
    uint16_t half;

    switch (kind) {
    case LADE_F16:
        half = lade_float_f16(single);
        memcpy(at + i * 2, &half, 2);
        return;
    case LADE_BF16:
        half = lade_float_bf16(single);
        memcpy(at + i * 2, &half, 2);
        return;
    case LADE_F32:
        memcpy(at + i * 4, &single, 4);
        return;
    default:
        memcpy(at + i * 8, &value, 8);
        return;
    }
}

/* The part of run j inside the window: first element of the tensor and how
 * many; 0 if none. */
LADE_BOTH uint64_t lade_unpack_run(const struct lade_unpack *u, uint64_t j,
                                   uint64_t *first)
{
    uint64_t begin = u->src + j * u->src_step, end = begin + u->run;

    if (begin < u->low)
        begin = u->low;
    if (end > u->high)
        end = u->high;
    *first = begin;
    return end > begin ? end - begin : 0;
}

/* Where element `element` of run j goes in the parameter. */
LADE_BOTH uint64_t lade_unpack_to(const struct lade_unpack *u, uint64_t j,
                                  uint64_t element)
{
    return u->dst + j * u->dst_step + (element - u->src - j * u->src_step);
}

/* The runs that touch the window: [*first, *last). */
LADE_BOTH void lade_unpack_runs(const struct lade_unpack *u, uint64_t *first,
                                uint64_t *last)
{
    *first = 0;
    *last = 0;
    if (u->high <= u->src || u->high <= u->low || u->run == 0)
        return;
    if (u->runs <= 1 || u->src_step == 0) {
        *last = u->runs;
        return;
    }
    if (u->low > u->src + u->run - 1)
        *first = (u->low - u->src - u->run) / u->src_step + 1;
    *last = (u->high - 1 - u->src) / u->src_step + 1;
    if (*last > u->runs)
        *last = u->runs;
    if (*first > *last)
        *first = *last;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Both return how many elements they wrote. */
uint64_t lade_unpack_copy_host(const struct lade_unpack *u, unsigned bytes);
uint64_t lade_unpack_cast_host(const struct lade_unpack *u,
                               enum lade_number from, enum lade_number to);

#ifdef __cplusplus
}
#endif

#endif
