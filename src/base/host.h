/*
 * Facts about this machine: names, file systems, memory limits. `root` (may be
 * NULL) stands before /proc and /sys, so that a captured tree can be examined
 * by tests.
 */
#ifndef LADE_BASE_HOST_H
#define LADE_BASE_HOST_H

#include "base/status.h"

void lade_host_name(char *out, size_t size);
/* Hash of host name, boot id and process-id namespace: equal for ranks that can
 * share memory. */
uint64_t lade_host_key(void);
/* Hash of the boot id alone: equal on one running kernel. */
uint64_t lade_host_boot(void);

/* Type of the file system that holds path ("ext4", "nfs4", "unknown"), from
 * root/proc/self/mounts: longest mount point that is a path-component prefix of
 * the real path, later line wins a tie, octal escapes decoded. */
void lade_host_filesystem(const char *root, const char *path, char *out,
                          size_t size);
/* nfs, nfs4, lustre, gpfs, beegfs, ceph, cifs, smb3, fuse.*, 9p, ... */
bool lade_host_is_network(const char *type);

/* Bytes that this process may still allocate: MemAvailable, cut by limit -
 * used + page cache of every ancestor group (cgroups v1 and v2).
 * UINT64_MAX when nothing is known. */
uint64_t lade_host_memory_free(const char *root);
/* VmHWM of this process. */
uint64_t lade_host_process_peak(void);
/* Raises RLIMIT_NOFILE to its hard limit. */
void lade_host_raise_limits(void);
/* Rank and size as the launcher's variables state them (OMPI_COMM_WORLD_*, a
 * Slurm step, PMI_*, PMIX_RANK); size 0 where it does not tell. Returns false,
 * and leaves the outputs alone, when this process is on its own. */
bool lade_host_launcher(int *rank, int *size, const char **launcher);

#endif
