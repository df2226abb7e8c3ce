/*
 * In: the name, dtype and fill kind of a tensor. Out: its bytes (lade-fill-1,
 * described in synth_fill.h). The loops have no branches, so that a compiler
 * can vectorise them; one thread makes about 1 GB/s of BF16.
 */
#include "synth/synth_fill.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)
/* Elements made at once where the target is not aligned. */
#define CHUNK 512

static const char *const positive_ends[] = {"scale",
                                            "scale_inv",
                                            "scales",
                                            "weight_scale_2",
                                            "weight_global_scale",
                                            "input_global_scale",
                                            "k_scale",
                                            "v_scale",
                                            "kv_scale"};

static inline uint64_t mix(uint64_t z)
{
    z ^= z >> 30;
    z *= UINT64_C(0xbf58476d1ce4e5b9);
    z ^= z >> 27;
    z *= UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Layout of a float: value = (base + 3 random bits) << mantissa | fraction. */
struct layout {
    unsigned base, mantissa, shift; /* shift: where in r the fraction starts */
};

static struct layout layout_of(enum lade_dtype dtype)
{
    switch (dtype) {
    case LADE_DTYPE_F16:
        return (struct layout){8, 10, 16};
    case LADE_DTYPE_F32:
        return (struct layout){120, 23, 8};
    case LADE_DTYPE_F64:
        return (struct layout){1016, 52, 0};
    default:
        return (struct layout){120, 7, 16}; /* BF16 */
    }
}

static inline uint64_t draw(uint64_t start, uint64_t i)
{
    return mix(start + (i + 1) * GOLDEN);
}

#define FLOATS(type)                                                           \
    do {                                                                       \
        const uint64_t fraction = (UINT64_C(1) << at.mantissa) - 1;            \
        const unsigned top = 8 * (unsigned)sizeof(type) - 1;                   \
        const uint64_t sign = fill->positive ? 0 : UINT64_C(1) << top;         \
        const uint64_t start = fill->start;                                    \
        type *to = out;                                                        \
        for (uint64_t i = 0; i < count; i++) {                                 \
            uint64_t r = draw(start, first + i);                               \
            to[i] =                                                            \
                (type)((at.base + (r >> 40 & 7)) << at.mantissa |              \
                       (r >> at.shift & fraction) | (r >> (63 - top) & sign)); \
        }                                                                      \
    } while (0)

static void make_floats(const struct lade_fill *fill, uint64_t first,
                        uint64_t count, void *out)
{
    const struct layout at = layout_of(fill->dtype);
    if (fill->size == 2)
        FLOATS(uint16_t);
    else if (fill->size == 4)
        FLOATS(uint32_t);
    else
        FLOATS(uint64_t);
}

static void make_bytes(const struct lade_fill *fill, uint64_t first,
                       uint64_t count, uint8_t *out)
{
    const uint64_t start = fill->start;
    const int keep = fill->positive ? 0x7f : 0xff;
    for (uint64_t i = 0; i < count; i++)
        out[i] = (uint8_t)draw(start, first + i);
    switch (fill->dtype) {
    case LADE_DTYPE_F8_E4M3: // no NaN
        for (uint64_t i = 0; i < count; i++)
            out[i] = (uint8_t)((out[i] ^ ((out[i] & 0x7f) == 0x7f)) & keep);
        break;
    case LADE_DTYPE_F8_E5M2: // no infinity, no NaN
        for (uint64_t i = 0; i < count; i++)
            out[i] =
                (uint8_t)((out[i] ^ ((out[i] & 0x7c) == 0x7c) << 6) & keep);
        break;
    case LADE_DTYPE_F8_E8M0:
        for (uint64_t i = 0; i < count; i++)
            out[i] = (uint8_t)(120 + (out[i] & 7));
        break;
    case LADE_DTYPE_BOOL:
        for (uint64_t i = 0; i < count; i++)
            out[i] &= 1;
        break;
    default:
        break;
    }
}

#define INTEGERS(type, value_of_i)                                             \
    do {                                                                       \
        type *to = out;                                                        \
        for (uint64_t i = 0; i < count; i++)                                   \
            to[i] = (type)(value_of_i);                                        \
    } while (0)

#define BY_SIZE(value_of_i)                                                    \
    do {                                                                       \
        if (fill->size == 1)                                                   \
            INTEGERS(uint8_t, value_of_i);                                     \
        else if (fill->size == 2)                                              \
            INTEGERS(uint16_t, value_of_i);                                    \
        else if (fill->size == 4)                                              \
            INTEGERS(uint32_t, value_of_i);                                    \
        else                                                                   \
            INTEGERS(uint64_t, value_of_i);                                    \
    } while (0)

static bool is_wide_float(enum lade_dtype dtype)
{
    return dtype == LADE_DTYPE_BF16 || dtype == LADE_DTYPE_F16 ||
           dtype == LADE_DTYPE_F32 || dtype == LADE_DTYPE_F64;
}

/* Elements first .. first + count to out, which is aligned for them. */
static void make(const struct lade_fill *fill, uint64_t first, uint64_t count,
                 void *out)
{
    switch (fill->kind) {
    case LADE_FILL_GIDX:
        BY_SIZE((first + i) / fill->value[0]);
        return;
    case LADE_FILL_CONST:
        BY_SIZE(fill->value[0]);
        return;
    case LADE_FILL_SHAPE:
        BY_SIZE(fill->value[(first + i) & 1]);
        return;
    case LADE_FILL_RANDOM:
        break;
    }
    if (is_wide_float(fill->dtype))
        make_floats(fill, first, count, out);
    else if (fill->size == 1)
        make_bytes(fill, first, count, out);
    else
        BY_SIZE(draw(fill->start, first + i));
}

/* As lade_fill_bytes for less than a chunk, by way of an aligned copy. */
static void make_apart(const struct lade_fill *fill, uint64_t first,
                       uint64_t count, void *out)
{
    uint64_t room[CHUNK];
    const uint64_t skip = first % fill->size;
    make(fill, first / fill->size, (skip + count + fill->size - 1) / fill->size,
         room);
    memcpy(out, (char *)room + skip, count);
}

void lade_fill_bytes(const struct lade_fill *fill, uint64_t first,
                     uint64_t count, void *out)
{
    const uint64_t most = (CHUNK - 1) * sizeof(uint64_t);
    char *to = out;
    while (count > 0) {
        uint64_t now = count;
        if (first % fill->size == 0 && count >= fill->size &&
            (uintptr_t)to % fill->size == 0) {
            now -= count % fill->size;
            make(fill, first / fill->size, now / fill->size, to);
        } else {
            /* an element that begins or ends outside comes alone, so that what
             * follows it is aligned if it can be */
            if (first % fill->size != 0 &&
                now > fill->size - first % fill->size)
                now = fill->size - first % fill->size;
            if (now > most)
                now = most - most % fill->size;
            make_apart(fill, first, now, to);
        }
        first += now;
        count -= now;
        to += now;
    }
}

static bool ends_positive(const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof positive_ends / sizeof *positive_ends; i++) {
        size_t n = strlen(positive_ends[i]);
        if (length >= n && memcmp(name + length - n, positive_ends[i], n) == 0)
            return true;
    }
    return false;
}

/* The bits of x in `dtype`; false if x has none that are exactly x. BF16 is
 * cut, not rounded. */
static bool float_bits(enum lade_dtype dtype, double x, uint64_t *bits)
{
    uint32_t word;
    const float narrow = (float)x;
    int exponent;
    if (!isfinite(x))
        return false;
    if (dtype == LADE_DTYPE_F64) {
        memcpy(bits, &x, sizeof x);
        return true;
    }
    memcpy(&word, &narrow, sizeof narrow);
    if (dtype == LADE_DTYPE_F32 || dtype == LADE_DTYPE_BF16) {
        *bits = dtype == LADE_DTYPE_F32 ? word : word >> 16;
        return (double)narrow == x;
    }
    const double part = frexp(fabs(x), &exponent); // x = part * 2^exponent
    if (exponent > 16)
        return false;
    /* in units of the last place: normal 2^(exponent - 11), subnormal 2^-24 */
    const int unit = exponent < -13 ? -24 : exponent - 11;
    const double units = ldexp(part, exponent - unit);
    if (units != floor(units))
        return false;
    *bits = (uint64_t)(word >> 31) << 15 | (uint64_t)units;
    if (units >= 1024)
        *bits += (uint64_t)(exponent + 13) << 10; // implicit one is in units
    return true;
}

static bool whole(const char **text, uint64_t *value)
{
    char *end;
    errno = 0;
    const long long got = strtoll(*text, &end, 10);
    if (end == *text || errno != 0)
        return false;
    *value = (uint64_t)got;
    *text = end;
    return true;
}

static bool parse_const(struct lade_fill *fill, const char *text)
{
    char *end;
    if (!is_wide_float(fill->dtype))
        return whole(&text, &fill->value[0]) && *text == '\0';
    const double x = strtod(text, &end);
    return end != text && *end == '\0' &&
           float_bits(fill->dtype, x, &fill->value[0]);
}

static bool parse_kind(struct lade_fill *fill, const char *kind,
                       uint64_t elements)
{
    if (strcmp(kind, "random") == 0 || strcmp(kind, "positive") == 0) {
        fill->positive = kind[0] == 'p';
        return true;
    }
    if (strncmp(kind, "gidx:", 5) == 0) {
        const char *at = kind + 5;
        fill->kind = LADE_FILL_GIDX;
        return whole(&at, &fill->value[0]) && *at == '\0' &&
               (int64_t)fill->value[0] > 0;
    }
    if (strncmp(kind, "const:", 6) == 0) {
        fill->kind = LADE_FILL_CONST;
        return parse_const(fill, kind + 6);
    }
    if (strncmp(kind, "shape:", 6) == 0 && elements == 2) {
        const char *at = kind + 6;
        fill->kind = LADE_FILL_SHAPE;
        return whole(&at, &fill->value[0]) && *at++ == ',' &&
               whole(&at, &fill->value[1]) && *at == '\0';
    }
    return false;
}

int lade_fill_init(struct lade_fill *fill, const char *name,
                   enum lade_dtype dtype, uint64_t elements, const char *kind,
                   uint64_t seed, lade_err *err)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    struct lade_fill made = {.dtype = dtype,
                             .size = lade_dtype_bits(dtype) / 8};
    if (made.size == 0)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%s: lade-fill-1 has no values for dtype %s", name,
                            lade_dtype_name(dtype));
    if (kind == NULL)
        kind = lade_dtype_is_float(dtype) && ends_positive(name) ? "positive"
                                                                 : "random";
    if (!parse_kind(&made, kind, elements))
        return lade_err_set(
            err, LADE_E_CHECKPOINT,
            "%s: fill \"%s\" does not fit %s with %llu elements; random, "
            "positive, gidx:G, const:X and shape:A,B (two elements) are known",
            name, kind, lade_dtype_name(dtype), (unsigned long long)elements);
    for (const char *c = name; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    made.start = mix(hash ^ seed);
    *fill = made;
    return LADE_OK;
}
