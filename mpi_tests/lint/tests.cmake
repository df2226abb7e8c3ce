# What is not checked decays: layers, names and sizes, the public header, the exported symbols.
find_package(Python3 COMPONENTS Interpreter)

function(lade_lint name)
  if(Python3_Interpreter_FOUND)
    add_test(NAME lint/${name} COMMAND ${Python3_EXECUTABLE} -B ${ARGN})
  else()
    add_test(NAME lint/${name} COMMAND sh -c "echo 'skipped: python3 was not found'; exit 77")
  endif()
  set_tests_properties(lint/${name} PROPERTIES LABELS lint TIMEOUT 60 SKIP_RETURN_CODE 77)
endfunction()

lade_lint(self ${CMAKE_CURRENT_LIST_DIR}/test_lint.py)
lade_lint(layers ${CMAKE_CURRENT_LIST_DIR}/layers.py)
lade_lint(names ${CMAKE_CURRENT_LIST_DIR}/names.py)
lade_lint(exports ${CMAKE_CURRENT_LIST_DIR}/exports.py ${CMAKE_NM} $<TARGET_FILE:liblade>
          ${PROJECT_SOURCE_DIR}/include/lade.h)
lade_lint(exports_mpi ${CMAKE_CURRENT_LIST_DIR}/exports.py ${CMAKE_NM} $<TARGET_FILE:liblade_mpi>
          ${PROJECT_SOURCE_DIR}/include/lade.h ${PROJECT_SOURCE_DIR}/include/lade_mpi.h)

# lade_alone(NAME COMPILER LANGUAGE STANDARD): the public header, compiled alone.
function(lade_alone name compiler language standard)
  if(compiler)
    add_test(NAME lint/header_${name}
      COMMAND ${compiler} -x ${language} -std=${standard} -pedantic -Wall -Wextra -Werror
              -fsyntax-only -I ${PROJECT_SOURCE_DIR}/include
              ${CMAKE_CURRENT_SOURCE_DIR}/lint/alone.c)
  else()
    add_test(NAME lint/header_${name}
      COMMAND sh -c "echo 'skipped: no compiler for ${standard} was found'; exit 77")
  endif()
  set_tests_properties(lint/header_${name} PROPERTIES LABELS lint TIMEOUT 60
                       SKIP_RETURN_CODE 77)
endfunction()

find_program(LADE_CXX NAMES c++ g++ clang++)
lade_alone(c11 ${CMAKE_C_COMPILER} c c11)
lade_alone(c17 ${CMAKE_C_COMPILER} c c17)
lade_alone(cxx17 "${LADE_CXX}" c++ c++17)
