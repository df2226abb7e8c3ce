"""What the tests of the program share: running it, checkpoints to run it on, and a list of what failed."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

LADE = os.environ.get("LADE", "lade")
CLEAN = {k: v for k, v in os.environ.items()
         if not k.startswith(("LADE_", "OMPI_COMM", "PMIX_", "PMI_", "SLURM_"))}
CLEAN["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0"

failures = []


class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds
        self.errors = [l for l in err.splitlines() if l.startswith("lade: error[")]
        self.warnings = [l for l in err.splitlines() if l.startswith("lade: warning:")]


def run(*args, env=None, timeout=60, ranks=0, codes=None, preload=None):
    """Runs lade. With ranks, under mpirun; each rank's exit code is then put into the list `codes`."""
    command = [LADE, *args]
    folder = None
    if ranks:
        head = ["mpirun", "-np", str(ranks)]
        for name, value in (env or {}).items():
            head += ["-x", "%s=%s" % (name, value)]
        if preload:
            head += ["-x", "LD_PRELOAD=" + preload]
        if codes is not None:
            folder = tempfile.mkdtemp()
            note = '"$@"; echo $? > %s/$OMPI_COMM_WORLD_RANK; exit 0' % folder
            head += ["sh", "-c", note, "sh"]
        command = head + command
    whole = dict(CLEAN, **(env or {}))
    start = time.monotonic()
    try:
        done = subprocess.run(command, env=whole, timeout=timeout, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL)
        result = Result(done.returncode, done.stdout, done.stderr, time.monotonic() - start)
    except subprocess.TimeoutExpired as late:
        text = late.stderr or b""
        result = Result(None, "", text if isinstance(text, str) else text.decode(errors="replace"), timeout)
    if folder:
        for rank in range(ranks):
            path = os.path.join(folder, str(rank))
            codes.append(int(open(path).read()) if os.path.exists(path) else None)
        shutil.rmtree(folder)
    return result


def check(what, condition, detail=""):
    if not condition:
        failures.append(what)
        print("FAILED: %s\n    %s" % (what, str(detail).replace("\n", "\n    ")))


def fails(what, result, code, *texts):
    """One error line, the code, nothing on stdout."""
    check(what + ": exit code %s" % code, result.code == code, "%s\n%s" % (result.code, result.err))
    check(what + ": one error line", len(result.errors) == 1, result.err)
    check(what + ": nothing on stdout", result.out == "", result.out)
    for text in texts:
        check(what + ": says %r" % text, result.errors and text in result.errors[0], result.err)


def finish():
    print("%d checks failed" % len(failures))
    sys.exit(1 if failures else 0)


def synth(out, preset, *more):
    result = run("synth", "--preset", preset, "--tiny", "--fill", "lade-fill-1", "--out", out, *more)
    if result.code != 0:
        print("lade synth --preset %s failed:\n%s" % (preset, result.err))
        sys.exit(1)


def weight_files(folder):
    return sorted(f for f in os.listdir(folder) if f.endswith(".safetensors"))


def read_header(path):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        return json.loads(f.read(size)), 8 + size


def write_file(path, header, data):
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def change_tensors(folder, drop=None, add=None):
    """Rewrites the checkpoint: without the tensor `drop`, or with a tensor `add` of 4 F32 values more."""
    index_path = os.path.join(folder, "model.safetensors.index.json")
    index = json.load(open(index_path)) if os.path.exists(index_path) else {"weight_map": {}}
    for number, name in enumerate(weight_files(folder)):
        path = os.path.join(folder, name)
        header, start = read_header(path)
        if drop not in header and not (add and number == 0):
            continue
        whole = open(path, "rb").read()[start:]
        meta = header.pop("__metadata__", None)
        fresh, data = {}, b""
        for tensor, about in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            if tensor == drop:
                index["weight_map"].pop(tensor, None)
                continue
            begin, end = about["data_offsets"]
            fresh[tensor] = dict(about, data_offsets=[len(data), len(data) + end - begin])
            data += whole[begin:end]
        if add and number == 0:
            fresh[add] = {"dtype": "F32", "shape": [4], "data_offsets": [len(data), len(data) + 16]}
            data += bytes(16)
            index["weight_map"][add] = name
        if meta:
            fresh = dict({"__metadata__": meta}, **fresh)
        write_file(path, fresh, data)
    if index["weight_map"]:
        json.dump(index, open(index_path, "w"))
