/*
 * lade over MPI. The caller initialises MPI (MPI_THREAD_FUNNELED or more) and
 * finalises it after lade_comm_free.
 */
#ifndef LADE_MPI_H
#define LADE_MPI_H

#include <lade.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over `comm`, which is duplicated and may be freed afterwards.
 * Pass the result to lade_open_all; free it with lade_comm_free after the last
 * lade_close. NULL with *err filled on failure. Call from the thread that will
 * call lade. */
LADE_API struct lade_comm *lade_comm_mpi_new(MPI_Comm comm, lade_err *err);

#ifdef __cplusplus
}
#endif

#endif
