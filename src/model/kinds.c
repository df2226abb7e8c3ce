/*
 * In: a module of a family file (kind and expressions) and the config behind
 * them. Out: its geometry: parts on disk, what of them a rank holds, where it
 * goes. The kind knows how it is cut; quantisation knows what it consists of.
 *
 * Mirrors vLLM: linear.py (ReplicatedLinear, ColumnParallelLinear,
 * MergedColumnParallelLinear, QKVParallelLinear, RowParallelLinear),
 * vocab_parallel_embedding.py (VocabParallelEmbedding, padded to 64 rows),
 * fused_moe/layer.py and fused_moe/config.py (FusedMoEParallelConfig.make).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "model/family.h"

#define VOCABULARY_UNIT 64

/* ---- values of a module's keys ------------------------------------------ */

static const cJSON *at_key(const cJSON *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

void lade_build_describe(const struct lade_build *b, const cJSON *item,
                         char *out, size_t size)
{
    const cJSON *behind =
        cJSON_IsString(item) ? at_key(b->scope.let, item->valuestring) : NULL;

    if (cJSON_IsString(behind))
        snprintf(out, size, "%.60s (%.120s)", item->valuestring,
                 behind->valuestring);
    else if (cJSON_IsString(item))
        snprintf(out, size, "%.120s", item->valuestring);
    else
        snprintf(out, size, "a number of the family");
}

static int size_of(struct lade_build *b, const cJSON *item, uint64_t *size,
                   lade_err *err)
{
    char text[256];
    int64_t value = 0;
    int rc = LADE_OK;

    LADE_TRY(lade_expr_value(&b->scope, item, &value, err));
    if (value < 1 || (uint64_t)value > LADE_SIZE_MAX) {
        lade_build_describe(b, item, text, sizeof text);
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "config.json: %s is %" PRId64
                            ", but a size from 1 to %" PRIu64 " is needed (%s)",
                            text, value, LADE_SIZE_MAX, b->what);
    }
    *size = (uint64_t)value;
out:
    return rc;
}

int lade_build_size(struct lade_build *b, const cJSON *json, const char *key,
                    uint64_t *size, lade_err *err)
{
    return size_of(b, at_key(json, key), size, err);
}

static int flag_of(struct lade_build *b, const cJSON *json, const char *key,
                   bool absent, bool *flag, lade_err *err)
{
    const cJSON *item = at_key(json, key);
    int64_t value = absent;
    int rc = LADE_OK;

    if (item)
        LADE_TRY(lade_expr_value(&b->scope, item, &value, err));
    *flag = value != 0;
out:
    return rc;
}

static int product_of(struct lade_build *b, uint64_t a, uint64_t c,
                      uint64_t *size, lade_err *err)
{
    if (lade_mul_u64(a, c, size) && *size <= LADE_SIZE_MAX)
        return LADE_OK;
    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "config.json: %" PRIu64 " times %" PRIu64
                        " is more than the %" PRIu64
                        " that a dimension may have (%s)",
                        a, c, LADE_SIZE_MAX, b->what);
}

/* ---- names on disk ------------------------------------------------------ */

/* The folder of parts: `disk`, or what `at` is in. */
static int disk_folder(struct lade_build *b, const cJSON *json,
                       const struct lade_module *m, const char *keep,
                       char out[LADE_NAME_MAX], lade_err *err)
{
    const cJSON *disk = at_key(json, "disk");
    const char *dot = strrchr(m->at, '.');

    if (disk)
        return lade_expr_format_keep(&b->scope, disk->valuestring, keep, out,
                                     LADE_NAME_MAX, err);
    snprintf(out, LADE_NAME_MAX, "%.*s", dot ? (int)(dot - m->at) : 0, m->at);
    return LADE_OK;
}

static int single_name(struct lade_build *b, const cJSON *json,
                       struct lade_module *m, lade_err *err)
{
    const cJSON *disk = at_key(json, "disk");

    m->parts = 1;
    return lade_expr_format(&b->scope, disk ? disk->valuestring : m->at,
                            m->part[0].disk, LADE_NAME_MAX, err);
}

static int part_names(struct lade_build *b, const cJSON *json, const char *keep,
                      struct lade_module *m, lade_err *err)
{
    char folder[LADE_NAME_MAX];
    const cJSON *name = NULL;
    int rc = LADE_OK;

    LADE_TRY(disk_folder(b, json, m, keep, folder, err));
    m->parts = 0;
    cJSON_ArrayForEach(name, at_key(json, "parts"))
    {
        int n = snprintf(m->part[m->parts++].disk, LADE_NAME_MAX, "%s%s%s",
                         folder, *folder ? "." : "", name->valuestring);
        if (n >= LADE_NAME_MAX)
            return lade_err_set(err, LADE_E_USAGE,
                                "%s: a name on disk is longer than %d "
                                "characters",
                                b->what, LADE_NAME_MAX - 1);
    }
out:
    return rc;
}

/* ---- one part ----------------------------------------------------------- */

static void whole(struct lade_module_part *part, uint64_t rows)
{
    part->rows = part->piece = part->extent = rows;
    part->copies = 1;
    part->axis = LADE_AXIS_NONE;
}

/* Cut into `pieces` equal ones. */
static void cut(struct lade_module_part *part, uint64_t rows, uint32_t pieces,
                enum lade_axis axis)
{
    whole(part, rows);
    part->piece = rows / pieces;
    part->axis = axis;
}

/* Parts follow one another in the parameter. */
static void stack(struct lade_module *m)
{
    for (int i = 1; i < m->parts; i++)
        m->part[i].start = m->part[i - 1].start + m->part[i - 1].piece;
}

static int tp_divides(struct lade_build *b, uint64_t size, const char *what,
                      const char *at, lade_err *err)
{
    return lade_build_limit(b, (struct lade_limit){LADE_LIMIT_TP, size, 0}, err,
                            "%s: %" PRIu64 " %s do not divide by tp %" PRIu32,
                            at, size, what, b->layout->tp);
}

/* ---- kinds -------------------------------------------------------------- */

static int shape_vocabulary(struct lade_build *b, const cJSON *json,
                            struct lade_module *m, lade_err *err)
{
    struct lade_module_part *part = &m->part[0];
    uint64_t rows = 0;
    int rc = LADE_OK;

    LADE_TRY(single_name(b, json, m, err));
    LADE_TRY(lade_build_size(b, json, "rows", &rows, err));
    LADE_TRY(lade_build_size(b, json, "cols", &m->in, err));
    LADE_TRY(flag_of(b, json, "bias", false, &m->bias, err));
    uint64_t padded = lade_round_up(rows, VOCABULARY_UNIT);
    LADE_TRY(lade_build_limit(
        b, (struct lade_limit){LADE_LIMIT_TP, padded, 0}, err,
        "%s: the vocabulary of %" PRIu64 " rows, padded to %" PRIu64
        ", does not divide by tp %" PRIu32,
        m->at, rows, padded, b->layout->tp));
    cut(part, padded, b->layout->tp, LADE_AXIS_TP);
    part->rows = part->extent = rows; // what lies beyond is zero
    m->in_piece = m->in;
out:
    return rc;
}

static int read_linear(struct lade_build *b, const cJSON *json,
                       struct lade_module *m, uint64_t *out, lade_err *err)
{
    int rc = LADE_OK;

    LADE_TRY(single_name(b, json, m, err));
    LADE_TRY(lade_build_size(b, json, "out", out, err));
    LADE_TRY(lade_build_size(b, json, "in", &m->in, err));
    LADE_TRY(flag_of(b, json, "bias", false, &m->bias, err));
    m->in_piece = m->in;
out:
    return rc;
}

static int shape_replicated(struct lade_build *b, const cJSON *json,
                            struct lade_module *m, lade_err *err)
{
    uint64_t out = 0;
    int rc = LADE_OK;

    LADE_TRY(read_linear(b, json, m, &out, err));
    whole(&m->part[0], out);
out:
    return rc;
}

static int shape_column(struct lade_build *b, const cJSON *json,
                        struct lade_module *m, lade_err *err)
{
    uint64_t out = 0;
    int rc = LADE_OK;

    LADE_TRY(read_linear(b, json, m, &out, err));
    LADE_TRY(tp_divides(b, out, "output features", m->at, err));
    cut(&m->part[0], out, b->layout->tp, LADE_AXIS_TP);
out:
    return rc;
}

static int shape_row(struct lade_build *b, const cJSON *json,
                     struct lade_module *m, lade_err *err)
{
    uint64_t out = 0;
    int rc = LADE_OK;

    LADE_TRY(read_linear(b, json, m, &out, err));
    LADE_TRY(tp_divides(b, m->in, "input features", m->at, err));
    whole(&m->part[0], out);
    m->in_piece = m->in / b->layout->tp;
    m->in_axis = LADE_AXIS_TP;
out:
    return rc;
}

static int shape_merged(struct lade_build *b, const cJSON *json,
                        struct lade_module *m, lade_err *err)
{
    const cJSON *widths = at_key(json, "out");
    bool tp = true;
    int rc = LADE_OK;

    LADE_TRY(part_names(b, json, NULL, m, err));
    LADE_TRY(lade_build_size(b, json, "in", &m->in, err));
    LADE_TRY(flag_of(b, json, "bias", false, &m->bias, err));
    LADE_TRY(flag_of(b, json, "tp", true, &tp, err));
    for (int i = 0; i < m->parts; i++) {
        uint64_t width = 0;
        LADE_TRY(size_of(b, cJSON_GetArrayItem(widths, i), &width, err));
        whole(&m->part[i], width);
        if (!tp)
            continue;
        LADE_TRY(tp_divides(b, width, "output features of a part", m->at, err));
        cut(&m->part[i], width, b->layout->tp, LADE_AXIS_TP);
    }
    stack(m);
    m->in_piece = m->in;
out:
    return rc;
}

/* What attention asks of tp; the texts are those of its first violation. */
static int limit_heads(struct lade_build *b, const struct lade_module *m,
                       uint64_t heads, uint64_t kv_heads, lade_err *err)
{
    struct lade_limit limit = {LADE_LIMIT_QKV, heads, kv_heads};
    uint32_t tp = b->layout->tp;

    if (heads % tp != 0)
        return lade_build_limit(b, limit, err,
                                "%s: %" PRIu64
                                " attention heads do not divide by tp %" PRIu32,
                                m->at, heads, tp);
    if (tp < kv_heads)
        return lade_build_limit(b, limit, err,
                                "%s: %" PRIu64
                                " KV heads do not divide by tp %" PRIu32,
                                m->at, kv_heads, tp);
    return lade_build_limit(b, limit, err,
                            "%s: tp %" PRIu32 " is not a multiple of %" PRIu64
                            " KV heads, so these cannot be repeated evenly",
                            m->at, tp, kv_heads);
}

/* A rank has kv_heads / tp heads, or one that tp / kv_heads ranks share. */
static void cut_kv(struct lade_module_part *part, uint64_t kv_heads,
                   uint64_t dim, uint32_t tp)
{
    cut(part, kv_heads * dim, tp, LADE_AXIS_TP);
    if (tp <= kv_heads)
        return;
    part->piece = dim;
    part->copies = (uint32_t)(tp / kv_heads);
    part->axis = LADE_AXIS_KV;
}

static int shape_qkv(struct lade_build *b, const cJSON *json,
                     struct lade_module *m, lade_err *err)
{
    uint64_t heads = 0, kv_heads = 0, dim = 0, v_dim = 0, rows = 0;
    uint32_t tp = b->layout->tp;
    int rc = LADE_OK;

    LADE_TRY(part_names(b, json, NULL, m, err));
    LADE_TRY(lade_build_size(b, json, "heads", &heads, err));
    LADE_TRY(lade_build_size(b, json, "kv_heads", &kv_heads, err));
    LADE_TRY(lade_build_size(b, json, "head_dim", &dim, err));
    v_dim = dim;
    if (at_key(json, "v_head_dim"))
        LADE_TRY(lade_build_size(b, json, "v_head_dim", &v_dim, err));
    LADE_TRY(lade_build_size(b, json, "in", &m->in, err));
    LADE_TRY(flag_of(b, json, "bias", false, &m->bias, err));
    LADE_TRY(product_of(b, heads, dim, &rows, err));
    LADE_TRY(product_of(b, kv_heads, dim, &rows, err));
    LADE_TRY(product_of(b, kv_heads, v_dim, &rows, err));
    LADE_TRY(limit_heads(b, m, heads, kv_heads, err));
    cut(&m->part[0], heads * dim, tp, LADE_AXIS_TP);
    cut_kv(&m->part[1], kv_heads, dim, tp);
    cut_kv(&m->part[2], kv_heads, v_dim, tp);
    stack(m);
    m->in_piece = m->in;
out:
    return rc;
}

static int shape_vector(struct lade_build *b, const cJSON *json,
                        struct lade_module *m, lade_err *err)
{
    uint64_t n = 0;
    int rc = LADE_OK;

    LADE_TRY(single_name(b, json, m, err));
    LADE_TRY(lade_build_size(b, json, "n", &n, err));
    whole(&m->part[0], n);
out:
    return rc;
}

/* All layers with experts must agree: one placement serves them. */
static int count_experts(struct lade_build *b, const cJSON *json,
                         struct lade_module *m, lade_err *err)
{
    uint64_t count = 0, groups = 1;
    char text[256];
    int rc = LADE_OK;

    LADE_TRY(lade_build_size(b, json, "count", &count, err));
    if (at_key(json, "groups"))
        LADE_TRY(lade_build_size(b, json, "groups", &groups, err));
    if (count > LADE_EXPERTS_MAX || groups > count) {
        lade_build_describe(b, at_key(json, "count"), text, sizeof text);
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "config.json: %s is %" PRIu64 " experts in %" PRIu64
                            " groups, but at most %d, and a group at least "
                            "one, are possible (%s)",
                            text, count, groups, LADE_EXPERTS_MAX, b->what);
    }
    if (b->moe_layers && (count != b->experts || groups != b->groups))
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "config.json: layers with %" PRIu32
                            " and with %" PRIu64
                            " experts; one number for all is needed (%s)",
                            b->experts, count, b->what);
    b->experts = m->experts = (uint32_t)count;
    b->groups = (uint32_t)groups;
    b->moe_layers++;
out:
    return rc;
}

static int shape_experts(struct lade_build *b, const cJSON *json,
                         struct lade_module *m, lade_err *err)
{
    uint32_t ranks = b->layout->dp * b->layout->tp;
    uint64_t inter = 0;
    int rc = LADE_OK;

    LADE_TRY(part_names(b, json, "e", m, err));
    LADE_TRY(count_experts(b, json, m, err));
    LADE_TRY(lade_build_size(b, json, "inter", &inter, err));
    LADE_TRY(lade_build_size(b, json, "hidden", &m->in, err));
    LADE_TRY(flag_of(b, json, "bias", false, &m->bias, err));
    m->in_piece = m->in;
    whole(&m->part[0], inter);
    whole(&m->part[2], m->in);
    if (!b->layout->ep && ranks > 1) {
        LADE_TRY(lade_build_limit(
            b, (struct lade_limit){LADE_LIMIT_MOE, inter, 0}, err,
            "%s: the expert width %" PRIu64 " does not divide by dp %" PRIu32
            " times tp %" PRIu32 " (without --ep experts are cut by all)",
            m->at, inter, b->layout->dp, b->layout->tp));
        cut(&m->part[0], inter, ranks, LADE_AXIS_MOE_TP);
    }
    m->part[1].rows = m->part[0].rows;
    m->part[1].piece = m->part[1].start = m->part[0].piece;
    m->part[1].extent = m->part[0].extent;
    m->part[1].copies = 1;
    m->part[1].axis = m->part[0].axis;
out:
    return rc;
}

/* ---- the table ---------------------------------------------------------- */

#define LINEAR                                                                 \
    {"out", LADE_KEY_EXPR, true}, {"in", LADE_KEY_EXPR, true},                 \
    {                                                                          \
        "bias", LADE_KEY_EXPR, false                                           \
    }

static const struct lade_key embedding_keys[] = {{"rows", LADE_KEY_EXPR, true},
                                                 {"cols", LADE_KEY_EXPR, true},
                                                 {NULL, LADE_KEY_TEXT, false}};
static const struct lade_key head_keys[] = {
    {"rows", LADE_KEY_EXPR, true},     {"cols", LADE_KEY_EXPR, true},
    {"bias", LADE_KEY_EXPR, false},    {"tied_to", LADE_KEY_PATTERN, false},
    {"tied_if", LADE_KEY_EXPR, false}, {NULL, LADE_KEY_TEXT, false}};
static const struct lade_key linear_keys[] = {LINEAR,
                                              {NULL, LADE_KEY_TEXT, false}};
static const struct lade_key merged_keys[] = {
    {"out", LADE_KEY_EXPRS, true},   {"in", LADE_KEY_EXPR, true},
    {"parts", LADE_KEY_NAMES, true}, {"bias", LADE_KEY_EXPR, false},
    {"tp", LADE_KEY_BOOL, false},    {NULL, LADE_KEY_TEXT, false}};
static const struct lade_key qkv_keys[] = {
    {"heads", LADE_KEY_EXPR, true},    {"kv_heads", LADE_KEY_EXPR, true},
    {"head_dim", LADE_KEY_EXPR, true}, {"v_head_dim", LADE_KEY_EXPR, false},
    {"in", LADE_KEY_EXPR, true},       {"parts", LADE_KEY_NAMES, true},
    {"bias", LADE_KEY_EXPR, false},    {NULL, LADE_KEY_TEXT, false}};
static const struct lade_key vector_keys[] = {{"n", LADE_KEY_EXPR, true},
                                              {NULL, LADE_KEY_TEXT, false}};
static const struct lade_key experts_keys[] = {
    {"count", LADE_KEY_EXPR, true},  {"inter", LADE_KEY_EXPR, true},
    {"hidden", LADE_KEY_EXPR, true}, {"parts", LADE_KEY_NAMES, true},
    {"bias", LADE_KEY_EXPR, false},  {"groups", LADE_KEY_EXPR, false},
    {NULL, LADE_KEY_TEXT, false}};

const struct lade_kind lade_kinds[] = {
    {"embedding", embedding_keys, shape_vocabulary},
    {"head", head_keys, shape_vocabulary},
    {"column", linear_keys, shape_column},
    {"row", linear_keys, shape_row},
    {"replicated", linear_keys, shape_replicated},
    {"merged", merged_keys, shape_merged},
    {"qkv", qkv_keys, shape_qkv},
    {"vector", vector_keys, shape_vector},
    {"experts", experts_keys, shape_experts},
    {NULL, NULL, NULL},
};

const struct lade_kind *lade_kind_find(const char *name)
{
    for (const struct lade_kind *kind = lade_kinds; kind->name; kind++) {
        if (strcmp(kind->name, name) == 0)
            return kind;
    }
    return NULL;
}
