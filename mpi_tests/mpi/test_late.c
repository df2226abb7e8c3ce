/*
 * One rank never arrives: the others must leave by their deadline with a line
 * that names the gate and the silent rank, and the job must end with 75.
 *
 *   test_late RANK     RANK stays away for a minute
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "lade_mpi.h"

int main(int argc, char **argv)
{
    lade_err err = LADE_ERR_INIT;
    int given, silent = argc > 1 ? atoi(argv[1]) : 0;
    char want[32];

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    struct lade_comm *comm = lade_comm_mpi_new(MPI_COMM_WORLD, &err);
    if (comm == NULL)
        return 1;
    comm->timeout_s = 2;
    if (comm->rank == silent)
        lade_sleep_us(60u * 1000000u);
    uint64_t start = lade_now_ns();
    int rc = lade_agree_all(comm, "catalogue", &err);
    double waited = (double)(lade_now_ns() - start) * 1e-9;
    if (rc != LADE_E_TIMEOUT || waited > 6 || !comm->dead ||
        strstr(err.text, "catalogue") == NULL)
        return 1;
    /* dead: nothing waits any more */
    start = lade_now_ns();
    if (lade_agree_all(comm, "route", &err) != LADE_E_TIMEOUT ||
        lade_now_ns() - start > 100000000u)
        return 1;
    snprintf(want, sizeof(want), "rank %d ", silent);
    if (comm->rank == 0 && strstr(err.text, want) == NULL)
        return 1;
    if (comm->rank == (silent == 0)) {
        fprintf(stderr, "late: %s\n", err.text);
        MPI_Abort(MPI_COMM_WORLD, 75);
    }
    lade_sleep_us(20u * 1000000u); /* ended by the abort */
    return 1;
}
