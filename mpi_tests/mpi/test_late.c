/*
 * One rank never arrives: the others must leave by their deadline with a line
 * that names the gate and the silent rank, and the job must end with 75. Who
 * arrives late, but does, is not named, whatever rank waits first.
 *
 *   test_late RANK           RANK stays away for a minute
 *   test_late RANK OTHER     as well, and OTHER arrives 1.5 s after the rest
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "lade_mpi.h"

static int number(int argc, char **argv, int at)
{
    return argc > at ? (int)strtol(argv[at], NULL, 10) : -1;
}

static int fail(const struct lade_comm *comm, const char *what,
                const lade_err *err)
{
    fprintf(stderr, "rank %d: %s: %s\n", comm->rank, what, err->text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
}

int main(int argc, char **argv)
{
    lade_err err = LADE_ERR_INIT, again = LADE_ERR_INIT;
    int given, silent = number(argc, argv, 1), late = number(argc, argv, 2);
    char want[96];

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    struct lade_comm *comm = lade_comm_mpi_new(MPI_COMM_WORLD, &err);
    if (comm == NULL)
        return 1;
    comm->timeout_s = 2;
    /* a slow but complete agreement leaves nothing behind that disturbs */
    if (comm->rank == comm->size - 1)
        lade_sleep_us(600000);
    if (lade_agree_all(comm, "locate", &err) != LADE_OK)
        return fail(comm, "nobody was lost yet", &err);
    if (comm->rank == silent)
        lade_sleep_us(60u * 1000000u);
    if (comm->rank == late)
        lade_sleep_us(1500000);
    uint64_t start = lade_now_ns();
    int rc = lade_agree_all(comm, "catalogue", &err);
    double waited = (double)(lade_now_ns() - start) * 1e-9;
    if (rc != LADE_E_TIMEOUT || !comm->dead || waited > 5)
        return fail(comm, "not lost in time", &err);
    snprintf(want, sizeof(want),
             "catalogue: no word from rank %d for 2 s (--timeout)", silent);
    if (strcmp(err.text, want) != 0)
        return fail(comm, "other words", &err);
    /* dead: nothing waits any more */
    start = lade_now_ns();
    if (lade_agree_all(comm, "route", &again) != LADE_E_TIMEOUT ||
        lade_now_ns() - start > 100000000u)
        return fail(comm, "waits again", &again);
    lade_sleep_us(1000000); /* the others look at their words, too */
    if (comm->rank == (silent == 0)) {
        fprintf(stderr, "late: %s\n", err.text);
        MPI_Abort(MPI_COMM_WORLD, 75);
    }
    lade_sleep_us(20u * 1000000u); /* ended by the abort */
    return 1;
}
