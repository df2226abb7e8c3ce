/*
 * In: what went wrong, said by who found it. Out: one line of text, kept once.
 */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static const struct {
    int status;
    const char *name;
} names[] = {
    {LADE_OK, "ok"},
    {LADE_E_INTERNAL, "INTERNAL"},
    {LADE_E_USAGE, "USAGE"},
    {LADE_E_CHECKPOINT, "CHECKPOINT"},
    {LADE_E_PARAMETER, "PARAMETER"},
    {LADE_E_IO, "IO"},
    {LADE_E_MEMORY, "MEMORY"},
    {LADE_E_DEVICE, "DEVICE"},
    {LADE_E_MPI, "MPI"},
    {LADE_E_VERIFY, "VERIFY"},
    {LADE_E_TIMEOUT, "TIMEOUT"},
    {LADE_E_INTERRUPT, "INTERRUPT"},
    {LADE_E_TERMINATED, "INTERRUPT"},
};

const char *lade_status_name(int status)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (names[i].status == status)
            return names[i].name;
    return "INTERNAL";
}

const char *lade_version(void)
{
    return LADE_VERSION;
}

int lade_err_set(lade_err *err, int status, const char *fmt, ...)
{
    va_list args;

    if (err == NULL || err->status != LADE_OK)
        return status;
    err->status = status;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    for (char *c = err->text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return status;
}

void lade_err_line(const lade_err *err, char *out, size_t size)
{
    char who[128] = "";

    if (err->rank >= 0)
        snprintf(who, sizeof(who), " rank %d%s%s%s", err->rank,
                 err->node[0] ? " (node " : "", err->node,
                 err->node[0] ? ")" : "");
    snprintf(out, size, "lade: error[%s]%s%s%s: %s",
             lade_status_name(err->status), who, err->gate[0] ? " " : "",
             err->gate, err->text);
}
