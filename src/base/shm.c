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

int lade_shm_create(struct lade_shm *shm, struct lade_mem *mem,
                    enum lade_tag tag, uint64_t size, lade_err *err)
{
    int rc = LADE_OK;

    *shm = (struct lade_shm){.size = size, .pid = getpid()};
    shm->fd = memfd_create("lade", MFD_CLOEXEC);
    if (shm->fd < 0)
        return lade_err_set(err, LADE_E_MEMORY, "no shared memory: %s",
                            strerror(errno));
    int refused =
        size > INT64_MAX ? EFBIG : posix_fallocate(shm->fd, 0, (off_t)size);
    if (refused != 0)
        rc = lade_err_set(err, LADE_E_MEMORY,
                          "cannot reserve %llu bytes of shared memory: %s",
                          (unsigned long long)size, strerror(refused));
    if (rc == LADE_OK)
        rc = map(shm, shm->fd, true, err);
    if (rc == LADE_OK)
        lade_mem_book(mem, tag, (int64_t)size);
    else
        lade_shm_seal(shm);
    return rc;
}

int lade_shm_attach(struct lade_shm *shm, int64_t pid, int fd, uint64_t size,
                    bool writable, lade_err *err)
{
    char path[64];
    struct stat st;

    *shm = (struct lade_shm){.size = size, .fd = -1, .pid = pid};
    snprintf(path, sizeof(path), "/proc/%lld/fd/%d", (long long)pid, fd);
    int mine = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (mine < 0)
        return lade_err_set(err, LADE_E_MEMORY,
                            "cannot open the node's shared memory %s: %s", path,
                            strerror(errno));
    int rc = LADE_OK;
    if (fstat(mine, &st) != 0 || (uint64_t)st.st_size != size)
        rc = lade_err_set(err, LADE_E_INTERNAL,
                          "the node's shared memory has %lld bytes, not %llu",
                          (long long)st.st_size, (unsigned long long)size);
    if (rc == LADE_OK)
        rc = map(shm, mine, writable, err);
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
    if (shm->pid == getpid())
        lade_mem_book(mem, tag, -(int64_t)shm->size);
    *shm = (struct lade_shm){.fd = -1};
}
