/*
 * In: /proc and /sys of this machine, or of a captured tree. Out: names, file
 * systems, memory, launcher.
 */
#include "base/host.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/map.h"

#define V1_UNLIMITED (UINT64_C(1) << 62)

void lade_host_name(char *out, size_t size)
{
    char name[256] = "";

    if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == 0)
        snprintf(name, sizeof(name), "unknown");
    lade_text_clean(name);
    snprintf(out, size, "%s", name);
}

/* First line of root/path, without its end; empty if it cannot be read. */
static void first_line(const char *root, const char *path, char *out,
                       size_t size)
{
    char full[PATH_MAX];

    out[0] = 0;
    snprintf(full, sizeof(full), "%s%s", root ? root : "", path);
    FILE *f = fopen(full, "re");
    if (f == NULL)
        return;
    if (fgets(out, (int)size, f) == NULL)
        out[0] = 0;
    fclose(f);
    out[strcspn(out, "\n")] = 0;
}

uint64_t lade_host_boot(void)
{
    char id[256];

    first_line(NULL, "/proc/sys/kernel/random/boot_id", id, sizeof(id));
    if (id[0] == 0) /* hidden: two hosts must not look like one */
        lade_host_name(id, sizeof(id));
    return lade_hash64(id, strlen(id));
}

uint64_t lade_host_key(void)
{
    struct {
        char host[256], space[64];
        uint64_t boot;
    } key;

    memset(&key, 0, sizeof(key));
    lade_host_name(key.host, sizeof(key.host));
    ssize_t n = readlink("/proc/self/ns/pid", key.space, sizeof(key.space) - 1);
    if (n < 0)
        key.space[0] = 0;
    key.boot = lade_host_boot();
    return lade_hash64(&key, sizeof(key));
}

/* Decodes \040 and the like in place. */
static void decode_octal(char *text)
{
    char *to = text;

    for (const char *c = text; *c; to++) {
        if (c[0] == '\\' && c[1] >= '0' && c[1] <= '3' && c[2] >= '0' &&
            c[2] <= '7' && c[3] >= '0' && c[3] <= '7') {
            *to = (char)((c[1] - '0') * 64 + (c[2] - '0') * 8 + (c[3] - '0'));
            c += 4;
        } else {
            *to = *c++;
        }
    }
    *to = 0;
}

static bool path_starts_with(const char *path, const char *mount)
{
    size_t length = strlen(mount);

    if (strcmp(mount, "/") == 0)
        return path[0] == '/';
    return strncmp(path, mount, length) == 0 &&
           (path[length] == 0 || path[length] == '/');
}

void lade_host_filesystem(const char *root, const char *path, char *out,
                          size_t size)
{
    char real[PATH_MAX], file[PATH_MAX], mount[PATH_MAX], type[128];
    char *line = NULL;
    size_t room = 0, best = 0;

    snprintf(out, size, "unknown");
    if (realpath(path, real) == NULL)
        snprintf(real, sizeof(real), "%s", path);
    snprintf(file, sizeof(file), "%s/proc/self/mounts", root ? root : "");
    FILE *f = fopen(file, "re");
    while (f != NULL && getline(&line, &room, f) > 0) {
        if (sscanf(line, "%*s %4095s %127s", mount, type) != 2)
            continue;
        decode_octal(mount);
        if (strlen(mount) < best || !path_starts_with(real, mount))
            continue;
        best = strlen(mount);
        snprintf(out, size, "%s", type);
    }
    free(line);
    if (f != NULL)
        fclose(f);
}

bool lade_host_is_network(const char *type)
{
    static const char *const network[] = {
        "nfs",   "nfs4",  "lustre", "gpfs",      "beegfs",   "ceph",
        "cifs",  "smb3",  "smbfs",  "9p",        "virtiofs", "afs",
        "pvfs2", "panfs", "wekafs", "glusterfs", "orangefs", NULL};

    if (strncmp(type, "fuse", 4) == 0 && strcmp(type, "fuseblk") != 0)
        return true;
    for (int i = 0; network[i] != NULL; i++)
        if (strcmp(type, network[i]) == 0)
            return true;
    return false;
}

static bool read_number(const char *root, const char *path, uint64_t *value)
{
    char line[64], *end;

    first_line(root, path, line, sizeof(line));
    if (!isdigit((unsigned char)line[0]))
        return false;
    errno = 0;
    *value = strtoull(line, &end, 10);
    return errno == 0 && *end == 0;
}

static uint64_t available(const char *root)
{
    char full[PATH_MAX], *line = NULL;
    unsigned long long kib = 0;
    size_t room = 0;

    snprintf(full, sizeof(full), "%s/proc/meminfo", root ? root : "");
    FILE *f = fopen(full, "re");
    while (f != NULL && getline(&line, &room, f) > 0)
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    free(line);
    if (f != NULL)
        fclose(f);
    return kib ? kib * 1024 : UINT64_MAX;
}

/* File names of the two versions. In version 1 only the total_ numbers of
 * memory.stat count the groups below, as usage does. */
static const struct cgroup_names {
    const char *limit, *used, *prefix;
} cgroup_v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"},
  cgroup_v2 = {"memory.max", "memory.current", ""};

/* Page cache is charged to the group but goes when memory is needed. */
static uint64_t reclaimable(const char *root, const char *folder,
                            const char *prefix)
{
    char path[PATH_MAX], key[64], *line = NULL;
    unsigned long long number;
    uint64_t bytes = 0;
    size_t room = 0, skip = strlen(prefix);

    snprintf(path, sizeof(path), "%s%s/memory.stat", root ? root : "", folder);
    FILE *f = fopen(path, "re");
    while (f != NULL && getline(&line, &room, f) > 0)
        if (sscanf(line, "%63s %llu", key, &number) == 2 &&
            strncmp(key, prefix, skip) == 0 &&
            (strcmp(key + skip, "inactive_file") == 0 ||
             strcmp(key + skip, "active_file") == 0))
            bytes += number;
    free(line);
    if (f != NULL)
        fclose(f);
    return bytes;
}

/* Cuts `bytes` by one group's limit: limit - used + file pages that can go. */
static uint64_t cut_by_group(const char *root, const char *folder,
                             const struct cgroup_names *names, uint64_t bytes)
{
    char path[PATH_MAX];
    uint64_t limit, used = 0;

    snprintf(path, sizeof(path), "%s/%s", folder, names->limit);
    if (!read_number(root, path, &limit) || limit >= V1_UNLIMITED)
        return bytes;
    snprintf(path, sizeof(path), "%s/%s", folder, names->used);
    if (read_number(root, path, &used))
        used -= lade_min_u64(used, reclaimable(root, folder, names->prefix));
    return lade_min_u64(bytes, limit > used ? limit - used : 0);
}

/* `group` and all its ancestors up to `base`, which is the container's own
 * group where the mount shows no more. What is not there does not limit. */
static uint64_t cut_by_ancestors(const char *root, const char *base,
                                 const char *group,
                                 const struct cgroup_names *names,
                                 uint64_t bytes)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "%s%s", base, group);
    for (;;) {
        size_t length = strlen(folder);
        while (length > strlen(base) && folder[length - 1] == '/')
            folder[--length] = 0;
        bytes = cut_by_group(root, folder, names, bytes);
        if (length <= strlen(base))
            return bytes;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < strlen(base))
            return bytes;
        *slash = 0;
    }
}

/* Is `name` one of the comma-separated `names`? */
static bool in_list(const char *names, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = names; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 &&
            (at[length] == 0 || at[length] == ','))
            return true;
    }
    return false;
}

/* One line of /proc/self/cgroup: "4:cpu,memory:/a/b", "0::/a/b". */
static uint64_t cut_by_line(const char *root, char *line, uint64_t bytes)
{
    char *names = strchr(line, ':');
    char *group = names ? strchr(names + 1, ':') : NULL;

    if (group == NULL)
        return bytes;
    names++;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    if (in_list(names, "memory"))
        return cut_by_ancestors(root, "/sys/fs/cgroup/memory", group,
                                &cgroup_v1, bytes);
    if (names[0] != 0)
        return bytes;
    bytes = cut_by_ancestors(root, "/sys/fs/cgroup/unified", group, &cgroup_v2,
                             bytes);
    return cut_by_ancestors(root, "/sys/fs/cgroup", group, &cgroup_v2, bytes);
}

uint64_t lade_host_memory_free(const char *root)
{
    char full[PATH_MAX], *line = NULL;
    uint64_t bytes = available(root);
    size_t room = 0;

    snprintf(full, sizeof(full), "%s/proc/self/cgroup", root ? root : "");
    FILE *f = fopen(full, "re");
    while (f != NULL && getline(&line, &room, f) > 0)
        bytes = cut_by_line(root, line, bytes);
    free(line);
    if (f != NULL)
        fclose(f);
    return bytes;
}

uint64_t lade_host_process_peak(void)
{
    unsigned long long kib = 0;
    char *line = NULL;
    size_t room = 0;
    FILE *f = fopen("/proc/self/status", "re");

    while (f != NULL && getline(&line, &room, f) > 0)
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
            break;
    free(line);
    if (f != NULL)
        fclose(f);
    return kib * 1024;
}

void lade_host_raise_limits(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
        limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool number_in(const char *name, int *value)
{
    const char *text = getenv(name);
    char *end;

    if (text == NULL || !isdigit((unsigned char)*text))
        return false;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno != 0 || *end != 0 || number > INT_MAX)
        return false;
    *value = (int)number;
    return true;
}

/* Both are there and agree. */
static bool pair(const char *rank_name, const char *size_name, int *rank,
                 int *size)
{
    int r, n;

    if (!number_in(rank_name, &r) || !number_in(size_name, &n) || r >= n)
        return false;
    *rank = r;
    *size = n;
    return true;
}

/* mpirun comes first: it may run inside a Slurm step. A batch script has
 * SLURM_PROCID, too, but no number of tasks of a step. A step of one task
 * without PMI is an interactive shell, where MPI would not start. */
bool lade_host_launcher(int *rank, int *size, const char **launcher)
{
    const char *found = NULL;
    bool pmi = getenv("PMIX_RANK") != NULL || getenv("PMI_RANK") != NULL;
    int r = 0, n = 0;

    if (pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &r, &n))
        found = "mpirun";
    else if (getenv("SLURM_STEP_ID") != NULL &&
             pair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", &r, &n))
        found = n > 1 || pmi ? "srun" : NULL;
    else if (pair("PMI_RANK", "PMI_SIZE", &r, &n))
        found = "PMI";
    else if (number_in("PMIX_RANK", &r))
        found = "PMIx"; /* does not tell the size: n is 0 */
    if (found == NULL)
        return false;
    *rank = r;
    *size = n;
    *launcher = found;
    return true;
}
