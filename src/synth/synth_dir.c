/*
 * In: the path of an output directory. Out: the directory, locked and
 * examined; its files under their final names when all are complete.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "synth/synth_write.h"

static bool ends_with(const char *name, const char *end)
{
    const size_t a = strlen(name), b = strlen(end);
    return a >= b && strcmp(name + a - b, end) == 0;
}

static bool is_weights(const char *name)
{
    return ends_with(name, ".safetensors") ||
           ends_with(name, ".safetensors.index.json");
}

static int io_error(const char *path, const char *what, lade_err *err)
{
    return lade_err_set(err, LADE_E_IO, "%s: %s: %m", path, what);
}

/* mkdir -p */
static int make_dirs(const char *path, lade_err *err)
{
    char part[4096];
    const size_t length = strlen(path);
    if (length == 0 || length >= sizeof part)
        return lade_err_set(err, LADE_E_USAGE,
                            "--out: the path has %zu bytes; 1 to %zu are "
                            "possible",
                            length, sizeof part - 1);
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return io_error(part, "the directory cannot be made", err);
    }
    return LADE_OK;
}

/* Calls act for every name; stops when it returns something else than OK. */
static int each_name(const struct lade_synth_dir *dir,
                     int (*act)(const struct lade_synth_dir *dir,
                                const char *name, lade_err *err),
                     lade_err *err)
{
    int rc = LADE_OK;
    const struct dirent *entry;
    const int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (list == NULL) {
        rc = io_error(dir->path, "the directory cannot be read", err);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (rc == LADE_OK && (entry = readdir(list)) != NULL)
        rc = act(dir, entry->d_name, err);
    closedir(list);
    return rc;
}

static int refuse_name(const struct lade_synth_dir *dir, const char *name,
                       lade_err *err)
{
    if (!is_weights(name) && strcmp(name, "config.json") != 0)
        return LADE_OK;
    return lade_err_set(err, LADE_E_USAGE,
                        "%s holds a checkpoint already (%s); --force replaces "
                        "it",
                        dir->path, name);
}

static int remove_stale(const struct lade_synth_dir *dir, const char *name,
                        lade_err *err)
{
    if (!is_weights(name) || name[0] == '.')
        return LADE_OK;
    for (uint64_t i = 0; i < dir->written.count; i++)
        if (strcmp(LADE_VEC_AT(&dir->written, struct lade_synth_name, i)->name,
                   name) == 0)
            return LADE_OK;
    if (unlinkat(dir->fd, name, 0) != 0)
        return lade_err_set(err, LADE_E_IO,
                            "%s/%s: belongs to the replaced checkpoint and "
                            "cannot be removed: %m",
                            dir->path, name);
    return LADE_OK;
}

int lade_synth_dir_open(struct lade_synth_dir *dir, const char *path,
                        bool force, struct lade_mem *mem, lade_err *err)
{
    int rc = LADE_OK;
    *dir = (struct lade_synth_dir){.path = path, .fd = -1, .mem = mem};
    lade_vec_init(&dir->written, mem, LADE_TAG_TEMP,
                  sizeof(struct lade_synth_name));
    LADE_TRY(make_dirs(path, err));
    dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd < 0)
        LADE_TRY(io_error(path, "the directory cannot be opened", err));
    if (flock(dir->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        LADE_TRY(lade_err_set(err, LADE_E_USAGE,
                              "%s: another lade synth is writing there", path));
    if (!force)
        LADE_TRY(each_name(dir, refuse_name, err));
out:
    return rc;
}

int lade_synth_publish(struct lade_synth_dir *dir, lade_err *err)
{
    int rc = LADE_OK;
    char temp[128];
    for (uint64_t i = 0; i < dir->written.count; i++) {
        const char *name =
            LADE_VEC_AT(&dir->written, struct lade_synth_name, i)->name;
        snprintf(temp, sizeof temp, ".%s.tmp", name);
        if (renameat(dir->fd, temp, dir->fd, name) != 0)
            LADE_TRY(lade_err_set(err, LADE_E_IO,
                                  "%s/%s: cannot be renamed from %s: %m",
                                  dir->path, name, temp));
    }
    LADE_TRY(each_name(dir, remove_stale, err));
    if (fsync(dir->fd) != 0 && errno != EINVAL)
        LADE_TRY(io_error(dir->path, "the directory cannot be synced", err));
out:
    return rc;
}

void lade_synth_dir_close(struct lade_synth_dir *dir)
{
    char temp[128];
    for (uint64_t i = 0; dir->fd >= 0 && i < dir->written.count; i++) {
        snprintf(temp, sizeof temp, ".%s.tmp",
                 LADE_VEC_AT(&dir->written, struct lade_synth_name, i)->name);
        unlinkat(dir->fd, temp, 0); // absent after publishing
    }
    if (dir->fd >= 0)
        close(dir->fd);
    dir->fd = -1;
    lade_vec_fini(&dir->written);
}
