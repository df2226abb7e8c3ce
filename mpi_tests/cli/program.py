"""The program from outside: help, mistakes in options, outputs, the report's keys."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from harness import CLEAN, LADE, check, fails, finish, read_header, run, synth, weight_files

work = tempfile.mkdtemp(prefix="lade-program-")
model = os.path.join(work, "model with blanks")
synth(model, "qwen3-30b-a3b")


def path(name):
    return os.path.join(work, name)


# ---- help and version: no MPI, stdout only ----
for args in (["--help"], ["-h"], ["help"], ["load", "--help"], ["help", "plan"], ["inspect", "-h"], ["--version"]):
    result = run(*args)
    check("%s: code 0" % args, result.code == 0, result.err)
    check("%s: answers on stdout" % args, len(result.out) > 5 and result.err == "", result.err)
check("version", re.fullmatch(r"lade \d+\.\d+\.\d+\n", run("--version").out))
check("help names the verbs", all(v in run("--help").out for v in ("load", "plan", "inspect", "synth")))
check("help of load has --tp and not --preset",
      "--tp" in run("load", "--help").out and "--preset" not in run("load", "--help").out)
check("help under mpirun is printed once", run("--version", ranks=3).out.count("lade ") == 1)

# ---- mistakes: code 2, one line, the nearest name ----
fails("no verb", run(), 2)
fails("misspelt verb", run("lod", model), 2, "load")
fails("a verb of another version", run("bench", model), 2, "not in this version")
fails("unknown option", run("load", "--scop", "node", model), 2, "--scop", "scope")
fails("an option of another verb", run("load", "--preset", "x", model), 2, "preset")
fails("an option of another version", run("load", "--quantize", "fp8", model), 2, "quantize")
fails("bad number", run("load", "--tp", "two", model), 2, "tp")
fails("zero", run("load", "--tp", "0", model), 2, "tp")
fails("bad word", run("load", "--scope", "wrld", model), 2, "world")
fails("bad size", run("load", "--staging", "1.5G", model), 2, "staging")
fails("no value", run("load", model, "--tp"), 2, "tp")
fails("no checkpoint", run("load"), 2, "CHECKPOINT")
fails("two checkpoints", run("load", model, model), 2, "CHECKPOINT")
fails("verbose and quiet", run("load", "-v", "-q", model), 2, "--verbose", "--quiet")
fails("digests of nothing", run("load", "--device", "null", "--digests", path("d"), model), 2, "--digests")
fails("map and redundancy", run("plan", "--ep", "--expert-map", "x", "--redundant-experts", "2", model), 2,
      "--expert-map")
fails("redundancy without ep", run("plan", "--redundant-experts", "2", model), 2, "--ep")
fails("block larger than staging", run("load", "--block", "1G", "--staging", "1M", model), 2, "--block")
fails("progress", run("load", "--progress", "often", model), 2, "--progress")
fails("more nodes than ranks", run("plan", "--world", "2", "--nodes", "3", model), 2, "--nodes")
fails("sizes and world disagree", run("plan", "--world", "4", "--tp", "3", model), 2, "4")
fails("sizes and ranks disagree", run("load", "--tp", "2", model), 2)
fails("synth without out", run("synth", "--preset", "qwen3-30b-a3b"), 2, "--out")
fails("synth with two models", run("synth", "--preset", "a", "--model", "b", "--out", path("s")), 2, "--preset")
fails("unknown preset", run("synth", "--preset", "qwen3-30b-a3c", "--out", path("s")), 2, "qwen3-30b-a3b")
fails("unknown product", run("inspect", "--show", "tensor", model), 2, "tensors")
for ranks in (2, 3):
    codes = []
    result = run("load", "--scop", "node", model, ranks=ranks, codes=codes)
    check("usage error on %d ranks: codes" % ranks, codes == [2] * ranks, codes)
    check("usage error on %d ranks: one line" % ranks, len(result.errors) == 1, result.err)

# ---- other sources of options ----
result = run("load", model, env={"LADE_SCOPE": "wrld"})
fails("environment", result, 2, "scope")
result = run("load", model, env={"LADE_SCOOP": "world"})
check("unknown variable warns", result.code == 0 and any("LADE_SCOOP" in w for w in result.warnings), result.err)
json.dump({"tp": 2, "dp": 2}, open(path("settings.json"), "w"))
fails("settings file", run("load", "--settings", path("settings.json"), model), 2, "1")
check("the command line wins",
      run("plan", "--settings", path("settings.json"), "--dp", "3", "--ep", "--json", path("w.json"), model).code == 0)
check("  as the report shows", os.path.exists(path("w.json")) and json.load(open(path("w.json")))["world"]["dp"] == 3)

# ---- the checkpoint ----
fails("no such directory", run("load", path("nowhere")), 3, "nowhere")
os.mkdir(path("empty"))
fails("an empty directory", run("load", path("empty")), 3, "empty")
fails("cuda", run("load", "--device", "cuda", model), 7)
fails("memory", run("load", "--memory", "1K", model), 6, "parameters", "staging", "--memory")

# ---- outputs ----
result = run("load", model, "--json", path("r.json"), "--digests", path("d.json"), "--trace", path("t.json"))
check("load: code 0", result.code == 0, result.err)
check("load: nothing on stderr", result.err == "", result.err)
check("load: verdict is the last line", result.out.endswith("\nverdict ok\n"), result.out)
fails("a report that exists", run("load", model, "--json", path("r.json")), 2, "--force")
fails("a folder that does not", run("load", model, "--json", path("no/r.json")), 2, "no")
fails("a folder as report", run("load", model, "--json", work), 2)
check("--force", run("load", model, "--json", path("r.json"), "--force").code == 0)
check("quiet", run("load", "-q", model).out == "")
result = run("load", "--progress", "0.000001", model)
check("progress lines", "lade: progress" in result.err, result.err)

KEYS = {
    "": "schema lade command started verdict error world checkpoint model plan read share memory phases ranks skipped "
        "warnings reasons options",
    "world": "ranks nodes tp pp dp ep launcher mpi",
    "checkpoint": "format files tensors tensor_bytes dropped_tensors filesystem",
    "model": "architecture family quantization parameters parameter_bytes",
    "plan": "digest rounds stripes needed_bytes forecast elements_by_copies",
    "read": "engine direct scope bytes payload_bytes header_bytes gap_bytes align_bytes requests opens ratio seconds",
    "share": "transport internode_bytes copied_bytes delivered_bytes",
    "memory": "peak_bytes forecast_bytes process_bytes",
    "reasons": "read direct scope device transport",
}


def check_keys(what, report):
    for at, names in KEYS.items():
        part = report[at] if at else report
        for name in names.split():
            check("%s: key %s.%s" % (what, at, name), name in part)
    check(what + ": schema", report["schema"] == 1)
    for half in ("peak_bytes", "forecast_bytes"):
        for tag in "parameters catalogue staging temp scales cache total".split():
            check("%s: memory.%s.%s" % (what, half, tag), tag in report["memory"][half])
    names = [phase["name"] for phase in report["phases"]]
    check(what + ": phases", names == "locate catalogue model route plan read share post check total".split(), names)


report = json.load(open(path("r.json")))
check_keys("report", report)
read = report["read"]
check("bytes add up", read["bytes"] == read["payload_bytes"] + read["header_bytes"] + read["gap_bytes"] +
      read["align_bytes"], read)
check("verdict", report["verdict"] == "ok" and report["error"] is None)
check("needed", report["plan"]["needed_bytes"] == report["checkpoint"]["tensor_bytes"] > 0)
check("delivered", report["share"]["delivered_bytes"] + 2 * report["share"]["padding_elements"] ==
      report["ranks"][0]["parameter_bytes"], report["share"])
check("forecast of parameters is exact",
      report["memory"]["forecast_bytes"]["parameters"] == report["memory"]["peak_bytes"]["parameters"])
digests = json.load(open(path("d.json")))
check("digests", digests["schema"] == 1 and len(digests["ranks"]) == 1 and len(digests["ranks"][0]["params"]) > 10)
check("trace", len(json.load(open(path("t.json")))["traceEvents"]) > 5)

run("load", path("empty"), "--json", path("f.json"))
failed = json.load(open(path("f.json")))
check_keys("report of a failure", failed)
check("failure in the report", failed["verdict"] == "CHECKPOINT" and failed["error"]["code"] == 3 and
      failed["error"]["gate"] == "locate", failed["error"])

# ---- the same bytes, however many ranks share the reading ----
for scope in ("world", "node", "rank"):
    name = path("d-%s.json" % scope)
    result = run("load", "--dp", "3", "--ep", "--scope", scope, "--nodes", "2", "--digests", name, "--json",
                 path("r-%s.json" % scope), model, ranks=3)
    check("scope %s" % scope, result.code == 0 and result.out.endswith("verdict ok\n"), result.err)
    check("scope %s: the digests of scope world" % scope,
          os.path.exists(name) and json.load(open(name)) == json.load(open(path("d-world.json"))))
world = json.load(open(path("r-world.json")))
check("scope world reads once", world["read"]["ratio"] < 1.2, world["read"])
check("three ranks in the report", [r["rank"] for r in world["ranks"]] == [0, 1, 2])
check("two nodes", world["world"]["nodes"] == 2)
plan = run("plan", "--dp", "3", "--ep", "--nodes", "2", "--scope", "world", "--json", path("p.json"), model)
check("plan", plan.code == 0 and plan.out.endswith("verdict ok\n"), plan.err)
planned = json.load(open(path("p.json")))
check_keys("plan", planned)
for key in ("needed_bytes", "elements_by_copies", "rounds", "stripes", "forecast", "digest"):
    check("plan foresees plan.%s" % key, planned["plan"][key] == world["plan"][key],
          "%s\n%s" % (planned["plan"][key], world["plan"][key]))
check("plan foresees the parameters", [r["parameter_bytes"] for r in planned["ranks"]] ==
      [r["parameter_bytes"] for r in world["ranks"]])
for key in ("delivered_bytes", "internode_bytes"):
    check("plan foresees share.%s" % key, planned["share"][key] == world["share"][key],
          "%s\n%s" % (planned["share"], world["share"]))

# ---- the config says tied, the file has a head of its own ----
tied = path("tied")
synth(tied, "qwen3-0.6b")


def tensor_bytes(folder, name):
    for file in weight_files(folder):
        header, start = read_header(os.path.join(folder, file))
        if name in header:
            begin, end = header[name]["data_offsets"]
            return os.path.join(folder, file), start + begin, end - begin


def load_tied(until, name):
    result = run("load", "--tp", "2", "--until", until, "--digests", path(name), tied, ranks=2)
    check("tied, %s: code 0" % name, result.code == 0, result.err)
    return result, json.load(open(path(name)))["ranks"]


result, ranks = load_tied("processed", "t1.json")
check("a different head stays, one warning", len(result.warnings) == 1 and
      all(not r["aliases"] and any(p[0] == "lm_head.weight" for p in r["params"]) for r in ranks), result.err)
file, at, size = tensor_bytes(tied, "model.embed_tokens.weight")
head, to, head_size = tensor_bytes(tied, "lm_head.weight")
with open(file, "rb") as f:
    f.seek(at)
    data = f.read(size)
with open(head, "r+b") as f:
    f.seek(to)
    f.write(data)
result, ranks = load_tied("processed", "t2.json")
check("an equal head is tied again", not result.warnings and
      all(r["aliases"] == {"lm_head.weight": "model.embed_tokens.weight"} and
          all(p[0] != "lm_head.weight" for p in r["params"]) for r in ranks), "%s\n%s" % (result.err, ranks))
result, ranks = load_tied("loaded", "t3.json")
check("not before post-processing", all(not r["aliases"] for r in ranks), ranks)
with open(head, "r+b") as f:  # the last real row differs: only the last rank has it
    f.seek(to + head_size - 2)
    f.write(b"\x00\x00" if data[-2:] != b"\x00\x00" else b"\x01\x00")
result, ranks = load_tied("processed", "t4.json")
check("different on one rank is different on all", len(result.warnings) == 1 and
      all(not r["aliases"] for r in ranks), result.err)

# ---- nothing delivered, nothing read ----
for more in (["--read", "null"], ["--device", "null"], ["--device", "null", "--read", "pread"]):
    result = run("load", "--dp", "2", "--ep", *more, "--json", path("n.json"), "--force", model, ranks=2)
    check("%s" % more, result.code == 0 and result.out.endswith("verdict ok\n"), result.err)
    report = json.load(open(path("n.json")))
    read, delivered = report["read"], report["share"]["delivered_bytes"]
    if more == ["--device", "null"]:
        check("headers only: counts as they would be", 1 <= read["ratio"] < 1.2 and read["requests"] > 0 and
              delivered > report["plan"]["needed_bytes"], report)
    elif "pread" in more:
        check("storage alone: it is read, not delivered", 1 <= read["ratio"] < 1.2 and delivered == 0, report)
    else:
        check("lade alone: it is delivered, not read", read["payload_bytes"] == 0 and delivered > 0, report)

# ---- inspect ----
result = run("inspect", model)
check("inspect", result.code == 0 and "# files" in result.out and "# tensors" in result.out, result.err)
result = run("inspect", "--show", "shell,routes,plan,config,families", "--tp", "2", "--name", "*layers.0.*q_proj*", model)
check("inspect: products", all(("# " + w) in result.out for w in ("parameters", "routes", "plan", "config")), result.err)
check("inspect: names", "layers.0.self_attn.q_proj" in result.out and "layers.1." not in result.out, result.out)
check("families need no checkpoint", "llama" in run("inspect", "--show", "families").out)

# ---- what the launcher says and what MPI says ----
result = run("load", model, env={"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"})
fails("four by the launcher, one by MPI", result, 8, "4", "1")

# ---- a signal stops it soon, with its own code ----
sparse = path("sparse")
check("a large sparse checkpoint", run("synth", "--preset", "llama-3.2-3b", "--out", sparse).code == 0)
for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
    load = subprocess.Popen([LADE, "load", "--device", "null", "--read", "pread", "--direct", "off", "--block", "1M",
                             "--threads", "1", "--progress", "0.001", sparse], env=CLEAN, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = load.stderr.readline()
    load.send_signal(number)
    start = time.monotonic()
    out, err = load.communicate(timeout=30)
    check("signal %d: it was under way" % number, "progress" in first, first)
    check("signal %d: code" % number, load.returncode == code, "%s\n%s" % (load.returncode, err))
    check("signal %d: one line" % number, err.count("lade: error[INTERRUPT]") == 1 and out == "", err)
    check("signal %d: within 3 s" % number, time.monotonic() - start < 3)

shutil.rmtree(work)
finish()
