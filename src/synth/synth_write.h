/*
 * A file of a checkpoint as a stream: head bytes, then tensors without gaps.
 * Any block of it can be made at any time, so threads share the work.
 */
#ifndef LADE_SYNTH_WRITE_H
#define LADE_SYNTH_WRITE_H

#include "synth/recipe.h"

/* A directory that is being filled: files lie under temporary names until
 * lade_synth_publish. */
struct lade_synth_dir {
    const char *path;
    int fd;
    struct lade_mem *mem;
    struct lade_vec written; /* struct lade_synth_name */
};
struct lade_synth_name {
    char name[96];
};

/* Makes the directory, locks it, refuses what must not be overwritten. */
int lade_synth_dir_open(struct lade_synth_dir *dir, const char *path,
                        bool force, struct lade_mem *mem, lade_err *err);
/* Renames everything written; then removes other weight files and indices
 * (there are none unless force was given). */
int lade_synth_publish(struct lade_synth_dir *dir, lade_err *err);
/* Removes what was not published. */
void lade_synth_dir_close(struct lade_synth_dir *dir);

struct lade_synth_stream {
    const char *head;
    uint64_t head_size;
    const struct lade_recipe *recipe; /* NULL: only the head */
    const uint32_t *order;            /* tensors of this file */
    const uint64_t *starts;           /* [count + 1] offsets after the head */
    uint64_t count;
    uint64_t size; /* of the file */
    uint64_t seed;
    bool sparse; /* only the head is written */
};

/* Writes and syncs one file under a temporary name. */
int lade_synth_put(struct lade_synth_dir *dir, const char *name,
                   const struct lade_synth_stream *stream, unsigned threads,
                   lade_err *err);

/* The bytes at .. at + length of the file. */
void lade_synth_block(const struct lade_synth_stream *stream, uint64_t at,
                      uint64_t length, char *out);

#endif
