#!/usr/bin/env python3
"""Load the checkpoint of golden records and compare every parameter.

usage: golden.py [--work DIR] [--checkpoint DIR] [--with "LADE OPTIONS"]
                 RECORD...

RECORD is a file or the name of one in records/. The checkpoint is made by
`$LADE synth` (once per model and --set in DIR, default a temporary folder), or
given. Of each record: the weight files have the recorded sha256, config.json
and the index the recorded values; `mpirun -np WORLD $LADE load` gives the
engine's parameters on every rank (name, dtype, shape, digest, aliases; nothing
missing, nothing extra), verdict ok, and delivers each element as often as the
record counted. Exit 0: no difference. LADE and MPIRUN name the programs.
"""
import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_hwloc_base_binding_policy": "none",
               "OMPI_MCA_mpi_yield_when_idle": "1"}
ITEM = 2  # bytes; all models of these records are BF16 throughout
SHOWN = 20


class Fault(Exception):
    """What stops the comparison of a record."""


def run(command, limit):
    """Runs a command; raises Fault with its words unless it returns 0."""
    env = {**ENVIRONMENT, **os.environ}
    try:
        done = subprocess.run(command, env=env, timeout=limit, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              errors="replace", check=False)
    except subprocess.TimeoutExpired:
        raise Fault(f"{shlex.join(command)}: no end within {limit} s") from None
    except OSError as error:
        raise Fault(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise Fault(f"{shlex.join(command)}: exit {done.returncode}\n"
                    f"{done.stdout}")


def read_json(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def make_checkpoint(lade, record, work):
    """Folder with the tiny checkpoint; made under another name first, so that
    tests that run side by side do not see half of it."""
    key = json.dumps([record["model"], record["set"], record["seed"]])
    folder = os.path.join(work, f"{record['model']}-{sha256(key.encode())[:8]}")
    if os.path.isdir(folder):
        return folder
    made = tempfile.mkdtemp(prefix=".making-", dir=work)
    command = [lade, "synth", "--preset", record["model"], "--tiny", "--fill",
               "lade-fill-1", "--seed", str(record["seed"]), "--out",
               os.path.join(made, "checkpoint")]
    for name, value in record["set"].items():
        command += ["--set", f"{name}={json.dumps(value)}"]
    try:
        run(command, 60)
        os.rename(os.path.join(made, "checkpoint"), folder)
    except OSError:
        if not os.path.isdir(folder):  # else another test was faster
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def check_files(record, folder):
    """The checkpoint is the one that the engine loaded."""
    for name, size, digest in record["files"]:
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as f:
                data = f.read()
        except OSError as error:
            raise Fault(f"{path}: {error.strerror}") from None
        if name == "config.json" and record["config"] is not None:
            if json.loads(data) != record["config"]:
                raise Fault(f"{path}: other values than the record's")
            continue
        if name.endswith(".index.json") and record["config"] is not None:
            data = (json.dumps(json.loads(data), separators=(",", ":"))
                    + "\n").encode()
        if sha256(data) != digest:
            raise Fault(f"{path}: {len(data)} bytes with sha256 {sha256(data)};"
                        f" the record has {size} bytes with {digest}")


def load(lade, record, folder, out, extra):
    """Loads; returns the digests and the report."""
    layout = record["layout"]
    digests, report = os.path.join(out, "digests"), os.path.join(out, "report")
    world = layout["dp"] * layout["tp"]
    command = shlex.split(os.environ.get("MPIRUN", "mpirun"))
    command += ["-np", str(world), lade, "load", "--tp", str(layout["tp"])]
    if layout["dp"] > 1:
        command += ["--dp", str(layout["dp"])]
    if layout["expert_parallel"]:
        command += ["--ep"]
    if layout["placement"] != "linear":
        command += ["--expert-placement", layout["placement"]]
    if layout["redundant_experts"]:
        command += ["--redundant-experts", str(layout["redundant_experts"])]
    command += ["--until", "loaded", "--digests", digests, "--json", report]
    run(command + extra + [folder], 100)
    return read_json(digests), read_json(report)


def expected_rank(record, rank):
    """{name: [dtype, shape, digest]} of one rank."""
    return {name: [dtype, shape, digest]
            for name, (dtype, rows) in record["params"].items()
            for shape, digest, ranks in rows if rank in ranks}


def compare_rank(record, rank, got):
    """Number of parameters compared, and lines that say what differs."""
    want = expected_rank(record, rank)
    have, wrong = {}, []
    for name, dtype, shape, digest in got["params"]:
        if name in have:
            wrong.append(f"rank {rank}: {name}: listed twice")
        have[name] = [dtype, shape, digest]
    for name in sorted(want.keys() | have.keys()):
        if name not in have:
            wrong.append(f"rank {rank}: {name}: missing, want {want[name]}")
        elif name not in want:
            wrong.append(f"rank {rank}: {name}: not in the engine's model")
        elif want[name] != have[name]:
            line = f"rank {rank}: {name}: {have[name]}, want {want[name]}"
            if "routed_experts" in name:
                line += f", experts {record['physical_experts'][rank]}"
            wrong.append(line)
    aliases = record["aliases"]
    if isinstance(aliases, list):
        aliases = aliases[rank]
    if got.get("aliases", {}) != aliases:
        wrong.append(f"rank {rank}: aliases {got.get('aliases')}, want "
                     f"{aliases}")
    return len(want), wrong


def compare_head(record, digests):
    layout, world = record["layout"], digests["world"]
    # in the digests file ep 1 is expert parallelism switched off, or one rank
    want = {"tp": layout["tp"], "pp": 1, "dp": layout["dp"],
            "ep": layout["ep"]}
    wrong = [f"digests: world.{k} is {world.get(k)}, want {v}"
             for k, v in want.items() if world.get(k) != v]
    if digests.get("until") != "loaded" or digests.get("schema") != 1:
        wrong.append("digests: want schema 1, until loaded")
    return wrong


def compare_report(record, report):
    """Verdict, and the counts that the layout determines."""
    wrong = []
    if report.get("verdict") != "ok":
        wrong.append(f"report: verdict {report.get('verdict')}, want ok")
    copies = record["elements_by_copies"]
    if copies is None:
        return wrong
    plan, share = report.get("plan", {}), report.get("share", {})
    got = plan.get("elements_by_copies")
    if got is not None and got != copies:
        wrong.append(f"report: elements_by_copies {got}, want {copies}")
    for key, where, value in (
            ("needed_bytes", plan, sum(copies.values())),
            ("delivered_bytes", share,
             sum(int(k) * n for k, n in copies.items()))):
        if where.get(key) != value * ITEM:
            wrong.append(f"report: {key} is {where.get(key)}, want "
                         f"{value * ITEM}")
    return wrong


def compare(lade, record, options, work, extra):
    """Prints the result of one record; returns the number of differences."""
    folder = options.checkpoint or make_checkpoint(lade, record, work)
    check_files(record, folder)
    with tempfile.TemporaryDirectory(prefix=".load-", dir=work) as out:
        digests, report = load(lade, record, folder, out, extra)
    wrong = compare_head(record, digests) + compare_report(record, report)
    world = record["layout"]["dp"] * record["layout"]["tp"]
    ranks = {r["rank"]: r for r in digests["ranks"]}
    if sorted(ranks) != list(range(world)) or len(digests["ranks"]) != world:
        raise Fault(f"digests are of ranks {sorted(ranks)}, not of {world}")
    count = 0
    for rank in range(world):
        n, lines = compare_rank(record, rank, ranks[rank])
        count += n
        wrong += lines
    for line in wrong[:SHOWN]:
        print(f"{record['case']}: {line}")
    if len(wrong) > SHOWN:
        print(f"{record['case']}: and {len(wrong) - SHOWN} more")
    print(f"{record['case']}: {count} parameters, {len(wrong)} differ")
    return len(wrong)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--work", metavar="DIR")
    p.add_argument("--checkpoint", metavar="DIR")
    p.add_argument("--with", dest="extra", default="", metavar="OPTIONS")
    p.add_argument("records", nargs="+", metavar="RECORD")
    options = p.parse_args()
    lade = os.environ.get("LADE")
    if not lade:
        sys.exit("golden.py: LADE must name the lade program")
    bad = 0
    with tempfile.TemporaryDirectory(prefix="lade-golden-") as scratch:
        work = os.path.abspath(options.work or scratch)
        os.makedirs(work, exist_ok=True)
        for path in options.records:
            if not os.path.exists(path):
                path = os.path.join(HERE, "records", path + ".json")
            record = read_json(path)
            try:
                bad += compare(lade, record, options, work,
                               shlex.split(options.extra))
            except Fault as fault:
                print(f"{record['case']}: {fault}")
                bad += 1
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
