/*
 * In: layout, number of experts, an explicit map if any. Out: which EP rank
 * holds which expert in which slot.
 *
 * Mirrors vLLM: fused_moe/config.py, FusedMoEParallelConfig.make;
 * expert_map_manager.py, determine_expert_map; eplb_state.py,
 * build_initial_global_physical_to_logical_map.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/log.h"
#include "topo/topo.h"

#define MAP_FILE_LIMIT (UINT64_C(256) << 20)
#define EXPERTS_LIMIT 1000000u

uint32_t lade_place_count(const struct lade_placement *place, uint32_t ep_rank)
{
    uint32_t each = place->physical / place->ep;

    return each + (ep_rank < place->physical % place->ep);
}

uint32_t lade_place_physical(const struct lade_placement *place,
                             uint32_t ep_rank, uint32_t slot)
{
    uint32_t each = place->physical / place->ep;
    uint32_t more = place->physical % place->ep;

    if (place->kind == LADE_PLACE_ROUND_ROBIN)
        return ep_rank + slot * place->ep;
    return ep_rank * each + (ep_rank < more ? ep_rank : more) + slot;
}

void lade_place_owner(const struct lade_placement *place, uint32_t physical,
                      uint32_t *ep_rank, uint32_t *slot)
{
    uint32_t each = place->physical / place->ep;
    uint32_t more = place->physical % place->ep;

    if (place->kind == LADE_PLACE_ROUND_ROBIN) {
        *ep_rank = physical % place->ep;
        *slot = physical / place->ep;
    } else if (physical < more * (each + 1)) {
        *ep_rank = physical / (each + 1);
        *slot = physical % (each + 1);
    } else {
        uint32_t rest = physical - more * (each + 1);
        *ep_rank = more + rest / each;
        *slot = rest % each;
    }
}

/* The two numbers of physical experts nearest to `physical` that fit: they
 * divide by ep and hold every expert. */
static void sizes_that_fit(const struct lade_placement *place,
                           uint64_t physical, uint64_t fit[2])
{
    uint64_t least = lade_round_up(place->logical, place->ep);
    uint64_t below = physical / place->ep * place->ep;

    fit[0] = below < least ? least : below;
    fit[1] = fit[0] + place->ep;
}

static int does_not_divide(const struct lade_placement *place, lade_err *err)
{
    uint64_t fit[2];

    sizes_that_fit(place, place->physical, fit);
    return lade_err_set(
        err, LADE_E_USAGE,
        "%u experts and %u redundant ones are %u, which does not divide by "
        "%u expert-parallel ranks; --redundant-experts %llu or %llu fits",
        place->logical, place->physical - place->logical, place->physical,
        place->ep, (unsigned long long)(fit[0] - place->logical),
        (unsigned long long)(fit[1] - place->logical));
}

/* The placement that takes effect (round robin has conditions). */
static void choose_kind(struct lade_placement *place,
                        const struct lade_layout *layout, uint32_t groups)
{
    const char *why = NULL;

    place->kind = LADE_PLACE_LINEAR;
    if (layout->placement != LADE_PLACE_ROUND_ROBIN)
        return;
    if (place->ep <= 1)
        why = "there is one expert-parallel rank";
    else if (groups <= 1)
        why = "the model has one expert group";
    else if (layout->expert_map != NULL)
        why = "an expert map says where they are";
    else if (place->physical != place->logical)
        why = "some experts are redundant";
    else if (layout->dp > 1)
        why = "data parallel ranks exchange tokens by an all-to-all that "
              "needs linear placement";
    else if (place->ep > place->logical)
        why = "there are more ranks than experts";
    if (why == NULL)
        place->kind = LADE_PLACE_ROUND_ROBIN;
    else
        lade_warn("experts are placed linearly, not round robin: %s", why);
}

static int alloc_map(struct lade_placement *place, lade_err *err)
{
    uint64_t count;

    if (!lade_mul_u64(place->map_layers, place->physical, &count))
        return lade_err_set(err, LADE_E_MEMORY, "expert map too large");
    place->map = lade_alloc_array(place->mem, LADE_TAG_CATALOGUE, count,
                                  sizeof(uint32_t), err);
    place->by_logical = lade_alloc_array(place->mem, LADE_TAG_CATALOGUE, count,
                                         sizeof(uint32_t), err);
    place->first =
        lade_alloc_array(place->mem, LADE_TAG_CATALOGUE,
                         place->map_layers * ((uint64_t)place->logical + 1),
                         sizeof(uint32_t), err);
    return place->map && place->by_logical && place->first ? LADE_OK
                                                           : LADE_E_MEMORY;
}

/* Counting sort of the physical ids by logical expert; `path` is where the map
 * came from (the initial one has every expert). */
static int invert(struct lade_placement *place, const char *path, lade_err *err)
{
    for (uint32_t list = 0; list < place->map_layers; list++) {
        const uint32_t *map = place->map + (size_t)list * place->physical;
        uint32_t *ids = place->by_logical + (size_t)list * place->physical;
        uint32_t *first = place->first + list * ((size_t)place->logical + 1);
        for (uint32_t p = 0; p < place->physical; p++)
            first[map[p] + 1]++;
        for (uint32_t e = 0; e < place->logical; e++) {
            if (first[e + 1] == 0)
                return lade_err_set(err, LADE_E_USAGE,
                                    "%s: list %u (of %u): expert %u is on no "
                                    "rank",
                                    path ? path : "expert map", list,
                                    place->map_layers, e);
            first[e + 1] += first[e];
        }
        for (uint32_t p = place->physical; p-- > 0;)
            ids[--first[map[p] + 1]] = p;
        /* the fill moved each start into the next entry */
        for (uint32_t e = 0; e < place->logical; e++)
            first[e] = first[e + 1];
        first[place->logical] = place->physical;
    }
    return LADE_OK;
}

static void initial_map(struct lade_placement *place)
{
    for (uint32_t p = 0; p < place->physical; p++)
        place->map[p] =
            p < place->logical ? p : (p - place->logical) % place->logical;
}

/* ---- explicit map ---- */

/* The number, text or word that stands where an expert should. */
static void found_text(const cJSON *item, char *out, size_t size)
{
    char *text = cJSON_PrintUnformatted(item);

    snprintf(out, size, "%.40s", text ? text : "?");
    cJSON_free(text);
}

/* List number `list` is the one of the list-th layer that has experts. */
static int read_list(struct lade_placement *place, uint32_t list,
                     const cJSON *items, const char *path, lade_err *err)
{
    uint32_t p = 0;

    if (!cJSON_IsArray(items) ||
        (uint32_t)cJSON_GetArraySize(items) != place->physical)
        return lade_err_set(
            err, LADE_E_USAGE,
            "%s: list %u (of %u) has %d experts, but list 0 has %u; all need "
            "the same number",
            path, list, place->map_layers, cJSON_GetArraySize(items),
            place->physical);
    for (const cJSON *item = items->child; item; item = item->next, p++) {
        uint64_t expert;
        if (!lade_json_u64(item, &expert) || expert >= place->logical) {
            uint32_t rank, slot;
            char found[48];
            lade_place_owner(place, p, &rank, &slot);
            found_text(item, found, sizeof(found));
            return lade_err_set(err, LADE_E_USAGE,
                                "%s: list %u (of %u), expert-parallel rank %u, "
                                "slot %u: %s is not an expert of 0 .. %u",
                                path, list, place->map_layers, rank, slot,
                                found, place->logical - 1);
        }
        place->map[(size_t)list * place->physical + p] = (uint32_t)expert;
    }
    return LADE_OK;
}

/* The numbers of lists and of experts in each: sets map_layers and physical.
 * cJSON counts up to INT_MAX, the file's limit is far below. */
static int measure_map(struct lade_placement *place,
                       const struct lade_layout *layout, const cJSON *root,
                       uint32_t moe_layers, lade_err *err)
{
    const char *path = layout->expert_map;
    bool per_layer = cJSON_IsArray(root) && cJSON_IsArray(root->child);
    const cJSON *list = per_layer ? root->child : root;
    uint32_t lists = per_layer ? (uint32_t)cJSON_GetArraySize(root) : 1;
    uint32_t length = (uint32_t)cJSON_GetArraySize(list);

    if (per_layer && lists != moe_layers)
        return lade_err_set(
            err, LADE_E_USAGE,
            "%s: %u lists, but %u layers of the model have experts", path,
            lists, moe_layers);
    if (!cJSON_IsArray(list) || length < place->logical)
        return lade_err_set(
            err, LADE_E_USAGE,
            "%s: a list of at least %u experts is needed, found %u", path,
            place->logical, length);
    if (layout->redundant != 0 && length != place->physical)
        return lade_err_set(
            err, LADE_E_USAGE,
            "%s: lists of %u experts, but --redundant-experts %u needs %u",
            path, length, layout->redundant, place->physical);
    if (length > 2 * EXPERTS_LIMIT)
        return lade_err_set(err, LADE_E_USAGE,
                            "%s: lists of %u experts, the limit is %u", path,
                            length, 2 * EXPERTS_LIMIT);
    if (length % place->ep != 0) {
        uint64_t fit[2];
        sizes_that_fit(place, length, fit);
        return lade_err_set(
            err, LADE_E_USAGE,
            "%s: lists of %u experts do not divide by %u expert-parallel "
            "ranks; %llu or %llu would",
            path, length, place->ep, (unsigned long long)fit[0],
            (unsigned long long)fit[1]);
    }
    place->physical = length;
    place->map_layers = lists;
    return LADE_OK;
}

static int read_map(struct lade_placement *place,
                    const struct lade_layout *layout, uint32_t moe_layers,
                    lade_err *err)
{
    cJSON *root = NULL;
    int rc = lade_json_read(layout->expert_map, MAP_FILE_LIMIT, &root, err);

    if (rc == LADE_E_CHECKPOINT) { /* the file is an option, not a weight */
        rc = LADE_E_USAGE;
        if (err != NULL)
            err->status = rc;
    }
    if (rc != LADE_OK)
        return rc;
    LADE_TRY(measure_map(place, layout, root, moe_layers, err));
    LADE_TRY(alloc_map(place, err));
    const cJSON *list = cJSON_IsArray(root->child) ? root->child : root;
    for (uint32_t i = 0; i < place->map_layers; i++, list = list->next)
        LADE_TRY(read_list(place, i, list, layout->expert_map, err));
out:
    cJSON_Delete(root);
    return rc;
}

int lade_placement_init(struct lade_placement *place,
                        const struct lade_layout *layout, uint32_t experts,
                        uint32_t groups, uint32_t moe_layers,
                        struct lade_mem *mem, lade_err *err)
{
    uint32_t share = layout->dp * layout->tp;
    bool ep = layout->ep && share > 1;
    int rc = LADE_OK;

    memset(place, 0, sizeof(*place));
    place->mem = mem;
    place->logical = place->physical = experts;
    place->ep = ep ? share : 1;
    place->moe_tp = ep ? 1 : share;
    place->map_layers = 1;
    if (experts == 0) {
        if (layout->redundant != 0 || layout->expert_map != NULL)
            return lade_err_set(
                err, LADE_E_USAGE, "the model has no experts, but %s was given",
                layout->redundant ? "--redundant-experts" : "--expert-map");
        return LADE_OK;
    }
    if (experts > EXPERTS_LIMIT || layout->redundant > EXPERTS_LIMIT)
        return lade_err_set(err, LADE_E_USAGE, "more than %u experts",
                            EXPERTS_LIMIT);
    if ((layout->redundant != 0 || layout->expert_map != NULL) && !ep)
        return lade_err_set(err, LADE_E_USAGE,
                            "%s needs expert parallelism (--ep) over more "
                            "than one rank",
                            layout->redundant ? "--redundant-experts"
                                              : "--expert-map");
    place->physical += layout->redundant;
    if (layout->redundant != 0 && place->physical % place->ep != 0)
        return does_not_divide(place, err);
    choose_kind(place, layout, groups);
    if (layout->expert_map != NULL) {
        LADE_TRY(read_map(place, layout, moe_layers, err));
    } else {
        LADE_TRY(alloc_map(place, err));
        initial_map(place);
    }
    LADE_TRY(invert(place, layout->expert_map, err));
out:
    if (rc != LADE_OK)
        lade_placement_fini(place);
    return rc;
}

void lade_placement_fini(struct lade_placement *place)
{
    lade_free(place->mem, place->map);
    lade_free(place->mem, place->first);
    lade_free(place->mem, place->by_logical);
    place->map = place->first = place->by_logical = NULL;
}
