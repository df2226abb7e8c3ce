/*
 * Inside of the model room: what a family file holds once it was checked, the
 * modules that a config makes of it, and the shell in the making. Users include
 * model/model.h.
 *
 *   family.c, family_check.c   text of a family -> checked tree
 *   config.c                   config.json -> architecture, dtype
 *   walk.c                     tree and config -> modules, one after the other
 *   kinds.c                    kind and sizes -> geometry of a module
 *   quant.c, quant_none.c      geometry -> parameters and parts
 *   shell.c                    the whole way, packed; shell_view.c: per rank
 */
#ifndef LADE_MODEL_FAMILY_H
#define LADE_MODEL_FAMILY_H

#include "model/expr.h"
#include "model/model.h"

#define LADE_NAME_MAX 256
#define LADE_MODULE_PARTS 8
#define LADE_SIZE_MAX (UINT64_C(1) << 40) /* any one size from a config */
#define LADE_LAYERS_MAX 100000
#define LADE_EXPERTS_MAX 100000

/* As lade_expr_format, but {keep} stays in the text as it is. */
int lade_expr_format_keep(const struct lade_expr_scope *scope,
                          const char *pattern, const char *keep, char *out,
                          size_t size, lade_err *err);

/* ---- family files ------------------------------------------------------- */

struct lade_family {
    cJSON *root;
    const char *name;         /* in root */
    char what[LADE_NAME_MAX]; /* for errors: "family llama", "family file X" */
};

/* Parses and checks. Errors are LADE_E_USAGE and name the module and the key.
 * lade_family_close is fine after a failure. */
int lade_family_parse(const char *text, size_t length, const char *what,
                      struct lade_family *family, lade_err *err);
/* The family of the user's file, or the compiled-in one that serves the
 * config's architecture. */
int lade_family_open(const cJSON *config, const char *file,
                     struct lade_family *family, const char **architecture,
                     lade_err *err);
void lade_family_close(struct lade_family *family);
/* shell.c: a shell of this family, BF16, not quantised; for tests of families.
 */
int lade_model_build_family(const cJSON *config,
                            const struct lade_family *family,
                            const struct lade_layout *layout,
                            struct lade_mem *mem, struct lade_shell **shell,
                            lade_err *err);
int lade_family_check(const struct lade_family *family, lade_err *err);

/* regex, substring, prefix, suffix -> enum lade_rule_kind (route/route.h), or
 * -1. */
int lade_rule_kind_find(const char *name);

/* Splits "l in FROM..TO"; false if it is not that. */
struct lade_range {
    char name[32], from[128], to[128];
};
bool lade_range_parse(const char *text, struct lade_range *range);

/* What stands at a key of a kind. */
enum lade_key_type {
    LADE_KEY_TEXT,
    LADE_KEY_BOOL,
    LADE_KEY_EXPR,
    LADE_KEY_EXPRS,    /* 1 to 8 */
    LADE_KEY_PATTERN,  /* name with {variables} */
    LADE_KEY_PATTERNS, /* 1 to 8 */
    LADE_KEY_NAMES,    /* 1 to 8 plain words */
    LADE_KEY_STAGE,    /* first, last, layer EXPR */
    LADE_KEY_DTYPE,
    LADE_KEY_SPECIAL, /* checked by its own code */
};
struct lade_key {
    const char *name;
    enum lade_key_type type;
    bool required;
};

/* ---- modules ------------------------------------------------------------ */

/* One output part of a module: a tensor on disk. */
struct lade_module_part {
    char disk[LADE_NAME_MAX];      /* module path on disk; the suffix follows */
    uint64_t rows;                 /* on disk */
    uint64_t piece, extent, start; /* as in struct lade_shell_part, dim 0 */
    uint32_t copies;
    enum lade_axis axis;
};

/* What a kind makes of the sizes; what a quantisation method declares from. */
struct lade_module {
    char at[LADE_NAME_MAX];
    struct lade_module_part part[LADE_MODULE_PARTS];
    int parts;
    enum lade_dtype dtype;
    uint64_t in, in_piece;  /* columns; 0 for a vector */
    enum lade_axis in_axis; /* LADE_AXIS_NONE unless columns are cut */
    uint32_t experts;       /* 0, or: parts are gate, up, down of each expert */
    bool bias, optional, quantised;
};

struct lade_build;
struct lade_kind {
    const char *name;
    const struct lade_key
        *keys; /* ends with a NULL name; besides the common ones */
    /* fills parts, in, in_piece, in_axis, experts, bias of *module */
    int (*shape)(struct lade_build *b, const cJSON *json,
                 struct lade_module *module, lade_err *err);
};
const struct lade_kind *lade_kind_find(const char *name);
extern const struct lade_kind lade_kinds[]; /* ends with a NULL name */

/* A quantisation method. */
struct lade_quant_ops {
    const char *name;
    /* is it this method that the config asks for? */
    bool (*recognise)(const cJSON *config);
    /* declares the module's parameters and their parts */
    int (*declare)(struct lade_build *b, const struct lade_module *module,
                   lade_err *err);
};
extern const struct lade_quant_ops lade_quant_none;
int lade_quant_find(const cJSON *config, const struct lade_quant_ops **ops,
                    lade_err *err);
/* The quantisation in a config, wherever it stands, and its key; NULL. */
const cJSON *lade_config_quantization(const cJSON *config, const char **key);

/* ---- config ------------------------------------------------------------- */

/* text_config, or NULL. */
const cJSON *lade_config_text(const cJSON *config);
/* The engine's dtype: the wish, else what the config says (float32 becomes
 * BF16, with a warning), else by the files. catalogue may be NULL. */
int lade_config_dtype(const cJSON *config, enum lade_dtype wish,
                      const struct lade_catalogue *catalogue,
                      enum lade_dtype *dtype, lade_err *err);

/* ---- the shell in the making -------------------------------------------- */

/* What tp must satisfy; gathered so that a refusal names sizes that fit all. */
struct lade_limit {
    enum { LADE_LIMIT_TP, LADE_LIMIT_QKV, LADE_LIMIT_MOE } type;
    uint64_t a, b;
};

struct lade_build {
    struct lade_mem *mem;
    const struct lade_family *family;
    const struct lade_layout *layout;
    const struct lade_catalogue *catalogue;
    const struct lade_quant_ops *quant;
    struct lade_expr_scope scope;
    char what[2 * LADE_NAME_MAX + 32]; /* scope.what: family and module */
    enum lade_dtype dtype;
    uint32_t stage; /* order key of what is declared now */
    uint32_t last_layer, moe_layers, experts, groups;
    uint32_t untied, visits;
    uint64_t elements; /* of all disk tensors: a bound on every sum */
    char misfit[LADE_NAME_MAX + 256]; /* first thing that tp does not divide */
    struct lade_vec limits;           /* struct lade_limit */
    struct lade_vec params, parts, aliases, rules; /* as in struct lade_shell */
    uint32_t tie_from, tie_to;                     /* names, 0 if not untied */
    struct lade_pool pool;
};

/* kinds.c: a size at `key`: 1 .. LADE_SIZE_MAX, else an error with the key. */
int lade_build_size(struct lade_build *b, const cJSON *json, const char *key,
                    uint64_t *size, lade_err *err);
/* Text of an expression with what stands behind it: "K (num_heads ?? H)". */
void lade_build_describe(const struct lade_build *b, const cJSON *item,
                         char *out, size_t size);
/* walk.c: declares all modules of the family. */
int lade_build_walk(struct lade_build *b, lade_err *err);
/* fit.c: notes that tp has to satisfy this; `what` is used if it does not. */
int lade_build_limit(struct lade_build *b, struct lade_limit limit,
                     lade_err *err, const char *what, ...)
    __attribute__((format(printf, 4, 5)));
/* LADE_E_USAGE with the sizes that fit, if something did not. */
int lade_build_fits(struct lade_build *b, lade_err *err);

/* shell.c, for the quantisation methods: a parameter, then its parts. Names,
 * dims and dtypes are copied; part->name and ->param are set here. */
int lade_build_param(struct lade_build *b, const char *at, const char *suffix,
                     const struct lade_shell_param *param, lade_err *err);
int lade_build_part(struct lade_build *b, const char *disk, const char *suffix,
                    const struct lade_shell_part *part, lade_err *err);
int lade_build_name(struct lade_build *b, const char *at, const char *suffix,
                    uint32_t *name, lade_err *err);
/* `at`.weight is another name of `to`.weight. */
int lade_build_alias(struct lade_build *b, const char *at, const char *to,
                     const char *suffix, lade_err *err);

#endif
