/*
 * Facts about a machine, from trees like those that containers and Slurm show.
 */
#include "unit.h"

#include <sys/resource.h>

#include "base/host.h"

#define GIB (UINT64_C(1) << 30)

static char root[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    unit_folder_new(root);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unit_folder_free(root);
    return 0;
}

static void file(const char *name, const char *text)
{
    unit_write(root, name, text, strlen(text));
}

/* ---- memory ---- */

static void meminfo(void)
{
    file("proc/meminfo", "MemTotal:       33554432 kB\n"
                         "MemFree:         1048576 kB\n"
                         "MemAvailable:   16777216 kB\n");
}

static void frees(uint64_t bytes)
{
    assert_true(lade_host_memory_free(root) == bytes);
}

static void test_memory_plain(void **state)
{
    (void)state;
    frees(UINT64_MAX); /* nothing is known */
    meminfo();
    frees(16 * GIB);
    file("proc/self/cgroup", "0::/\n");
    frees(16 * GIB);
    file("proc/self/cgroup", "0::/user.slice/session.scope\n");
    file("sys/fs/cgroup/user.slice/session.scope/memory.max", "max\n");
    file("sys/fs/cgroup/user.slice/session.scope/memory.current", "4096\n");
    frees(16 * GIB);
}

/* A Slurm step: the job's group, two levels up, is the tight one. */
static void test_memory_v2(void **state)
{
    (void)state;
    meminfo();
    file("proc/self/cgroup", "0::/system.slice/job_7/step_0/task_3\n");
    file("sys/fs/cgroup/system.slice/job_7/step_0/task_3/memory.max", "max\n");
    file("sys/fs/cgroup/system.slice/job_7/step_0/memory.max", "8589934592\n");
    file("sys/fs/cgroup/system.slice/job_7/step_0/memory.current",
         "1073741824\n");
    frees(7 * GIB);
    file("sys/fs/cgroup/system.slice/job_7/memory.max", "4294967296\n");
    file("sys/fs/cgroup/system.slice/job_7/memory.current", "3221225472\n");
    frees(1 * GIB);
    /* page cache goes when memory is needed */
    file("sys/fs/cgroup/system.slice/job_7/memory.stat",
         "anon 1073741824\nfile 2147483648\ninactive_file 1073741824\n"
         "active_file 536870912\nslab 1\n");
    frees(GIB + GIB + GIB / 2);
    file("sys/fs/cgroup/system.slice/job_7/memory.current", "9999999999\n");
    file("sys/fs/cgroup/system.slice/job_7/memory.stat", "");
    frees(0);
}

/* In a container the mount shows the own group as its root, while
 * /proc/self/cgroup may name the path outside. */
static void test_memory_container(void **state)
{
    (void)state;
    meminfo();
    file("proc/self/cgroup", "0::/kubepods/pod1/abc\n");
    file("sys/fs/cgroup/memory.max", "2147483648\n");
    file("sys/fs/cgroup/memory.current", "1073741824\n");
    frees(GIB);
    file("proc/self/cgroup", "0::/../../outside\n");
    frees(GIB);
    file("proc/self/cgroup", "0::/\n");
    frees(GIB);
}

static void test_memory_v1(void **state)
{
    (void)state;
    meminfo();
    file("proc/self/cgroup", "9:name=systemd:/\n5:cpu,memory:/slurm/uid_0/job\n"
                             "2:memoryless:/x\n0::/\n");
    file("sys/fs/cgroup/memory/slurm/uid_0/job/memory.limit_in_bytes",
         "9223372036854771712\n"); /* how version 1 says none */
    file("sys/fs/cgroup/memory/slurm/uid_0/job/memory.usage_in_bytes", "5\n");
    frees(16 * GIB);
    file("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "8589934592\n");
    file("sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "4294967296\n");
    frees(4 * GIB);
    file("sys/fs/cgroup/memory/slurm/memory.stat",
         "inactive_file 9999999999\ntotal_inactive_file 1073741824\n"
         "total_active_file 1073741824\n");
    frees(6 * GIB);
}

/* Version 1 and 2 side by side. */
static void test_memory_hybrid(void **state)
{
    (void)state;
    meminfo();
    file("proc/self/cgroup", "4:memory:/\n0::/app\n");
    file("sys/fs/cgroup/unified/app/memory.max", "1073741824\n");
    file("sys/fs/cgroup/unified/app/memory.current", "0\n");
    frees(GIB);
    file("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
    file("sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
    frees(GIB / 2);
}

static void test_memory_garbage(void **state)
{
    char deep[3 * PATH_MAX];

    (void)state;
    meminfo();
    file("proc/self/cgroup", "\n:\n::\n0:\nx\n0::\n0::////\n");
    frees(16 * GIB);
    file("proc/self/cgroup", "0::/a/\n");
    file("sys/fs/cgroup/a/memory.max", "lots\n");
    file("sys/fs/cgroup/memory.max", "-5\n");
    frees(16 * GIB);
    file("sys/fs/cgroup/a/memory.max", "99999999999999999999999999\n");
    frees(16 * GIB);
    memset(deep, 'd', sizeof(deep));
    memcpy(deep, "0::/", 4);
    deep[sizeof(deep) - 1] = 0;
    file("proc/self/cgroup", deep);
    frees(16 * GIB);
}

static void test_memory_here(void **state)
{
    (void)state;
    assert_in_range(lade_host_memory_free(NULL), 1 << 20, UINT64_C(1) << 50);
}

/* ---- file systems ---- */

static void on(const char *path, const char *want)
{
    char type[64];

    lade_host_filesystem(root, path, type, sizeof(type));
    assert_string_equal(type, want);
}

static void test_filesystem(void **state)
{
    (void)state;
    on("/nowhere/x", "unknown");
    file("proc/self/mounts",
         "/dev/vda / ext4 rw,relatime 0 0\n"
         "server:/export /nowhere/models nfs4 rw,vers=4.2 0 0\n"
         "lnet@o2ib:/fs /nowhere/models/big lustre rw 0 0\n"
         "systemd-1 /nowhere/auto autofs rw 0 0\n"
         "server:/auto /nowhere/auto nfs rw 0 0\n"
         "x /nowhere/with\\040space\\134 beegfs rw 0 0\n"
         "broken line\n"
         "\n"
         "tmpfs /nowhere/models/big/cache tmpfs rw 0 0\n");
    on("/nowhere/x", "ext4");
    on("/nowhere/models", "nfs4");
    on("/nowhere/models/qwen3/model.safetensors", "nfs4");
    on("/nowhere/models2/x", "ext4"); /* no prefix of a component */
    on("/nowhere/models/big/x", "lustre");
    on("/nowhere/models/bigger", "nfs4");
    on("/nowhere/models/big/cache/x", "tmpfs");
    on("/nowhere/auto/x", "nfs"); /* the later line is the one on top */
    on("/nowhere/with space\\/x", "beegfs");
}

/* A link leads to where the bytes are. */
static void test_filesystem_link(void **state)
{
    char link[PATH_MAX + 8], real[PATH_MAX], mounts[2 * PATH_MAX];

    (void)state;
    assert_non_null(realpath(root, real));
    file("data/x", "1");
    snprintf(mounts, sizeof(mounts), "a / ext4 rw 0 0\nb %s/data xfs rw 0 0\n",
             real);
    file("proc/self/mounts", mounts);
    snprintf(link, sizeof(link), "%s/link", root);
    assert_int_equal(symlink("data/x", link), 0);
    on(link, "xfs");
    unlink(link);
}

/* Container file systems have lines of many thousand characters. */
static void test_filesystem_long_line(void **state)
{
    static char line[40000];

    (void)state;
    memset(line, 'l', sizeof(line));
    memcpy(line, "overlay / overlay rw,lowerdir=", 30);
    memcpy(line + sizeof(line) - 40, " 0 0\nx /nowhere nfs rw 0 0\n", 28);
    file("proc/self/mounts", line);
    on("/x", "overlay");
    on("/nowhere/x", "nfs");
}

static void test_filesystem_here(void **state)
{
    char type[64], tiny[3];

    (void)state;
    lade_host_filesystem(NULL, "/proc", type, sizeof(type));
    assert_string_equal(type, "proc");
    lade_host_filesystem(NULL, "/proc", tiny, sizeof(tiny));
    assert_string_equal(tiny, "pr");
}

static void test_network(void **state)
{
    static const char *const network[] = {"nfs",  "nfs4",   "lustre",   "gpfs",
                                          "9p",   "beegfs", "ceph",     "cifs",
                                          "smb3", "fuse",   "fuse.s3fs"};
    static const char *const local[] = {"ext4",  "xfs",     "btrfs",  "tmpfs",
                                        "zfs",   "overlay", "",       "nfsd",
                                        "ramfs", "fuseblk", "unknown"};

    (void)state;
    for (size_t i = 0; i < sizeof(network) / sizeof(*network); i++)
        assert_true(lade_host_is_network(network[i]));
    for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
        assert_false(lade_host_is_network(local[i]));
}

/* ---- names, limits ---- */

static void test_names(void **state)
{
    char name[64], tiny[2];

    (void)state;
    lade_host_name(name, sizeof(name));
    assert_true(name[0] != 0);
    lade_host_name(tiny, sizeof(tiny));
    assert_int_equal(tiny[0], name[0]);
    assert_int_equal(tiny[1], 0);
    assert_true(lade_host_key() == lade_host_key());
    assert_true(lade_host_boot() == lade_host_boot());
    assert_true(lade_host_key() != lade_host_boot());
}

static void test_limits(void **state)
{
    struct rlimit limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max > 100) {
        limit.rlim_cur = 100;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
    lade_host_raise_limits();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(limit.rlim_cur == limit.rlim_max);
}

static void test_peak(void **state)
{
    uint64_t before = lade_host_process_peak();
    size_t size = 64u << 20;
    char *block = malloc(size);

    (void)state;
    assert_in_range(before, 1 << 18, UINT64_C(1) << 40);
    assert_non_null(block);
    memset(block, 1, size);
    assert_true(block[size - 1] == 1);
    assert_in_range(lade_host_process_peak(), before + size / 2,
                    UINT64_C(1) << 40);
    free(block);
}

/* ---- launcher ---- */

static const char *const variables[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NUM_TASKS"};

/* Settings as NAME=VALUE words; want "" for alone, else "rank/size name". */
static void launched(const char *settings, const char *want)
{
    char copy[512], got[64] = "";
    int rank = -5, size = -5;
    const char *name = "untouched";

    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        unsetenv(variables[i]);
    snprintf(copy, sizeof(copy), "%s", settings);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        *equals = 0;
        setenv(word, equals + 1, 1);
    }
    if (lade_host_launcher(&rank, &size, &name))
        snprintf(got, sizeof(got), "%d/%d %s", rank, size, name);
    else
        assert_true(rank == -5 && size == -5 && strcmp(name, "untouched") == 0);
    if (strcmp(got, want) != 0)
        fail_msg("%s: \"%s\", not \"%s\"", settings, got, want);
}

static void test_launcher(void **state)
{
    (void)state;
    launched("", "");
    launched("OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 PMIX_RANK=3",
             "3/8 mpirun");
    launched("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", "0/1 mpirun");
    launched("PMI_RANK=2 PMI_SIZE=4", "2/4 PMI");
    launched("PMIX_RANK=5", "5/0 PMIx");
}

static void test_launcher_slurm(void **state)
{
    (void)state;
    /* srun --mpi=pmix, --mpi=pmi2, and --mpi=none, which MPI will contradict */
    launched(
        "SLURM_PROCID=3 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 PMIX_RANK=3",
        "3/4 srun");
    launched("SLURM_PROCID=3 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 PMI_RANK=3 "
             "PMI_SIZE=4",
             "3/4 srun");
    launched("SLURM_PROCID=1 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 "
             "SLURM_NTASKS=2",
             "1/2 srun");
    launched(
        "SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 PMIX_RANK=0",
        "0/1 srun");
    /* a batch script: the job has 64 tasks, this is none of them */
    launched("SLURM_PROCID=0 SLURM_NTASKS=64", "");
    /* salloc's shell: a step of its own, without PMI */
    launched("SLURM_PROCID=0 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1 "
             "SLURM_NTASKS=64",
             "");
    /* mpirun in a batch script */
    launched("SLURM_PROCID=0 SLURM_NTASKS=64 OMPI_COMM_WORLD_RANK=9 "
             "OMPI_COMM_WORLD_SIZE=64",
             "9/64 mpirun");
}

static void test_launcher_garbage(void **state)
{
    (void)state;
    launched("OMPI_COMM_WORLD_RANK=3", "");
    launched("OMPI_COMM_WORLD_RANK=8 OMPI_COMM_WORLD_SIZE=8", "");
    launched("OMPI_COMM_WORLD_RANK=-1 OMPI_COMM_WORLD_SIZE=8", "");
    launched("OMPI_COMM_WORLD_RANK=x OMPI_COMM_WORLD_SIZE=8", "");
    launched("OMPI_COMM_WORLD_RANK=1x OMPI_COMM_WORLD_SIZE=8", "");
    launched("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=99999999999", "");
    launched("PMI_RANK=4 PMI_SIZE=4", "");
    launched("PMIX_RANK=", "");
    launched("", "");
}

int main(void)
{
#define TREE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TREE(test_memory_plain),
        TREE(test_memory_v2),
        TREE(test_memory_container),
        TREE(test_memory_v1),
        TREE(test_memory_hybrid),
        TREE(test_memory_garbage),
        cmocka_unit_test(test_memory_here),
        TREE(test_filesystem),
        TREE(test_filesystem_link),
        TREE(test_filesystem_long_line),
        cmocka_unit_test(test_filesystem_here),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_peak),
        cmocka_unit_test(test_launcher),
        cmocka_unit_test(test_launcher_slurm),
        cmocka_unit_test(test_launcher_garbage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
