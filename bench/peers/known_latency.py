"""Single runs of a small controller, 100,000 of them, each timed within its own process by a monotonic clock."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import contest
import known_rows

RUNS = 100000
KEYS = ("p50", "p99", "p99.9", "worst")
MEDIAN_NS, TAIL = 1200.0, 2.0


def specs(given, file_of):
    net = known_rows.CONTROL
    base = {"net": net._asdict(), "train": False, "batch": 1, "threads": 1}
    for way in ["eager"] + ["compile"] * (not given.no_compile):
        yield f"torch {way}", {**base, "library": "torch", "way": way, "weights": file_of(net, ".safetensors")}
    yield "onnxruntime", {**base, "library": "onnxruntime", "onnx": file_of(net, ".onnx")}


def of_mica(program):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "latency.json"
        place = sorted(os.sched_getaffinity(0))[-1]  # where a thread alone is, of the others too
        subprocess.run([str(program), "bench", "--latency", "--json", str(path)], check=True, stdout=subprocess.DEVNULL,
                       preexec_fn=lambda: os.sched_setaffinity(0, {place}))
        told = json.loads(path.read_text(encoding="utf-8"))["latency"]
    return {"p50": told["p50_ns"], "p99": told["p99_ns"], "p99.9": told["p999_ns"], "worst": told["worst_ns"]}


def best_of(rounds):
    """Of each percentile the median over rounds: one interruption must not settle it."""
    return {key: sorted(one[key] for one in rounds)[(len(rounds) - 1) // 2] for key in KEYS}


def judge(found):
    others = [told for key, told in found.items() if key != "mica"]
    ours = found["mica"]
    return {
        "median at most 1.2 us": ours["p50"] <= MEDIAN_NS,
        "p99 at most twice the median": ours["p99"] <= TAIL * ours["p50"],
        "p99.9 below the peers'": all(ours["p99.9"] < told["p99.9"] for told in others),
    }


def measure(given, start_peers, file_of, program):
    peers, failed = start_peers(list(specs(given, file_of)))
    rounds = {"mica": [], **{one.key: [] for one in peers}}
    try:
        for _ in range(min(given.rounds, 5)):
            with contest.machine():
                rounds["mica"].append(of_mica(program))
                for one in peers:
                    rounds[one.key].append(dict(zip(KEYS, map(float, one.ask(f"latency {RUNS}")))))
                    one.rest()
    finally:
        for one in peers:
            one.end()
    found = {key: best_of(told) for key, told in rounds.items()}
    return {"ns": found, "failed": failed, "marks": judge(found), "runs": RUNS}
