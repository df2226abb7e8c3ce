/*
 * Gate 7, the stages after loading. Here: a head that the config calls tied but
 * that the checkpoint has on its own.
 */
#ifndef LADE_POST_RETIE_H
#define LADE_POST_RETIE_H

#include "comm/comm.h"
#include "model/model.h"

/* Two parameters of this rank that may be one. Either data may be NULL when
 * there are no bytes (device null). */
struct lade_tie {
    const void *from, *to; /* the storage that stays, the other one */
    uint64_t from_bytes, to_bytes;
    const char *from_name, *to_name;
};

/* Compares the two on every rank. *tied is true on all ranks if they are equal
 * on all ranks; else one warning, and both stay. Mirrors vLLM:
 * vocab_parallel_embedding.py, ParallelLMHead.tie_weights, and the comparison
 * after loading. */
int lade_retie_all(struct lade_comm *comm, const struct lade_tie *tie,
                   bool *tied, lade_err *err);

#endif
