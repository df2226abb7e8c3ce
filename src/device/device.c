/*
 * In: a name. Out: the device and why.
 */
#include "device/device.h"

#include <string.h>

int lade_device_choose(const char *name, const struct lade_device_ops **ops,
                       const char **reason, lade_err *err)
{
    bool automatic = strcmp(name, "auto") == 0;

    if (automatic || strcmp(name, "host") == 0) {
        *ops = &lade_device_host;
        *reason = automatic ? "no other device in this version" : "asked for";
        return LADE_OK;
    }
    if (strcmp(name, "null") == 0) {
        *ops = &lade_device_null;
        *reason = "asked for";
        return LADE_OK;
    }
    return lade_err_set(err, LADE_E_DEVICE,
                        "device %s: this version has host and null; a CUDA "
                        "device is not in it",
                        name);
}
