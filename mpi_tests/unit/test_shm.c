/*
 * Shared memory of a node: made here, seen by another process; and what is
 * refused.
 */
#include "unit.h"

#include <sys/wait.h>

#include "base/shm.h"

static lade_err err;

/* Runs body in a child; its result is the child's exit code. */
static int in_child(int (*body)(const struct lade_shm *), struct lade_shm *shm)
{
    int status = -1;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(body(shm));
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

/* The child inherited the mapping; it attaches again, as a stranger would. */
static int write_there(const struct lade_shm *owner)
{
    struct lade_shm mine;
    lade_err e = LADE_ERR_INIT;

    if (lade_shm_attach(&mine, owner->pid, owner->fd, owner->size, true, &e) !=
        LADE_OK)
        return 1;
    if (mine.fd != -1 || mine.owner || mine.base == owner->base)
        return 2;
    if (strcmp(mine.base, "from the owner") != 0)
        return 3;
    snprintf((char *)mine.base + 4096, 64, "from a neighbour");
    lade_shm_detach(&mine, NULL, LADE_TAG_STAGING);
    return mine.base == NULL ? 0 : 4;
}

static int cannot_attach(const struct lade_shm *owner)
{
    struct lade_shm mine = {.base = &mine};
    lade_err e = LADE_ERR_INIT;
    int rc =
        lade_shm_attach(&mine, owner->pid, owner->fd, owner->size, true, &e);

    return rc == LADE_OK || mine.base != NULL;
}

static void test_neighbour(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    struct lade_shm shm;
    uint64_t size = 3 * 4096 + 5;

    (void)state;
    assert_int_equal(lade_shm_create(&shm, mem, LADE_TAG_STAGING, size, &err),
                     LADE_OK);
    assert_int_equal(shm.size, size);
    assert_int_equal(shm.pid, getpid());
    assert_true(shm.owner && shm.fd >= 0);
    assert_int_equal((uintptr_t)shm.base % 4096, 0);
    for (uint64_t i = 0; i < size; i++)
        assert_int_equal(((char *)shm.base)[i], 0);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_STAGING), size);
    snprintf(shm.base, 64, "from the owner");
    assert_int_equal(in_child(write_there, &shm), 0);
    assert_string_equal((char *)shm.base + 4096, "from a neighbour");
    int fd = shm.fd;
    lade_shm_seal(&shm);
    lade_shm_seal(&shm);
    assert_int_equal(shm.fd, -1);
    shm.fd = fd;
    assert_int_equal(in_child(cannot_attach, &shm), 0);
    shm.fd = -1;
    assert_string_equal(shm.base, "from the owner"); /* lives on */
    lade_shm_detach(&shm, mem, LADE_TAG_STAGING);
    assert_null(shm.base);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_STAGING), 0);
    lade_shm_detach(&shm, mem, LADE_TAG_STAGING);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_STAGING), 0);
    lade_mem_free(mem);
}

static int read_only_is_read_only(const struct lade_shm *owner)
{
    struct lade_shm mine;
    lade_err e = LADE_ERR_INIT;

    if (lade_shm_attach(&mine, owner->pid, owner->fd, owner->size, false, &e) !=
        LADE_OK)
        return 1;
    /* the kernel refuses to write there, without a signal */
    int fd = open("/dev/zero", O_RDONLY);
    ssize_t n = read(fd, mine.base, 1);
    return n == -1 && errno == EFAULT ? 0 : 2;
}

static void test_read_only(void **state)
{
    struct lade_shm shm;

    (void)state;
    assert_int_equal(lade_shm_create(&shm, NULL, LADE_TAG_TEMP, 4096, &err),
                     LADE_OK);
    assert_int_equal(in_child(read_only_is_read_only, &shm), 0);
    lade_shm_detach(&shm, NULL, LADE_TAG_TEMP);
}

/* Nobody can cut the memory under a neighbour's feet. */
static void test_size_is_fixed(void **state)
{
    struct lade_shm shm;

    (void)state;
    assert_int_equal(lade_shm_create(&shm, NULL, LADE_TAG_TEMP, 8192, &err),
                     LADE_OK);
    assert_int_equal(ftruncate(shm.fd, 4096), -1);
    assert_int_equal(errno, EPERM);
    lade_shm_detach(&shm, NULL, LADE_TAG_TEMP);
}

static void test_too_much(void **state)
{
    struct lade_mem *mem = lade_mem_new();
    struct lade_shm shm;

    (void)state;
    unit_failed(lade_shm_create(&shm, mem, LADE_TAG_TEMP, UINT64_MAX, &err),
                &err, LADE_E_MEMORY,
                "18446744073709551615 bytes of shared memory are needed");
    unit_failed(
        lade_shm_create(&shm, mem, LADE_TAG_TEMP, UINT64_C(1) << 50, &err),
        &err, LADE_E_MEMORY, "1125899906842624 bytes of shared memory");
    unit_failed(lade_shm_create(&shm, mem, LADE_TAG_TEMP, 0, &err), &err,
                LADE_E_MEMORY, "cannot reserve 0 bytes");
    assert_null(shm.base);
    assert_int_equal(shm.fd, -1);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_TEMP), 0);
    lade_shm_detach(&shm, mem, LADE_TAG_TEMP);
    lade_mem_free(mem);
}

static void test_wrong_memory(void **state)
{
    struct lade_shm shm, other;
    FILE *file = tmpfile();

    (void)state;
    assert_int_equal(lade_shm_create(&shm, NULL, LADE_TAG_TEMP, 4096, &err),
                     LADE_OK);
    unit_failed(lade_shm_attach(&other, shm.pid, shm.fd, 8192, true, &err),
                &err, LADE_E_INTERNAL, "has 4096 bytes, not 8192");
    assert_int_equal(ftruncate(fileno(file), 4096), 0);
    unit_failed(
        lade_shm_attach(&other, shm.pid, fileno(file), 4096, true, &err), &err,
        LADE_E_INTERNAL, "is not the node's shared memory");
    fclose(file);
    unit_failed(lade_shm_attach(&other, shm.pid, 999999, 4096, true, &err),
                &err, LADE_E_IO, "No such file");
    unit_failed(lade_shm_attach(&other, -1, 3, 4096, true, &err), &err,
                LADE_E_IO, "run as one user");
    assert_null(other.base);
    lade_shm_detach(&shm, NULL, LADE_TAG_TEMP);
}

static int as_nobody(const struct lade_shm *owner)
{
    struct lade_shm mine;
    lade_err e = LADE_ERR_INIT;

    if (setgid(65534) != 0 || setuid(65534) != 0)
        return 77;
    int rc =
        lade_shm_attach(&mine, owner->pid, owner->fd, owner->size, true, &e);
    return rc == LADE_E_IO && strstr(e.text, "Permission denied") ? 0 : 1;
}

static void test_other_user(void **state)
{
    struct lade_shm shm;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(lade_shm_create(&shm, NULL, LADE_TAG_TEMP, 4096, &err),
                     LADE_OK);
    int result = in_child(as_nobody, &shm);
    assert_true(result == 0 || result == 77);
    lade_shm_detach(&shm, NULL, LADE_TAG_TEMP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbour),     cmocka_unit_test(test_read_only),
        cmocka_unit_test(test_size_is_fixed), cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_wrong_memory),  cmocka_unit_test(test_other_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
