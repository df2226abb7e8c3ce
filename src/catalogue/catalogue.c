/*
 * In: shards, and the parts that the ranks parsed. Out: all rows, sorted by
 * place, each name once. The product is the same, byte for byte, for any number
 * of parts.
 *
 * Mirrors vLLM: weight_utils.py, safetensors_weights_iterator; where the engine
 * loads a repeated name twice and lets the last one win, the index decides here
 * and without it the checkpoint is refused.
 */
#include "catalogue/catalogue.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"

struct builder {
    struct lade_mem *mem;
    struct lade_vec rows; /* struct lade_row */
    struct lade_pool pool;
    uint32_t shard;
    uint64_t header_bytes, shadowed, shadowed_bytes;
};

static int builder_init(struct builder *b, struct lade_mem *mem, lade_err *err)
{
    memset(b, 0, sizeof(*b));
    b->mem = mem;
    lade_vec_init(&b->rows, mem, LADE_TAG_TEMP, sizeof(struct lade_row));
    return lade_pool_init(&b->pool, mem, LADE_TAG_TEMP, err);
}

static void builder_fini(struct builder *b)
{
    lade_vec_fini(&b->rows);
    lade_pool_fini(&b->pool);
}

static int add_row(void *ctx, const char *name, size_t length,
                   const struct lade_row *row, const char *dtype_name,
                   lade_err *err)
{
    struct builder *b = ctx;
    struct lade_row copy = *row;
    int rc;

    copy.shard = b->shard;
    copy.dtype_name = 0;
    LADE_TRY(lade_pool_add(&b->pool, name, length, &copy.name, err));
    if (copy.dtype == LADE_DTYPE_UNKNOWN)
        LADE_TRY(lade_pool_add(&b->pool, dtype_name, strlen(dtype_name),
                               &copy.dtype_name, err));
    if (lade_vec_push(&b->rows, &copy, err) == NULL)
        rc = LADE_E_MEMORY;
out:
    return rc;
}

/* Names are numbered as they come: among empty tensors at one place the order
 * of the header stays. */
static int by_place(const void *x, const void *y)
{
    const struct lade_row *a = x, *b = y;

    if (a->shard != b->shard)
        return a->shard < b->shard ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

static void sort_rows(struct lade_row *rows, uint64_t count)
{
    uint64_t i = 1;

    while (i < count && by_place(&rows[i - 1], &rows[i]) <= 0)
        i++;
    if (i < count)
        qsort(rows, count, sizeof(*rows), by_place);
}

static int pack(struct builder *b, uint64_t shards,
                struct lade_catalogue **catalogue, lade_err *err)
{
    struct lade_catalogue head = {.blob.kind = LADE_BLOB_CATALOGUE,
                                  .header_bytes = b->header_bytes,
                                  .shadowed = b->shadowed,
                                  .shadowed_bytes = b->shadowed_bytes};
    uint32_t *first = lade_alloc_array(b->mem, LADE_TAG_TEMP, shards + 1,
                                       sizeof(*first), err);
    struct lade_row *rows = b->rows.data;

    if (first == NULL)
        return LADE_E_MEMORY;
    sort_rows(rows, b->rows.count);
    for (uint64_t i = 0; i < b->rows.count; i++) {
        first[rows[i].shard + 1]++;
        head.tensor_bytes += rows[i].length;
    }
    for (uint64_t s = 0; s < shards; s++)
        first[s + 1] += first[s];
    const struct lade_section sections[] = {
        {&head.rows, rows, b->rows.count, sizeof(*rows)},
        {&head.first_row, first, shards + 1, sizeof(*first)},
        {&head.pool, b->pool.chars.data, b->pool.chars.count, 1},
    };
    *catalogue = lade_blob_pack(b->mem, &head, sizeof(head), sections, 3, err);
    lade_free(b->mem, first);
    return *catalogue ? LADE_OK : LADE_E_MEMORY;
}

/* ---- scan ---- */

static int scan_shard(struct builder *b, const struct lade_shards *shards,
                      uint32_t i, lade_err *err)
{
    const struct lade_shard *shard =
        &LADE_ITEMS(shards, shards, struct lade_shard)[i];
    const char *name = LADE_STRING(shards, pool, shard->name);
    const struct lade_row_sink sink = {add_row, b};
    char path[PATH_MAX];
    uint64_t header = 0;
    int rc = lade_shard_path(shards, i, path, sizeof(path), err);

    if (rc != LADE_OK)
        return rc;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return lade_err_set(
            err, errno == ENOENT ? LADE_E_CHECKPOINT : LADE_E_IO,
            "%.200s: cannot open it: %s", name, strerror(errno));
    b->shard = i;
    rc = lade_format_safetensors.scan(fd, shard->size, name, b->mem, &sink,
                                      &header, err);
    b->header_bytes += header;
    close(fd);
    return rc;
}

int lade_catalogue_scan(const struct lade_shards *shards, uint32_t first,
                        uint32_t step, struct lade_mem *mem,
                        struct lade_catalogue **part, lade_err *err)
{
    struct builder b;
    int rc;

    assert(step > 0);
    LADE_TRY(builder_init(&b, mem, err));
    for (uint64_t i = first; i < shards->shards.count; i += step)
        LADE_TRY(scan_shard(&b, shards, (uint32_t)i, err));
    LADE_TRY(pack(&b, shards->shards.count, part, err));
out:
    builder_fini(&b);
    return rc;
}

/* ---- merge ---- */

enum found { NOWHERE, ELSEWHERE, IN_ITS_FILE };

struct merge {
    struct builder b;
    const struct lade_shards *shards;
    const struct lade_index *index;
    struct lade_map indexed; /* name -> index row */
    struct lade_map seen;    /* name -> row of b */
    unsigned char *found;    /* per index row: enum found */
    uint64_t strays;
    const char *stray, *stray_file;
};

static const char *file_of(const struct merge *m, uint32_t shard)
{
    return LADE_STRING(
        m->shards, pool,
        LADE_ITEMS(m->shards, shards, struct lade_shard)[shard].name);
}

static int read_index(struct merge *m, lade_err *err)
{
    const struct lade_index_row *rows =
        LADE_ITEMS(m->index, rows, struct lade_index_row);
    int rc = LADE_OK;

    m->found = lade_alloc(m->b.mem, LADE_TAG_TEMP, m->index->rows.count, err);
    if (m->found == NULL)
        return LADE_E_MEMORY;
    for (uint64_t i = 0; rc == LADE_OK && i < m->index->rows.count; i++) {
        const char *name = LADE_STRING(m->index, pool, rows[i].name);
        rc = lade_map_put(&m->indexed, name, strlen(name), (uint32_t)i, NULL,
                          NULL, err);
    }
    return rc;
}

/* Does the index want this row? If not, it stands in another file, or the
 * index does not list it at all; both are counted. */
static bool index_wants(struct merge *m, const char *name,
                        const struct lade_row *row)
{
    uint32_t i;

    if (!lade_map_get(&m->indexed, name, strlen(name), &i)) {
        if (m->strays++ == 0) {
            m->stray = name;
            m->stray_file = file_of(m, row->shard);
        }
        return false;
    }
    if (LADE_ITEMS(m->index, rows, struct lade_index_row)[i].shard ==
        row->shard) {
        m->found[i] = IN_ITS_FILE;
        return true;
    }
    if (m->found[i] == NOWHERE)
        m->found[i] = ELSEWHERE;
    m->b.shadowed++;
    m->b.shadowed_bytes += row->length;
    return false;
}

static int take_row(struct merge *m, const struct lade_catalogue *part,
                    const struct lade_row *row, lade_err *err)
{
    const char *name = LADE_STRING(part, pool, row->name);
    uint32_t old;
    bool fresh;

    if (m->index != NULL && !index_wants(m, name, row))
        return LADE_OK;
    int rc = lade_map_put(&m->seen, name, strlen(name),
                          (uint32_t)m->b.rows.count, &old, &fresh, err);
    if (rc != LADE_OK)
        return rc;
    if (!fresh)
        return lade_err_set(
            err, LADE_E_CHECKPOINT,
            "tensor %.200s is in two files, %.200s and %.200s, and no index "
            "says which one counts",
            name,
            file_of(m, LADE_VEC_AT(&m->b.rows, struct lade_row, old)->shard),
            file_of(m, row->shard));
    m->b.shard = row->shard;
    return add_row(&m->b, name, strlen(name), row,
                   LADE_STRING(part, pool, row->dtype_name), err);
}

/* All rows of one shard, whichever part has them. */
static int take_shard(struct merge *m, uint64_t shard,
                      const struct lade_catalogue *const *parts, int count,
                      lade_err *err)
{
    int rc = LADE_OK;

    for (int k = 0; k < count; k++) {
        if (parts[k] == NULL)
            continue;
        const uint32_t *first = LADE_ITEMS(parts[k], first_row, uint32_t);
        const struct lade_row *rows =
            LADE_ITEMS(parts[k], rows, struct lade_row);
        for (uint64_t i = first[shard]; i < first[shard + 1]; i++)
            LADE_TRY(take_row(m, parts[k], &rows[i], err));
    }
out:
    return rc;
}

static int check_index(struct merge *m, lade_err *err)
{
    const struct lade_index_row *rows =
        LADE_ITEMS(m->index, rows, struct lade_index_row);
    const char *index_name =
        LADE_STRING(m->shards, pool, m->shards->index_name);
    uint64_t missing = 0, first = 0;

    for (uint64_t i = 0; i < m->index->rows.count; i++)
        if (m->found[i] != IN_ITS_FILE && missing++ == 0)
            first = i;
    if (missing > 0)
        return lade_err_set(
            err, LADE_E_CHECKPOINT,
            "%s says that %.200s holds tensor %.200s, but %s; %llu tensor%s "
            "like that (--ignore-index takes the files as they are)",
            index_name, file_of(m, rows[first].shard),
            LADE_STRING(m->index, pool, rows[first].name),
            m->found[first] == ELSEWHERE ? "only another file does"
                                         : "no file does",
            (unsigned long long)missing, missing == 1 ? "" : "s");
    if (m->strays > 0)
        lade_warn("%llu tensor%s in the files %s not listed in %s, such as "
                  "%.200s in %.200s; not loaded",
                  (unsigned long long)m->strays, m->strays == 1 ? "" : "s",
                  m->strays == 1 ? "is" : "are", index_name, m->stray,
                  m->stray_file);
    return LADE_OK;
}

int lade_catalogue_merge(const struct lade_shards *shards,
                         const struct lade_index *index,
                         const struct lade_catalogue *const *parts, int count,
                         struct lade_mem *mem,
                         struct lade_catalogue **catalogue, lade_err *err)
{
    struct merge m = {.shards = shards, .index = index};
    int rc;

    lade_map_init(&m.indexed, mem);
    lade_map_init(&m.seen, mem);
    LADE_TRY(builder_init(&m.b, mem, err));
    if (index != NULL)
        LADE_TRY(read_index(&m, err));
    for (int k = 0; k < count; k++)
        m.b.header_bytes += parts[k] ? parts[k]->header_bytes : 0;
    for (uint64_t shard = 0; shard < shards->shards.count; shard++)
        LADE_TRY(take_shard(&m, shard, parts, count, err));
    if (index != NULL)
        LADE_TRY(check_index(&m, err));
    LADE_TRY(pack(&m.b, shards->shards.count, catalogue, err));
out:
    lade_map_fini(&m.indexed);
    lade_map_fini(&m.seen);
    lade_free(mem, m.found);
    builder_fini(&m.b);
    return rc;
}

int64_t lade_catalogue_find(const struct lade_catalogue *catalogue,
                            const char *name)
{
    const struct lade_row *rows = LADE_ITEMS(catalogue, rows, struct lade_row);

    for (uint64_t i = 0; i < catalogue->rows.count; i++)
        if (strcmp(LADE_STRING(catalogue, pool, rows[i].name), name) == 0)
            return (int64_t)i;
    return -1;
}
