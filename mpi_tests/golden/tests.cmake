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

# The same records over other ways: nodes, scopes, tiny rings and blocks, past the page cache. What
# a rank holds must not depend on how it came there.
set(lade_ways
  "nodes-2:--nodes 2"
  "nodes-3-small:--nodes 3 --block 4096 --staging 128K"
  "nodes-4-small:--nodes 4 --block 8K --staging 64K --threads 8 --depth 1"
  "scope-node:--nodes 4 --scope node --block 8K --staging 64K"
  "scope-rank:--scope rank"
  "direct:--direct on --block 64K --staging 1M")
foreach(way IN LISTS lade_ways)
  string(REGEX MATCH "^[^:]+" name "${way}")
  string(REGEX REPLACE "^[^:]+:" "" options "${way}")
  if(LADE_PYTHON3)
    lade_script(way-${name} LABEL golden TIMEOUT 120
      COMMAND ${LADE_PYTHON3} -B ${CMAKE_CURRENT_LIST_DIR}/golden.py
              --work ${PROJECT_BINARY_DIR}/golden --with "${options}"
              ${CMAKE_CURRENT_LIST_DIR}/records/qwen3-30b-a3b.tp8.json
              ${CMAKE_CURRENT_LIST_DIR}/records/mixtral-8x7b.tp8.ep8.red2.json
              ${CMAKE_CURRENT_LIST_DIR}/records/qwen3-30b-a3b.tp2.ep4.dp2.json)
  endif()
endforeach()

# Casts between all pairs of float types, against files converted before.
if(LADE_PYTHON3)
  lade_script(casts LABEL golden TIMEOUT 120
    COMMAND ${LADE_PYTHON3} -B ${CMAKE_CURRENT_LIST_DIR}/casts.py
            ${PROJECT_SOURCE_DIR}/src/synth/presets/llama-3.2-1b.json
            ${PROJECT_BINARY_DIR}/golden/casts)
endif()
