/*
 * A model so small that every number in a test can be checked by hand:
 * w     [8,3] on a rank of tp 2: [4,3], merged of two parts a and b, each [4,3]
 *       on disk and cut by rows
 * norm  [5] whole
 * emb   [5,2] on disk, padded to 8 rows, 4 for each rank
 * e     four experts [2,2], two on each EP rank
 * bias  [3] optional, not on disk
 */
#ifndef LADE_TEST_SMALL_WORLD_H
#define LADE_TEST_SMALL_WORLD_H

#include <string.h>

#include "plan/box.h"
#include "plan/plan.h"

enum { SMALL_W, SMALL_NORM, SMALL_EMB, SMALL_E, SMALL_BIAS, SMALL_PARAMS };
enum { PART_A, PART_B, PART_NORM, PART_EMB, PART_E, PART_BIAS, SMALL_PARTS };
#define SMALL_ROWS 8u /* a, b, norm, emb, four experts */

struct small_world {
    struct lade_mem *mem;
    struct lade_layout layout;
    struct lade_placement place;
    struct lade_shards *shards;
    struct lade_catalogue *catalogue;
    struct lade_shell *shell;
    struct lade_routes *routes;
    struct lade_plan_input in;
    uint32_t node_of[2];
    lade_err err;
};

#define SMALL_POOL                                                             \
    "\0w\0norm\0emb\0e\0bias\0a\0b\0x.{e}\0llama\0LlamaForCausalLM\0dir"
#define AT_W 1
#define AT_NORM 3
#define AT_EMB 8
#define AT_E 12
#define AT_BIAS 14
#define AT_A 19
#define AT_B 21
#define AT_X 23
#define AT_FAMILY 29
#define AT_CLASS 35
#define AT_DIR 52

static inline struct lade_shell_part small_part(uint32_t name, uint32_t param,
                                                uint64_t rows, uint64_t cols)
{
    return (struct lade_shell_part){.name = name,
                                    .param = param,
                                    .ndim = cols ? 2 : 1,
                                    .shape = {rows, cols},
                                    .copies = 1,
                                    .piece = rows,
                                    .extent = rows};
}

static inline struct lade_shell *small_shell(struct lade_mem *mem,
                                             lade_err *err)
{
    struct lade_shell_param params[SMALL_PARAMS] = {
        {.name = AT_W, .ndim = 2, .shape = {4, 3}, .parts = 2},
        {.name = AT_NORM, .ndim = 1, .shape = {5}, .first_part = PART_NORM},
        {.name = AT_EMB, .ndim = 2, .shape = {4, 2}, .first_part = PART_EMB},
        {.name = AT_E,
         .ndim = 3,
         .shape = {0, 2, 2},
         .first_part = PART_E,
         .flags = LADE_PARAM_EXPERTS},
        {.name = AT_BIAS, .ndim = 1, .shape = {3}, .first_part = PART_BIAS},
    };
    struct lade_shell_part parts[SMALL_PARTS] = {
        small_part(AT_A, SMALL_W, 4, 3),
        small_part(AT_B, SMALL_W, 4, 3),
        small_part(AT_NORM, SMALL_NORM, 5, 0),
        small_part(AT_EMB, SMALL_EMB, 5, 2),
        small_part(AT_X, SMALL_E, 2, 2),
        small_part(AT_BIAS, SMALL_BIAS, 3, 0),
    };
    struct lade_shell head = {.blob.kind = LADE_BLOB_SHELL,
                              .architecture = AT_CLASS,
                              .family = AT_FAMILY,
                              .dtype = LADE_DTYPE_BF16};

    for (int i = 0; i < SMALL_PARAMS; i++) {
        params[i].dtype = LADE_DTYPE_BF16;
        if (params[i].parts == 0)
            params[i].parts = 1;
    }
    parts[PART_A].axis = parts[PART_B].axis = LADE_AXIS_TP;
    parts[PART_A].piece = parts[PART_B].piece = 2;
    parts[PART_B].start = 2;
    parts[PART_EMB].axis = LADE_AXIS_TP;
    parts[PART_EMB].piece = 4;
    parts[PART_E].experts = 4;
    parts[PART_BIAS].optional = 1;
    return lade_blob_pack(
        mem, &head, sizeof head,
        (struct lade_section[]){
            {&head.params, params, SMALL_PARAMS, sizeof *params},
            {&head.parts, parts, SMALL_PARTS, sizeof *parts},
            {&head.pool, SMALL_POOL, sizeof SMALL_POOL, 1}},
        3, err);
}

static inline void small_rows(struct lade_row *rows, struct lade_route *routes)
{
    static const struct {
        uint32_t part, expert;
        uint64_t rows, cols;
    } about[SMALL_ROWS] = {
        {PART_A, 0, 4, 3},   {PART_B, 0, 4, 3}, {PART_NORM, 0, 5, 0},
        {PART_EMB, 0, 5, 2}, {PART_E, 0, 2, 2}, {PART_E, 1, 2, 2},
        {PART_E, 2, 2, 2},   {PART_E, 3, 2, 2},
    };
    uint64_t at = 4096 * 3 + 40;

    for (uint32_t i = 0; i < SMALL_ROWS; i++) {
        uint64_t cols = about[i].cols ? about[i].cols : 1;
        rows[i] = (struct lade_row){.offset = at,
                                    .length = about[i].rows * cols * 2,
                                    .name = AT_A,
                                    .dtype = LADE_DTYPE_BF16,
                                    .ndim = about[i].cols ? 2 : 1,
                                    .shape = {about[i].rows, about[i].cols}};
        routes[i] = (struct lade_route){
            .part = about[i].part, .parts = 1, .expert = about[i].expert};
        at += rows[i].length;
    }
}

/* tp 2 with --ep: two ranks, two experts each, no redundancy. */
static inline bool small_world_make(struct small_world *w)
{
    struct lade_row rows[SMALL_ROWS];
    struct lade_route routes[SMALL_ROWS];
    struct lade_shard shard = {.name = AT_DIR, .size = 1u << 20};
    uint32_t first[] = {0, SMALL_ROWS};

    memset(w, 0, sizeof *w);
    w->err = (lade_err)LADE_ERR_INIT;
    w->mem = lade_mem_new();
    w->layout =
        (struct lade_layout){.world = 2, .tp = 2, .pp = 1, .dp = 1, .ep = true};
    if (lade_placement_init(&w->place, &w->layout, 4, 1, 1, w->mem, &w->err) !=
        LADE_OK)
        return false;
    small_rows(rows, routes);
    w->shell = small_shell(w->mem, &w->err);
    struct lade_catalogue c = {.blob.kind = LADE_BLOB_CATALOGUE,
                               .header_bytes = 100,
                               .tensor_bytes = 122};
    w->catalogue = lade_blob_pack(
        w->mem, &c, sizeof c,
        (struct lade_section[]){{&c.rows, rows, SMALL_ROWS, sizeof *rows},
                                {&c.first_row, first, 2, sizeof *first},
                                {&c.pool, SMALL_POOL, sizeof SMALL_POOL, 1}},
        3, &w->err);
    struct lade_shards f = {
        .blob.kind = LADE_BLOB_SHARDS, .dir = AT_DIR, .format = LADE_FORMAT_HF};
    w->shards = lade_blob_pack(
        w->mem, &f, sizeof f,
        (struct lade_section[]){{&f.shards, &shard, 1, sizeof shard},
                                {&f.pool, SMALL_POOL, sizeof SMALL_POOL, 1}},
        2, &w->err);
    struct lade_routes t = {.blob.kind = LADE_BLOB_ROUTES};
    w->routes =
        lade_blob_pack(w->mem, &t, sizeof t,
                       (struct lade_section[]){
                           {&t.routes, routes, SMALL_ROWS, sizeof *routes}},
                       1, &w->err);
    w->in = (struct lade_plan_input){.shards = w->shards,
                                     .catalogue = w->catalogue,
                                     .shell = w->shell,
                                     .routes = w->routes,
                                     .place = &w->place,
                                     .layout = &w->layout,
                                     .node_of = w->node_of,
                                     .nodes = 1};
    return w->shell && w->catalogue && w->shards && w->routes;
}

/* False if memory was left behind. */
static inline bool small_world_free(struct small_world *w)
{
    bool clean = true;

    lade_free(w->mem, w->catalogue);
    lade_free(w->mem, w->shards);
    lade_free(w->mem, w->shell);
    lade_free(w->mem, w->routes);
    lade_placement_fini(&w->place);
    for (int t = 0; t < LADE_TAGS; t++)
        clean = clean && lade_mem_now(w->mem, (enum lade_tag)t) == 0;
    lade_mem_free(w->mem);
    return clean;
}

#endif
