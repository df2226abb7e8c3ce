# Test programs on real MPI. The label mpi; more ranks than cores, yielding when idle.
lade_mpi(comm RANKS 1 2 3 8 64)

# A lost rank: mpirun must end with 75, soon.
add_executable(mpi_late mpi/test_late.c)
lade_compile_options(mpi_late)
target_link_libraries(mpi_late PRIVATE lade_objects lade_mpi_objects)
foreach(ranks 2 8)
  foreach(silent 0 1)
    add_test(NAME mpi/late_${ranks}_${silent} COMMAND sh -c
      "mpirun -np ${ranks} $<TARGET_FILE:mpi_late> ${silent} >out.late.${ranks}.${silent} 2>&1; \
       rc=$?; cat out.late.${ranks}.${silent}; test $rc = 75")
    set_tests_properties(mpi/late_${ranks}_${silent} PROPERTIES LABELS mpi TIMEOUT 30
      PROCESSORS 2 ENVIRONMENT "${lade_test_env}")
  endforeach()
endforeach()

# Headers dealt over ranks; the same catalogue and the same error everywhere.
lade_mpi(gather RANKS 1 2 3 8 64)
