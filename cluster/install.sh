#!/bin/sh
# install.sh [--tests]: what a build of lade needs (and its tests, and making real weights).
#
# Looks for each thing itself, not for package names, so it does nothing where all is there. What
# is missing is installed on Debian and its kin, as root or by sudo; where that cannot be, it says
# what is missing and how to get it. Exit 0: lade can be built; 1: it cannot.
set -u
tests=no
case "${1:-}" in
'') ;;
--tests) tests=yes ;;
*)
    echo "usage: install.sh [--tests]" >&2
    exit 2
    ;;
esac

cmake_min=3.22

have_header() {
    # cmocka.h wants these before it
    printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <%s>\n' "$1" |
        cc -E -x c - >/dev/null 2>&1
}

have_cmake() {
    found=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*//p')
    [ -n "$found" ] &&
        [ "$(printf '%s\n%s\n' "$cmake_min" "$found" | sort -V | head -n 1)" = "$cmake_min" ]
}

have() {
    case "$1" in
    compiler) command -v cc >/dev/null && have_header stdio.h ;;
    cmake) have_cmake ;;
    ninja) command -v ninja >/dev/null ;;
    mpi) command -v mpicc >/dev/null && command -v mpirun >/dev/null ;;
    cjson) have_header cjson/cJSON.h ;;
    xxhash) have_header xxhash.h ;;
    python) command -v python3 >/dev/null ;;
    venv) python3 -c 'import venv, ensurepip' 2>/dev/null ;;
    cmocka) have_header cmocka.h ;;
    cxx) command -v c++ >/dev/null ;;
    esac
}

packages_of() {
    case "$1" in
    compiler) echo "gcc libc6-dev" ;;
    cmake) echo cmake ;;
    ninja) echo ninja-build ;;
    mpi) echo "libopenmpi-dev openmpi-bin" ;;
    cjson) echo libcjson-dev ;;
    xxhash) echo libxxhash-dev ;;
    python) echo python3 ;;
    venv) echo python3-venv ;;
    cmocka) echo libcmocka-dev ;;
    cxx) echo g++ ;;
    esac
}

purpose_of() {
    case "$1" in
    compiler) echo "a C compiler with its headers" ;;
    cmake) echo "CMake $cmake_min or newer" ;;
    ninja) echo "ninja" ;;
    mpi) echo "mpicc and mpirun" ;;
    cjson) echo "cjson/cJSON.h" ;;
    xxhash) echo "xxhash.h" ;;
    python) echo "python3, for golden tests and real weights" ;;
    venv) echo "python3's venv module, for real weights" ;;
    cmocka) echo "cmocka.h, for unit tests" ;;
    cxx) echo "a C++ compiler, for the test that lade.h compiles as C++" ;;
    esac
}

needed="compiler cmake ninja mpi cjson xxhash"
wanted="python venv"
[ $tests = no ] || wanted="$wanted cmocka cxx"

missing() {
    for thing in "$@"; do
        have "$thing" || printf '%s ' "$thing"
    done
}

run_apt() { # as root, or by sudo where that works
    if [ "$(id -u)" -eq 0 ]; then
        DEBIAN_FRONTEND=noninteractive apt-get "$@"
    elif [ -t 0 ]; then
        sudo DEBIAN_FRONTEND=noninteractive apt-get "$@"
    else
        sudo -n DEBIAN_FRONTEND=noninteractive apt-get "$@"
    fi
}

install_all() {
    run_apt install -y -q --no-install-recommends "$@"
}

# shellcheck disable=SC2086  # lists of words
gone=$(missing $needed $wanted)
[ -n "$gone" ] || exit 0

packages=
for thing in $gone; do
    packages="$packages $(packages_of "$thing")"
done
if ! command -v apt-get >/dev/null; then
    echo "install.sh: there is no apt-get here; nothing is installed" >&2
elif [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    echo "install.sh: not root, and there is no sudo; nothing is installed" >&2
else
    echo "install.sh: installing$packages"
    if ! ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1; then
        run_apt update -q
    fi
    # shellcheck disable=SC2086
    if ! install_all $packages; then
        # old lists, or one package that cannot be had: it must not keep the others away
        run_apt update -q
        for package in $packages; do
            install_all "$package" || echo "install.sh: $package cannot be installed" >&2
        done
    fi
fi

# shellcheck disable=SC2086
gone=$(missing $needed $wanted)
for thing in $gone; do
    echo "install.sh: missing: $(purpose_of "$thing") (Debian: $(packages_of "$thing"))" >&2
done
# shellcheck disable=SC2086
gone=$(missing $needed)
[ -z "$gone" ] || {
    echo "install.sh: lade cannot be built here; as root: apt-get update && apt-get install$packages" >&2
    exit 1
}
