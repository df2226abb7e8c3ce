# Every parser of foreign text has a target fuzz_NAME.c and seeds in corpus/NAME.
#
# As it is, a target is linked with replay.c and runs over its seeds: label fuzz-replay. With clang,
#   CC=clang CFLAGS=-fsanitize=fuzzer-no-link,address,undefined cmake -DLADE_FUZZ=ON ...
# makes the libFuzzer program: fuzz_NAME NEW-FOLDER mpi_tests/fuzz/corpus/NAME
option(LADE_FUZZ "fuzz targets for libFuzzer (clang)" OFF)

function(lade_fuzz name)
  cmake_parse_arguments(arg "" "" "ROOMS" ${ARGN})
  set(here ${CMAKE_CURRENT_SOURCE_DIR}/fuzz)
  if(NOT EXISTS ${here}/fuzz_${name}.c)
    return()
  endif()
  set(rooms "")
  foreach(room IN LISTS arg_ROOMS)
    get_property(more GLOBAL PROPERTY lade_closure_${room})
    list(APPEND rooms ${more})
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  add_executable(fuzz_${name} ${here}/fuzz_${name}.c)
  lade_compile_options(fuzz_${name})
  foreach(room IN LISTS rooms)
    if(TARGET room_${room})
      target_sources(fuzz_${name} PRIVATE $<TARGET_OBJECTS:room_${room}>)
    endif()
  endforeach()
  target_link_libraries(fuzz_${name} PRIVATE m)
  if(LADE_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME fuzz-replay/${name} COMMAND fuzz_${name} -runs=0 ${here}/corpus/${name})
  else()
    target_sources(fuzz_${name} PRIVATE ${here}/replay.c)
    add_test(NAME fuzz-replay/${name} COMMAND fuzz_${name} ${here}/corpus/${name})
  endif()
  set_tests_properties(fuzz-replay/${name} PROPERTIES LABELS fuzz-replay TIMEOUT 60)
endfunction()

lade_fuzz(json ROOMS base)
