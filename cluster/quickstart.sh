#!/bin/sh
# quickstart.sh [-n RANKS] [CHECKPOINT_DIR]
#
# On a fresh Debian, as root or with sudo: installs what is missing, builds lade, makes the real
# SmolLM2-135M checkpoint and loads it into RANKS processes (default 3: the model has 9 heads). With
# CHECKPOINT_DIR that one is loaded. Where the real weights cannot be had, a checkpoint of the same
# shape with made-up values takes their place, and the output says so. The build is in build/release,
# weights and reports in SMOLLM2_CACHE (default build/cache).
set -u
usage() {
    echo "usage: quickstart.sh [-n RANKS] [CHECKPOINT_DIR]"
    exit "$1"
}
ranks=3
while getopts n:h option; do
    case $option in
    n) ranks=$OPTARG ;;
    h) usage 0 ;;
    *) usage 2 >&2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -le 1 ] || usage 2 >&2
case $ranks in
'' | *[!0-9]* | 0*)
    echo "quickstart.sh: -n $ranks: a number of ranks from 1 is needed" >&2
    exit 2
    ;;
esac
checkpoint=
if [ $# -eq 1 ]; then
    checkpoint=$(CDPATH='' cd -- "$1" 2>/dev/null && pwd) || {
        echo "quickstart.sh: $1: no such directory" >&2
        exit 3
    }
fi

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root" || exit 1
cache=${SMOLLM2_CACHE:-$root/build/cache}
mkdir -p "$cache" || exit 1
cache=$(CDPATH='' cd -- "$cache" && pwd)
lade=$root/build/release/lade
. cluster/environment.sh

step() { printf '\n== %s\n' "$*"; }

quietly() { # a command whose output is of interest only when it fails
    "$@" >"$cache/quickstart.log" 2>&1 && return 0
    tail -n 40 "$cache/quickstart.log" >&2
    echo "quickstart.sh: failed: $* (all of it: $cache/quickstart.log)" >&2
    return 1
}

step "packages"
cluster/install.sh || exit 1

step "build: build/release"
quietly cmake --preset release || exit 1
sed -n '/^-- lade /,/^-- Conf/{/^-- Conf/!p}' "$cache/quickstart.log"
quietly cmake --build --preset release --target lade_cli || exit 1
"$lade" --version || exit 1

# The shape of SmolLM2-135M, values from names
synthesise() {
    checkpoint=$cache/smollm2-135m-shape
    [ ! -f "$checkpoint/config.json" ] || return 0
    "$lade" synth --preset llama-3.2-1b --fill lade-fill-1 --out "$checkpoint" \
        --set hidden_size=576 --set intermediate_size=1536 --set num_hidden_layers=30 \
        --set num_attention_heads=9 --set num_key_value_heads=3 --set head_dim=64 \
        --set vocab_size=49152
}

if [ -z "$checkpoint" ]; then
    step "weights: SmolLM2-135M (93 MB to download, once)"
    checkpoint=$cache/smollm2-135m
    mpi_tests/real/prepare.sh "$cache"
    case $? in
    0) echo "$checkpoint" ;;
    77)
        echo "NOTE: going on with a synthesised checkpoint of the same shape; its values are made up."
        synthesise || exit
        ;;
    *) exit 1 ;;
    esac
fi

report=$cache/report-$(date +%Y%m%d-%H%M%S)-$$.json
step "mpirun -n $ranks lade load --json $report $checkpoint"
mpirun -n "$ranks" "$lade" load --json "$report" "$checkpoint"
rc=$?
[ ! -f "$report" ] || printf '\nreport: %s\n' "$report"
exit $rc
