/*
 * In: model.safetensors.index.json. Out: pairs of tensor and file, all of them
 * plain names inside the folder.
 */
#include "locate/index.h"

#include <string.h>

#include "base/json.h"
#include "base/map.h"

#define INDEX_LIMIT (UINT64_C(1) << 30)

static int bad_file_name(const char *path, const char *tensor, const char *file,
                         const char *why, lade_err *err)
{
    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "%s: tensor %.200s is said to be in '%.200s', %s; "
                        "only plain file names are accepted",
                        path, tensor, file, why);
}

static int check_name(const char *path, const char *tensor, const char *file,
                      lade_err *err)
{
    if (file[0] == 0)
        return bad_file_name(path, tensor, file, "an empty name", err);
    if (file[0] == '/')
        return bad_file_name(path, tensor, file, "an absolute path", err);
    if (strchr(file, '/') != NULL || strchr(file, '\\') != NULL)
        return bad_file_name(path, tensor, file, "a path with a separator",
                             err);
    if (strstr(file, "..") != NULL)
        return bad_file_name(path, tensor, file, "a name with '..'", err);
    return LADE_OK;
}

static int add(struct lade_index_file *index, struct lade_map *known,
               const cJSON *entry, lade_err *err)
{
    const char *file = entry->valuestring;
    struct lade_index_row row;
    uint32_t name;
    bool fresh;
    int rc;

    row.shard = (uint32_t)index->files.count;
    LADE_TRY(lade_map_put(known, file, strlen(file), row.shard, &row.shard,
                          &fresh, err));
    if (fresh) {
        LADE_TRY(lade_pool_add(index->names, file, strlen(file), &name, err));
        if (lade_vec_push(&index->files, &name, err) == NULL)
            LADE_TRY(LADE_E_MEMORY);
    }
    LADE_TRY(lade_pool_add(index->pool, entry->string, strlen(entry->string),
                           &row.name, err));
    if (lade_vec_push(&index->rows, &row, err) == NULL)
        rc = LADE_E_MEMORY;
out:
    return rc;
}

int lade_index_read(const char *path, struct lade_index_file *index,
                    struct lade_mem *mem, lade_err *err)
{
    cJSON *root = NULL;
    struct lade_map known;
    int rc;

    lade_map_init(&known, mem);
    LADE_TRY(lade_json_read(path, INDEX_LIMIT, &root, err));
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(root, "weight_map");
    if (!cJSON_IsObject(map))
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%s: no object weight_map in it", path));
    if (map->child == NULL)
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%s: its weight_map is empty", path));
    for (const cJSON *entry = map->child; entry; entry = entry->next) {
        if (!cJSON_IsString(entry))
            LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                                  "%s: tensor %.200s: its file is not a text",
                                  path, entry->string));
        LADE_TRY(check_name(path, entry->string, entry->valuestring, err));
        LADE_TRY(add(index, &known, entry, err));
    }
out:
    lade_map_fini(&known);
    cJSON_Delete(root);
    return rc;
}
