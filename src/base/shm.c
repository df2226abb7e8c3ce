/*
 * Shared memory by memfd: reserved at creation, mapped by neighbours through
 * /proc.
 */
#include "base/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"

#define NAME "lade"

static int map(struct lade_shm *shm, int fd, bool writable, lade_err *err)
{
    void *base =
        mmap(NULL, shm->size, writable ? PROT_READ | PROT_WRITE : PROT_READ,
             MAP_SHARED, fd, 0);

    if (base == MAP_FAILED)
        return lade_err_set(err, LADE_E_MEMORY,
                            "cannot map %llu bytes of shared memory: %s",
                            (unsigned long long)shm->size, strerror(errno));
    shm->base = base;
    return LADE_OK;
}

/* Without a check the kernel would reserve pages until it kills somebody. */
static int reserve(int fd, uint64_t size, lade_err *err)
{
    uint64_t room = lade_host_memory_free(NULL);
    int refused;

    if (size > INT64_MAX || size > room)
        return lade_err_set(err, LADE_E_MEMORY,
                            "%llu bytes of shared memory are needed, %llu are "
                            "free on this node",
                            (unsigned long long)size, (unsigned long long)room);
    do
        refused = posix_fallocate(fd, 0, (off_t)size);
    while (refused == EINTR);
    if (refused != 0)
        return lade_err_set(err, LADE_E_MEMORY,
                            "cannot reserve %llu bytes of shared memory: %s",
                            (unsigned long long)size, strerror(refused));
    return LADE_OK;
}

int lade_shm_create(struct lade_shm *shm, struct lade_mem *mem,
                    enum lade_tag tag, uint64_t size, lade_err *err)
{
    struct lade_shm made = {.size = size, .pid = getpid(), .owner = true};
    int rc = LADE_OK;

    *shm = (struct lade_shm){.fd = -1};
    made.fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made.fd < 0)
        return lade_err_set(err, LADE_E_MEMORY,
                            "cannot make %llu bytes of shared memory: %s",
                            (unsigned long long)size, strerror(errno));
    LADE_TRY(reserve(made.fd, size, err));
    /* nobody can cut it under a neighbour's feet */
    fcntl(made.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    LADE_TRY(map(&made, made.fd, true, err));
    lade_mem_book(mem, tag, (int64_t)size);
    *shm = made;
out:
    if (rc != LADE_OK)
        lade_shm_seal(&made);
    return rc;
}

/* Is fd the memory that path is said to be, and not another file of a process
 * that has the same number in another space of process ids? */
static int check(int fd, const char *path, uint64_t size, lade_err *err)
{
    static const char start[] = "/memfd:" NAME;
    char link[64] = "";
    struct stat st = {.st_size = -1};
    ssize_t n = readlink(path, link, sizeof(link) - 1);

    if (n < 0 || strncmp(link, start, sizeof(start) - 1) != 0)
        return lade_err_set(err, LADE_E_INTERNAL,
                            "%s is not the node's shared memory but \"%s\"",
                            path, link);
    if (fstat(fd, &st) != 0 || st.st_size < 0 || (uint64_t)st.st_size != size)
        return lade_err_set(err, LADE_E_INTERNAL,
                            "the node's shared memory has %lld bytes, not %llu",
                            (long long)st.st_size, (unsigned long long)size);
    return LADE_OK;
}

int lade_shm_attach(struct lade_shm *shm, int64_t pid, int fd, uint64_t size,
                    bool writable, lade_err *err)
{
    struct lade_shm seen = {.size = size, .fd = -1, .pid = pid};
    char path[64];
    int rc;

    *shm = (struct lade_shm){.fd = -1};
    snprintf(path, sizeof(path), "/proc/%lld/fd/%d", (long long)pid, fd);
    int mine = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (mine < 0)
        return lade_err_set(err, LADE_E_IO,
                            "cannot open the node's shared memory %s (%llu "
                            "bytes): %s; the ranks of a node must run as one "
                            "user and see each other's processes",
                            path, (unsigned long long)size, strerror(errno));
    LADE_TRY(check(mine, path, size, err));
    LADE_TRY(map(&seen, mine, writable, err));
    *shm = seen;
out:
    close(mine);
    return rc;
}

void lade_shm_seal(struct lade_shm *shm)
{
    if (shm->fd >= 0)
        close(shm->fd);
    shm->fd = -1;
}

void lade_shm_detach(struct lade_shm *shm, struct lade_mem *mem,
                     enum lade_tag tag)
{
    if (shm->base == NULL)
        return;
    munmap(shm->base, shm->size);
    lade_shm_seal(shm);
    if (shm->owner)
        lade_mem_book(mem, tag, -(int64_t)shm->size);
    *shm = (struct lade_shm){.fd = -1};
}
