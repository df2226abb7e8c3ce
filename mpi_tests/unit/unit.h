/*
 * What unit tests share: cmocka, a folder that goes away, errors by their text.
 */
#ifndef LADE_TESTS_UNIT_H
#define LADE_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

/* A folder of this test; remove it with unit_folder_free. */
static inline void unit_folder_new(char folder[PATH_MAX])
{
    const char *parent = getenv("TMPDIR");

    snprintf(folder, PATH_MAX, "%s/lade-unit-XXXXXX", parent ? parent : "/tmp");
    assert_non_null(mkdtemp(folder));
}

/* Runs of these tests make no deeper trees than PATH_MAX allows. */
static inline void unit_folder_free(const char *folder)
{
    DIR *dir = opendir(folder);
    char path[PATH_MAX];

    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        int n = snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        assert_in_range(n, 1, (int)sizeof(path) - 1);
        if (unlink(path) != 0 && errno == EISDIR)
            unit_folder_free(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static inline int unit_count_files(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; /* . and .. */
}

/* Writes folder/name and the folders that it needs. */
static inline void unit_write(const char *folder, const char *name,
                              const char *text, size_t length)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, name);

    assert_in_range(n, 1, (int)sizeof(path) - 1);
    for (char *c = path + strlen(folder) + 1; *c; c++)
        if (*c == '/') {
            *c = 0;
            mkdir(path, 0777);
            *c = '/';
        }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

/* The whole of a file of at most size - 1 bytes. */
static inline size_t unit_read(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    size_t length = fread(out, 1, size - 1, f);
    out[length] = 0;
    assert_true(feof(f) || fgetc(f) == EOF);
    fclose(f);
    return length;
}

/* The call failed with `status`, and its text says so; the err is reset. */
static inline void unit_failed(int rc, lade_err *err, int status,
                               const char *part)
{
    if (rc != status || err->status != status || !strstr(err->text, part))
        fail_msg("status %d, error %d \"%s\"; wanted %d \"%s\"", rc,
                 err->status, err->text, status, part);
    *err = (lade_err)LADE_ERR_INIT;
}

#endif
