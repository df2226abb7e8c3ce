#!/usr/bin/env python3
"""make_shell_expected.py MODELS GOLDEN > shell_expected.json

What unit/test_shell.c compares the shell with, taken from records of the engine
(GOLDEN, format in its README) and from model files with published totals (MODELS):

 tiny   name, dtype and shape of every parameter on every rank; aliases
 full   at true size: tensors on disk (number, elements, a digest of names and
        shapes) and parameter bytes of each rank, as [ranks, bytes] runs

The digest is the sum modulo 2^64 of the FNV-1a of every "name d0 d1 ..." (hex).
"""
import itertools
import json
import os
import sys

TINY = {
    "llama-3.2-1b": ["tp1", "tp2", "tp4", "tp8"],
    "llama-3-8b": ["tp1", "tp2", "tp8"],
    "qwen2.5-7b": ["tp1", "tp4", "tp8"],
    "qwen3-0.6b": ["tp1", "tp2", "tp8"],
    "qwen3-8b": ["tp1", "tp4"],
    "qwen3-30b-a3b": ["tp1", "tp2", "tp8", "tp1.dp2", "tp2.dp2", "tp2.ep2", "tp8.ep8",
                      "tp2.ep4.dp2", "tp1.ep4.dp4", "tp4.ep4.rr", "tp4.ep4.red4", "tp8.ep8.red4"],
    "qwen3-30b-a3b-e20": ["tp8.ep8", "tp8.ep8.red4"],
    "mixtral-8x7b": ["tp1", "tp4", "tp2.dp2", "tp4.ep4", "tp8.ep8", "tp2.ep4.dp2",
                     "tp4.ep4.red2"],
}
FULL = ["llama-3.2-1b", "llama-3.2-3b", "llama-3-8b", "llama-3-70b", "mistral-7b-v0.3",
        "qwen2.5-7b", "qwen3-0.6b", "qwen3-8b", "qwen3-30b-a3b", "qwen3-235b-a22b",
        "mixtral-8x7b"]
# Models without a row in plan_expected.json, at layouts where all ranks hold equally much and
# nothing is padded: what a rank holds is what MODELS/check.py says that it needs.
EQUAL = {
    "llama-3.2-1b": [(2, 1, False), (8, 1, False)],
    "llama-3-8b": [(1, 1, False), (8, 1, False), (16, 2, False)],
    "qwen2.5-7b": [(1, 1, False), (4, 1, False)],
    "qwen3-235b-a22b": [(8, 1, False), (16, 1, False), (4, 2, False), (8, 1, True), (1, 8, True),
                        (8, 8, True), (2, 32, True)],
}


def fnv(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return h


def config_of(model, changes):
    config = json.loads(json.dumps(model["config"]))
    for key, value in changes.items():
        at = config
        *path, last = key.split(".")
        for step in path:
            at = at[step]
        at[last] = value
    return config


def tiny_case(models, golden, name, layout):
    record = json.load(open(os.path.join(golden, f"{name}.{layout}.json")))
    model = json.load(open(os.path.join(models, record["model"] + ".json")))
    want = record["layout"]
    ranks = []
    for rank in record["ranks"]:
        entry = dict(record["common"], **rank)
        params = [p[:3] for p in entry["params"]]
        if ranks and ranks[-1][1] == params:
            ranks[-1][0] += 1
        else:
            ranks.append([1, params])
        aliases = entry["aliases"]
    return {
        "case": record["case"],
        "config": config_of(model, {**model["tiny"], **record["set"]}),
        "tp": want["tp"], "dp": want["dp"], "ep": want["expert_parallel"],
        "round_robin": want["placement"] == "round_robin",
        "redundant": want["redundant_experts"],
        "head_on_disk": record["untied_by_checkpoint"],
        "aliases": aliases, "ranks": ranks,
    }


class Sizes:
    """The expressions of a model file."""

    def __init__(self, model):
        self.names = dict(model["config"])
        self.let = model["let"]

    def __getitem__(self, key):
        return self(self.let[key]) if key in self.let else self.names[key]

    def __call__(self, text):
        if isinstance(text, int):
            return text
        scope = {"cdiv": lambda a, b: -(-a // b), "__builtins__": {}}
        return eval(text.replace("/", "//"), scope, self)


def full_tensors(model):
    sizes = Sizes(model)
    for t in model["tensors"]:
        def ranges(key):
            if key not in t:
                return [None]
            pairs = [t[key]] if key == "experts" else t[key]
            return [i for a, b in pairs for i in range(sizes(a), sizes(b))]
        shape = [sizes(d) for d in t["shape"]]
        for layer, expert in itertools.product(ranges("layers"), ranges("experts")):
            yield t["name"].replace("{L}", str(layer)).replace("{E}", str(expert)), shape


def equal_rows(models, model):
    sys.path.insert(0, models)
    import check
    for tp, dp, ep in EQUAL.get(model["name"], []):
        size = check.rank0(model, dp, tp, ep)
        yield {"model": model["name"], "tp": tp, "dp": dp, "ep": ep, "refused": None,
               "parameter_bytes": [[tp * dp, size]]}


def full_case(models, rows, name):
    model = json.load(open(os.path.join(models, name + ".json")))
    count = elements = digest = 0
    head = False
    for tensor, shape in full_tensors(model):
        size = 1
        for d in shape:
            size *= d
        count += 1
        elements += size
        digest += fnv(" ".join([tensor] + [str(d) for d in shape]))
        head = head or tensor == "lm_head.weight"
    assert count == model["expect"]["tensors"] and elements == model["expect"]["elements"], name
    keys = ("tp", "dp", "ep", "refused", "parameter_bytes")
    rows = [r for r in rows + list(equal_rows(models, model)) if r["model"] == name]
    return {"model": name, "config": model["config"], "head_on_disk": head, "tensors": count,
            "elements": str(elements), "digest": "%016x" % (digest & (1 << 64) - 1),
            "layouts": [{k: r.get(k) for k in keys} for r in rows]}


def main():
    models, golden = sys.argv[1:]
    rows = json.load(open(os.path.join(models, "plan_expected.json")))["rows"]
    tiny = [tiny_case(models, golden, n, lay) for n, lays in TINY.items() for lay in lays]
    full = [full_case(models, rows, n) for n in FULL]

    def lines(items):
        return ",\n".join(json.dumps(i, separators=(",", ":")) for i in items)
    print('{"tiny":[\n%s\n],\n"full":[\n%s\n]}' % (lines(tiny), lines(full)))


main()
