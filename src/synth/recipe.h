/*
 * A model file, its overrides and what follows from them: the list of tensors,
 * the content of config.json, the files.
 */
#ifndef LADE_SYNTH_RECIPE_H
#define LADE_SYNTH_RECIPE_H

#include "base/dtype.h"
#include "base/json.h"
#include "synth/synth.h"

struct lade_recipe_tensor {
    uint64_t shape[LADE_MAX_DIMS];
    uint64_t elements, bytes;
    int64_t layer, expert; /* -1: none */
    const char *fill;      /* kind, or NULL */
    uint32_t name;         /* in the recipe's pool */
    uint32_t pattern;      /* which entry of tensors[] */
    int ndim;
    enum lade_dtype dtype;
};

struct lade_recipe {
    struct lade_mem *mem;
    cJSON *model;  /* the file, tiny and --set applied to its config */
    cJSON *helper; /* preset of the same name as a foreign file, or NULL */
    const char *name;
    struct lade_pool names;
    struct lade_vec tensors; /* struct lade_recipe_tensor in listed order:
                                pattern, then layer, then expert */
    uint64_t bytes;
};

/* Reads the preset or file, applies tiny and --set, expands the tensors.
 * lade_recipe_fini is fine after a failure too. */
int lade_recipe_init(struct lade_recipe *recipe,
                     const struct lade_synth_wish *wish, struct lade_mem *mem,
                     lade_err *err);
void lade_recipe_fini(struct lade_recipe *recipe);

static inline const struct lade_recipe_tensor *
lade_recipe_at(const struct lade_recipe *recipe, uint64_t i)
{
    return LADE_VEC_AT(&recipe->tensors, struct lade_recipe_tensor, i);
}

/* A key of the model file, or of the preset that helps it out; NULL if none. */
const cJSON *lade_recipe_key(const struct lade_recipe *recipe, const char *key);

/* Sets a dotted key of an object; takes `value` over, also on failure. */
int lade_recipe_set(cJSON *object, const char *key, cJSON *value,
                    const char *what, int status, lade_err *err);

/* config.json, and the file that holds its quantisation apart (*other NULL if
 * there is none). The caller frees both. */
int lade_recipe_config(const struct lade_recipe *recipe, cJSON **config,
                       cJSON **other, char *other_name, size_t size,
                       lade_err *err);

struct lade_split_file {
    char name[96];
    uint64_t first, count; /* of `order` */
};

struct lade_split {
    struct lade_mem *mem;
    uint32_t *order;       /* tensors as they lie in the files */
    struct lade_vec files; /* struct lade_split_file */
    char index[96];        /* name of the index file; "" with one file */
};

/* Deals the tensors over files: the golden rule with `tiny`, else the model
 * file's files.rule. */
int lade_split_init(struct lade_split *split, const struct lade_recipe *recipe,
                    bool tiny, lade_err *err);
void lade_split_fini(struct lade_split *split);

#endif
