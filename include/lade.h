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
 *             lade_param_get(s, i, &p); // p.name, p.shape, p.data ...
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
    LADE_E_INTERNAL = -1,   /* a fault of lade itself */
    LADE_E_USAGE = -2,      /* options; a layout impossible for this model */
    LADE_E_CHECKPOINT = -3, /* files absent, incomplete, invalid */
    LADE_E_PARAMETER = -4,  /* tensors missing, unexpected, of wrong shape */
    LADE_E_IO = -5,         /* the system refuses: permission, EIO, disk full */
    LADE_E_MEMORY = -6,     /* the forecast does not fit; no memory */
    LADE_E_DEVICE = -7,     /* CUDA, NCCL */
    LADE_E_MPI = -8,        /* MPI itself; launcher and MPI disagree */
    LADE_E_VERIFY = -9,     /* digests or values differ */
    LADE_E_TIMEOUT = -75,   /* a rank is lost or late */
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

#define LADE_ERR_INIT                                                          \
    {                                                                          \
        0, -1, "", "", ""                                                      \
    }

/* "CHECKPOINT" for LADE_E_CHECKPOINT; "ok" for LADE_OK. Static string. */
LADE_API const char *lade_status_name(int status);

/* "0.1.0". Static string. */
LADE_API const char *lade_version(void);

/* ---- Who takes part ---------------------------------------------------- */

/* How the ranks of a load talk: an opaque handle. NULL stands for one rank
 * that is alone. lade_mpi.h makes one from an MPI communicator. */
typedef struct lade_comm lade_comm;

/* After the last lade_close of a session that used it. NULL is fine. */
LADE_API void lade_comm_free(lade_comm *comm);

/* ---- What is asked for ------------------------------------------------- */

/* Zero and NULL mean: as the program's default. The words are those of the
 * command line (docs/cli.md): scope "world", read "pread", and so on. Start
 * from LADE_OPTIONS_INIT, which sets `size`, so that a program that was built
 * with an older header goes on working. Texts are copied by lade_open_all. All
 * ranks must pass the same values. */
typedef struct lade_options {
    size_t size;

    /* The layout. rank = (dp_rank * pp + pp_rank) * tp + tp_rank. What is not
     * given is 1; if none is given, tp is the number of ranks. */
    uint32_t tp, pp, dp;
    uint32_t ep;                  /* 1: whole experts over all dp * tp ranks */
    const char *expert_placement; /* linear, round_robin */
    uint32_t redundant_experts;
    const char *expert_map; /* JSON file: physical to logical */

    /* The checkpoint. */
    const char *format; /* auto, hf, safetensors */
    const char *family; /* a family file of the caller's own */
    const char *dtype;  /* auto, bf16, f16, f32 */
    uint32_t no_strict; /* 1: missing and unknown tensors only warn */
    uint32_t ignore_index;

    /* How it is read and where it goes. threads, depth, staging and memory are
     * those of a node; its ranks divide them. */
    const char *read;   /* auto, pread, null */
    const char *direct; /* auto, on, off */
    const char *scope;  /* auto, world, node, rank */
    const char *device; /* auto, host, null */
    uint32_t threads, depth;
    uint64_t block, staging, memory; /* bytes */
    const char *until;               /* processed, loaded */
    double timeout_s;                /* longest wait without progress: 300 */
    uint32_t nodes; /* split the ranks into so many nodes, in blocks */
    uint32_t trace; /* 1: keep the time spans for lade_trace_json */

    /* Set to a lade_status by a signal handler to stop the load within one
     * piece on all ranks; may be NULL. */
    const int *interrupt;
    /* Called on rank 0 by the thread that loads, at most a few times a second
     * with bytes that arrived and bytes in all; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *progress_ctx;

    /* For the report only. */
    const char *command;  /* the command line */
    const char *launcher; /* mpirun, srun */
} lade_options;

#define LADE_OPTIONS_INIT                                                      \
    {                                                                          \
        sizeof(lade_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                           \
    }

/* ---- A load ------------------------------------------------------------ */

/* One load of one checkpoint. Used by one thread at a time. */
typedef struct lade_session lade_session;

/* Finds the files, reads their headers, decides what every rank holds and who
 * reads what; compares the memory that is needed with what is free. No weight
 * byte is read and no parameter allocated. Collective.
 *
 * `path` is a directory or one file, options may be NULL, comm may be NULL for
 * one rank and must outlive the session. *session is set also after a failure,
 * if there is one at all (else NULL), so that lade_report_json can tell what
 * happened; then only the reports and lade_close may be called with it. */
LADE_API int lade_open_all(lade_session **session, const char *path,
                           const lade_options *options, lade_comm *comm,
                           lade_err *err);

/* Allocates the parameters, reads, shares, and checks that every element of
 * every declared parameter was written exactly once. Collective; once per
 * session. After LADE_OK the parameters are complete. */
LADE_API int lade_load_all(lade_session *session, lade_err *err);

/* Frees everything, the parameters too. Not collective; NULL is fine. */
LADE_API void lade_close(lade_session *session);

/* ---- What this rank holds ---------------------------------------------- */

#define LADE_PARAM_MAX_DIMS 8

typedef struct lade_param {
    const char *name;  /* the engine's; lives as long as the session */
    const char *dtype; /* safetensors spelling: "BF16" */
    uint32_t ndim;
    uint64_t shape[LADE_PARAM_MAX_DIMS]; /* of this rank's part, C order */
    uint64_t bytes;
    void *data; /* NULL before lade_load_all and with device null */
} lade_param;

/* Parameters of this rank, each storage once, in module order; known after
 * lade_open_all. */
LADE_API size_t lade_param_count(const lade_session *session);
/* LADE_E_USAGE if there is no parameter `index`. */
LADE_API int lade_param_get(const lade_session *session, size_t index,
                            lade_param *param);
/* The same by name; an alias finds the parameter that it stands for. */
LADE_API int lade_param_find(const lade_session *session, const char *name,
                             lade_param *param);

/* Second names of one storage: tied embeddings ("lm_head.weight" for
 * "model.embed_tokens.weight"). Both texts live as long as the session. */
LADE_API size_t lade_alias_count(const lade_session *session);
LADE_API int lade_alias_get(const lade_session *session, size_t index,
                            const char **name, const char **param);

/* 32 lower-case hex digits and a terminating zero: XXH3, 128 bits, of the bytes
 * of parameter `index`. LADE_E_USAGE if it has no bytes here. */
LADE_API int lade_param_digest(const lade_session *session, size_t index,
                               char digest[33]);

/* ---- Reports ----------------------------------------------------------- */

/* The texts are allocated; free them with lade_text_free. They are made from
 * what the ranks had to tell when lade_open_all or lade_load_all ended; rank 0
 * has it, the others get LADE_E_USAGE. */

/* JSON, schema 1 (docs/report.md). */
LADE_API int lade_report_json(const lade_session *session, char **text,
                              lade_err *err);
/* The table that `lade load` prints. */
LADE_API int lade_report_table(const lade_session *session, char **text,
                               lade_err *err);
/* Digests of all parameters of all ranks (docs/report.md). Collective; rank 0
 * gets the text, the others NULL. */
LADE_API int lade_digests_json_all(lade_session *session, char **text,
                                   lade_err *err);
/* Time spans of all ranks as Chrome trace events. Collective; as above. Needs
 * the option trace. */
LADE_API int lade_trace_json_all(lade_session *session, char **text,
                                 lade_err *err);

/* What a load in a world of `ranks` ranks would need and do, computed by one
 * process from the headers alone: the report with predictions instead of
 * measurements. options->nodes spreads the ranks over nodes, in blocks. With
 * ranks 0 the world is tp * pp * dp of the options. Not collective. */
LADE_API int lade_plan_json(const char *path, const lade_options *options,
                            uint32_t ranks, char **text, lade_err *err);

/* NULL is fine. */
LADE_API void lade_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
