/*
 * lade: load a large-language-model checkpoint into the parameters of N ranks.
 *
 * Each rank computes which experts and which tensor-parallel slices it owns;
 * every byte that any rank needs leaves storage once for the whole cluster;
 * what several ranks need travels between them. The result equals, byte for
 * byte, what the inference engine's own loader would have put there.
 *
 * The shortest use, on one rank and without MPI:
 *
 *     lade_options opt = LADE_OPTIONS_INIT;
 *     lade_session *s = NULL;
 *     lade_err err = LADE_ERR_INIT;
 *     if (lade_open_all(&s, "/models/qwen3", &opt, NULL, &err) == LADE_OK &&
 *         lade_load_all(s, &err) == LADE_OK)
 *         for (size_t i = 0; i < lade_param_count(s); i++) {
 *             lade_param p;
 *             lade_param_get(s, i, &p);      // p.name, p.dtype, p.shape, p.data
 *         }
 *     else
 *         fprintf(stderr, "%s\n", err.text);
 *     lade_close(s);
 *
 * With MPI, include lade_mpi.h and pass lade_comm_mpi_new(MPI_COMM_WORLD, ...).
 *
 * A function whose name ends in _all is collective: every rank of the
 * communicator calls it, and every rank gets the same status. The library
 * never prints to stdout, never exits and never aborts.
 */
#ifndef LADE_H
#define LADE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LADE_VERSION_MAJOR 0
#define LADE_VERSION_MINOR 1
#define LADE_VERSION_PATCH 0
#define LADE_VERSION "0.1.0"

#if defined(__GNUC__)
#define LADE_API __attribute__((visibility("default")))
#else
#define LADE_API
#endif

/* Results. The values are stable; the exit code of the lade program is -status
 * (docs/errors.md). */
typedef enum lade_status {
    LADE_OK = 0,
    LADE_E_INTERNAL = -1,     /* a fault of lade itself */
    LADE_E_USAGE = -2,        /* options, or a layout impossible for this model */
    LADE_E_CHECKPOINT = -3,   /* files absent, incomplete, invalid, unsupported */
    LADE_E_PARAMETER = -4,    /* tensors missing, unexpected, of wrong shape or dtype */
    LADE_E_IO = -5,           /* the system refuses: permission, EIO, disk full */
    LADE_E_MEMORY = -6,       /* the forecast does not fit, or an allocation failed */
    LADE_E_DEVICE = -7,       /* CUDA, NCCL */
    LADE_E_MPI = -8,          /* MPI itself; launcher and MPI disagree */
    LADE_E_VERIFY = -9,       /* digests or values differ */
    LADE_E_TIMEOUT = -75,     /* a rank is lost or late */
    LADE_E_INTERRUPT = -130,  /* SIGINT */
    LADE_E_TERMINATED = -143, /* SIGTERM */
} lade_status;

/* What went wrong, written once by the function that decided it. After a
 * collective call all ranks hold the same error: that of the lowest failing
 * rank. */
typedef struct lade_err {
    int status;      /* enum lade_status */
    int rank;        /* rank with the cause, -1 if it is not one rank's */
    char node[64];   /* its host name */
    char gate[16];   /* locate, catalogue, model, route, plan, read, ... */
    char text[1024]; /* one line: file, tensor, number found, number needed */
} lade_err;

#define LADE_ERR_INIT {0, -1, "", "", ""}

/* "CHECKPOINT" for LADE_E_CHECKPOINT; "ok" for LADE_OK. Static string. */
LADE_API const char *lade_status_name(int status);

/* "0.1.0". Static string. */
LADE_API const char *lade_version(void);

#ifdef __cplusplus
}
#endif

#endif
