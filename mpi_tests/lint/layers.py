#!/usr/bin/env python3
"""Layers: a file includes only headers of lower rooms or of its own; MPI, NCCL
and CUDA are each known to the files that are named here; a collective function
(its name ends in _all) is called only by collective functions and the program.
"""
import re
import sys

import csource

# docs/architecture.md; a room may only build on rooms of lower layers.
LAYERS = {
    "base": 0, "kernels": 1, "device": 2, "comm": 2, "locate": 3,
    "catalogue": 4, "topo": 4, "model": 5, "route": 6, "plan": 7, "read": 8,
    "share": 9, "post": 10, "check": 11, "load": 12, "keep": 12, "synth": 12,
    "bench": 12, "cli": 13,
}
# Collective functions over a communicator of one rank: every rank is here.
ALONE = {"lade_plan_json"}
FOREIGN = [
    (r"^mpi\.h$", {"src/comm/comm_mpi.c", "include/lade_mpi.h", "src/cli/main.c"}),
    (r"^lade_mpi\.h$", {"src/comm/comm_mpi.c", "src/cli/main.c"}),
    (r"^nccl\.h$", {"src/comm/comm_nccl.c"}),
    (r"^cuda|^cublas", {"src/device/device_cuda.c"}),
]


def declared(text):
    """Room -> all rooms that it may include, from lade_room() in CMakeLists.txt."""
    closure, faults = {}, []
    for name, lower in re.findall(r"^lade_room\((\w+)([^)]*)\)", text, re.M):
        closure[name] = {name}
        if name not in LAYERS:
            faults.append(f"CMakeLists.txt: room {name} has no layer in layers.py")
        for other in lower.split():
            closure[name] |= closure.get(other, {other})
            if LAYERS.get(other, 99) >= LAYERS.get(name, 99):
                faults.append(f"CMakeLists.txt: room {name} (layer {LAYERS.get(name)}) builds "
                              f"on {other} (layer {LAYERS.get(other)})")
    closure["cli"] = set(closure) | {"cli"}
    return closure, faults


def room_of(name):
    if name.parts[0] == "src":
        return name.parts[1]
    return name.parts[0]


def foreign(name, header):
    allowed = [files for pattern, files in FOREIGN if re.match(pattern, header)]
    return any(str(name) not in files and name.suffix != ".cu" for files in allowed)


def check_includes(name, text, closure):
    room = room_of(name)
    for line, header, quoted in csource.includes(text):
        where = f"{name}:{line}: includes {header}"
        if foreign(name, header):
            yield f"{where}, which only one file may know"
        if not quoted:
            continue
        if room == "include":
            yield f"{where}: the public header stands alone"
            continue
        other = header.split("/")[0] if "/" in header else room
        if room not in closure:
            yield f"{name}: room {room} is not declared in CMakeLists.txt"
            return
        if other not in closure[room]:
            yield f"{where}: room {room} may not see room {other}"


def check_collective(name, text):
    for function in csource.functions(csource.blank(text)):
        if function.name.endswith("_all") or function.name in ALONE:
            continue
        for line, called in function.calls():
            if called.endswith("_all"):
                yield (f"{name}:{line}: {function.name} calls {called}, which every rank must "
                       f"call; its own name does not end in _all")


def main():
    closure, faults = declared(csource.read("CMakeLists.txt"))
    if len(closure) < 2:
        faults.append("CMakeLists.txt: no lade_room() found")
    for under in ("src", "kernels", "include"):
        for name in csource.files(".c", ".h", ".cu", under=under):
            text = csource.read(name)
            faults += check_includes(name, text, closure)
            if room_of(name) != "cli":
                faults += check_collective(name, text)
    sys.exit(csource.report(faults, "layers"))


if __name__ == "__main__":
    main()
