/*
 * Where parameters live. host: memory of this process. null: nowhere (nothing
 * is delivered). CUDA comes as a separately loaded library later.
 */
#ifndef LADE_DEVICE_DEVICE_H
#define LADE_DEVICE_DEVICE_H

#include "base/mem.h"

#define LADE_DEVICE_VERSION 1

enum lade_device_caps {
    LADE_DEVICE_STORES = 1,   /* parameters have addresses */
    LADE_DEVICE_READABLE = 2, /* the CPU (and O_DIRECT reads) can write there */
};

struct lade_device_ops {
    const char *name;
    unsigned version, caps;
    /* fills *reason (static text or NULL) when it cannot work */
    int (*open)(void **ctx, const char **reason, lade_err *err);
    uint64_t (*memory_free)(void *ctx);
    /* zeroed, page aligned; books under PARAMETERS */
    int (*alloc)(void *ctx, struct lade_mem *mem, uint64_t bytes, void **base,
                 lade_err *err);
    void (*release)(void *ctx, struct lade_mem *mem, void *base,
                    uint64_t bytes);
    void (*close)(void *ctx);
};

extern const struct lade_device_ops lade_device_host, lade_device_null;

/* By name: "host", "null", "auto" (host). LADE_E_DEVICE with the reason for
 * "cuda". */
int lade_device_choose(const char *name, const struct lade_device_ops **ops,
                       const char **reason, lade_err *err);

#endif
