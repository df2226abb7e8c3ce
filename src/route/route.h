/*
 * Gate 4: every row of the catalogue -> a part of a parameter and an expert, or
 * dropped with a reason. Pure. A hash join of the names that the shell expects
 * with the catalogue's names, after these went through the rename rules.
 *
 * Mirrors vLLM: models/utils.py, WeightsMapper and AutoWeightsLoader; strict
 * where contract.md section 7 says so.
 */
#ifndef LADE_ROUTE_ROUTE_H
#define LADE_ROUTE_ROUTE_H

#include "model/model.h"

/* The mapper's rule kinds in the order in which they apply (vLLM:
 * WeightsMapper). */
enum lade_rule_kind {
    LADE_RULE_REGEX,     /* every match, back-references */
    LADE_RULE_SUBSTRING, /* first occurrence */
    LADE_RULE_PREFIX,
    LADE_RULE_SUFFIX, /* last occurrence */
};

enum lade_route_reason {
    LADE_ROUTE_NEEDED,
    LADE_ROUTE_RULE,    /* a drop rule of the family; `why` says which */
    LADE_ROUTE_TIED,    /* second name of a tied parameter */
    LADE_ROUTE_BIAS,    /* a bias that the model does not have (GPTQ rule) */
    LADE_ROUTE_UNKNOWN, /* only with strict off */
    LADE_ROUTE_REASONS
};
const char *lade_route_reason_text(enum lade_route_reason reason);

struct lade_route {
    uint32_t part;   /* first part filled by this row; UINT32_MAX if dropped */
    uint32_t parts;  /* consecutive parts (more than one if fused on disk) */
    uint32_t expert; /* logical expert, 0 if none */
    uint16_t reason; /* enum lade_route_reason */
    uint16_t rule;   /* index of the shell's rule for LADE_ROUTE_RULE */
};

struct lade_missing {
    uint32_t part, expert;
};

struct lade_routes {
    struct lade_blob blob;
    struct lade_span routes; /* struct lade_route, one per catalogue row */
    struct lade_span
        missing; /* struct lade_missing: empty unless strict is off */
};

/* Checks shapes and dtypes of the rows that are needed against what the parts
 * expect. With strict: LADE_E_PARAMETER for a missing tensor (names it, its
 * parameter and expert, how many are missing in all, and the nearest name
 * found), for an unknown one (names it, its file, how many there are, the
 * nearest expected name), for a wrong shape (both whole shapes) or a dtype that
 * cannot be converted. Not strict: missing and unknown become warnings and
 * counts, unless no row at all fits. *routes is set only on success; freed with
 * lade_free. */
int lade_route_build(const struct lade_shards *shards,
                     const struct lade_catalogue *catalogue,
                     const struct lade_shell *shell, bool strict,
                     struct lade_mem *mem, struct lade_routes **routes,
                     lade_err *err);

/* Applies the shell's rules to one name. Returns false if it is dropped (*rule
 * is the index). */
bool lade_route_map(const struct lade_shell *shell, const char *name, char *out,
                    size_t size, uint32_t *rule);

#endif
