/*
 * Names of checkpoint formats. As in the engine, capitals do not count (vLLM:
 * load.py, LoadConfig).
 */
#include <string.h>
#include <strings.h>

#include "locate/locate.h"

static const char *const names[] = {
    [LADE_FORMAT_AUTO] = "auto",
    [LADE_FORMAT_HF] = "hf",
    [LADE_FORMAT_SAFETENSORS] = "safetensors",
};

/* Formats that lade promises and this version does not read. */
static const char *const later[] = {
    "mistral", "pt",   "npcache",    "dummy", "sharded_state",
    "hdf5",    "gguf", "tensorizer", "lade",
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

int lade_format_find(const char *name, enum lade_format *format, lade_err *err)
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcasecmp(name, names[i]) == 0) {
            *format = (enum lade_format)i;
            return LADE_OK;
        }
    for (size_t i = 0; i < COUNT(later); i++)
        if (strcasecmp(name, later[i]) == 0)
            return lade_err_set(err, LADE_E_USAGE,
                                "format %s: not in this version; there are "
                                "auto, hf, safetensors",
                                later[i]);
    return lade_err_set(err, LADE_E_USAGE,
                        "format %.100s: no such format; there are auto, hf, "
                        "safetensors",
                        name);
}

const char *lade_format_name(enum lade_format format)
{
    return (size_t)format < COUNT(names) ? names[format] : "unknown";
}
