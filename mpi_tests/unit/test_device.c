/*
 * Where parameters live: choice by name with a reason, memory of the host,
 * nothing for null.
 */
#include "unit.h"

#include <stdbool.h>

#include "device/device.h"

static void devices_by_name(void **state)
{
    const struct lade_device_ops *ops = NULL;
    const char *reason = NULL;
    lade_err err = LADE_ERR_INIT;

    (void)state;
    assert_int_equal(lade_device_choose("auto", &ops, &reason, &err), LADE_OK);
    assert_ptr_equal(ops, &lade_device_host);
    assert_string_equal(reason, "no other device in this version");
    assert_int_equal(lade_device_choose("null", &ops, &reason, &err), LADE_OK);
    assert_ptr_equal(ops, &lade_device_null);
    assert_string_equal(reason, "asked for");
    assert_int_equal(lade_device_choose("host", &ops, &reason, &err), LADE_OK);
    assert_ptr_equal(ops, &lade_device_host);
    assert_int_equal(lade_device_choose("cuda", &ops, &reason, &err),
                     LADE_E_DEVICE);
    assert_non_null(strstr(err.text, "device cuda: this version has host"));
    assert_ptr_equal(ops, &lade_device_host); /* as it was */
}

static void host_gives_zeroed_pages(void **state)
{
    const struct lade_device_ops *host = &lade_device_host;
    const uint64_t bytes = 3 * 4096 + 1;
    struct lade_mem *mem = lade_mem_new();
    const char *reason = "";
    lade_err err = LADE_ERR_INIT;
    void *ctx = &err, *base = NULL;

    (void)state;
    assert_int_equal(host->version, LADE_DEVICE_VERSION);
    assert_int_equal(host->caps, LADE_DEVICE_STORES | LADE_DEVICE_READABLE);
    assert_int_equal(host->open(&ctx, &reason, &err), LADE_OK);
    assert_null(reason);
    assert_true(host->memory_free(ctx) > 0);
    assert_int_equal(host->alloc(ctx, mem, bytes, &base, &err), LADE_OK);
    assert_int_equal((uintptr_t)base % 4096, 0);
    for (uint64_t i = 0; i < bytes; i++)
        assert_int_equal(((char *)base)[i], 0);
    assert_true(lade_mem_now(mem, LADE_TAG_PARAMETERS) >= bytes);
    host->release(ctx, mem, base, bytes);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_PARAMETERS), 0);
    base = NULL;
    assert_int_equal(host->alloc(ctx, mem, UINT64_C(1) << 62, &base, &err),
                     LADE_E_MEMORY);
    assert_string_equal(err.text, "cannot allocate 4611686018427387904 bytes "
                                  "for parameters");
    assert_null(base);
    assert_int_equal(lade_mem_now(mem, LADE_TAG_PARAMETERS), 0);
    host->close(ctx);
    lade_mem_free(mem);
}

static void null_keeps_nothing(void **state)
{
    const struct lade_device_ops *null = &lade_device_null;
    struct lade_mem *mem = lade_mem_new();
    const char *reason = "";
    lade_err err = LADE_ERR_INIT;
    void *ctx = &err, *base = &err;

    (void)state;
    assert_int_equal(null->version, LADE_DEVICE_VERSION);
    assert_int_equal(null->caps, 0);
    assert_int_equal(null->open(&ctx, &reason, &err), LADE_OK);
    assert_null(reason);
    assert_true(null->memory_free(ctx) == UINT64_MAX);
    assert_int_equal(null->alloc(ctx, mem, UINT64_C(1) << 62, &base, &err),
                     LADE_OK);
    assert_null(base);
    assert_int_equal(lade_mem_peak_total(mem), 0);
    null->release(ctx, mem, base, UINT64_C(1) << 62);
    null->close(ctx);
    lade_mem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_by_name),
        cmocka_unit_test(host_gives_zeroed_pages),
        cmocka_unit_test(null_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
