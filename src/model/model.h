/*
 * Gate 3: config.json and a family -> the shell: every parameter that this
 * layout must have, what of it each rank holds, and the names on disk that fill
 * it. Pure.
 *
 * A family is data (families/NAME.json, compiled in; docs/families.md). The
 * kinds (embedding, qkv, row, experts, ...) know how they are cut; nothing here
 * grows with the number of ranks: a parameter is described once, and what one
 * rank holds follows from its coordinates.
 */
#ifndef LADE_MODEL_MODEL_H
#define LADE_MODEL_MODEL_H

#include "base/blob.h"
#include "base/dtype.h"
#include "base/json.h"
#include "catalogue/catalogue.h"
#include "topo/topo.h"

/* Which coordinate of a rank chooses its piece of a disk tensor. */
enum lade_axis {
    LADE_AXIS_NONE,   /* whole on every rank */
    LADE_AXIS_TP,     /* piece = tp_rank */
    LADE_AXIS_KV,     /* piece = tp_rank / copies (replicated KV heads) */
    LADE_AXIS_MOE_TP, /* piece = flat rank among dp * tp */
};

/* One disk tensor's place in a parameter. For experts it stands for all experts:
 * the name holds "{e}". */
struct lade_shell_part {
    uint32_t name;    /* expected name on disk (pool) */
    uint32_t param;
    uint32_t experts; /* logical experts, 0 if the name holds no {e} */
    uint8_t optional; /* may be absent on disk; then zeros */
    uint8_t axis;     /* enum lade_axis */
    uint8_t cut;      /* dim of the disk tensor that is cut (0 or 1), if axis is not NONE */
    uint8_t ndim;
    uint64_t shape[LADE_MAX_DIMS]; /* expected on disk, whole */
    uint32_t copies;  /* LADE_AXIS_KV: ranks that share a piece */
    uint32_t reserved;
    uint64_t piece;   /* elements of `cut` for each rank (whole dim if axis NONE) */
    uint64_t base;    /* first element along dim `cut` of the disk tensor that belongs to this part
                         (parts fused on disk; 0 otherwise) */
    uint64_t extent;  /* elements along `cut` that belong to this part (shape[cut] if not fused);
                         the last pieces may reach beyond it (vocabulary padding): those are zero */
    uint64_t start;   /* where the piece goes along dim `cut` of the parameter (without its expert
                         dim) */
};

enum lade_param_flags {
    LADE_PARAM_EXPERTS = 1, /* dim 0 is the rank's number of local experts */
};

struct lade_shell_param {
    uint32_t name;    /* the engine's */
    uint16_t dtype;   /* engine dtype of this parameter */
    uint8_t ndim;
    uint8_t flags;
    uint64_t shape[LADE_MAX_DIMS]; /* on one rank; shape[0] is 0 for LADE_PARAM_EXPERTS: see
                                      lade_shell_shape */
    uint32_t first_part, parts;
    uint32_t layer;      /* order of loading: 0 embedding, 1 + l layers, last norm and head */
    uint32_t moe_layer;  /* for experts: which list of the placement's map */
};

/* Other names of one storage. `param` is the stored one. */
struct lade_shell_alias {
    uint32_t name, param;
};

/* Names to be dropped or renamed before the join, in order. */
struct lade_shell_rule {
    uint32_t kind; /* enum lade_rule_kind, route/route.h */
    uint32_t from, to, why; /* pool; to == UINT32_MAX drops */
};

struct lade_shell {
    struct lade_blob blob;
    uint32_t architecture, family, quantization, dtype;
    uint32_t tp, pp, dp, ep, moe_tp, experts, physical;
    uint32_t groups, moe_layers, placement; /* of experts; the placement that takes effect */
    uint32_t untied_by_checkpoint; /* config says tied, but the head is on disk: both loaded */
    uint32_t tie_from, tie_to;     /* then: params to compare and re-tie (indexes), else 0, 0 */
    struct lade_span params;  /* struct lade_shell_param, in module order */
    struct lade_span parts;   /* struct lade_shell_part, those of a parameter together */
    struct lade_span aliases; /* struct lade_shell_alias */
    struct lade_span rules;   /* struct lade_shell_rule */
    struct lade_span pool;
};

struct lade_model_wish {
    const char *family_file; /* NULL: by architecture */
    enum lade_dtype dtype;   /* UNKNOWN: from the config */
};

/* config is the parsed config.json; the placement is initialised here because the number of
 * experts comes from the family. Errors: CHECKPOINT (config), USAGE (layout impossible: names the
 * numbers and the sizes that fit). */
int lade_model_build(const cJSON *config, const struct lade_model_wish *wish,
                     const struct lade_layout *layout, const struct lade_catalogue *catalogue,
                     struct lade_mem *mem, struct lade_shell **shell, lade_err *err);
/* The placement that the shell was built with; needed by route and plan on every rank. */
int lade_model_placement(const struct lade_shell *shell, const struct lade_layout *layout,
                         struct lade_mem *mem, struct lade_placement *place, lade_err *err);

/* Shape of param i on a rank; returns ndim. */
int lade_shell_shape(const struct lade_shell *shell, const struct lade_placement *place,
                     const struct lade_coords *at, uint32_t i, uint64_t shape[LADE_MAX_DIMS]);
/* Bytes of param i on a rank. */
uint64_t lade_shell_bytes(const struct lade_shell *shell, const struct lade_placement *place,
                          const struct lade_coords *at, uint32_t i);

#endif
