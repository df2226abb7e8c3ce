/*
 * Test helper, loaded before the program: on the rank that PRELOAD_FAIL_RANK
 * names, opening a weight file fails with EIO; on the rank that
 * PRELOAD_HANG_RANK names it does not come back. All else goes on to libc.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);
int openat(int dir, const char *path, int flags, ...);
int openat64(int dir, const char *path, int flags, ...);

static int is_me(const char *variable)
{
    const char *wanted = getenv(variable);
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return wanted && strcmp(wanted, rank ? rank : "0") == 0;
}

static int refused(const char *path)
{
    const char *end = path ? strstr(path, ".safetensors") : NULL;

    if (!end || strcmp(end, ".safetensors") != 0)
        return 0;
    while (is_me("PRELOAD_HANG_RANK"))
        sleep(1);
    return is_me("PRELOAD_FAIL_RANK");
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(args, int) : 0;
}

#define FORWARD_OPEN(name)                                                     \
    int name(const char *path, int flags, ...)                                 \
    {                                                                          \
        static int (*next)(const char *, int, ...);                            \
        va_list args;                                                          \
        va_start(args, flags);                                                 \
        mode_t mode = mode_of(flags, args);                                    \
        va_end(args);                                                          \
        if (refused(path)) {                                                   \
            errno = EIO;                                                       \
            return -1;                                                         \
        }                                                                      \
        if (!next)                                                             \
            *(void **)&next = dlsym(RTLD_NEXT, #name);                         \
        return next(path, flags, mode);                                        \
    }

#define FORWARD_OPENAT(name)                                                   \
    int name(int dir, const char *path, int flags, ...)                        \
    {                                                                          \
        static int (*next)(int, const char *, int, ...);                       \
        va_list args;                                                          \
        va_start(args, flags);                                                 \
        mode_t mode = mode_of(flags, args);                                    \
        va_end(args);                                                          \
        if (refused(path)) {                                                   \
            errno = EIO;                                                       \
            return -1;                                                         \
        }                                                                      \
        if (!next)                                                             \
            *(void **)&next = dlsym(RTLD_NEXT, #name);                         \
        return next(dir, path, flags, mode);                                   \
    }

__attribute__((visibility("default"))) FORWARD_OPEN(open)
    __attribute__((visibility("default"))) FORWARD_OPEN(open64)
        __attribute__((visibility("default"))) FORWARD_OPENAT(openat)
            __attribute__((visibility("default"))) FORWARD_OPENAT(openat64)
