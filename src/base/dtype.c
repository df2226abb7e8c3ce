/*
 * The table of element types.
 */
#include "base/dtype.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"

static const struct {
    const char *name;
    unsigned bits;
    bool is_float;
} table[LADE_DTYPES] = {
    [LADE_DTYPE_UNKNOWN] = {"?", 0, false},
    [LADE_DTYPE_BOOL] = {"BOOL", 8, false},
    [LADE_DTYPE_U8] = {"U8", 8, false},
    [LADE_DTYPE_I8] = {"I8", 8, false},
    [LADE_DTYPE_I16] = {"I16", 16, false},
    [LADE_DTYPE_U16] = {"U16", 16, false},
    [LADE_DTYPE_I32] = {"I32", 32, false},
    [LADE_DTYPE_U32] = {"U32", 32, false},
    [LADE_DTYPE_I64] = {"I64", 64, false},
    [LADE_DTYPE_U64] = {"U64", 64, false},
    [LADE_DTYPE_F8_E4M3] = {"F8_E4M3", 8, true},
    [LADE_DTYPE_F8_E5M2] = {"F8_E5M2", 8, true},
    [LADE_DTYPE_F8_E8M0] = {"F8_E8M0", 8, true},
    [LADE_DTYPE_F16] = {"F16", 16, true},
    [LADE_DTYPE_BF16] = {"BF16", 16, true},
    [LADE_DTYPE_F32] = {"F32", 32, true},
    [LADE_DTYPE_F64] = {"F64", 64, true},
    [LADE_DTYPE_F4] = {"F4", 4, true},
};

enum lade_dtype lade_dtype_find(const char *name)
{
    for (int i = 1; i < LADE_DTYPES; i++)
        if (strcmp(name, table[i].name) == 0)
            return (enum lade_dtype)i;
    return LADE_DTYPE_UNKNOWN;
}

enum lade_dtype lade_dtype_from_torch(const char *name)
{
    static const struct {
        const char *torch;
        enum lade_dtype dtype;
    } spelling[] = {
        {"bfloat16", LADE_DTYPE_BF16}, {"float16", LADE_DTYPE_F16},
        {"half", LADE_DTYPE_F16},      {"float32", LADE_DTYPE_F32},
        {"float", LADE_DTYPE_F32},     {"float64", LADE_DTYPE_F64},
        {"double", LADE_DTYPE_F64},
    };
    if (strncmp(name, "torch.", 6) == 0)
        name += 6;
    for (size_t i = 0; i < sizeof(spelling) / sizeof(*spelling); i++)
        if (strcmp(name, spelling[i].torch) == 0)
            return spelling[i].dtype;
    return LADE_DTYPE_UNKNOWN;
}

const char *lade_dtype_name(enum lade_dtype dtype)
{
    return dtype < LADE_DTYPES ? table[dtype].name : "?";
}

unsigned lade_dtype_bits(enum lade_dtype dtype)
{
    return dtype < LADE_DTYPES ? table[dtype].bits : 0;
}

bool lade_dtype_is_float(enum lade_dtype dtype)
{
    return dtype < LADE_DTYPES && table[dtype].is_float;
}

bool lade_dtype_bytes(enum lade_dtype dtype, uint64_t elements, uint64_t *bytes)
{
    unsigned bits = lade_dtype_bits(dtype);

    if (bits == 4) {
        if (elements % 2 != 0)
            return false;
        *bytes = elements / 2;
        return true;
    }
    return bits != 0 && lade_mul_u64(elements, bits / 8, bytes);
}

bool lade_shape_count(const uint64_t *shape, int ndim, uint64_t *count)
{
    uint64_t product = 1;

    for (int d = 0; d < ndim; d++)
        if (!lade_mul_u64(product, shape[d], &product))
            return false;
    *count = product;
    return true;
}

const char *lade_shape_text(const uint64_t *shape, int ndim, char *out,
                            size_t size)
{
    size_t used = 0;

    if (size == 0)
        return out;
    out[0] = 0;
    for (int d = 0; d <= ndim && used + 1 < size; d++) {
        int n = d < ndim ? snprintf(out + used, size - used, "%s%llu",
                                    d ? "," : "[", (unsigned long long)shape[d])
                         : snprintf(out + used, size - used, "%s",
                                    ndim ? "]" : "[]");
        used += n > 0 ? (size_t)n : 0;
    }
    return out;
}
