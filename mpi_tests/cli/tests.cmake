# The program from outside: help, usage errors, outputs, faults. python3 with its standard library.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  add_library(preload_open MODULE cli/preload_open.c)
  lade_compile_options(preload_open)
  target_link_libraries(preload_open PRIVATE ${CMAKE_DL_LIBS})
  lade_script(program LABEL cli TIMEOUT 240
              COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/program.py)
  foreach(ranks 1 2 3 8)
    lade_script(faults_${ranks} LABEL cli TIMEOUT 240
                COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/faults.py
                        ${ranks} $<TARGET_FILE:preload_open>)
  endforeach()
  lade_script(options_documented LABEL cli TIMEOUT 60
              COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/documented.py
                      ${PROJECT_SOURCE_DIR})
endif()
