/*
 * Small shells and catalogues by hand, for the tests of names: one pool of
 * strings serves both.
 */
#ifndef LADE_TESTS_ROUTE_BENCH_H
#define LADE_TESTS_ROUTE_BENCH_H

#include "unit.h"

#include "base/log.h"
#include "route/route.h"

struct bench {
    struct lade_mem *mem;
    struct lade_pool pool;
    struct lade_vec params, parts, aliases, rules, rows;
    struct lade_shell head;
    struct lade_shell *shell;
    struct lade_catalogue *catalogue;
    struct lade_shards *shards;
    struct lade_routes *routes;
    lade_err err;
};

static inline uint32_t bench_text(struct bench *b, const char *text)
{
    uint32_t at = 0;

    assert_int_equal(lade_pool_add(&b->pool, text, strlen(text), &at, &b->err),
                     LADE_OK);
    return at;
}

static inline void bench_init(struct bench *b)
{
    enum lade_tag tag = LADE_TAG_TEMP;

    memset(b, 0, sizeof *b);
    b->err = (lade_err)LADE_ERR_INIT;
    b->mem = lade_mem_new();
    assert_non_null(b->mem);
    assert_int_equal(lade_pool_init(&b->pool, b->mem, tag, &b->err), LADE_OK);
    lade_vec_init(&b->params, b->mem, tag, sizeof(struct lade_shell_param));
    lade_vec_init(&b->parts, b->mem, tag, sizeof(struct lade_shell_part));
    lade_vec_init(&b->aliases, b->mem, tag, sizeof(struct lade_shell_alias));
    lade_vec_init(&b->rules, b->mem, tag, sizeof(struct lade_shell_rule));
    lade_vec_init(&b->rows, b->mem, tag, sizeof(struct lade_row));
    b->head = (struct lade_shell){.blob.kind = LADE_BLOB_SHELL};
    b->head.family = bench_text(b, "tiny");
    b->head.quantization = bench_text(b, "none");
    lade_log_setup(LADE_LOG_ERROR, 0, 1, "n0");
    lade_warn_reset();
}

static inline void bench_drop_blobs(struct bench *b)
{
    lade_free(b->mem, b->shell);
    lade_free(b->mem, b->catalogue);
    lade_free(b->mem, b->shards);
    lade_free(b->mem, b->routes);
    b->shell = NULL;
    b->catalogue = NULL;
    b->shards = NULL;
    b->routes = NULL;
}

/* Nothing may be left behind, after failures neither. */
static inline void bench_free(struct bench *b)
{
    bench_drop_blobs(b);
    lade_pool_fini(&b->pool);
    lade_vec_fini(&b->params);
    lade_vec_fini(&b->parts);
    lade_vec_fini(&b->aliases);
    lade_vec_fini(&b->rules);
    lade_vec_fini(&b->rows);
    for (int t = 0; t < LADE_TAGS; t++)
        assert_int_equal(lade_mem_now(b->mem, (enum lade_tag)t), 0);
    lade_mem_free(b->mem);
    lade_warn_reset();
}

static inline void bench_rule(struct bench *b, uint32_t kind, const char *from,
                              const char *to)
{
    struct lade_shell_rule rule = {.kind = kind, .to = UINT32_MAX};

    rule.from = bench_text(b, from);
    if (to)
        rule.to = bench_text(b, to);
    assert_non_null(lade_vec_push(&b->rules, &rule, &b->err));
}

/* A parameter; the parts that follow are its own. */
static inline void bench_param(struct bench *b, const char *name,
                               enum lade_dtype dtype)
{
    struct lade_shell_param param = {.dtype = (uint16_t)dtype,
                                     .first_part = (uint32_t)b->parts.count};

    param.name = bench_text(b, name);
    assert_non_null(lade_vec_push(&b->params, &param, &b->err));
}

/* rows 0: a scalar; cols 0: a vector. */
static inline struct lade_shell_part *
bench_part(struct bench *b, const char *name, uint64_t rows, uint64_t cols)
{
    struct lade_shell_part part = {.param = (uint32_t)b->params.count - 1,
                                   .ndim = rows == 0   ? 0
                                           : cols == 0 ? 1
                                                       : 2,
                                   .shape = {rows, cols}};

    part.name = bench_text(b, name);
    LADE_VEC_AT(&b->params, struct lade_shell_param, part.param)->parts++;
    return lade_vec_push(&b->parts, &part, &b->err);
}

static inline void bench_alias(struct bench *b, const char *name,
                               uint32_t param)
{
    struct lade_shell_alias alias = {.param = param};

    alias.name = bench_text(b, name);
    assert_non_null(lade_vec_push(&b->aliases, &alias, &b->err));
}

static inline struct lade_row *bench_row(struct bench *b, const char *name,
                                         enum lade_dtype dtype, uint64_t rows,
                                         uint64_t cols)
{
    struct lade_row row = {.dtype = (uint16_t)dtype,
                           .ndim = rows == 0   ? 0
                                   : cols == 0 ? 1
                                               : 2,
                           .shape = {rows, cols}};

    row.name = bench_text(b, name);
    return lade_vec_push(&b->rows, &row, &b->err);
}

static inline void bench_pack_shell(struct bench *b)
{
    const struct lade_section sections[] = {
        {&b->head.params, b->params.data, b->params.count, b->params.item},
        {&b->head.parts, b->parts.data, b->parts.count, b->parts.item},
        {&b->head.aliases, b->aliases.data, b->aliases.count, b->aliases.item},
        {&b->head.rules, b->rules.data, b->rules.count, b->rules.item},
        {&b->head.pool, b->pool.chars.data, b->pool.chars.count, 1},
    };

    b->shell =
        lade_blob_pack(b->mem, &b->head, sizeof b->head, sections, 5, &b->err);
    assert_non_null(b->shell);
}

/* One file of two: rows name theirs by row->shard. */
static inline void bench_pack(struct bench *b)
{
    struct lade_shard files[2] = {{.name = bench_text(b, "one.safetensors")},
                                  {.name = bench_text(b, "two.safetensors")}};
    struct lade_shards shards = {.blob.kind = LADE_BLOB_SHARDS};
    struct lade_catalogue catalogue = {.blob.kind = LADE_BLOB_CATALOGUE};
    const struct lade_section file_sections[] = {
        {&shards.shards, files, 2, sizeof *files},
        {&shards.pool, b->pool.chars.data, b->pool.chars.count, 1},
    };
    const struct lade_section row_sections[] = {
        {&catalogue.rows, b->rows.data, b->rows.count, b->rows.item},
        {&catalogue.pool, b->pool.chars.data, b->pool.chars.count, 1},
    };

    bench_drop_blobs(b);
    bench_pack_shell(b);
    b->shards = lade_blob_pack(b->mem, &shards, sizeof shards, file_sections, 2,
                               &b->err);
    b->catalogue = lade_blob_pack(b->mem, &catalogue, sizeof catalogue,
                                  row_sections, 2, &b->err);
    assert_true(b->shards && b->catalogue);
}

static inline int bench_build(struct bench *b, bool strict)
{
    bench_pack(b);
    return lade_route_build(b->shards, b->catalogue, b->shell, strict, b->mem,
                            &b->routes, &b->err);
}

#endif
