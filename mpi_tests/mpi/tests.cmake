# Test programs on real MPI. The label mpi; more ranks than cores, yielding when idle.
lade_mpi(comm RANKS 1 2 3 8 64)

# A lost rank: mpirun must end with 75, soon.
add_executable(mpi_late mpi/test_late.c)
lade_compile_options(mpi_late)
target_link_libraries(mpi_late PRIVATE lade_objects lade_mpi_objects)
# name, ranks, who is silent, who comes later than the others
foreach(case "2_0;2;0;" "2_1;2;1;" "8_0;8;0;" "8_1;8;1;" "later;8;1;5" "root_later;8;2;0")
  list(GET case 0 name)
  list(GET case 1 ranks)
  list(SUBLIST case 2 -1 who)
  string(REPLACE ";" " " who "${who}")
  add_test(NAME mpi/late_${name} COMMAND sh -c
    "mpirun -np ${ranks} $<TARGET_FILE:mpi_late> ${who} >out.late.${name} 2>&1; \
     rc=$?; cat out.late.${name}; test $rc = 75")
  set_tests_properties(mpi/late_${name} PROPERTIES LABELS mpi TIMEOUT 30
    PROCESSORS 2 ENVIRONMENT "${lade_test_env}")
endforeach()

# Headers dealt over ranks; the same catalogue and the same error everywhere.
lade_mpi(gather RANKS 1 2 3 8 64)
