# Test programs on real MPI. The label mpi; more ranks than cores, yielding when idle.
lade_mpi(comm RANKS 1 2 3 8 64)
