"""Faults while weights are read: on one rank, over one and several nodes. All ranks stop at an agreed round with one
line and one code; what only looks like a fault (short, interrupted, slow reads) loads the right bytes.
Arguments: number of ranks, the library that changes pread()."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from harness import check, finish, run, synth, weight_files  # noqa: E402

ranks, preload = int(sys.argv[1]), sys.argv[2]
work = tempfile.mkdtemp(prefix="lade-reading-")
model = os.path.join(work, "model")
# 60 MB in 200 stripes: enough to be in the middle of it
synth(model, "llama-3.2-1b", "--set", "hidden_size=512", "--set", "intermediate_size=2048",
      "--set", "num_hidden_layers=12", "--set", "num_key_value_heads=8", "--set", "head_dim=64",
      "--set", "vocab_size=8000")
small = ["--tp", str(ranks), "--direct", "off", "--block", "256K", "--staging", "3M", "--threads", str(ranks)]
last = ranks - 1
splits = [1] if ranks < 3 else [1, 3, ranks]


def digests(name, *more, env=None):
    path = os.path.join(work, name)
    result = run("load", *small, *more, "--until", "loaded", "--digests", path, model, ranks=ranks,
                 env=env, preload=preload if env else None)
    check(name + ": loads", result.code == 0, result.err)
    return [sorted(map(str, r["params"])) for r in json.load(open(path))["ranks"]] if result.code == 0 else None


good = digests("plain")
check("there are parameters", good and len(good) == ranks and all(len(p) > 50 for p in good))
for nodes in splits:
    more = ["--nodes", str(nodes)]
    check("short reads, %d nodes" % nodes, digests("short%d" % nodes, *more, env={"READ_SHORT": "1"}) == good)
check("interrupted reads", digests("interrupted", env={"READ_INTERRUPT": "1"}) == good)
# no limit on a slow rank, only on one without progress
check("slow reads", digests("slow", "--timeout", "2", env={"READ_SLOW_US": "100000"}) == good)

for nodes in splits:
    for rank in sorted({0, last}):
        for after in ("0", "7"):
            what = "EIO on rank %d after %s reads, %d nodes" % (rank, after, nodes)
            codes = []
            result = run("load", *small, "--nodes", str(nodes), model, ranks=ranks, codes=codes, preload=preload,
                         env={"READ_FAIL_RANK": str(rank), "READ_AFTER": after})
            check(what + ": code 5 everywhere", codes == [5] * ranks, "%s\n%s" % (codes, result.err))
            check(what + ": one line", len(result.errors) == 1, result.err)
            text = result.errors[0] if result.errors else ""
            for part in ("error[IO] rank %d " % rank, "read: model", "Input/output error", "tensor model."):
                check(what + ": says %r" % part, part in text, text)
            check(what + ": within 10 s", result.seconds < 10, result.seconds)
            check(what + ": no abort", "MPI_ABORT" not in result.err, result.err)


def reads(pid):
    """Has the process a weight file open for longer than a header takes?"""
    folder = "/proc/%s/fd" % pid
    for fd in os.listdir(folder):
        if os.readlink(os.path.join(folder, fd)).endswith(".safetensors"):
            return True
    return False


def child_of(rank, folder):
    """Process of one rank of the load of a folder, once it reads weights; None after 30 s."""
    for _ in range(600):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                line = open("/proc/%s/cmdline" % pid, "rb").read().split(b"\0")
                env = open("/proc/%s/environ" % pid, "rb").read().split(b"\0")
                if line[0].endswith(b"lade") and folder.encode() in line and reads(pid) \
                        and b"OMPI_COMM_WORLD_RANK=%d" % rank in env:
                    return int(pid)
            except OSError:
                continue
        time.sleep(0.05)
    return None


def signalled(what, number, rank, code, name, *more):
    """Sends a signal to one rank in the middle of a slow load."""
    sent = []

    def send():
        pid = child_of(rank, model)
        if pid:
            time.sleep(0.3)
            sent.append(pid)
            os.kill(pid, number)
    thread = threading.Thread(target=send)
    thread.start()
    result = run("load", *small, *more, model, ranks=ranks, preload=preload, env={"READ_SLOW_US": "1000000"})
    thread.join()
    check(what + ": was sent", sent)
    check(what + ": code %d" % code, result.code == code, "%s\n%s" % (result.code, result.err))
    check(what + ": one line", len(result.errors) == 1 and name in result.errors[0], result.err)
    check(what + ": within 20 s", result.seconds < 20, result.seconds)


for nodes in splits[:2]:
    more = ["--nodes", str(nodes)]
    for rank in sorted({0, last}):
        signalled("SIGTERM to rank %d, %d nodes" % (rank, nodes), signal.SIGTERM, rank, 143, "SIGTERM", *more)
        if ranks > 1:
            signalled("SIGSTOP to rank %d, %d nodes" % (rank, nodes), signal.SIGSTOP, rank, 75, "rank %d" % rank,
                      "--timeout", "3", *more)
signalled("SIGINT", signal.SIGINT, last, 130, "SIGINT")

# the file shrinks while it is read
shrunk = os.path.join(work, "shrunk")
shutil.copytree(model, shrunk)
path = os.path.join(shrunk, weight_files(shrunk)[-1])


def shrink():
    child_of(last, shrunk)
    time.sleep(0.3)
    os.truncate(path, os.path.getsize(path) // 4)


thread = threading.Thread(target=shrink)
thread.start()
result = run("load", *small, shrunk, ranks=ranks, preload=preload, env={"READ_SLOW_US": "300000"})
thread.join()
check("file shrinks: code 3", result.code == 3, "%s\n%s" % (result.code, result.err))
check("file shrinks: one line", len(result.errors) == 1 and "the file changed" in result.errors[0], result.err)

left = subprocess.run(["pgrep", "-f", model], capture_output=True, text=True).stdout.split()
check("nothing runs any more", not left, left)
shutil.rmtree(work)
finish()
