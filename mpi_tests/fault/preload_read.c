/*
 * Test helper, loaded before the program: changes what long reads (over 20,000
 * bytes: weights, not headers of small checkpoints) do.
 *
 *   READ_FAIL_RANK, READ_AFTER   EIO on that rank from its n-th read on
 *   READ_SLOW_US                 each read takes that much longer
 *   READ_SHORT                   at most half of what was asked comes back
 *   READ_INTERRUPT               every second call ends with EINTR
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

ssize_t pread64(int fd, void *to, size_t size, off_t offset);

static atomic_int calls;

static int number(const char *variable)
{
    const char *text = getenv(variable);

    return text ? atoi(text) : 0;
}

static int fails_here(int call)
{
    const char *wanted = getenv("READ_FAIL_RANK");
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return wanted && strcmp(wanted, rank ? rank : "0") == 0 &&
           call >= number("READ_AFTER");
}

EXPORT ssize_t pread(int fd, void *to, size_t size, off_t offset)
{
    static ssize_t (*next)(int, void *, size_t, off_t);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pread");
    if (size <= 20000)
        return next(fd, to, size, offset);
    int call = atomic_fetch_add(&calls, 1);
    if (fails_here(call)) {
        errno = EIO;
        return -1;
    }
    if (getenv("READ_INTERRUPT") && call % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    if (getenv("READ_SLOW_US"))
        usleep((useconds_t)number("READ_SLOW_US"));
    return next(fd, to, getenv("READ_SHORT") ? size / 2 : size, offset);
}

EXPORT ssize_t pread64(int fd, void *to, size_t size, off_t offset)
{
    return pread(fd, to, size, offset);
}
