/*
 * In: the geometry of a module. Out: its parameters without quantisation:
 * weight and bias, or w13 and w2 of experts, and the disk tensors that fill
 * them.
 *
 * Mirrors vLLM: linear.py, UnquantizedLinearMethod;
 * vocab_parallel_embedding.py, UnquantizedEmbeddingMethod;
 * fused_moe/unquantized_fused_moe_method.py. A row layer's bias is whole on
 * every rank: at run time only the first adds it.
 */
#include "model/family.h"

static bool recognise(const cJSON *config)
{
    const char *key = NULL;

    return lade_config_quantization(config, &key) == NULL;
}

/* The part along dim 0 (rows); width 0 stands for one dimension. */
static struct lade_shell_part rows_of(const struct lade_module *m,
                                      const struct lade_module_part *p,
                                      uint64_t width)
{
    return (struct lade_shell_part){
        .experts = m->experts,
        .optional = m->optional,
        .axis = (uint8_t)p->axis,
        .ndim = width ? 2 : 1,
        .shape = {p->rows, width},
        .copies = p->copies,
        .piece = p->piece,
        .extent = p->extent,
        .start = p->start,
    };
}

/* The part whose columns are cut. */
static struct lade_shell_part columns_of(const struct lade_module *m,
                                         const struct lade_module_part *p)
{
    struct lade_shell_part part = rows_of(m, p, m->in);

    part.axis = (uint8_t)m->in_axis;
    part.cut = 1;
    part.copies = 1;
    part.piece = m->in_piece;
    part.extent = m->in;
    part.start = 0;
    return part;
}

static uint64_t rows_on_a_rank(const struct lade_module *m)
{
    uint64_t rows = 0;

    for (int i = 0; i < m->parts; i++)
        rows += m->part[i].piece;
    return rows;
}

static int declare_linear(struct lade_build *b, const struct lade_module *m,
                          bool bias, lade_err *err)
{
    const char *suffix = bias ? "bias" : "weight";
    uint64_t width = bias ? 0 : m->in_piece;
    struct lade_shell_param param = {.dtype = (uint16_t)m->dtype,
                                     .ndim = width ? 2 : 1,
                                     .shape = {rows_on_a_rank(m), width}};
    bool columns = !bias && m->in_axis != LADE_AXIS_NONE;
    int rc = LADE_OK;

    LADE_TRY(lade_build_param(b, m->at, suffix, &param, err));
    for (int i = 0; i < m->parts; i++) {
        struct lade_shell_part part =
            columns ? columns_of(m, &m->part[i])
                    : rows_of(m, &m->part[i], bias ? 0 : m->in);
        LADE_TRY(lade_build_part(b, m->part[i].disk, suffix, &part, err));
    }
out:
    return rc;
}

/* w13: gate, then up, each cut by rows. */
static int declare_w13(struct lade_build *b, const struct lade_module *m,
                       bool bias, lade_err *err)
{
    const char *suffix = bias ? "bias" : "weight";
    struct lade_shell_param param = {
        .dtype = (uint16_t)m->dtype,
        .ndim = bias ? 2 : 3,
        .flags = LADE_PARAM_EXPERTS,
        .shape = {0, 2 * m->part[0].piece, bias ? 0 : m->in}};
    int rc = LADE_OK;

    LADE_TRY(lade_build_param(b, m->at, bias ? "w13_bias" : "w13_weight",
                              &param, err));
    for (int i = 0; i < 2; i++) {
        struct lade_shell_part part = rows_of(m, &m->part[i], bias ? 0 : m->in);
        LADE_TRY(lade_build_part(b, m->part[i].disk, suffix, &part, err));
    }
out:
    return rc;
}

/* w2: down [hidden, inter], cut by columns as gate and up are by rows. */
static int declare_w2(struct lade_build *b, const struct lade_module *m,
                      bool bias, lade_err *err)
{
    const struct lade_module_part *up = &m->part[0], *down = &m->part[2];
    struct lade_shell_param param = {
        .dtype = (uint16_t)m->dtype,
        .ndim = bias ? 2 : 3,
        .flags = LADE_PARAM_EXPERTS,
        .shape = {0, down->rows, bias ? 0 : up->piece}};
    struct lade_shell_part part = rows_of(m, down, bias ? 0 : up->rows);
    int rc = LADE_OK;

    if (!bias && up->axis != LADE_AXIS_NONE) {
        part.axis = (uint8_t)up->axis;
        part.cut = 1;
        part.piece = up->piece;
        part.extent = up->rows;
    }
    LADE_TRY(lade_build_param(b, m->at, bias ? "w2_bias" : "w2_weight", &param,
                              err));
    LADE_TRY(
        lade_build_part(b, down->disk, bias ? "bias" : "weight", &part, err));
out:
    return rc;
}

static int declare(struct lade_build *b, const struct lade_module *m,
                   lade_err *err)
{
    int (*const steps[])(struct lade_build *, const struct lade_module *, bool,
                         lade_err *) = {declare_linear, declare_w13,
                                        declare_w2};
    int first = m->experts ? 1 : 0, last = m->experts ? 2 : 0;
    int rc = LADE_OK;

    for (int i = first; i <= last; i++) {
        LADE_TRY(steps[i](b, m, false, err));
        if (m->bias)
            LADE_TRY(steps[i](b, m, true, err));
    }
out:
    return rc;
}

const struct lade_quant_ops lade_quant_none = {"none", recognise, declare};
