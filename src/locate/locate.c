/*
 * In: a path and a wish. Out: the shards, in natural order, with size, time
 * and identity; what the index says. Only names are looked at.
 *
 * Mirrors vLLM: default_loader.py, DefaultModelLoader._prepare_weights;
 * weight_utils.py, filter_duplicate_safetensors_files.
 */
#include "locate/locate.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "locate/index.h"

#define INDEX_NAME "model.safetensors.index.json"
#define SHOWN 5

struct found {
    struct lade_mem *mem;
    const char *dir;
    struct lade_pool pool;  /* file names, then other texts of the product */
    struct lade_vec names;  /* uint32_t: *.safetensors of the folder */
    struct lade_vec shards; /* struct lade_shard */
    struct lade_pool tensors;
    struct lade_index_file index;
    uint32_t *shard_of_file; /* position in index.files -> shard */
    bool has_index, has_consolidated, has_params, has_other;
    char others[256]; /* some names, for the error when nothing fits */
};

static const char *name_of(const struct found *f, uint32_t offset)
{
    return lade_pool_get(&f->pool, offset);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static int full_path(const char *dir, const char *name, char *out, size_t size,
                     lade_err *err)
{
    size_t n = strlen(dir);
    const char *slash = n > 0 && dir[n - 1] == '/' ? "" : "/";
    int written = snprintf(out, size, "%s%s%s", dir, slash, name);

    if (written < 0 || (size_t)written >= size)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%.200s...: the path is too long", dir);
    return LADE_OK;
}

/* ---- what is in the folder ---- */

static void note_other(struct found *f, const char *name)
{
    size_t used = strlen(f->others);

    if (name[0] == '.' || used + strlen(name) + 3 > sizeof(f->others))
        return;
    snprintf(f->others + used, sizeof(f->others) - used, "%s%s",
             used ? ", " : "", name);
}

static int note(struct found *f, const char *name, lade_err *err)
{
    uint32_t offset;

    if (strcmp(name, INDEX_NAME) == 0)
        f->has_index = true;
    if (strcmp(name, "params.json") == 0)
        f->has_params = true;
    if (name[0] == '.' || !ends_with(name, ".safetensors")) {
        if (ends_with(name, ".bin") || ends_with(name, ".pt") ||
            ends_with(name, ".pth") || ends_with(name, ".gguf"))
            f->has_other = true;
        note_other(f, name);
        return LADE_OK;
    }
    if (strncmp(name, "consolidated", 12) == 0)
        f->has_consolidated = true;
    int rc = lade_pool_add(&f->pool, name, strlen(name), &offset, err);
    if (rc == LADE_OK && lade_vec_push(&f->names, &offset, err) == NULL)
        rc = LADE_E_MEMORY;
    return rc;
}

static int list_folder(struct found *f, lade_err *err)
{
    DIR *dir = opendir(f->dir);
    int rc = LADE_OK;

    if (dir == NULL)
        return lade_err_set(
            err,
            errno == ENOENT || errno == ENOTDIR ? LADE_E_CHECKPOINT : LADE_E_IO,
            "%s: %s", f->dir, strerror(errno));
    errno = 0;
    for (struct dirent *e; rc == LADE_OK && (e = readdir(dir)) != NULL;
         errno = 0)
        rc = note(f, e->d_name, err);
    if (rc == LADE_OK && errno != 0)
        rc = lade_err_set(err, LADE_E_IO, "%s: %s", f->dir, strerror(errno));
    closedir(dir);
    return rc;
}

static int nothing_here(const struct found *f, lade_err *err)
{
    if (f->has_other)
        return lade_err_set(
            err, LADE_E_CHECKPOINT,
            "%s: no *.safetensors, only %s; .bin, .pt and .gguf weights are "
            "not in this version",
            f->dir, f->others);
    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "%s: no weights (*.safetensors); found %s", f->dir,
                        f->others[0] ? f->others : "nothing");
}

static int resolve_format(const struct found *f, enum lade_format wish,
                          lade_err *err)
{
    if (wish == LADE_FORMAT_AUTO && f->has_consolidated && f->has_params)
        return lade_err_set(
            err, LADE_E_CHECKPOINT,
            "%s: consolidated*.safetensors and params.json are the mistral "
            "format, which is not in this version; --format hf takes the "
            "Hugging Face files beside them",
            f->dir);
    return f->names.count > 0 ? LADE_OK : nothing_here(f, err);
}

/* ---- shards ---- */

static int cannot_stat(const char *path, lade_err *err)
{
    struct stat link;
    int why = errno;

    if (why == ENOENT && lstat(path, &link) == 0 && S_ISLNK(link.st_mode)) {
        char target[1024];
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = 0;
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%s: link target missing: %s", path, target);
    }
    return lade_err_set(err, why == ENOENT ? LADE_E_CHECKPOINT : LADE_E_IO,
                        "%s: %s", path, strerror(why));
}

static int add_shard(struct found *f, uint32_t name, lade_err *err)
{
    char path[4096];
    struct stat st;
    int rc = full_path(f->dir, name_of(f, name), path, sizeof(path), err);

    if (rc != LADE_OK)
        return rc;
    if (stat(path, &st) != 0)
        return cannot_stat(path, err);
    if (!S_ISREG(st.st_mode))
        return lade_err_set(err, LADE_E_CHECKPOINT, "%s: not a file but a %s",
                            path,
                            S_ISDIR(st.st_mode) ? "folder" : "special file");
    struct lade_shard shard = {
        .name = name,
        .size = (uint64_t)st.st_size,
        .mtime_ns =
            (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
        .dev = (uint64_t)st.st_dev,
        .ino = (uint64_t)st.st_ino,
    };
    return lade_vec_push(&f->shards, &shard, err) ? LADE_OK : LADE_E_MEMORY;
}

static const struct found *sorting; /* qsort has no context; rank 0 only */

static int by_name(const void *a, const void *b)
{
    return lade_natural_compare(name_of(sorting, *(const uint32_t *)a),
                                name_of(sorting, *(const uint32_t *)b));
}

static bool in_list(const struct found *f, const struct lade_vec *list,
                    const struct lade_pool *pool, const char *name)
{
    for (uint64_t i = 0; i < list->count; i++)
        if (strcmp(lade_pool_get(pool, *LADE_VEC_AT(list, uint32_t, i)),
                   name) == 0)
            return true;
    (void)f;
    return false;
}

static int missing_shards(const struct found *f, lade_err *err)
{
    char list[512] = "";
    size_t used = 0;
    int missing = 0;

    for (uint64_t i = 0; i < f->index.files.count; i++) {
        const char *name = lade_pool_get(
            f->index.names, *LADE_VEC_AT(&f->index.files, uint32_t, i));
        if (in_list(f, &f->names, &f->pool, name))
            continue;
        if (missing++ >= SHOWN)
            continue;
        int n = snprintf(list + used, sizeof(list) - used, "%s%s",
                         used ? ", " : "", name);
        used += n > 0 && (size_t)n < sizeof(list) - used ? (size_t)n : 0;
    }
    if (missing == 0)
        return LADE_OK;
    return lade_err_set(
        err, LADE_E_CHECKPOINT,
        "%s names %llu files, %d of them are not there: %s%s; %llu weight "
        "files are in the folder (an incomplete download, or a left-over "
        "index: --ignore-index takes the files as they are)",
        INDEX_NAME, (unsigned long long)f->index.files.count, missing, list,
        missing > SHOWN ? ", ..." : "", (unsigned long long)f->names.count);
}

/* Files beside those of the index are never opened; one warning. */
static void warn_strays(const struct found *f)
{
    char list[256] = "";
    size_t used = 0;
    int strays = 0;

    for (uint64_t i = 0; i < f->names.count; i++) {
        const char *name = name_of(f, *LADE_VEC_AT(&f->names, uint32_t, i));
        if (in_list(f, &f->index.files, f->index.names, name))
            continue;
        if (strays++ >= 3)
            continue;
        int n = snprintf(list + used, sizeof(list) - used, "%s%s",
                         used ? ", " : "", name);
        used += n > 0 && (size_t)n < sizeof(list) - used ? (size_t)n : 0;
    }
    if (strays > 0)
        lade_warn("%d weight file%s not named by the index: %s%s; not read",
                  strays, strays == 1 ? " is" : "s are", list,
                  strays > 3 ? ", ..." : "");
}

static int choose_shards(struct found *f, bool use_index, lade_err *err)
{
    int rc = LADE_OK;

    sorting = f;
    if (f->names.count > 0)
        qsort(f->names.data, f->names.count, sizeof(uint32_t), by_name);
    sorting = NULL;
    if (use_index) {
        rc = missing_shards(f, err);
        if (rc == LADE_OK)
            warn_strays(f);
    }
    for (uint64_t i = 0; rc == LADE_OK && i < f->names.count; i++) {
        uint32_t name = *LADE_VEC_AT(&f->names, uint32_t, i);
        if (use_index &&
            !in_list(f, &f->index.files, f->index.names, name_of(f, name)))
            continue;
        rc = add_shard(f, name, err);
    }
    return rc;
}

/* ---- products ---- */

static int pack_index(struct found *f, struct lade_index **index, lade_err *err)
{
    struct lade_index head = {.blob.kind = LADE_BLOB_INDEX};
    const struct lade_section sections[] = {
        {&head.rows, f->index.rows.data, f->index.rows.count,
         sizeof(struct lade_index_row)},
        {&head.pool, f->tensors.chars.data, f->tensors.chars.count, 1},
    };

    for (uint64_t i = 0; i < f->index.rows.count; i++) {
        struct lade_index_row *row =
            LADE_VEC_AT(&f->index.rows, struct lade_index_row, i);
        const char *file =
            lade_pool_get(f->index.names,
                          *LADE_VEC_AT(&f->index.files, uint32_t, row->shard));
        /* few files, many tensors: look up each file once */
        if (f->shard_of_file[row->shard] == UINT32_MAX)
            for (uint32_t s = 0; s < f->shards.count; s++)
                if (strcmp(
                        name_of(f, LADE_VEC_AT(&f->shards, struct lade_shard, s)
                                       ->name),
                        file) == 0)
                    f->shard_of_file[row->shard] = s;
        row->shard = f->shard_of_file[row->shard];
    }
    *index = lade_blob_pack(f->mem, &head, sizeof(head), sections, 2, err);
    return *index ? LADE_OK : LADE_E_MEMORY;
}

static int add_text(struct found *f, const char *text, uint32_t *offset,
                    lade_err *err)
{
    return lade_pool_add(&f->pool, text, strlen(text), offset, err);
}

static int pack_shards(struct found *f, bool use_index,
                       struct lade_shards **shards, lade_err *err)
{
    struct lade_shards head = {.blob.kind = LADE_BLOB_SHARDS,
                               .format = LADE_FORMAT_HF,
                               .has_index = use_index};
    char path[4096], type[128];
    int rc;

    LADE_TRY(full_path(
        f->dir, name_of(f, LADE_VEC_AT(&f->shards, struct lade_shard, 0)->name),
        path, sizeof(path), err));
    lade_host_filesystem(NULL, path, type, sizeof(type));
    LADE_TRY(add_text(f, type, &head.filesystem, err));
    LADE_TRY(add_text(f, f->dir, &head.dir, err));
    LADE_TRY(add_text(f, use_index ? INDEX_NAME : "", &head.index_name, err));
    LADE_TRY(full_path(f->dir, "config.json", path, sizeof(path), err));
    LADE_TRY(
        add_text(f, access(path, F_OK) == 0 ? path : "", &head.config, err));
    const struct lade_section sections[] = {
        {&head.shards, f->shards.data, f->shards.count,
         sizeof(struct lade_shard)},
        {&head.pool, f->pool.chars.data, f->pool.chars.count, 1},
    };
    *shards = lade_blob_pack(f->mem, &head, sizeof(head), sections, 2, err);
    if (*shards == NULL)
        rc = LADE_E_MEMORY;
out:
    return rc;
}

/* ---- the gate ---- */

static int found_init(struct found *f, struct lade_mem *mem, lade_err *err)
{
    int rc;

    memset(f, 0, sizeof(*f));
    f->mem = mem;
    f->index.pool = &f->tensors;
    f->index.names = &f->pool;
    lade_vec_init(&f->names, mem, LADE_TAG_TEMP, sizeof(uint32_t));
    lade_vec_init(&f->shards, mem, LADE_TAG_TEMP, sizeof(struct lade_shard));
    lade_vec_init(&f->index.rows, mem, LADE_TAG_TEMP,
                  sizeof(struct lade_index_row));
    lade_vec_init(&f->index.files, mem, LADE_TAG_TEMP, sizeof(uint32_t));
    LADE_TRY(lade_pool_init(&f->pool, mem, LADE_TAG_TEMP, err));
    LADE_TRY(lade_pool_init(&f->tensors, mem, LADE_TAG_TEMP, err));
out:
    return rc;
}

static void found_fini(struct found *f)
{
    lade_vec_fini(&f->names);
    lade_vec_fini(&f->shards);
    lade_vec_fini(&f->index.rows);
    lade_vec_fini(&f->index.files);
    lade_pool_fini(&f->pool);
    lade_pool_fini(&f->tensors);
    lade_free(f->mem, f->shard_of_file);
}

static int read_index(struct found *f, lade_err *err)
{
    char path[4096];
    int rc = full_path(f->dir, INDEX_NAME, path, sizeof(path), err);

    if (rc == LADE_OK)
        rc = lade_index_read(path, &f->index, f->mem, err);
    if (rc != LADE_OK)
        return rc;
    f->shard_of_file = lade_alloc_array(
        f->mem, LADE_TAG_TEMP, f->index.files.count, sizeof(uint32_t), err);
    if (f->shard_of_file == NULL)
        return LADE_E_MEMORY;
    memset(f->shard_of_file, 0xff, f->index.files.count * sizeof(uint32_t));
    return LADE_OK;
}

/* A single file: its folder and itself. */
static int one_file(struct found *f, const char *path, char *dir, size_t size,
                    lade_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    uint32_t offset;

    if (!ends_with(name, ".safetensors"))
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%s: a folder or a .safetensors file is needed",
                            path);
    snprintf(dir, size, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    if (dir[0] == 0)
        snprintf(dir, size, "/");
    f->dir = dir;
    int rc = lade_pool_add(&f->pool, name, strlen(name), &offset, err);
    return rc == LADE_OK ? add_shard(f, offset, err) : rc;
}

int lade_locate(const char *path, const struct lade_locate_wish *wish,
                struct lade_mem *mem, struct lade_shards **shards,
                struct lade_index **index, lade_err *err)
{
    struct lade_shards *product = NULL;
    struct lade_index *said = NULL;
    struct found f;
    char dir[4096];
    struct stat st;
    bool use_index = false;
    int rc;

    LADE_TRY(found_init(&f, mem, err));
    f.dir = path;
    if (strlen(path) >= sizeof(dir))
        LADE_TRY(lade_err_set(err, LADE_E_CHECKPOINT,
                              "%.200s...: the path is too long", path));
    if (stat(path, &st) != 0)
        LADE_TRY(cannot_stat(path, err));
    if (!S_ISDIR(st.st_mode)) {
        LADE_TRY(one_file(&f, path, dir, sizeof(dir), err));
    } else {
        LADE_TRY(list_folder(&f, err));
        LADE_TRY(resolve_format(&f, wish->format, err));
        use_index = f.has_index && !wish->ignore_index;
        if (use_index)
            LADE_TRY(read_index(&f, err));
        LADE_TRY(choose_shards(&f, use_index, err));
    }
    if (use_index)
        LADE_TRY(pack_index(&f, &said, err));
    LADE_TRY(pack_shards(&f, use_index, &product, err));
    *shards = product;
    *index = said;
    said = NULL;
out:
    lade_free(mem, said);
    found_fini(&f);
    return rc;
}

int lade_shard_path(const struct lade_shards *shards, uint32_t i, char *out,
                    size_t size, lade_err *err)
{
    const struct lade_shard *shard =
        &LADE_ITEMS(shards, shards, struct lade_shard)[i];

    return full_path(LADE_STRING(shards, pool, shards->dir),
                     LADE_STRING(shards, pool, shard->name), out, size, err);
}
