/*
 * Inside of the route room: the join in the making (route.c) and what is said
 * about it (verdict.c). Users include route/route.h.
 */
#ifndef LADE_ROUTE_JOIN_H
#define LADE_ROUTE_JOIN_H

#include "base/map.h"
#include "route/mapper.h"

#define LADE_NO_ROW UINT64_MAX

/* An expected disk tensor: one part, or consecutive ones that are fused on
 * disk. */
struct lade_target {
    const char *name;
    uint32_t part, parts, expert;
    uint64_t row; /* that fills it; LADE_NO_ROW as long as there is none */
};

/* How many rows there are of a sort, and the first of them. */
struct lade_tally {
    uint64_t count, first;
};

struct lade_join {
    const struct lade_shards *shards;
    const struct lade_catalogue *catalogue;
    const struct lade_shell *shell;
    const struct lade_row *rows;
    const struct lade_shell_part *parts;
    const struct lade_shell_param *params;
    struct lade_mem *mem;
    struct lade_arena arena;  /* names of experts' tensors */
    struct lade_map expected; /* name -> target */
    struct lade_map aliases;  /* name -> alias */
    struct lade_vec targets;  /* struct lade_target */
    struct lade_vec routes;   /* struct lade_route, one per row */
    struct lade_vec missing;  /* struct lade_missing, one per part */
    struct lade_mapper mapper;
    uint64_t needed;           /* rows that fill a part */
    uint64_t absent;           /* tensors that are missing */
    struct lade_tally unknown; /* names that nothing expects */
    struct lade_tally biases;  /* spare ones */
    struct lade_tally lossy;   /* conversions that lose precision */
    struct lade_tally strange; /* of a dtype that is not known, not needed */
    struct lade_tally misfits; /* wrong shape or dtype */
    uint32_t misfit_part;      /* of the first of these */
    bool quantised;            /* an unknown name is that of a scale or so */
};

static inline void lade_tally_add(struct lade_tally *tally, uint64_t row)
{
    if (tally->count++ == 0)
        tally->first = row;
}

/* Does the shape of a row fit the part; can its dtype become the parameter's,
 * and is something lost then? */
bool lade_fits_shape(const struct lade_row *row,
                     const struct lade_shell_part *part);
bool lade_fits_dtype(const struct lade_row *row,
                     const struct lade_shell_param *param, bool *lossy);

/* Finds what is missing and decides: LADE_E_PARAMETER with one line for all
 * that is wrong, or warnings. */
int lade_route_judge(struct lade_join *j, bool strict, lade_err *err);

/* The name and the file of a row. */
static inline const char *lade_join_name(const struct lade_join *j,
                                         uint64_t row)
{
    return LADE_STRING(j->catalogue, pool, j->rows[row].name);
}
static inline const char *lade_join_file(const struct lade_join *j,
                                         uint64_t row)
{
    const struct lade_shard *shards =
        LADE_ITEMS(j->shards, shards, struct lade_shard);

    return LADE_STRING(j->shards, pool, shards[j->rows[row].shard].name);
}

#endif
