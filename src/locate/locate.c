/*
 * In: a path and a wish. Out: the shards, in natural order, with size, time
 * and identity; what the index says. Files are looked at (stat), none but the
 * index is opened; sub-folders are not entered.
 *
 * Mirrors vLLM: default_loader.py, DefaultModelLoader._prepare_weights;
 * weight_utils.py, filter_duplicate_safetensors_files. Unlike the engine, auto
 * looks at the top level only, and a name in an index may not leave the folder.
 */
#include "locate/locate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "locate/folder.h"
#include "locate/index.h"

struct locate {
    struct lade_mem *mem;
    struct lade_folder folder;
    struct lade_index_file index;
    bool use_index;
    const char *dir;
    struct lade_pool pool;  /* texts of the product */
    struct lade_vec shards; /* struct lade_shard */
    struct lade_map taken;  /* file name -> shard */
};

/* ---- single files ---- */

/* Absent, or not what it should be, is the checkpoint's fault; all else is the
 * system's. */
static int status_of(int why)
{
    bool absent =
        why == ENOENT || why == ENOTDIR || why == ELOOP || why == ENAMETOOLONG;

    return absent ? LADE_E_CHECKPOINT : LADE_E_IO;
}

static int cannot_stat(const char *path, lade_err *err)
{
    char target[1024];
    int why = errno;
    ssize_t n = why == ENOENT ? readlink(path, target, sizeof(target) - 1) : -1;

    if (n < 0)
        return lade_err_set(err, status_of(why), "%.500s: %s", path,
                            strerror(why));
    target[n] = 0;
    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "%.300s: link target missing: it leads to %.400s, "
                        "which does not exist",
                        path, target);
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : "a special file (pipe, device, socket)";
}

static int add_shard(struct locate *l, const char *name, lade_err *err)
{
    char path[PATH_MAX];
    struct stat st;
    struct lade_shard shard = {0};
    int rc;

    LADE_TRY(lade_path_join(l->dir, name, path, sizeof(path), err));
    if (stat(path, &st) != 0)
        LADE_TRY(cannot_stat(path, err));
    if (!S_ISREG(st.st_mode))
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%.500s: a file is needed, this is %s", path,
                              kind_of(st.st_mode)));
    LADE_TRY(lade_pool_add(&l->pool, name, strlen(name), &shard.name, err));
    LADE_TRY(lade_map_put(&l->taken, name, strlen(name),
                          (uint32_t)l->shards.count, NULL, NULL, err));
    shard.size = (uint64_t)st.st_size;
    shard.mtime_ns =
        (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    shard.dev = (uint64_t)st.st_dev;
    shard.ino = (uint64_t)st.st_ino;
    if (lade_vec_push(&l->shards, &shard, err) == NULL)
        rc = LADE_E_MEMORY;
out:
    return rc;
}

/* The folder of a single file, and the name in it. */
static int split(const char *path, char *dir, size_t size, const char **name,
                 lade_err *err)
{
    const char *slash = strrchr(path, '/');
    size_t length = strlen(path);
    const char *other = lade_other_format(path);

    if (length < 12 || strcmp(path + length - 12, ".safetensors") != 0)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%.500s: a folder or a .safetensors file is "
                            "needed%s%s%s",
                            path, other ? "; reading " : "", other ? other : "",
                            other ? " is not in this version" : "");
    *name = slash ? slash + 1 : path;
    snprintf(dir, size, "%.*s", slash > path ? (int)(slash - path) : 1,
             slash ? path : ".");
    return LADE_OK;
}

/* ---- the folder ---- */

static int refuse_mistral(const struct lade_folder *folder, lade_err *err)
{
    bool others = folder->weights.count > folder->consolidated;

    return lade_err_set(
        err, LADE_E_CHECKPOINT,
        "%.400s: consolidated*.safetensors and params.json are there, so "
        "format auto means mistral, which is not in this version; --format hf "
        "%s",
        folder->path,
        others ? "takes the Hugging Face files beside them"
               : "would take Hugging Face files (model*.safetensors), but "
                 "there are none");
}

static int missing_shards(const struct locate *l, lade_err *err)
{
    const struct lade_vec *weights = &l->folder.weights;
    struct lade_names missing = {0};
    struct lade_map there;
    uint64_t strays = 0;
    uint32_t place;
    int rc = LADE_OK;

    lade_map_init(&there, l->mem);
    for (uint64_t i = 0; i < weights->count; i++) {
        const char *name = *LADE_VEC_AT(weights, const char *, i);
        LADE_TRY(lade_map_put(&there, name, strlen(name), 0, NULL, NULL, err));
        strays += !lade_index_names(&l->index, name);
    }
    for (uint64_t i = 0; i < l->index.files.count; i++) {
        const char *name = lade_index_name(&l->index, i);
        if (!lade_map_get(&there, name, strlen(name), &place))
            lade_names_add(&missing, name);
    }
    if (missing.count > 0)
        LADE_TRY(lade_err_set(
            err, LADE_E_CHECKPOINT,
            LADE_INDEX_NAME " names %llu files, %llu of them absent: %s; the "
                            "folder has %llu *.safetensors; %s",
            (unsigned long long)l->index.files.count,
            (unsigned long long)missing.count, lade_names_text(&missing),
            (unsigned long long)weights->count,
            strays ? "the index may be left over from another set of files: "
                     "--ignore-index takes the files as they are"
                   : "the download is incomplete"));
out:
    lade_map_fini(&there);
    return rc;
}

/* The files that count; those beside the index get one warning. */
static int take_files(struct locate *l, lade_err *err)
{
    const struct lade_vec *weights = &l->folder.weights;
    struct lade_names strays = {0};
    int rc = LADE_OK;

    for (uint64_t i = 0; i < weights->count; i++) {
        const char *name = *LADE_VEC_AT(weights, const char *, i);
        if (l->use_index && !lade_index_names(&l->index, name))
            lade_names_add(&strays, name);
        else
            LADE_TRY(add_shard(l, name, err));
    }
    if (strays.count > 0)
        lade_warn("%llu weight file%s not named by the index: %s; not read",
                  (unsigned long long)strays.count,
                  strays.count == 1 ? " is" : "s are",
                  lade_names_text(&strays));
out:
    return rc;
}

static int read_index(struct locate *l, lade_err *err)
{
    char path[PATH_MAX];
    struct stat st;
    int rc;

    LADE_TRY(lade_path_join(l->dir, LADE_INDEX_NAME, path, sizeof(path), err));
    if (stat(path, &st) != 0)
        LADE_TRY(cannot_stat(path, err));
    LADE_TRY(lade_index_read(path, &l->index, l->mem, err));
    LADE_TRY(missing_shards(l, err));
out:
    return rc;
}

static int search_folder(struct locate *l, const struct lade_locate_wish *wish,
                         lade_err *err)
{
    int rc;

    LADE_TRY(lade_folder_read(&l->folder, l->dir, l->mem, err));
    if (wish->format == LADE_FORMAT_AUTO && l->folder.consolidated > 0 &&
        l->folder.has_params)
        LADE_TRY(refuse_mistral(&l->folder, err));
    if (l->folder.weights.count == 0)
        LADE_TRY(lade_folder_no_weights(&l->folder, err));
    l->use_index = l->folder.has_index && !wish->ignore_index;
    LADE_TRY(l->use_index ? read_index(l, err)
                          : lade_folder_warn_series(&l->folder, l->mem, err));
    LADE_TRY(take_files(l, err));
out:
    return rc;
}

/* ---- products ---- */

static int pack_index(struct locate *l, struct lade_index **index,
                      lade_err *err)
{
    struct lade_index head = {.blob.kind = LADE_BLOB_INDEX};
    const struct lade_section sections[] = {
        {&head.rows, l->index.rows.data, l->index.rows.count,
         sizeof(struct lade_index_row)},
        {&head.pool, l->index.tensors.chars.data, l->index.tensors.chars.count,
         1},
    };

    /* few files, many tensors: each file is looked up once */
    uint32_t *shard = lade_alloc_array(
        l->mem, LADE_TAG_TEMP, l->index.files.count, sizeof(*shard), err);
    if (shard == NULL)
        return LADE_E_MEMORY;
    for (uint64_t i = 0; i < l->index.files.count; i++) {
        const char *name = lade_index_name(&l->index, i);
        lade_map_get(&l->taken, name, strlen(name), &shard[i]);
    }
    for (uint64_t i = 0; i < l->index.rows.count; i++) {
        struct lade_index_row *row =
            LADE_VEC_AT(&l->index.rows, struct lade_index_row, i);
        row->shard = shard[row->shard];
    }
    lade_free(l->mem, shard);
    *index = lade_blob_pack(l->mem, &head, sizeof(head), sections, 2, err);
    return *index ? LADE_OK : LADE_E_MEMORY;
}

static int add_text(struct locate *l, const char *text, uint32_t *offset,
                    lade_err *err)
{
    return lade_pool_add(&l->pool, text, strlen(text), offset, err);
}

/* Where config.json is; "" if it is not. A dangling link counts: whoever needs
 * it then says what is wrong with it. */
static int add_config(struct locate *l, uint32_t *offset, lade_err *err)
{
    char path[PATH_MAX];
    struct stat st;
    int rc = lade_path_join(l->dir, "config.json", path, sizeof(path), err);

    if (rc != LADE_OK)
        return rc;
    return add_text(l, lstat(path, &st) == 0 ? path : "", offset, err);
}

static int pack_shards(struct locate *l, enum lade_format wish,
                       struct lade_shards **shards, lade_err *err)
{
    struct lade_shards head = {
        .blob.kind = LADE_BLOB_SHARDS,
        .format = wish == LADE_FORMAT_AUTO ? LADE_FORMAT_HF : (uint32_t)wish,
        .has_index = l->use_index};
    char path[PATH_MAX], type[128];
    uint32_t first = LADE_VEC_AT(&l->shards, struct lade_shard, 0)->name;
    int rc;

    LADE_TRY(lade_path_join(l->dir, lade_pool_get(&l->pool, first), path,
                            sizeof(path), err));
    lade_host_filesystem(NULL, path, type, sizeof(type));
    LADE_TRY(add_text(l, type, &head.filesystem, err));
    LADE_TRY(add_text(l, l->dir, &head.dir, err));
    LADE_TRY(add_text(l, l->use_index ? LADE_INDEX_NAME : "", &head.index_name,
                      err));
    LADE_TRY(add_config(l, &head.config, err));
    const struct lade_section sections[] = {
        {&head.shards, l->shards.data, l->shards.count,
         sizeof(struct lade_shard)},
        {&head.pool, l->pool.chars.data, l->pool.chars.count, 1},
    };
    *shards = lade_blob_pack(l->mem, &head, sizeof(head), sections, 2, err);
    if (*shards == NULL)
        rc = LADE_E_MEMORY;
out:
    return rc;
}

/* ---- the gate ---- */

static int locate_init(struct locate *l, struct lade_mem *mem, lade_err *err)
{
    memset(l, 0, sizeof(*l));
    l->mem = mem;
    lade_vec_init(&l->shards, mem, LADE_TAG_TEMP, sizeof(struct lade_shard));
    lade_map_init(&l->taken, mem);
    return lade_pool_init(&l->pool, mem, LADE_TAG_TEMP, err);
}

static void locate_fini(struct locate *l)
{
    lade_map_fini(&l->taken); /* its keys lie in folder */
    lade_folder_fini(&l->folder);
    lade_index_fini(&l->index);
    lade_vec_fini(&l->shards);
    lade_pool_fini(&l->pool);
}

int lade_locate(const char *path, const struct lade_locate_wish *wish,
                struct lade_mem *mem, struct lade_shards **shards,
                struct lade_index **index, lade_err *err)
{
    struct lade_shards *product = NULL;
    struct lade_index *said = NULL;
    struct locate l;
    const char *name = NULL;
    char dir[PATH_MAX];
    struct stat st;
    int rc;

    LADE_TRY(locate_init(&l, mem, err));
    l.dir = path;
    if (stat(path, &st) != 0)
        LADE_TRY(cannot_stat(path, err));
    if (S_ISDIR(st.st_mode)) {
        LADE_TRY(search_folder(&l, wish, err));
    } else {
        LADE_TRY(split(path, dir, sizeof(dir), &name, err));
        l.dir = dir;
        LADE_TRY(add_shard(&l, name, err));
    }
    if (l.use_index)
        LADE_TRY(pack_index(&l, &said, err));
    LADE_TRY(pack_shards(&l, wish->format, &product, err));
    *shards = product;
    *index = said;
    said = NULL;
out:
    lade_free(mem, said);
    locate_fini(&l);
    return rc;
}

int lade_shard_path(const struct lade_shards *shards, uint32_t i, char *out,
                    size_t size, lade_err *err)
{
    const struct lade_shard *shard =
        &LADE_ITEMS(shards, shards, struct lade_shard)[i];

    return lade_path_join(LADE_STRING(shards, pool, shards->dir),
                          LADE_STRING(shards, pool, shard->name), out, size,
                          err);
}
