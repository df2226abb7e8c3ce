#!/usr/bin/env python3
"""Make records/*.json from full golden records.

usage: make_records.py GOLDEN_DIR [MODELS_DIR]

GOLDEN_DIR holds the full records and make_tiny.py, MODELS_DIR (default:
GOLDEN_DIR/../models) the model files. Kept are the unquantised records without
pipeline stages of the classes below; of each, what golden.py compares. A
digest that several ranks share is stored once:

    params: {NAME: [DTYPE, [[SHAPE, DIGEST, [RANK, ...]], ...]]}

config is the content of config.json: its bytes are checked here against the
record's sha256, so that golden.py can compare values.
"""
import hashlib
import json
import os
import sys
import types

CLASSES = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM",
           "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "MixtralForCausalLM"}
LAYOUT = ("dp", "tp", "expert_parallel", "ep", "placement",
          "redundant_experts")


def config_of(golden, models, record):
    """Content of the record's config.json, or None if no model file makes it."""
    sys.path.insert(0, golden)
    sys.dont_write_bytecode = True
    sys.modules.setdefault("fill", types.SimpleNamespace(fill=None))
    import make_tiny
    if record["seed"] is None:
        return None
    model = make_tiny.load_model(models, record["model"],
                                 record["set"].items())
    config = make_tiny.config(model)
    text = (json.dumps(config, indent=1) + "\n").encode()
    want = {f[0]: f[2] for f in record["checkpoint"]["files"]}["config.json"]
    if hashlib.sha256(text).hexdigest() != want:
        sys.exit(f"{record['case']}: config.json has other bytes")
    return config


def of_rank(record, rank, key):
    return rank[key] if key in rank else record["common"].get(key)


def slim(record, config):
    params, aliases = {}, {}
    for rank in record["ranks"]:
        for name, dtype, shape, digest in rank["params"]:
            entry = params.setdefault(name, [dtype, []])
            assert entry[0] == dtype
            for known in entry[1]:
                if known[:2] == [shape, digest]:
                    known[2].append(rank["rank"])
                    break
            else:
                entry[1].append([shape, digest, [rank["rank"]]])
        aliases[rank["rank"]] = of_rank(record, rank, "aliases")
    same = all(a == aliases[0] for a in aliases.values())
    experts = [next(iter(rank["moe"].values())) for rank in record["ranks"]
               if rank.get("moe")]
    out = {k: record[k] for k in ("case", "model", "class", "set", "seed",
                                  "dtype")}
    out["layout"] = {k: record["layout"][k] for k in LAYOUT}
    out["files"] = record["checkpoint"]["files"]
    out["config"] = config
    out["untied_by_checkpoint"] = record.get("untied_by_checkpoint", False)
    out["elements_by_copies"] = (record["check"] or {}).get(
        "elements_by_copies")
    if experts:
        out["placement"] = experts[0]["placement"]
        out["physical_experts"] = [e["local_physical"] for e in experts]
    out["aliases"] = aliases[0] if same else [aliases[r] for r in
                                              sorted(aliases)]
    out["params"] = params
    return out


def write(path, record):
    """One parameter per line, so that a difference can be read."""
    def dump(x):
        return json.dumps(x, separators=(",", ":"))
    with open(path, "w", encoding="ascii") as f:
        f.write("{\n")
        for key, value in record.items():
            if key != "params":
                f.write(f"{dump(key)}:{dump(value)},\n")
        rows = (f"{dump(k)}:{dump(v)}" for k, v in record["params"].items())
        f.write('"params":{\n' + ",\n".join(rows) + "\n}}\n")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    golden = sys.argv[1]
    models = sys.argv[2] if len(sys.argv) > 2 else os.path.join(golden, "..",
                                                                "models")
    out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "records")
    os.makedirs(out, exist_ok=True)
    count = 0
    for name in sorted(os.listdir(golden)):
        if not name.endswith(".json"):
            continue
        with open(os.path.join(golden, name), encoding="utf-8") as f:
            record = json.load(f)
        if (record.get("class") not in CLASSES or record.get("quantization")
                or record.get("stages") or "refused" in record):
            continue
        config = config_of(golden, models, record)
        write(os.path.join(out, name), slim(record, config))
        count += 1
    print(f"{count} records in {out}")


if __name__ == "__main__":
    main()
