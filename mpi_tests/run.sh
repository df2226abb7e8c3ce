#!/bin/bash
# run.sh [CTEST OPTIONS]: installs what is missing, builds the preset dev, runs CTest. The reasons of
# skipped tests, then CTest's summary, are the last lines; the exit code is CTest's.
#   run.sh -L unit          one label
#   run.sh -R 'golden/.*ep' by name
set -u -o pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root" || exit 1
. cluster/environment.sh

cluster/install.sh --tests || exit 1
cmake --preset dev || exit 1
cmake --build --preset dev || exit 1

log=build/dev/ctest.log
ctest --preset dev --output-junit ctest.xml "$@" 2>&1 | tee "$log"
rc=$?

if [ -f build/dev/ctest.xml ] && command -v python3 >/dev/null; then
    python3 -B mpi_tests/skipped.py build/dev/ctest.xml
fi
if grep -q '^CMOCKA_LIBRARY:.*-NOTFOUND' build/dev/CMakeCache.txt; then
    echo "unit tests were not built: cmocka is missing (Debian: libcmocka-dev)"
fi
grep -E -a '^[0-9]+% tests passed|^No tests were found' "$log" | tail -n 1
exit $rc
