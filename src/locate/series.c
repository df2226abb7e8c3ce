/*
 * In: weight files without an index. Out: one warning for each series
 * STEM-NUMBER-of-TOTAL.safetensors that lacks members: half of a download would
 * otherwise show only as tensors that nobody has.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "locate/folder.h"

struct series {
    const char *stem; /* "model-*-of-00003.safetensors" */
    unsigned long total, there;
};

/* "model-00001-of-00003.safetensors": the place of the number, of "-of-", and
 * the total. */
static bool is_member(const char *name, size_t *number, size_t *of,
                      unsigned long *total)
{
    const char *mark = NULL;
    char *end;

    for (const char *at = name; (at = strstr(at, "-of-")) != NULL; at++)
        mark = at;
    if (mark == NULL || !isdigit((unsigned char)mark[4]))
        return false;
    *total = strtoul(mark + 4, &end, 10);
    if (strcmp(end, ".safetensors") != 0 || *total > 1000000)
        return false;
    *of = (size_t)(mark - name);
    *number = *of;
    while (*number > 0 && isdigit((unsigned char)name[*number - 1]))
        (*number)--;
    return *number > 0 && *number < *of && name[*number - 1] == '-';
}

static int count_member(struct lade_vec *all, struct lade_map *stems,
                        struct lade_arena *texts, const char *name,
                        lade_err *err)
{
    struct series fresh = {0};
    size_t number, of;
    uint32_t place = (uint32_t)all->count;
    bool added;

    if (!is_member(name, &number, &of, &fresh.total))
        return LADE_OK;
    fresh.stem =
        lade_arena_printf(texts, err, "%.*s*%s", (int)number, name, name + of);
    if (fresh.stem == NULL)
        return LADE_E_MEMORY;
    int rc = lade_map_put(stems, fresh.stem, strlen(fresh.stem), place, &place,
                          &added, err);
    if (rc != LADE_OK)
        return rc;
    if (added && lade_vec_push(all, &fresh, err) == NULL)
        return LADE_E_MEMORY;
    LADE_VEC_AT(all, struct series, place)->there++;
    return LADE_OK;
}

int lade_folder_warn_series(const struct lade_folder *folder,
                            struct lade_mem *mem, lade_err *err)
{
    struct lade_arena texts;
    struct lade_map stems;
    struct lade_vec all;
    int rc = LADE_OK;

    lade_arena_init(&texts, mem, LADE_TAG_TEMP);
    lade_map_init(&stems, mem);
    lade_vec_init(&all, mem, LADE_TAG_TEMP, sizeof(struct series));
    for (uint64_t i = 0; i < folder->weights.count; i++)
        LADE_TRY(count_member(&all, &stems, &texts,
                              *LADE_VEC_AT(&folder->weights, const char *, i),
                              err));
    for (uint64_t i = 0; i < all.count; i++) {
        const struct series *s = LADE_VEC_AT(&all, struct series, i);
        if (s->there < s->total)
            lade_warn("%.300s: %lu of %lu files are there; what the others "
                      "hold will be missing",
                      s->stem, s->there, s->total);
    }
out:
    lade_vec_fini(&all);
    lade_map_fini(&stems);
    lade_arena_fini(&texts);
    return rc;
}
