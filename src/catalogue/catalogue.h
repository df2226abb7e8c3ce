/*
 * Gate 2: the shards' headers -> rows (name, shard, offset, length, dtype,
 * shape), every one checked against the real file size.
 *
 * Headers are dealt over the ranks, each parsed once in the cluster; rank 0
 * merges; every node gets the rows once. One file per container format.
 */
#ifndef LADE_CATALOGUE_CATALOGUE_H
#define LADE_CATALOGUE_CATALOGUE_H

#include "base/blob.h"
#include "base/dtype.h"
#include "locate/locate.h"

struct lade_row {
    uint64_t offset; /* first byte in the file (header included) */
    uint64_t length; /* bytes */
    uint32_t name;
    uint32_t shard;
    uint16_t dtype; /* enum lade_dtype */
    uint16_t ndim;
    uint32_t dtype_name; /* spelling, for an unknown dtype; else 0 */
    uint64_t shape[LADE_MAX_DIMS];
};

/* The product: rows sorted by (shard, offset, length); empty tensors at one
 * place in the order of the header. */
struct lade_catalogue {
    struct lade_blob blob;
    uint64_t header_bytes; /* read from all shards */
    uint64_t tensor_bytes;
    uint64_t shadowed; /* rows left out: the index names another file for that
                          tensor */
    uint64_t shadowed_bytes;
    struct lade_span rows;      /* struct lade_row */
    struct lade_span first_row; /* uint32_t per shard, plus one: rows of shard s
                                   are first_row[s] .. first_row[s+1]-1 */
    struct lade_span pool;
};

/* Takes one tensor of a header. row->name and row->shard are not set; what the
 * pointers lead to lives as long as the call. */
struct lade_row_sink {
    int (*take)(void *ctx, const char *name, size_t length,
                const struct lade_row *row, const char *dtype_name,
                lade_err *err);
    void *ctx;
};

/* A container format. */
struct lade_format_ops {
    const char *name;
    /* Reads and checks the header of one open file of `size` bytes; calls the
     * sink once per tensor, in the order of the header and before all ranges
     * are compared: after a failure what it got is void. *header_bytes is what
     * was read. */
    int (*scan)(int fd, uint64_t size, const char *file, struct lade_mem *mem,
                const struct lade_row_sink *sink, uint64_t *header_bytes,
                lade_err *err);
};
extern const struct lade_format_ops lade_format_safetensors;

/* The same parser on bytes in memory, for tests and fuzzing: `header` is the
 * JSON text, file_size the whole file's. */
int lade_safetensors_parse(const char *header, size_t length,
                           uint64_t file_size, const char *file,
                           struct lade_mem *mem,
                           const struct lade_row_sink *sink, lade_err *err);

/* Rows of shards first, first + step, ... as a catalogue blob of its own (rows
 * of other shards absent). Each file is opened once. step is not 0. */
int lade_catalogue_scan(const struct lade_shards *shards, uint32_t first,
                        uint32_t step, struct lade_mem *mem,
                        struct lade_catalogue **part, lade_err *err);

/* Joins the parts: finds names in two files (the index decides; without index:
 * refused naming both), names that the index lists but their file lacks, names
 * that only a file has (one warning with a count; they count as not there).
 * parts[i] may be NULL. */
int lade_catalogue_merge(const struct lade_shards *shards,
                         const struct lade_index *index,
                         const struct lade_catalogue *const *parts, int count,
                         struct lade_mem *mem,
                         struct lade_catalogue **catalogue, lade_err *err);

/* Row by name; -1 if there is none. Linear: for tests and inspect only. */
int64_t lade_catalogue_find(const struct lade_catalogue *catalogue,
                            const char *name);

#endif
