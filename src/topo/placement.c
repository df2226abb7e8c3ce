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

/* Numbers near `physical` that divide by ep, as "8 or 16 redundant". */
static int does_not_divide(const struct lade_placement *place, lade_err *err)
{
    uint32_t ep = place->ep;
    uint64_t above = lade_round_up(place->physical, ep);
    uint64_t least = lade_round_up(place->logical, ep);
    uint64_t below = above >= ep ? above - ep : 0;

    if (below < least)
        below = above;
    return lade_err_set(
        err, LADE_E_USAGE,
        "%u experts and %u redundant ones are %u, which does not divide by "
        "%u expert-parallel ranks; --redundant-experts %llu or %llu fits",
        place->logical, place->physical - place->logical, place->physical, ep,
        (unsigned long long)(below - place->logical),
        (unsigned long long)((below == above ? above + ep : above) -
                             place->logical));
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
    else if (place->physical != place->logical || layout->expert_map != NULL)
        why = "experts are redundant";
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
                         (uint64_t)place->map_layers * (place->logical + 1),
                         sizeof(uint32_t), err);
    return place->map && place->by_logical && place->first ? LADE_OK
                                                           : LADE_E_MEMORY;
}

/* Counting sort of the physical ids by logical expert. */
static int invert(struct lade_placement *place, lade_err *err)
{
    for (uint32_t list = 0; list < place->map_layers; list++) {
        const uint32_t *map = place->map + (size_t)list * place->physical;
        uint32_t *ids = place->by_logical + (size_t)list * place->physical;
        uint32_t *first = place->first + (size_t)list * (place->logical + 1);
        for (uint32_t p = 0; p < place->physical; p++)
            first[map[p] + 1]++;
        for (uint32_t e = 0; e < place->logical; e++) {
            if (first[e + 1] == 0)
                return lade_err_set(err, LADE_E_USAGE,
                                    "expert map: list %u: expert %u is on no "
                                    "rank",
                                    list, e);
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

static int read_list(struct lade_placement *place, uint32_t list,
                     const cJSON *items, const char *path, lade_err *err)
{
    uint32_t p = 0;

    if (!cJSON_IsArray(items) ||
        (uint32_t)cJSON_GetArraySize(items) != place->physical)
        return lade_err_set(
            err, LADE_E_USAGE,
            "%s: list %u has %d experts, but %u physical experts are needed",
            path, list, cJSON_GetArraySize(items), place->physical);
    for (const cJSON *item = items->child; item; item = item->next, p++) {
        uint64_t expert;
        if (!lade_json_u64(item, &expert) || expert >= place->logical) {
            uint32_t rank, slot;
            lade_place_owner(place, p, &rank, &slot);
            return lade_err_set(
                err, LADE_E_USAGE,
                "%s: list %u, rank %u, slot %u: not an expert of 0 .. %u", path,
                list, rank, slot, place->logical - 1);
        }
        place->map[(size_t)list * place->physical + p] = (uint32_t)expert;
    }
    return LADE_OK;
}

static int read_map(struct lade_placement *place,
                    const struct lade_layout *layout, uint32_t moe_layers,
                    lade_err *err)
{
    const char *path = layout->expert_map;
    cJSON *root = NULL;
    int rc = lade_json_read(path, MAP_FILE_LIMIT, &root, err);

    if (rc != LADE_OK) {
        if (err != NULL && err->status == LADE_E_CHECKPOINT)
            err->status = LADE_E_USAGE;
        return err ? err->status : rc;
    }
    bool per_layer = cJSON_IsArray(root) && cJSON_IsArray(root->child);
    const cJSON *list = per_layer ? root->child : root;
    uint32_t lists = per_layer ? (uint32_t)cJSON_GetArraySize(root) : 1;
    if (per_layer && lists != moe_layers)
        LADE_TRY(lade_err_set(
            err, LADE_E_USAGE,
            "%s: %u lists, but %u layers of the model have experts", path,
            lists, moe_layers));
    uint32_t length = (uint32_t)cJSON_GetArraySize(list);
    if (!cJSON_IsArray(list) || length < place->logical)
        LADE_TRY(lade_err_set(
            err, LADE_E_USAGE,
            "%s: a list of at least %u experts is needed, found %u", path,
            place->logical, length));
    if (layout->redundant != 0 && length != place->physical)
        LADE_TRY(lade_err_set(
            err, LADE_E_USAGE,
            "%s: lists of %u experts, but --redundant-experts %u needs %u",
            path, length, layout->redundant, place->physical));
    place->physical = length;
    place->map_layers = lists;
    if (place->physical % place->ep != 0)
        LADE_TRY(does_not_divide(place, err));
    LADE_TRY(alloc_map(place, err));
    for (uint32_t i = 0; i < lists; i++, list = list->next)
        LADE_TRY(read_list(place, i, list, path, err));
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
    LADE_TRY(invert(place, err));
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
