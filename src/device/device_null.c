/*
 * Parameters nowhere: stripes are read and shared, nothing is delivered.
 */
#include "device/device.h"

static int null_open(void **ctx, const char **reason, lade_err *err)
{
    (void)err;
    *ctx = NULL;
    *reason = NULL;
    return LADE_OK;
}

static uint64_t null_memory_free(void *ctx)
{
    (void)ctx;
    return UINT64_MAX;
}

static int null_alloc(void *ctx, struct lade_mem *mem, uint64_t bytes,
                      void **base, lade_err *err)
{
    (void)ctx, (void)mem, (void)bytes, (void)err;
    *base = NULL;
    return LADE_OK;
}

static void null_release(void *ctx, struct lade_mem *mem, void *base,
                         uint64_t bytes)
{
    (void)ctx, (void)mem, (void)base, (void)bytes;
}

static void null_close(void *ctx)
{
    (void)ctx;
}

const struct lade_device_ops lade_device_null = {
    .name = "null",
    .version = LADE_DEVICE_VERSION,
    .caps = 0,
    .open = null_open,
    .memory_free = null_memory_free,
    .alloc = null_alloc,
    .release = null_release,
    .close = null_close,
};
