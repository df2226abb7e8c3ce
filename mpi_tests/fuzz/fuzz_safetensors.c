/*
 * Any bytes as a safetensors header; the first 2 bytes say how much data
 * follows it. What is accepted keeps the promise of the catalogue: every range
 * lies in the file, fits its shape, overlaps no other, and none is left over.
 */
#include <stdlib.h>
#include <string.h>

#include "catalogue/catalogue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct total {
    uint64_t begin, end, bytes;
};

static void must(bool holds)
{
    if (!holds)
        abort();
}

static int take(void *ctx, const char *name, size_t length,
                const struct lade_row *row, const char *dtype, lade_err *err)
{
    struct total *t = ctx;
    uint64_t elements, bytes;

    (void)err;
    must(length > 0 && strlen(name) == length && dtype != NULL);
    must(row->ndim <= LADE_MAX_DIMS && row->offset >= t->begin);
    must(lade_shape_count(row->shape, row->ndim, &elements));
    if (row->dtype != LADE_DTYPE_UNKNOWN)
        must(lade_dtype_bytes((enum lade_dtype)row->dtype, elements, &bytes) &&
             bytes == row->length);
    t->bytes += row->length;
    if (row->offset + row->length > t->end)
        t->end = row->offset + row->length;
    return LADE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lade_err err = LADE_ERR_INIT;

    if (size < 2)
        return 0;
    size_t length = size - 2;
    uint64_t tail = data[0] + 256u * data[1];
    struct total t = {.begin = 8 + length, .end = 8 + length};
    const struct lade_row_sink sink = {take, &t};
    struct lade_mem *mem = lade_mem_new();
    must(mem != NULL);
    if (lade_safetensors_parse((const char *)data + 2, length,
                               8 + length + tail, "fuzz", mem, &sink,
                               &err) == LADE_OK)
        must(t.end == t.begin + tail && t.bytes == tail);
    else
        must(err.status == LADE_E_CHECKPOINT && err.text[0] != 0);
    for (int tag = 0; tag < LADE_TAGS; tag++)
        must(lade_mem_now(mem, (enum lade_tag)tag) == 0);
    lade_mem_free(mem);
    return 0;
}
