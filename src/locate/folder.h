/*
 * What lies in a folder, by name only: nothing is opened, no folder inside is
 * entered.
 */
#ifndef LADE_LOCATE_FOLDER_H
#define LADE_LOCATE_FOLDER_H

#include "locate/locate.h"

struct lade_folder {
    const char *path;
    struct lade_arena texts;
    struct lade_vec weights; /* const char *: *.safetensors, natural order */
    struct lade_vec others;  /* const char *: the rest, hidden ones left out */
    uint32_t consolidated;   /* of the weights, those named consolidated* */
    bool has_index, has_params;
};

/* Call lade_folder_fini also after a failure. `path` must outlive it. */
int lade_folder_read(struct lade_folder *folder, const char *path,
                     struct lade_mem *mem, lade_err *err);
void lade_folder_fini(struct lade_folder *folder);

/* There is no *.safetensors: says what is there instead, and which format
 * that would be. Returns CHECKPOINT. */
int lade_folder_no_weights(const struct lade_folder *folder, lade_err *err);
/* Without an index: one warning for each series of files that lacks some. */
int lade_folder_warn_series(const struct lade_folder *folder,
                            struct lade_mem *mem, lade_err *err);
/* The format that a file name stands for ("PyTorch .bin"); NULL if none that
 * we know, or *.safetensors. */
const char *lade_other_format(const char *name);

/* dir/name into out. */
int lade_path_join(const char *dir, const char *name, char *out, size_t size,
                   lade_err *err);

/* A few names for a message: "a, b, c, d, e and 7 more". Zero-initialise. */
#define LADE_NAMES_SHOWN 5
struct lade_names {
    uint64_t count;
    char text[512];
};
void lade_names_add(struct lade_names *names, const char *name);
/* Writes the count of those not shown behind them; returns the text. */
const char *lade_names_text(struct lade_names *names);

#endif
