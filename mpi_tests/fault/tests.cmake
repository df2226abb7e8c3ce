# Faults while bytes move. The label fault; 64 ranks on demand:
#   mpi_tests/fault/reading.py 64 BUILD/mpi_tests/preload_read.so
if(Python3_Interpreter_FOUND)
  add_library(preload_read MODULE fault/preload_read.c)
  lade_compile_options(preload_read)
  target_link_libraries(preload_read PRIVATE ${CMAKE_DL_LIBS})
  foreach(ranks 2 8)
    lade_script(reading_${ranks} LABEL fault TIMEOUT 400
                COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/fault/reading.py
                        ${ranks} $<TARGET_FILE:preload_read>)
  endforeach()
endif()
