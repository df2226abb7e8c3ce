/*
 * Checkpoints that need no download: a model file (src/synth/presets/NAME.json,
 * or any file of that form) -> config.json, safetensors files and their index.
 *
 * With `tiny` the model file's "tiny" overrides apply and the bytes are those
 * of the golden records; without it the shapes are the true ones and tensors
 * are dealt over files as the publisher's exporter does it.
 *
 * Keys of a model file that synth reads: name, config, let, tiny, tensors[]
 * {name, shape, dtype, layers, experts, fill, role}, files {count, name_format,
 * first_index, denominator_in_name, rule}; and, of our own, tiny_files ("one",
 * or "split": no file above 40 % of the bytes) and config_defaults (keys for
 * config.json where the model file's config leaves them out). A file that
 * lacks the last two takes them from the preset of the same name, if any.
 * Everything in a model file is untrusted.
 */
#ifndef LADE_SYNTH_SYNTH_H
#define LADE_SYNTH_SYNTH_H

#include "base/mem.h"

enum lade_synth_fill {
    LADE_SYNTH_ZERO_SPARSE, /* true size, no disk blocks for the data */
    LADE_SYNTH_FILL_1       /* lade-fill-1: values from names (synth_fill.h) */
};

struct lade_synth_wish {
    const char *preset;     /* exactly one of these two */
    const char *model_file; /* path */
    const char *out;        /* directory, made if absent */
    /* "KEY=VALUE": dotted config key, JSON value; applied in order, after the
     * tiny overrides */
    const char *const *sets;
    int set_count;
    enum lade_synth_fill fill;
    uint64_t seed;
    unsigned threads; /* 0: two per processor, at most 16 */
    bool tiny;
    bool force; /* replace the checkpoint that `out` holds */
};

struct lade_synth_report {
    uint32_t files; /* weight files */
    uint64_t tensors;
    uint64_t bytes;      /* of tensors */
    uint64_t file_bytes; /* weight files with their headers */
    double seconds;      /* writing and syncing */
    char model[128];     /* the model file's name */
};

/* Writes the checkpoint. Files get their names only when all of them are
 * complete and synced; config.json comes last. LADE_E_USAGE: unknown preset,
 * bad
 * --set, `out` holds safetensors files or config.json and force is off (with
 * force those that are not overwritten are removed); LADE_E_CHECKPOINT: a fault
 * of the model file; LADE_E_IO: the disk. *report only on success. */
int lade_synth_write(const struct lade_synth_wish *wish, struct lade_mem *mem,
                     struct lade_synth_report *report, lade_err *err);

#endif
