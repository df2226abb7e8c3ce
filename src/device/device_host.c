/*
 * Parameters in the memory of this process.
 */
#include "base/host.h"
#include "device/device.h"

static int host_open(void **ctx, const char **reason, lade_err *err)
{
    (void)err;
    *ctx = NULL;
    *reason = NULL;
    return LADE_OK;
}

static uint64_t host_memory_free(void *ctx)
{
    (void)ctx;
    return lade_host_memory_free(NULL);
}

static int host_alloc(void *ctx, struct lade_mem *mem, uint64_t bytes,
                      void **base, lade_err *err)
{
    (void)ctx;
    void *pages = lade_pages_alloc(mem, LADE_TAG_PARAMETERS, bytes, err);
    if (pages == NULL)
        return LADE_E_MEMORY;
    *base = pages;
    return LADE_OK;
}

static void host_release(void *ctx, struct lade_mem *mem, void *base,
                         uint64_t bytes)
{
    (void)ctx;
    lade_pages_free(mem, LADE_TAG_PARAMETERS, base, bytes);
}

static void host_close(void *ctx)
{
    (void)ctx;
}

const struct lade_device_ops lade_device_host = {
    .name = "host",
    .version = LADE_DEVICE_VERSION,
    .caps = LADE_DEVICE_STORES | LADE_DEVICE_READABLE,
    .open = host_open,
    .memory_free = host_memory_free,
    .alloc = host_alloc,
    .release = host_release,
    .close = host_close,
};
