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

/* Bytes of the well-formed UTF-8 character at p, 0 if there is none. */
static size_t utf8_length(const unsigned char *p)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    size_t more = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : 1;
    uint32_t value = p[0] & (0x3fu >> more);

    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0; /* stops at the terminating zero, too */
        value = value << 6 | (p[i] & 0x3fu);
    }
    if (value < least[more] || value > 0x10ffff || value < 0xa0 ||
        (value >= 0xd800 && value <= 0xdfff))
        return 0;
    return more + 1;
}

void lade_text_clean(char *text)
{
    unsigned char *p = (unsigned char *)text;

    while (*p) {
        size_t length = *p >= 0x80 ? utf8_length(p) : *p >= 0x20 && *p != 0x7f;
        if (length == 0)
            *p = '?';
        p += length ? length : 1;
    }
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
    lade_text_clean(err->text);
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
