/*
 * In: a text and a path. Out: the whole text under that path, or nothing.
 *
 * The text goes to a temporary name in the same folder, is synced and then
 * renamed. Without force no existing path is ever replaced, not even one that
 * appears in between: the file system itself is asked to refuse.
 */
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct target {
    const char *path;
    char folder[PATH_MAX], temp[PATH_MAX + 64];
    int fd;
    bool made; /* the temporary name is there */
};

static int refused(const struct target *t, const char *doing, lade_err *err)
{
    return lade_err_set(err, LADE_E_IO, "%s: cannot %s: %s", t->path, doing,
                        strerror(errno));
}

static int exists(const struct target *t, lade_err *err)
{
    return lade_err_set(err, LADE_E_USAGE,
                        "%s: exists; use --force to overwrite it", t->path);
}

static int split(struct target *t, lade_err *err)
{
    size_t length = strlen(t->path);
    const char *slash = strrchr(t->path, '/');

    if (length == 0 || length >= sizeof(t->folder) ||
        (slash != NULL && slash[1] == '\0'))
        return lade_err_set(err, LADE_E_USAGE, "\"%.200s\": not a file name",
                            t->path);
    if (slash == NULL) {
        memcpy(t->folder, ".", 2);
        return LADE_OK;
    }
    size_t keep = slash == t->path ? 1 : (size_t)(slash - t->path);
    memcpy(t->folder, t->path, keep);
    t->folder[keep] = '\0';
    return LADE_OK;
}

static int make_temp(struct target *t, lade_err *err)
{
    for (unsigned n = 0; n < 1000 && t->fd < 0; n++) {
        snprintf(t->temp, sizeof(t->temp), "%s/.lade-%ld-%u.tmp", t->folder,
                 (long)getpid(), n);
        t->fd = open(t->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (t->fd < 0 && errno != EEXIST)
            break;
    }
    if (t->fd < 0)
        return refused(t, "create a file in its folder", err);
    t->made = true;
    return LADE_OK;
}

static int write_whole(struct target *t, const char *text, size_t length,
                       lade_err *err)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = write(t->fd, text + done, length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return refused(t, "write", err);
        done += (size_t)n;
    }
    return LADE_OK;
}

static int close_fd(struct target *t, lade_err *err)
{
    int fd = t->fd;

    t->fd = -1;
    return close(fd) != 0 && errno != EINTR ? refused(t, "close", err)
                                            : LADE_OK;
}

/* For file systems that know neither RENAME_NOREPLACE nor links: the name is
 * taken first, so that nobody else's file can be the one that is replaced. */
static int claim_and_rename(struct target *t, lade_err *err)
{
    int fd = open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0)
        return errno == EEXIST ? exists(t, err) : refused(t, "create", err);
    close(fd);
    if (rename(t->temp, t->path) == 0) {
        t->made = false;
        return LADE_OK;
    }
    int rc = refused(t, "rename", err);
    unlink(t->path);
    return rc;
}

static int place(struct target *t, bool force, lade_err *err)
{
    int rc = force ? rename(t->temp, t->path)
                   : renameat2(AT_FDCWD, t->temp, AT_FDCWD, t->path,
                               RENAME_NOREPLACE);

    if (rc == 0) {
        t->made = false;
        return LADE_OK;
    }
    if (!force && errno == EEXIST)
        return exists(t, err);
    if (force || (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP))
        return refused(t, "rename", err);
    if (link(t->temp, t->path) == 0)
        return LADE_OK; /* the second name goes with the clean-up */
    if (errno == EEXIST)
        return exists(t, err);
    return claim_and_rename(t, err);
}

/* The rename itself must survive a power cut. Some file systems cannot sync a
 * folder and say EINVAL: nothing more can be done there. */
static int sync_folder(struct target *t, lade_err *err)
{
    int fd = open(t->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = LADE_OK;

    if (fd < 0)
        return LADE_OK; /* a folder that may be written but not listed */
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        rc = refused(t, "sync its folder", err);
    close(fd);
    return rc;
}

/* A pipe or /dev/stdout: written as it is, never replaced. */
static int write_special(struct target *t, const char *text, size_t length,
                         lade_err *err)
{
    int rc = LADE_OK;

    t->fd = open(t->path, O_WRONLY | O_CLOEXEC);
    if (t->fd < 0)
        return refused(t, "open", err);
    LADE_TRY(write_whole(t, text, length, err));
    LADE_TRY(close_fd(t, err));
out:
    if (t->fd >= 0)
        close(t->fd);
    return rc;
}

int lade_write_file(const char *path, const char *text, size_t length,
                    bool force, lade_err *err)
{
    struct target t = {.path = path, .fd = -1};
    struct stat st;
    int rc = LADE_OK;

    LADE_TRY(split(&t, err));
    if (lstat(path, &st) == 0 && !force)
        LADE_TRY(exists(&t, err));
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        LADE_TRY(lade_err_set(err, LADE_E_USAGE, "%s: is a directory", path));
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return write_special(&t, text, length, err);
    LADE_TRY(make_temp(&t, err));
    LADE_TRY(write_whole(&t, text, length, err));
    if (fsync(t.fd) != 0 && errno != EINVAL)
        LADE_TRY(refused(&t, "sync", err));
    LADE_TRY(close_fd(&t, err));
    LADE_TRY(place(&t, force, err));
    if (t.made && unlink(t.temp) == 0)
        t.made = false;
    LADE_TRY(sync_folder(&t, err));
out:
    if (t.fd >= 0)
        close(t.fd);
    if (t.made)
        unlink(t.temp);
    return rc;
}
