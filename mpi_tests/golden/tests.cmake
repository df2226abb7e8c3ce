# One test per record: the tiny checkpoint, loaded, against what the engine holds. The records of
# real weights belong to real/.
file(GLOB records CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/records/*.json)
list(FILTER records EXCLUDE REGEX "/smollm2-")
find_program(LADE_PYTHON3 python3)
foreach(record IN LISTS records)
  get_filename_component(case ${record} NAME)
  string(REGEX REPLACE "\\.json$" "" case ${case})
  if(LADE_PYTHON3)
    lade_script(${case} LABEL golden TIMEOUT 120
      COMMAND ${LADE_PYTHON3} -B ${CMAKE_CURRENT_LIST_DIR}/golden.py
              --work ${PROJECT_BINARY_DIR}/golden ${record})
  else()
    lade_script(${case} LABEL golden TIMEOUT 120
      COMMAND sh -c "echo 'skipped: python3 was not found when the build was configured'; exit 77")
  endif()
endforeach()
