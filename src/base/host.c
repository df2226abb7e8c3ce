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
    if (size == 0)
        return;
    if (gethostname(out, size) != 0)
        snprintf(out, size, "unknown");
    out[size - 1] = 0;
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
    char id[64];

    first_line(NULL, "/proc/sys/kernel/random/boot_id", id, sizeof(id));
    return lade_hash64(id, strlen(id));
}

uint64_t lade_host_key(void)
{
    struct {
        char host[64], space[64];
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

/* Cuts `bytes` by one group's limit: limit - used + file pages that can go. */
static uint64_t cut_by_group(const char *root, const char *folder,
                             const char *limit_name, const char *used_name,
                             uint64_t bytes)
{
    char path[PATH_MAX], *line = NULL;
    unsigned long long file_bytes = 0;
    uint64_t limit, used = 0;
    size_t room = 0;

    snprintf(path, sizeof(path), "%s/%s", folder, limit_name);
    if (!read_number(root, path, &limit) || limit >= V1_UNLIMITED)
        return bytes;
    snprintf(path, sizeof(path), "%s/%s", folder, used_name);
    read_number(root, path, &used);
    snprintf(path, sizeof(path), "%s%s/memory.stat", root ? root : "", folder);
    FILE *f = fopen(path, "re");
    while (f != NULL && getline(&line, &room, f) > 0)
        if (sscanf(line, "inactive_file %llu", &file_bytes) == 1)
            break;
    free(line);
    if (f != NULL)
        fclose(f);
    used = used > file_bytes ? used - file_bytes : 0;
    return lade_min_u64(bytes, limit > used ? limit - used : 0);
}

/* All ancestors of `group` below `base`. */
static uint64_t cut_by_ancestors(const char *root, const char *base,
                                 const char *group, bool v2, uint64_t bytes)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "%s%s", base, group);
    for (;;) {
        size_t length = strlen(folder);
        while (length > strlen(base) && folder[length - 1] == '/')
            folder[--length] = 0;
        bytes = cut_by_group(
            root, folder, v2 ? "memory.max" : "memory.limit_in_bytes",
            v2 ? "memory.current" : "memory.usage_in_bytes", bytes);
        if (length <= strlen(base))
            return bytes;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < strlen(base))
            return bytes;
        *slash = 0;
    }
}

uint64_t lade_host_memory_free(const char *root)
{
    char full[PATH_MAX], *line = NULL;
    uint64_t bytes = available(root);
    size_t room = 0;

    snprintf(full, sizeof(full), "%s/proc/self/cgroup", root ? root : "");
    FILE *f = fopen(full, "re");
    while (f != NULL && getline(&line, &room, f) > 0) {
        char *names = strchr(line, ':');
        char *group = names ? strchr(names + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = 0;
        group[strcspn(group, "\n")] = 0;
        if (names[1] == 0)
            bytes =
                cut_by_ancestors(root, "/sys/fs/cgroup", group, true, bytes);
        else if (strstr(names + 1, "memory") != NULL)
            bytes = cut_by_ancestors(root, "/sys/fs/cgroup/memory", group,
                                     false, bytes);
    }
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

    if (text == NULL || *text == 0)
        return false;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno != 0 || *end != 0 || number < 0 || number > INT_MAX)
        return false;
    *value = (int)number;
    return true;
}

bool lade_host_launcher(int *rank, int *size, const char **launcher)
{
    if (number_in("OMPI_COMM_WORLD_RANK", rank) &&
        number_in("OMPI_COMM_WORLD_SIZE", size)) {
        *launcher = "mpirun";
        return true;
    }
    /* a batch script has SLURM_PROCID too, but no step of several tasks */
    if (number_in("SLURM_PROCID", rank) && getenv("SLURM_STEP_ID") != NULL &&
        number_in("SLURM_STEP_NUM_TASKS", size)) {
        *launcher = "srun";
        return true;
    }
    if (number_in("PMI_RANK", rank) && number_in("PMI_SIZE", size)) {
        *launcher = "PMI";
        return true;
    }
    if (number_in("PMIX_RANK", rank)) {
        *size = 0;
        *launcher = "PMIx";
        return true;
    }
    return false;
}
