"""Faults of the checkpoint, of one rank and of the layout: each gives one error line for the job and the same exit
code on every rank, soon. Arguments: number of ranks, the library that makes open() fail."""
import os
import shutil
import sys
import tempfile

from harness import change_tensors, check, finish, run, synth, weight_files

ranks, preload = int(sys.argv[1]), sys.argv[2]
LIMIT = 10
work = tempfile.mkdtemp(prefix="lade-faults-")
good = os.path.join(work, "good")
synth(good, "qwen3-30b-a3b")
layout = ["--dp", str(ranks), "--ep"]


def copy(name):
    path = os.path.join(work, name)
    shutil.copytree(good, path)
    return path


def expect(what, name, code, path, *args, texts=(), env=None, library=None):
    codes = []
    result = run("load", *args, path, ranks=ranks, codes=codes, env=env, preload=library)
    check(what + ": code %d on every rank" % code, codes == [code] * ranks, "%s\n%s" % (codes, result.err))
    check(what + ": one error line", len(result.errors) == 1, result.err)
    check(what + ": error[%s]" % name, result.errors and result.errors[0].startswith("lade: error[%s]" % name),
          result.err)
    check(what + ": nothing on stdout", result.out == "", result.out)
    check(what + ": within %d s" % LIMIT, result.seconds < LIMIT, result.seconds)
    for text in texts:
        check(what + ": says %r" % text, result.errors and text in result.errors[0], result.err)


# the same load without a fault is well, or none of the rest means anything
codes = []
result = run("load", *layout, good, ranks=ranks, codes=codes)
check("no fault: code 0", codes == [0] * ranks, "%s\n%s" % (codes, result.err))
check("no fault: verdict ok", result.out.endswith("verdict ok\n"), result.out + result.err)

# a shard that lost its last byte
path = copy("truncated")
shard = os.path.join(path, weight_files(path)[-1])
os.truncate(shard, os.path.getsize(shard) - 1)
expect("truncated", "CHECKPOINT", 3, path, *layout, texts=[os.path.basename(shard)])

# one rank cannot open weight files: while headers are read, and while weights are read
for rank, more in ((0, []), (ranks - 1, ["--scope", "rank"])):
    expect("open fails on rank %d" % rank, "IO", 5, good, *layout, *more, library=preload,
           env={"PRELOAD_FAIL_RANK": str(rank)}, texts=["rank %d " % rank, ".safetensors"])

# an expert that is not there
path = copy("missing")
lost = "model.layers.1.mlp.experts.3.up_proj.weight"
change_tensors(path, drop=lost)
expect("missing expert", "PARAMETER", 4, path, *layout, texts=[lost])

# a tensor that no parameter takes
path = copy("unknown")
change_tensors(path, add="model.layers.0.mlp.gates.weight")
expect("unknown tensor", "PARAMETER", 4, path, *layout, texts=["model.layers.0.mlp.gates.weight"])

# a size that does not divide: 3 for these models, so the world is 3, 6 or as many as it takes
if ranks % 3 == 0:
    expect("tp does not divide", "USAGE", 2, good, "--tp", "3", "--dp", str(ranks // 3))
expect("sizes that are not the world", "USAGE", 2, good, "--tp", "3", "--dp", str(ranks))

# the launcher hands the agreed code on
result = run("load", *layout, os.path.join(work, "truncated"), ranks=ranks)
check("mpirun ends with the code", result.code == 3, "%s\n%s" % (result.code, result.err))
check("a plain failure: one error line", len(result.errors) == 1, result.err)

# a rank that does not come back: the others name it and end the job
for rank, more in ((ranks - 1, ["--scope", "rank"]), (0, [])):
    if ranks == 1:
        break
    result = run("load", *layout, *more, "--timeout", "2", good, ranks=ranks, preload=preload,
                 env={"PRELOAD_HANG_RANK": str(rank)})
    check("rank %d hangs: code 75" % rank, result.code == 75, "%s\n%s" % (result.code, result.err))
    check("rank %d hangs: one line" % rank, len(result.errors) == 1 and "error[TIMEOUT]" in result.errors[0], result.err)
    check("rank %d hangs: within 15 s" % rank, result.seconds < 15, result.seconds)

# a failed load still reports
report = os.path.join(work, "failed.json")
run("load", *layout, "--json", report, os.path.join(work, "missing"), ranks=ranks)
check("report of a failure", os.path.exists(report) and '"PARAMETER"' in open(report).read())

shutil.rmtree(work)
finish()
