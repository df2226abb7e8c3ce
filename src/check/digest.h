/*
 * Digests of what is in the parameters (--digests FILE).
 */
#ifndef LADE_CHECK_DIGEST_H
#define LADE_CHECK_DIGEST_H

#include "check/writer.h"
#include "plan/plan.h"

struct lade_digest_param {
    const char *name;
    enum lade_dtype dtype;
    int ndim;
    uint64_t shape[LADE_MAX_DIMS];
    const void *data;
    uint64_t bytes;
};

/* One rank's entry: {"rank":0,"params":[["name","BF16",[504,64],"digest"],...],
 * "aliases":{...}}. alias_names[i] is another name of alias_params[i]. */
struct lade_digest_rank {
    uint32_t rank;
    const struct lade_digest_param *params;
    uint64_t count;
    const char *const *alias_names, *const *alias_params;
    uint64_t aliases;
};
void lade_digest_rank_write(struct lade_writer *out,
                            const struct lade_digest_rank *rank);

/* The whole file from the entries of all ranks, joined by commas. */
void lade_digest_file_write(struct lade_writer *out, const char *until,
                            const struct lade_layout *layout, uint32_t ep,
                            const char *entries, size_t length);

#endif
