/*
 * In: model.safetensors.index.json. Out: pairs of tensor and file, all files
 * plain names inside the folder. Of the index only weight_map counts.
 *
 * Mirrors vLLM: weight_utils.py, filter_duplicate_safetensors_files; names
 * that leave the folder are refused instead of being looked for.
 */
#include "locate/index.h"

#include <string.h>

#include "base/json.h"

#define INDEX_LIMIT (UINT64_C(1) << 30)

/* What makes a file name unacceptable; NULL if nothing. */
static const char *name_fault(const char *file)
{
    size_t length = strlen(file);

    if (length == 0)
        return "an empty name";
    if (file[0] == '/')
        return "an absolute path";
    if (strchr(file, '/') != NULL || strchr(file, '\\') != NULL)
        return "a name with a separator";
    if (strstr(file, "..") != NULL)
        return "a name with '..'";
    if (file[0] == '.')
        return "a hidden file";
    if (length < 12 || strcmp(file + length - 12, ".safetensors") != 0)
        return "not a .safetensors file";
    return NULL;
}

static int read_entry(const char *path, const cJSON *entry, lade_err *err)
{
    if (!cJSON_IsString(entry))
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%s: tensor %.200s: its file is not a text", path,
                            entry->string);
    const char *fault = name_fault(entry->valuestring);
    if (fault == NULL)
        return LADE_OK;
    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "%s: tensor %.200s is said to be in '%.200s', %s; "
                        "only names of .safetensors files in the same folder "
                        "are accepted",
                        path, entry->string, entry->valuestring, fault);
}

static int add(struct lade_index_file *index, const cJSON *entry, lade_err *err)
{
    const char *file = entry->valuestring;
    struct lade_index_row row = {.shard = (uint32_t)index->files.count};
    uint32_t name;
    bool fresh;
    int rc;

    LADE_TRY(lade_map_put(&index->known, file, strlen(file), row.shard,
                          &row.shard, &fresh, err));
    if (fresh) {
        LADE_TRY(lade_pool_add(&index->names, file, strlen(file), &name, err));
        if (lade_vec_push(&index->files, &name, err) == NULL)
            LADE_TRY(LADE_E_MEMORY);
    }
    LADE_TRY(lade_pool_add(&index->tensors, entry->string,
                           strlen(entry->string), &row.name, err));
    if (lade_vec_push(&index->rows, &row, err) == NULL)
        rc = LADE_E_MEMORY;
out:
    return rc;
}

/* The map's keys were texts of the JSON tree; from here on they are those of
 * the pool, which grows no more. */
static int own_keys(struct lade_index_file *index, lade_err *err)
{
    struct lade_map known;
    int rc = LADE_OK;

    lade_map_init(&known, index->rows.mem);
    for (uint64_t i = 0; rc == LADE_OK && i < index->files.count; i++) {
        const char *name = lade_index_name(index, i);
        rc = lade_map_put(&known, name, strlen(name), (uint32_t)i, NULL, NULL,
                          err);
    }
    lade_map_fini(&index->known);
    index->known = known;
    return rc;
}

static int init(struct lade_index_file *index, struct lade_mem *mem,
                lade_err *err)
{
    int rc;

    memset(index, 0, sizeof(*index));
    lade_map_init(&index->known, mem);
    lade_vec_init(&index->rows, mem, LADE_TAG_TEMP,
                  sizeof(struct lade_index_row));
    lade_vec_init(&index->files, mem, LADE_TAG_TEMP, sizeof(uint32_t));
    LADE_TRY(lade_pool_init(&index->names, mem, LADE_TAG_TEMP, err));
    LADE_TRY(lade_pool_init(&index->tensors, mem, LADE_TAG_TEMP, err));
out:
    return rc;
}

int lade_index_read(const char *path, struct lade_index_file *index,
                    struct lade_mem *mem, lade_err *err)
{
    cJSON *root = NULL;
    int rc;

    LADE_TRY(init(index, mem, err));
    LADE_TRY(lade_json_read(path, INDEX_LIMIT, &root, err));
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(root, "weight_map");
    if (!cJSON_IsObject(map))
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%s: it has no object weight_map", path));
    if (map->child == NULL)
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%s: its weight_map is empty", path));
    for (const cJSON *entry = map->child; entry; entry = entry->next) {
        LADE_TRY(read_entry(path, entry, err));
        LADE_TRY(add(index, entry, err));
    }
    LADE_TRY(own_keys(index, err));
out:
    cJSON_Delete(root);
    return rc;
}

void lade_index_fini(struct lade_index_file *index)
{
    lade_map_fini(&index->known);
    lade_vec_fini(&index->rows);
    lade_vec_fini(&index->files);
    lade_pool_fini(&index->names);
    lade_pool_fini(&index->tensors);
}

const char *lade_index_name(const struct lade_index_file *index, uint64_t i)
{
    return lade_pool_get(&index->names,
                         *LADE_VEC_AT(&index->files, uint32_t, i));
}

bool lade_index_names(const struct lade_index_file *index, const char *file)
{
    uint32_t place;

    return lade_map_get(&index->known, file, strlen(file), &place);
}
