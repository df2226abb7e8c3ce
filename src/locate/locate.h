/*
 * Gate 1: a directory (or one file) and a wish -> the shard list.
 *
 * Runs on rank 0 and is broadcast. Mirrors vLLM: default_loader.py,
 * DefaultModelLoader._prepare_weights; weight_utils.py,
 * filter_duplicate_safetensors_files; stricter where contract.md section 7
 * says so. No weight byte and no header is read here.
 */
#ifndef LADE_LOCATE_LOCATE_H
#define LADE_LOCATE_LOCATE_H

#include "base/blob.h"

enum lade_format { LADE_FORMAT_AUTO, LADE_FORMAT_HF, LADE_FORMAT_SAFETENSORS };

/* Capitals do not count. Another name is a USAGE error with the list; one that
 * the full lade has says that it is not in this version. */
int lade_format_find(const char *name, enum lade_format *format, lade_err *err);
const char *lade_format_name(enum lade_format format);

#define LADE_INDEX_NAME "model.safetensors.index.json"

struct lade_locate_wish {
    enum lade_format format;
    bool ignore_index;
};

struct lade_shard {
    uint32_t name; /* file name relative to the directory */
    uint32_t reserved;
    uint64_t size; /* bytes, of what the link leads to */
    int64_t mtime_ns;
    uint64_t dev, ino;
};

/* The product. Shards are in natural order of their names: runs of digits count
 * as numbers. */
struct lade_shards {
    struct lade_blob blob;
    uint32_t format; /* enum lade_format, resolved */
    uint32_t has_index;
    uint32_t dir; /* directory as the user gave it (or of the given file) */
    uint32_t index_name; /* "model.safetensors.index.json" */
    uint32_t filesystem; /* type of the first shard's file system */
    uint32_t config; /* path of config.json beside the weights; "" if there is
                        none */
    struct lade_span shards; /* struct lade_shard */
    struct lade_span pool;
};

/* What the index says, on rank 0 only: tensor name -> shard. Sorted as in the
 * file. */
struct lade_index_row {
    uint32_t name, shard;
};
struct lade_index {
    struct lade_blob blob;
    struct lade_span rows; /* struct lade_index_row */
    struct lade_span pool;
};

/* *index is NULL when there is no index or it is ignored. Both are freed with
 * lade_free. Errors: CHECKPOINT with the file and what to do, IO for a refusal
 * of the system. */
int lade_locate(const char *path, const struct lade_locate_wish *wish,
                struct lade_mem *mem, struct lade_shards **shards,
                struct lade_index **index, lade_err *err);

/* Full path of shard i into out. */
int lade_shard_path(const struct lade_shards *shards, uint32_t i, char *out,
                    size_t size, lade_err *err);

/* Natural order: runs of digits compare as numbers, the rest by byte, base name
 * only (vLLM: weight_utils.py, _natural_sort_key). */
int lade_natural_compare(const char *a, const char *b);

#endif
