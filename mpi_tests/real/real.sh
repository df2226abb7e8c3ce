#!/bin/sh
# real.sh DIR: SmolLM2-135M against the engine's parameters; layouts that do not fit are refused.
# LADE names the program; SMOLLM2_CACHE (default DIR) the folder where the weights are kept.
set -u
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
if [ $# -ne 1 ] || [ -z "${LADE:-}" ]; then
    echo "usage: LADE=PROGRAM real.sh DIR"
    exit 2
fi
. "$here/../../cluster/environment.sh"
cache=${SMOLLM2_CACHE:-$1}
checkpoint=$cache/smollm2-135m
bad=0

"$here/prepare.sh" "$cache"
rc=$?
[ $rc -ne 77 ] || echo "skipped: see above"
[ $rc -eq 0 ] || exit $rc

python3 -B "$here/../golden/golden.py" --work "$cache" --checkpoint "$checkpoint" \
    smollm2-135m.tp1 smollm2-135m.tp3 || bad=1

# 9 heads: 2 does not divide them; 9 does, but not the 1536 rows of the MLP
for ranks in 2 9; do
    said=$(timeout 60 "${MPIRUN:-mpirun}" -np $ranks "$LADE" load --tp $ranks "$checkpoint" 2>&1)
    rc=$?
    lines=$(printf '%s\n' "$said" | grep -c 'lade: error\[USAGE\]')
    if [ $rc -eq 2 ] && [ "$lines" -eq 1 ]; then
        printf '%s\n' "$said" | grep 'lade: error' | sed "s/^/tp $ranks is refused: /"
    else
        printf 'tp %s: exit %s with %s error lines, want 2 with one:\n%s\n' $ranks $rc "$lines" "$said"
        bad=1
    fi
done
exit $bad
