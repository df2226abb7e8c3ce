#!/usr/bin/env python3
"""Casts on the way into parameters, against a conversion of the files.

usage: casts.py PRESET.json WORK_DIR

From the tiny checkpoint of a preset come files of dtype F32, BF16 and F16 with
the same shapes. Each is loaded as each engine dtype; the same must come out as
from a file that python converted before (round to nearest, ties to even).
"""
import json
import os
import shutil
import struct
import subprocess
import sys

LADE = os.environ["LADE"]
NAMES = {"F32": "f32", "BF16": "bf16", "F16": "f16"}
SIZE = {"F32": 4, "BF16": 2, "F16": 2}


def synth(preset, dtype, out):
    """A tiny checkpoint whose tensors all have this dtype."""
    with open(preset, encoding="utf-8") as f:
        model = json.load(f)
    for tensor in model["tensors"]:
        tensor["dtype"] = dtype
    os.makedirs(os.path.dirname(out), exist_ok=True)
    path = out + ".json"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(model, f)
    subprocess.run([LADE, "synth", "--model", path, "--tiny", "--fill", "lade-fill-1", "--out", out],
                   check=True, stdout=subprocess.DEVNULL)


def to_floats(data, dtype):
    """The values as python floats, exact."""
    count = len(data) // SIZE[dtype]
    if dtype == "BF16":
        halves = struct.unpack(f"<{count}H", data)
        data, dtype = struct.pack(f"<{count}I", *(h << 16 for h in halves)), "F32"
    return struct.unpack(f"<{count}{'f' if dtype == 'F32' else 'e'}", data)


def from_floats(values, dtype):
    if dtype == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    data = struct.pack(f"<{len(values)}f", *values)
    if dtype == "F32":
        return data
    words = struct.unpack(f"<{len(values)}I", data)
    return struct.pack(f"<{len(values)}H",
                       *((w + 0x7FFF + (w >> 16 & 1)) >> 16 for w in words))


def convert(source, target, out):
    """The checkpoint in folder source, with every tensor as dtype target."""
    shutil.copytree(source, out)
    for name in os.listdir(out):
        if not name.endswith(".safetensors"):
            continue
        with open(os.path.join(out, name), "rb") as f:
            data = f.read()
        length, = struct.unpack("<Q", data[:8])
        header, body, parts, at = json.loads(data[8:8 + length]), data[8 + length:], [], 0
        for key, row in header.items():
            if key == "__metadata__":
                continue
            begin, end = row["data_offsets"]
            parts.append(from_floats(to_floats(body[begin:end], row["dtype"]), target))
            row.update(dtype=target, data_offsets=[at, at + len(parts[-1])])
            at += len(parts[-1])
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(os.path.join(out, name), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def load(folder, dtype, digests):
    """Parameters of two ranks as digests, and the warnings."""
    subprocess.run(["mpirun", "-np", "2", LADE, "load", "--tp", "2", "--dtype", NAMES[dtype],
                    "--until", "loaded", "--digests", digests, "--json", digests + ".report",
                    "--force", folder], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    with open(digests, encoding="utf-8") as f:
        ranks = [sorted(rank["params"]) for rank in json.load(f)["ranks"]]
    with open(digests + ".report", encoding="utf-8") as f:
        return ranks, json.load(f)["warnings"]


def main():
    preset, work = sys.argv[1:]
    shutil.rmtree(work, ignore_errors=True)
    failed = pairs = 0
    for disk in NAMES:
        folder = os.path.join(work, disk)
        synth(preset, disk, folder)
        for engine in NAMES:
            if engine == disk:
                continue
            ready = os.path.join(work, f"{disk}-as-{engine}")
            convert(folder, engine, ready)
            got, warnings = load(folder, engine, os.path.join(work, "got"))
            want, _ = load(ready, engine, os.path.join(work, "want"))
            lossy = any("lose precision" in text for text in warnings)
            right = got == want and lossy == (engine != "F32") and len(got[0]) > 10
            print(f"{disk} to {engine}: {len(got[0])} parameters a rank,",
                  "equal" if right else "NOT EQUAL, or the warning is wrong")
            failed += not right
            pairs += 1
    sys.exit(failed != 0 or pairs != 6)


if __name__ == "__main__":
    main()
