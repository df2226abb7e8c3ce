/*
 * A file is there whole or not at all, nothing else is left behind, and what
 * exists is replaced only when asked.
 */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/json.h"

static lade_err err;
static char folder[PATH_MAX], path[PATH_MAX + 32];

/* File systems differ in what they can; these stand before the C library. */
static bool no_replace_flag, no_links;

int renameat2(int from_dir, const char *from, int to_dir, const char *to,
              unsigned flags)
{
    if (no_replace_flag && flags != 0) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int link(const char *from, const char *to)
{
    if (no_links) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int set_up(void **state)
{
    (void)state;
    unit_folder_new(folder);
    snprintf(path, sizeof(path), "%s/out.json", folder);
    err = (lade_err)LADE_ERR_INIT;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unit_folder_free(folder);
    return 0;
}

static void holds(const char *file, const char *want)
{
    char text[256];

    unit_read(file, text, sizeof(text));
    assert_string_equal(text, want);
}

static void test_new(void **state)
{
    struct stat st;
    mode_t mask = umask(022);

    (void)state;
    assert_int_equal(lade_write_file(path, "hello\n", 6, false, &err), LADE_OK);
    holds(path, "hello\n");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    assert_int_equal(unit_count_files(folder), 1);
    umask(mask);
}

static void test_exists(void **state)
{
    (void)state;
    unit_write(folder, "out.json", "old", 3);
    unit_failed(lade_write_file(path, "new", 3, false, &err), &err,
                LADE_E_USAGE, "out.json: exists; use --force");
    holds(path, "old");
    assert_int_equal(unit_count_files(folder), 1);
    assert_int_equal(lade_write_file(path, "new", 3, true, &err), LADE_OK);
    holds(path, "new");
    assert_int_equal(unit_count_files(folder), 1);
}

static void test_force_on_nothing(void **state)
{
    (void)state;
    assert_int_equal(lade_write_file(path, "", 0, true, &err), LADE_OK);
    holds(path, "");
}

/* A link without a target is something that exists, too. */
static void test_dangling_link(void **state)
{
    (void)state;
    assert_int_equal(symlink("nowhere", path), 0);
    unit_failed(lade_write_file(path, "new", 3, false, &err), &err,
                LADE_E_USAGE, "exists");
    assert_int_equal(unit_count_files(folder), 1);
}

static void test_bad_places(void **state)
{
    char deep[2 * PATH_MAX];

    (void)state;
    snprintf(deep, sizeof(deep), "%s/no/out.json", folder);
    unit_failed(lade_write_file(deep, "x", 1, false, &err), &err, LADE_E_IO,
                "no/out.json: cannot create a file in its folder: No such");
    unit_failed(lade_write_file(folder, "x", 1, false, &err), &err,
                LADE_E_USAGE, "exists");
    unit_failed(lade_write_file(folder, "x", 1, true, &err), &err, LADE_E_USAGE,
                "is a directory");
    snprintf(deep, sizeof(deep), "%s/", folder);
    unit_failed(lade_write_file(deep, "x", 1, true, &err), &err, LADE_E_USAGE,
                "not a file name");
    unit_failed(lade_write_file("", "x", 1, true, &err), &err, LADE_E_USAGE,
                "not a file name");
    memset(deep, 'a', sizeof(deep));
    deep[sizeof(deep) - 1] = 0;
    unit_failed(lade_write_file(deep, "x", 1, true, &err), &err, LADE_E_USAGE,
                "not a file name");
    snprintf(deep, sizeof(deep), "%s/%0300d", folder, 7); /* NAME_MAX is 255 */
    unit_failed(lade_write_file(deep, "x", 1, true, &err), &err, LADE_E_IO,
                "cannot rename: File name too long");
    assert_int_equal(unit_count_files(folder), 0);
}

static void test_relative(void **state)
{
    char before[PATH_MAX];

    (void)state;
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(lade_write_file("out.json", "r", 1, false, &err), LADE_OK);
    assert_int_equal(chdir(before), 0);
    holds(path, "r");
    assert_int_equal(unit_count_files(folder), 1);
}

/* A full disk: nothing is left, and what was there stays. */
static void test_no_room(void **state)
{
    struct rlimit old, small;
    char text[8192];

    (void)state;
    unit_write(folder, "out.json", "old", 3);
    memset(text, 'x', sizeof(text));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = lade_write_file(path, text, sizeof(text), true, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    unit_failed(rc, &err, LADE_E_IO, "out.json: cannot write: File too large");
    holds(path, "old");
    assert_int_equal(unit_count_files(folder), 1);
}

/* /dev/full refuses, and is not replaced by a file; nor is a pipe. */
static void test_special(void **state)
{
    char text[16] = "";
    struct stat st;

    (void)state;
    if (access("/dev/full", W_OK) == 0)
        unit_failed(lade_write_file("/dev/full", "x", 1, true, &err), &err,
                    LADE_E_IO, "/dev/full: cannot write: No space left");
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(lade_write_file(path, "piped", 5, true, &err), LADE_OK);
    assert_int_equal(read(fd, text, sizeof(text)), 5);
    assert_string_equal(text, "piped");
    close(fd);
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(unit_count_files(folder), 1);
}

/* Without RENAME_NOREPLACE (NFS), and without links, too (FAT, some FUSE). */
static void test_poor_file_systems(void **state)
{
    (void)state;
    no_replace_flag = true;
    for (int links = 1; links >= 0; links--) {
        no_links = !links;
        assert_int_equal(lade_write_file(path, "one", 3, false, &err), LADE_OK);
        holds(path, "one");
        assert_int_equal(unit_count_files(folder), 1);
        assert_int_equal(lade_write_file(path, "two", 3, true, &err), LADE_OK);
        holds(path, "two");
        unit_failed(lade_write_file(path, "x", 1, false, &err), &err,
                    LADE_E_USAGE, "exists");
        assert_int_equal(unit_count_files(folder), 1);
        unlink(path);
    }
    no_replace_flag = no_links = false;
}

static void *race(void *arg)
{
    lade_err mine = LADE_ERR_INIT;

    if (lade_write_file(path, arg, 1, false, &mine) == LADE_OK)
        return arg;
    return mine.status == LADE_E_USAGE ? NULL : (void *)folder;
}

/* Of two that write without force one wins and the other is told, in each of
 * the three ways. */
static void test_race(void **state)
{
    static char names[] = "ab";

    (void)state;
    for (int i = 0; i < 60; i++) {
        no_replace_flag = i % 3 > 0;
        no_links = i % 3 > 1;
        pthread_t threads[2];
        void *won[2];
        char want[2] = "?";
        for (int t = 0; t < 2; t++)
            pthread_create(&threads[t], NULL, race, names + t);
        for (int t = 0; t < 2; t++)
            pthread_join(threads[t], &won[t]);
        assert_true((won[0] == NULL) != (won[1] == NULL));
        want[0] = *(char *)(won[0] ? won[0] : won[1]);
        holds(path, want);
        assert_int_equal(unit_count_files(folder), 1);
        unlink(path);
    }
    no_replace_flag = no_links = false;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_new),           TEST(test_exists),
        TEST(test_dangling_link), TEST(test_force_on_nothing),
        TEST(test_bad_places),    TEST(test_relative),
        TEST(test_no_room),       TEST(test_special),
        TEST(test_race),          TEST(test_poor_file_systems),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
