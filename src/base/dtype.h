/*
 * Element types, in safetensors spelling.
 */
#ifndef LADE_BASE_DTYPE_H
#define LADE_BASE_DTYPE_H

#include "base/status.h"

enum lade_dtype {
    LADE_DTYPE_UNKNOWN, /* another spelling: kept as row, refused if needed */
    LADE_DTYPE_BOOL,
    LADE_DTYPE_U8,
    LADE_DTYPE_I8,
    LADE_DTYPE_I16,
    LADE_DTYPE_U16,
    LADE_DTYPE_I32,
    LADE_DTYPE_U32,
    LADE_DTYPE_I64,
    LADE_DTYPE_U64,
    LADE_DTYPE_F8_E4M3,
    LADE_DTYPE_F8_E5M2,
    LADE_DTYPE_F8_E8M0,
    LADE_DTYPE_F16,
    LADE_DTYPE_BF16,
    LADE_DTYPE_F32,
    LADE_DTYPE_F64,
    LADE_DTYPE_F4, /* two values in a byte; shapes are logical */
    LADE_DTYPES
};

/* UNKNOWN if none */
enum lade_dtype lade_dtype_find(const char *name);
/* config.json spelling (torch_dtype / dtype: "bfloat16", "torch.float16");
 * UNKNOWN if none */
enum lade_dtype lade_dtype_from_torch(const char *name);
const char *lade_dtype_name(enum lade_dtype dtype);
unsigned lade_dtype_bits(enum lade_dtype dtype); /* 0 for UNKNOWN */
bool lade_dtype_is_float(enum lade_dtype dtype);
/* Bytes of `elements`; false on overflow, or when an F4 count is odd, or
 * UNKNOWN. */
bool lade_dtype_bytes(enum lade_dtype dtype, uint64_t elements,
                      uint64_t *bytes);

#define LADE_MAX_DIMS 8

/* Product of the dims; false on overflow. ndim 0 gives 1. */
bool lade_shape_count(const uint64_t *shape, int ndim, uint64_t *count);
/* "[504,64]"; always terminated. Returns out. */
const char *lade_shape_text(const uint64_t *shape, int ndim, char *out,
                            size_t size);

#endif
