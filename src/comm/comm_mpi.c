/*
 * MPI 3.1: the only file of the library that calls MPI. Everything starts
 * non-blocking and is tested; errors return. The communicator is a duplicate
 * of the caller's.
 */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "lade_mpi.h"

_Static_assert(sizeof(MPI_Request) <= sizeof(((struct lade_request *)0)->word),
               "an MPI request must fit a lade request");

struct mpi {
    MPI_Comm comm;
};

static int check(int code, const char *what, lade_err *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    if (code == MPI_SUCCESS)
        return LADE_OK;
    MPI_Error_string(code, text, &length);
    return lade_err_set(err, LADE_E_MPI, "%s: %s", what, text);
}

static int started(int code, const MPI_Request *request,
                   struct lade_request *req, const char *what, lade_err *err)
{
    int rc = check(code, what, err);

    if (rc != LADE_OK)
        return rc;
    memcpy(req->word, request, sizeof(*request));
    req->active = true;
    return LADE_OK;
}

static int too_long(size_t bytes, lade_err *err)
{
    if (bytes <= INT_MAX)
        return LADE_OK;
    return lade_err_set(err, LADE_E_INTERNAL,
                        "a message of %zu bytes was not cut to pieces", bytes);
}

static int mpi_send(void *ctx, const void *buf, size_t bytes, int to, int tag,
                    struct lade_request *req, lade_err *err)
{
    struct mpi *mpi = ctx;
    MPI_Request request;

    if (too_long(bytes, err) != LADE_OK)
        return LADE_E_INTERNAL;
    int code =
        MPI_Isend(buf, (int)bytes, MPI_BYTE, to, tag, mpi->comm, &request);
    return started(code, &request, req, "MPI_Isend", err);
}

static int mpi_recv(void *ctx, void *buf, size_t bytes, int from, int tag,
                    struct lade_request *req, lade_err *err)
{
    struct mpi *mpi = ctx;
    MPI_Request request;

    if (too_long(bytes, err) != LADE_OK)
        return LADE_E_INTERNAL;
    int code =
        MPI_Irecv(buf, (int)bytes, MPI_BYTE, from, tag, mpi->comm, &request);
    return started(code, &request, req, "MPI_Irecv", err);
}

static int mpi_bcast(void *ctx, void *buf, size_t bytes, int root,
                     struct lade_request *req, lade_err *err)
{
    struct mpi *mpi = ctx;
    MPI_Request request;

    if (too_long(bytes, err) != LADE_OK)
        return LADE_E_INTERNAL;
    int code = MPI_Ibcast(buf, (int)bytes, MPI_BYTE, root, mpi->comm, &request);
    return started(code, &request, req, "MPI_Ibcast", err);
}

static int mpi_allgather(void *ctx, const void *mine, void *all, size_t bytes,
                         struct lade_request *req, lade_err *err)
{
    struct mpi *mpi = ctx;
    MPI_Request request;

    if (too_long(bytes, err) != LADE_OK)
        return LADE_E_INTERNAL;
    int code = MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes,
                              MPI_BYTE, mpi->comm, &request);
    return started(code, &request, req, "MPI_Iallgather", err);
}

static int mpi_allmin(void *ctx, const int64_t *mine, int64_t *all, int count,
                      struct lade_request *req, lade_err *err)
{
    struct mpi *mpi = ctx;
    MPI_Request request;
    int code = MPI_Iallreduce(mine, all, count, MPI_INT64_T, MPI_MIN, mpi->comm,
                              &request);

    return started(code, &request, req, "MPI_Iallreduce", err);
}

static int mpi_test(void *ctx, struct lade_request *req, bool *done,
                    lade_err *err)
{
    MPI_Request request;
    int flag = 0;

    (void)ctx;
    memcpy(&request, req->word, sizeof(request));
    int rc =
        check(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), "MPI_Test", err);
    memcpy(req->word, &request, sizeof(request));
    *done = flag != 0;
    if (flag)
        req->active = false;
    return rc;
}

static void mpi_cancel(void *ctx, struct lade_request *req)
{
    MPI_Request request;

    (void)ctx;
    if (!req->active)
        return;
    memcpy(&request, req->word, sizeof(request));
    MPI_Cancel(&request);
    MPI_Request_free(&request);
    req->active = false;
}

static void mpi_close(void *ctx)
{
    struct mpi *mpi = ctx;

    MPI_Comm_free(&mpi->comm);
    lade_free(NULL, mpi);
}

static const struct lade_comm_ops mpi_ops = {
    .name = "mpi",
    .version = LADE_COMM_VERSION,
    .send = mpi_send,
    .recv = mpi_recv,
    .bcast = mpi_bcast,
    .allgather = mpi_allgather,
    .allmin = mpi_allmin,
    .test = mpi_test,
    .cancel = mpi_cancel,
    .close = mpi_close,
};

/* "Open MPI v4.1.4" out of the library's long text. */
static void describe(struct lade_comm *comm)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "MPI";
    int length = 0;

    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    snprintf(comm->description, sizeof(comm->description), "%.90s", text);
}

struct lade_comm *lade_comm_mpi_new(MPI_Comm world, lade_err *err)
{
    struct lade_comm *comm =
        lade_alloc(NULL, LADE_TAG_TEMP, sizeof(*comm), err);
    struct mpi *mpi = lade_alloc(NULL, LADE_TAG_TEMP, sizeof(*mpi), err);
    int rc = comm && mpi ? LADE_OK : LADE_E_MEMORY;

    if (rc == LADE_OK)
        rc = check(MPI_Comm_dup(world, &mpi->comm), "MPI_Comm_dup", err);
    if (rc == LADE_OK)
        rc = check(MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN),
                   "MPI_Comm_set_errhandler", err);
    if (rc != LADE_OK) {
        lade_free(NULL, comm);
        lade_free(NULL, mpi);
        return NULL;
    }
    *comm = (struct lade_comm){.ops = &mpi_ops, .ctx = mpi, .timeout_s = 300};
    MPI_Comm_rank(mpi->comm, &comm->rank);
    MPI_Comm_size(mpi->comm, &comm->size);
    describe(comm);
    return comm;
}
