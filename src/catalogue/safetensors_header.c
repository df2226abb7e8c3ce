/*
 * The JSON header of a safetensors file.
 *
 * In: its text and the size of the file. Out: the tensors, each with a byte
 * range that lies in the file, fits its dtype and shape, and overlaps no other;
 * together the ranges cover the data from its first byte to the file's end. The
 * order of the header means nothing.
 *
 * Mirrors vLLM: weight_utils.py, safetensors_weights_iterator, and the rules of
 * the safetensors library that it calls.
 */
#include "catalogue/catalogue.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define NAME_LIMIT 65536u

struct range {
    uint64_t begin, end;
    const char *name;
};

struct parse {
    const char *file;
    uint64_t data, file_size; /* first data byte, end of file */
    struct lade_mem *mem;
    struct lade_vec ranges; /* struct range */
    const struct lade_row_sink *sink;
    lade_err *err;
};

/* An error about one tensor. */
static int bad(const struct parse *p, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int bad(const struct parse *p, const char *name, const char *fmt, ...)
{
    char why[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    return lade_err_set(p->err, LADE_E_CHECKPOINT, "%.200s: tensor %.200s: %s",
                        p->file, name, why);
}

/* ---- one entry ---- */

/* Doubles carry JSON's numbers: from 2^53 on they no longer tell neighbours
 * apart. No file is that large. */
static bool whole(const cJSON *item, uint64_t *value)
{
    return lade_json_u64(item, value) && *value < UINT64_C(1) << 53;
}

static int read_shape(const struct parse *p, const char *name,
                      const cJSON *list, struct lade_row *row)
{
    if (!cJSON_IsArray(list))
        return bad(p, name, "its shape is not a list");
    for (const cJSON *dim = list->child; dim; dim = dim->next) {
        if (row->ndim == LADE_MAX_DIMS)
            return bad(p, name, "its shape has more than %d dimensions",
                       LADE_MAX_DIMS);
        if (!whole(dim, &row->shape[row->ndim]))
            return bad(
                p, name,
                "its shape holds something that is no whole number below 2^53");
        row->ndim++;
    }
    return LADE_OK;
}

static int read_range(const struct parse *p, const char *name,
                      const cJSON *list, uint64_t *begin, uint64_t *end)
{
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != 2 ||
        !whole(list->child, begin) || !whole(list->child->next, end))
        return bad(p, name, "its data_offsets are not two whole numbers");
    if (*begin > *end)
        return bad(p, name, "its data_offsets [%llu,%llu] run backwards",
                   (unsigned long long)*begin, (unsigned long long)*end);
    return LADE_OK;
}

/* Bytes by dtype and shape against bytes by offsets. An unknown dtype has no
 * size: its range is all that is known. */
static int check_size(const struct parse *p, const char *name,
                      const struct lade_row *row, const char *spelling)
{
    enum lade_dtype dtype = (enum lade_dtype)row->dtype;
    bool half_bytes = dtype == LADE_DTYPE_F4;
    char shape[192];
    uint64_t elements, bytes;

    lade_shape_text(row->shape, row->ndim, shape, sizeof(shape));
    if (half_bytes && (row->ndim == 0 || row->shape[row->ndim - 1] % 2 != 0))
        return bad(p, name, "%s %s: a row ends inside a byte", spelling, shape);
    bool fits = lade_shape_count(row->shape, row->ndim, &elements);
    if (fits && dtype == LADE_DTYPE_UNKNOWN)
        return LADE_OK;
    if (!fits || !lade_dtype_bytes(dtype, elements, &bytes))
        return bad(p, name, "%.40s %s: its size exceeds 64 bits", spelling,
                   shape);
    if (bytes == row->length)
        return LADE_OK;
    return bad(p, name, "%s %s needs %llu bytes, its data_offsets give %llu",
               spelling, shape, (unsigned long long)bytes,
               (unsigned long long)row->length);
}

/* The three members of an entry; any other is refused. */
static int read_members(const struct parse *p, const cJSON *entry,
                        const cJSON *members[3])
{
    static const char *const keys[3] = {"dtype", "shape", "data_offsets"};

    for (const cJSON *item = entry->child; item; item = item->next) {
        int k = 0;
        while (k < 3 && strcmp(item->string, keys[k]) != 0)
            k++;
        if (k == 3)
            return bad(p, entry->string, "unknown key %.100s in its entry",
                       item->string);
        members[k] = item;
    }
    for (int k = 0; k < 3; k++)
        if (members[k] == NULL)
            return bad(p, entry->string, "it has no %s", keys[k]);
    if (!cJSON_IsString(members[0]))
        return bad(p, entry->string, "its dtype is not a text");
    return LADE_OK;
}

static int read_entry(struct parse *p, const cJSON *entry)
{
    const char *name = entry->string;
    const cJSON *members[3] = {NULL, NULL, NULL};
    size_t length = strlen(name);
    struct lade_row row = {0};
    struct range range = {.name = name};
    int rc;

    if (length == 0)
        return bad(p, name, "its name is empty");
    if (length > NAME_LIMIT)
        return bad(p, name, "its name has %zu bytes; at most %u are accepted",
                   length, NAME_LIMIT);
    if (!cJSON_IsObject(entry))
        return bad(p, name, "its entry is not an object");
    LADE_TRY(read_members(p, entry, members));
    const char *dtype = members[0]->valuestring;
    row.dtype = (uint16_t)lade_dtype_find(dtype);
    LADE_TRY(read_shape(p, name, members[1], &row));
    LADE_TRY(read_range(p, name, members[2], &range.begin, &range.end));
    row.length = range.end - range.begin;
    LADE_TRY(check_size(p, name, &row, dtype));
    row.offset = p->data + range.begin; /* both below 2^54 */
    if (lade_vec_push(&p->ranges, &range, p->err) == NULL)
        LADE_TRY(LADE_E_MEMORY);
    LADE_TRY(p->sink->take(p->sink->ctx, name, length, &row, dtype, p->err));
out:
    return rc;
}

static int read_metadata(const struct parse *p, const cJSON *metadata)
{
    if (!cJSON_IsObject(metadata))
        return lade_err_set(p->err, LADE_E_CHECKPOINT,
                            "%.200s: __metadata__ is not an object", p->file);
    for (const cJSON *item = metadata->child; item; item = item->next)
        if (!cJSON_IsString(item))
            return lade_err_set(
                p->err, LADE_E_CHECKPOINT,
                "%.200s: __metadata__: the value of %.100s is not a text",
                p->file, item->string);
    return LADE_OK;
}

/* 4.0, 4e0 and -0 are whole numbers to JSON, but no way to write a size. Only
 * sizes are numbers here. */
static int check_numbers(const struct parse *p, const char *text, size_t length)
{
    bool quoted = false;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '"')
            quoted = !quoted;
        else if (quoted && c == '\\')
            i++;
        else if (!quoted && (c == '.' || c == '-' ||
                             ((c == 'e' || c == 'E') && i > 0 &&
                              isdigit((unsigned char)text[i - 1]))))
            return lade_err_set(p->err, LADE_E_CHECKPOINT,
                                "%.200s: byte %zu of its header: a size must "
                                "be written with digits only",
                                p->file, i);
    }
    return LADE_OK;
}

/* ---- all ranges together ---- */

static int by_begin(const void *x, const void *y)
{
    const struct range *a = x, *b = y;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

/* A range against where the ones before it end; `last` is the one that ends
 * there. Empty ranges may stand anywhere up to that place. */
static int check_next(const struct parse *p, const struct range *r, uint64_t at,
                      const struct range *last)
{
    if (r->begin < at && r->end > r->begin)
        return lade_err_set(
            p->err, LADE_E_CHECKPOINT,
            "%.200s: tensors %.200s [%llu,%llu] and %.200s "
            "[%llu,%llu] overlap",
            p->file, last->name, (unsigned long long)last->begin,
            (unsigned long long)last->end, r->name,
            (unsigned long long)r->begin, (unsigned long long)r->end);
    if (r->begin > at)
        return bad(p, r->name,
                   "it begins at %llu, but the tensors before it end at %llu; "
                   "bytes that belong to no tensor are refused",
                   (unsigned long long)r->begin, (unsigned long long)at);
    return LADE_OK;
}

/* Where the data end against where the file ends. */
static int check_end(const struct parse *p, uint64_t at, const char *cut)
{
    unsigned long long size = p->file_size, need = p->data + at;

    if (need > size)
        return lade_err_set(p->err, LADE_E_CHECKPOINT,
                            "%.200s: ends at %llu but the header needs %llu "
                            "(tensor %.200s); the download is incomplete",
                            p->file, size, need, cut);
    if (need < size)
        return lade_err_set(p->err, LADE_E_CHECKPOINT,
                            "%.200s: ends at %llu but its last tensor ends at "
                            "%llu; bytes that belong to no tensor are refused",
                            p->file, size, need);
    return LADE_OK;
}

static int check_ranges(struct parse *p)
{
    const struct range *ranges = p->ranges.data, *last = ranges, *cut = NULL;
    uint64_t count = p->ranges.count, at = 0;
    int rc;

    if (count > 0)
        qsort(p->ranges.data, count, sizeof(*ranges), by_begin);
    for (uint64_t i = 0; i < count; i++) {
        const struct range *r = &ranges[i];
        LADE_TRY(check_next(p, r, at, last));
        if (r->end <= at)
            continue;
        at = r->end;
        last = r;
        if (cut == NULL && r->end > p->file_size - p->data)
            cut = r;
    }
    LADE_TRY(check_end(p, at, cut ? cut->name : ""));
out:
    return rc;
}

int lade_safetensors_parse(const char *header, size_t length,
                           uint64_t file_size, const char *file,
                           struct lade_mem *mem,
                           const struct lade_row_sink *sink, lade_err *err)
{
    struct parse p = {.file = file,
                      .data = 8 + length,
                      .file_size = file_size,
                      .mem = mem,
                      .sink = sink,
                      .err = err};
    cJSON *root = NULL;
    int rc;

    lade_vec_init(&p.ranges, mem, LADE_TAG_TEMP, sizeof(struct range));
    if (file_size < p.data)
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%.200s: a header of %zu bytes in a file of %llu",
                              file, length, (unsigned long long)file_size));
    LADE_TRY(
        lade_json_parse(header, length, file, LADE_E_CHECKPOINT, &root, err));
    if (!cJSON_IsObject(root))
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%.200s: its header is not a JSON object", file));
    for (const cJSON *entry = root->child; entry; entry = entry->next)
        LADE_TRY(strcmp(entry->string, "__metadata__") == 0
                     ? read_metadata(&p, entry)
                     : read_entry(&p, entry));
    LADE_TRY(check_numbers(&p, header, length));
    LADE_TRY(check_ranges(&p));
out:
    lade_vec_fini(&p.ranges);
    cJSON_Delete(root);
    return rc;
}
