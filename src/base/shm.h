/*
 * Memory shared by the ranks of one node. The owner makes it with memfd and
 * reserves every page (fallocate), so that a full memory is an error here and
 * not a bus error later; neighbours map it through /proc/PID/fd/FD.
 */
#ifndef LADE_BASE_SHM_H
#define LADE_BASE_SHM_H

#include "base/mem.h"

struct lade_shm {
    void *base;
    uint64_t size;
    int fd;      /* owner's descriptor, -1 for a neighbour */
    int64_t pid; /* of the owner */
    bool owner;  /* made it, and has it booked */
};

/* Owner: zeroed, page aligned. Books `size` under tag. */
int lade_shm_create(struct lade_shm *shm, struct lade_mem *mem,
                    enum lade_tag tag, uint64_t size, lade_err *err);
/* Neighbour: pid, fd and size come from the owner by message. *shm is usable
 * for lade_shm_detach after a failure, too. */
int lade_shm_attach(struct lade_shm *shm, int64_t pid, int fd, uint64_t size,
                    bool writable, lade_err *err);
/* Owner: no neighbour can attach any more; the memory lives on until the last
 * unmap. */
void lade_shm_seal(struct lade_shm *shm);
void lade_shm_detach(struct lade_shm *shm, struct lade_mem *mem,
                     enum lade_tag tag);

#endif
