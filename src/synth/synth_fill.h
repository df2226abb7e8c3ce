/*
 * lade-fill-1: the values of a tensor follow from its name.
 *
 *     h    = FNV-1a 64 of NAME          s = mix(h xor seed)
 *     r(i) = mix(s + (i + 1) * 0x9e3779b97f4a7c15)       mix: end of SplitMix64
 *
 * i is the row-major element index. Floats take sign, 3 bits of exponent and
 * the mantissa from r (magnitudes in [2^-7, 2)); integers its low bits.
 *
 * Kinds: random; positive (sign cleared; the default for float tensors whose
 * name ends like a scale); gidx:G (element i is i / G); const:X; shape:A,B.
 */
#ifndef LADE_SYNTH_FILL_H
#define LADE_SYNTH_FILL_H

#include "base/dtype.h"

enum lade_fill_kind {
    LADE_FILL_RANDOM,
    LADE_FILL_GIDX,
    LADE_FILL_CONST,
    LADE_FILL_SHAPE
};

struct lade_fill {
    enum lade_dtype dtype;
    enum lade_fill_kind kind;
    unsigned size;  /* bytes of an element */
    uint64_t start; /* s */
    bool positive;
    uint64_t value[2]; /* divisor, constant's bits, or the pair */
};

/* `kind` NULL: as the name says. `elements` is checked for shape:A,B. */
int lade_fill_init(struct lade_fill *fill, const char *name,
                   enum lade_dtype dtype, uint64_t elements, const char *kind,
                   uint64_t seed, lade_err *err);

/* Bytes `first` .. `first` + `count` of the tensor; any alignment, also of
 * out. Any number of threads. */
void lade_fill_bytes(const struct lade_fill *fill, uint64_t first,
                     uint64_t count, void *out);

#endif
