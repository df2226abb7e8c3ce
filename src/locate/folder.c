/*
 * In: a folder. Out: the names of its weight files in natural order, and of
 * the other files for messages. Shell-like: a name that starts with a dot is
 * never a weight file, case counts.
 *
 * Mirrors vLLM: default_loader.py, DefaultModelLoader._prepare_weights;
 * weight_utils.py, filter_files_not_needed_for_inference.
 */
#include "locate/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

const char *lade_other_format(const char *name)
{
    /* left by a training run, never weights */
    static const char *const training[] = {"training_args.bin", "optimizer.bin",
                                           "optimizer.pt", "scheduler.pt",
                                           "scaler.pt"};
    static const char *const formats[][2] = {
        {".bin", "PyTorch .bin"},
        {".pt", "PyTorch .pt"},
        {".pth", "PyTorch .pth"},
        {".gguf", "GGUF"},
        {".tensors", "tensorizer"},
        {".h5", "HDF5"},
        {".hdf5", "HDF5"},
        {".npz", "NumPy .npz"},
        {".msgpack", "Flax msgpack"},
    };

    for (size_t i = 0; i < sizeof(training) / sizeof(training[0]); i++)
        if (ends_with(name, training[i]))
            return NULL;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (ends_with(name, formats[i][0]))
            return formats[i][1];
    return NULL;
}

int lade_path_join(const char *dir, const char *name, char *out, size_t size,
                   lade_err *err)
{
    size_t n = strlen(dir);
    const char *slash = n > 0 && dir[n - 1] == '/' ? "" : "/";
    int written = snprintf(out, size, "%s%s%s", dir, slash, name);

    if (written < 0 || (size_t)written >= size)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%.200s.../%.200s: the path is longer than %zu "
                            "bytes",
                            dir, name, size - 1);
    return LADE_OK;
}

/* ---- names in messages ---- */

void lade_names_add(struct lade_names *names, const char *name)
{
    size_t used = strlen(names->text);

    if (names->count++ < LADE_NAMES_SHOWN)
        snprintf(names->text + used, sizeof(names->text) - used, "%s%.80s%s",
                 used ? ", " : "", name, strlen(name) > 80 ? "..." : "");
}

const char *lade_names_text(struct lade_names *names)
{
    size_t used = strlen(names->text);

    if (names->count > LADE_NAMES_SHOWN)
        snprintf(names->text + used, sizeof(names->text) - used,
                 " and %llu more",
                 (unsigned long long)names->count - LADE_NAMES_SHOWN);
    return names->text;
}

/* ---- the listing ---- */

static int note(struct lade_folder *folder, const char *name, lade_err *err)
{
    if (name[0] == '.')
        return LADE_OK;
    bool weights = ends_with(name, ".safetensors");
    const char *copy = lade_arena_strdup(&folder->texts, name, err);
    if (copy == NULL ||
        lade_vec_push(weights ? &folder->weights : &folder->others, &copy,
                      err) == NULL)
        return LADE_E_MEMORY;
    if (weights && strncmp(name, "consolidated", 12) == 0)
        folder->consolidated++;
    if (strcmp(name, LADE_INDEX_NAME) == 0)
        folder->has_index = true;
    if (strcmp(name, "params.json") == 0)
        folder->has_params = true;
    return LADE_OK;
}

static int by_name(const void *a, const void *b)
{
    return lade_natural_compare(*(const char *const *)a,
                                *(const char *const *)b);
}

static void sort(struct lade_vec *names)
{
    if (names->count > 1)
        qsort(names->data, names->count, sizeof(const char *), by_name);
}

int lade_folder_read(struct lade_folder *folder, const char *path,
                     struct lade_mem *mem, lade_err *err)
{
    int rc = LADE_OK;

    *folder = (struct lade_folder){.path = path};
    lade_arena_init(&folder->texts, mem, LADE_TAG_TEMP);
    lade_vec_init(&folder->weights, mem, LADE_TAG_TEMP, sizeof(const char *));
    lade_vec_init(&folder->others, mem, LADE_TAG_TEMP, sizeof(const char *));
    DIR *dir = opendir(path);
    if (dir == NULL)
        return lade_err_set(err, LADE_E_IO, "%s: cannot list the folder: %s",
                            path, strerror(errno));
    errno = 0;
    for (struct dirent *e; rc == LADE_OK && (e = readdir(dir)) != NULL;
         errno = 0)
        rc = note(folder, e->d_name, err);
    if (rc == LADE_OK && errno != 0)
        rc = lade_err_set(err, LADE_E_IO, "%s: cannot list the folder: %s",
                          path, strerror(errno));
    closedir(dir);
    sort(&folder->weights);
    sort(&folder->others);
    return rc;
}

void lade_folder_fini(struct lade_folder *folder)
{
    lade_vec_fini(&folder->weights);
    lade_vec_fini(&folder->others);
    lade_arena_fini(&folder->texts);
}

int lade_folder_no_weights(const struct lade_folder *folder, lade_err *err)
{
    struct lade_names all = {0}, other = {0};
    const char *format = NULL;

    for (uint64_t i = 0; i < folder->others.count; i++) {
        const char *name = *LADE_VEC_AT(&folder->others, const char *, i);
        const char *known = lade_other_format(name);
        lade_names_add(&all, name);
        if (format == NULL)
            format = known;
        if (known != NULL && known == format)
            lade_names_add(&other, name);
    }
    if (format != NULL)
        return lade_err_set(err, LADE_E_CHECKPOINT,
                            "%s: no *.safetensors, only %s weights (%s); "
                            "reading %s is not in this version",
                            folder->path, format, lade_names_text(&other),
                            format);
    return lade_err_set(err, LADE_E_CHECKPOINT,
                        "%s: no weights (*.safetensors); there %s %s",
                        folder->path, all.count == 1 ? "is" : "are",
                        all.count ? lade_names_text(&all) : "no files at all");
}
