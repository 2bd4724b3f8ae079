#!/usr/bin/env python3
"""ONNX models: Mica, onnxruntime and OpenVINO on the same files and inputs, in turns.

Rows: every model of ./dev model onnx, at batch 1 and 8, with 1 and 2 threads; those called -int8 are QDQ models. Each
runs in a process of its own, its threads on a processor each, unless that makes a peer slower. In a round all three are
asked in turns for the best time of so many seconds, and the next waits until the one before has come to rest; a row's
times and ratio are the medians of its rounds, and its spread is the quartiles of the ratio. Rows whose spread lies
across 1, or that other programs disturbed, get more rounds. Memory is Mica's plan against what the others' processes grew by when
the model was loaded and run, weights counted on neither side: Mica's are lent by the file, and copies in other layouts
(prepared floats, packed bytes), which the others make too, are left out of its plan.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "onnx"))
from driver import Driver, Refused, sizes_of  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent))  # last: this file is not the package of its name
import stats  # noqa: E402
from contest import release, rest, spread  # noqa: E402
from runtimes import OF_LIBRARY, resident  # noqa: E402

LIBRARIES = ["onnxruntime", "openvino"]
OTHERS = 0.05  # of a turn's time, on all processors: if other programs take more, it was disturbed
SLOWER = 1.1  # of the time without: what threads that keep to their processors may take
TICKS = os.sysconf("SC_CLK_TCK")  # of a second, by which the system counts

Row = namedtuple("Row", "name aim")


def options(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench --peers onnx", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filters", nargs="*", metavar="MODEL", help="those whose name contains this; all")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (1,2)")
    parser.add_argument("--batch", default="1,8", help="batches (1,8)")
    parser.add_argument("--rounds", type=int, default=6, help="turns of each row (6)")
    parser.add_argument("--patience", type=float, default=3,
                        help="up to so many times the rounds for rows that are not decided, or were disturbed (3)")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each turn (0.5)")
    parser.add_argument("--json", type=Path, default="build/bench/onnx.json", help="the results (build/bench/onnx.json)")
    for name in ("--driver", "--models"):
        parser.add_argument(name, required=True, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_intermixed_args(arguments)
    given.threads = [int(one) for one in given.threads.split(",")]
    given.batch = [int(one) for one in given.batch.split(",")]
    return given


# ---- The others: a process each, that is told "sample SECONDS" ----

def serve(library, path, threads, arrays):
    """The other end of Peer."""
    inputs = dict(numpy.load(arrays))
    before, run = OF_LIBRARY[library](path, int(threads), inputs)
    run()
    run()
    print(json.dumps({"grown": resident() - before}), flush=True)
    for line in sys.stdin:
        seconds, best, begun = float(line), float("inf"), time.perf_counter()
        while time.perf_counter() - begun < seconds:
            start = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - start)
        print(json.dumps({"best": best}), flush=True)


class Peer:
    def __init__(self, library, path, threads, arrays):
        self.process = subprocess.Popen([sys.executable, __file__, "--serve", library, str(path), str(threads), arrays],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=os.environ | {"OMP_NUM_THREADS": str(threads)})
        self.grown = self.answer()["grown"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Refused("it ended")
        return json.loads(line)

    def sample(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self.answer()["best"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- Rounds ----

def worked_for_others(pid):
    """Seconds that the processors have worked for others than this process."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, *rest = map(int, file.readline().split()[1:9])
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        own = file.read().rpartition(")")[2].split()[11:13]
    return (user + nice + system + sum(rest) - sum(map(int, own))) / TICKS


def turn(process, sample, seconds):
    """One contestant's part of a round."""
    begun, others = time.monotonic(), worked_for_others(process.pid)
    best, calls = sample(seconds)
    disturbed = worked_for_others(process.pid) - others > OTHERS * (time.monotonic() - begun) + 2 / TICKS
    rest(process.pid)
    return stats.Sample(1e9 * best, calls, disturbed)


def settle(contestants, threads, seconds):
    """Gives each thread a processor of its own: left alone, two may share one for whole rounds. Those of others are let
    go again where that is clearly faster, as OpenVINO may have more threads than it was told; Mica has as many."""
    for name, (process, sample) in contestants.items():
        free = min(sample(seconds)[0] for _ in range(2))
        spread(process.pid, threads)
        if name != "mica" and min(sample(seconds)[0] for _ in range(2)) > SLOWER * free:
            release(process.pid)
        rest(process.pid)


def measure(args, name, threads, contestants):
    """Rounds of turns, until the row is decided or patience ends; `contestants`: a process and its sample by name."""
    rounds, keys = [], list(contestants)
    settle(contestants, threads, args.seconds / 2)
    while True:
        first = len(rounds) % len(keys)  # nobody is always the one after the slowest
        rounds.append({one: turn(*contestants[one], args.seconds) for one in keys[first:] + keys[:first]})
        result = stats.summary(Row(name, 1.0), threads, rounds, ["0", "none"])
        if not stats.wants_more(result, 1.0, len(rounds), len(rounds), args.rounds, args.patience):
            return result


# ---- Rows ----

def inputs_for(models, name, batch):
    """As many samples as the batch, from those that the model was compared with."""
    told = json.loads((models / name / "model.json").read_text(encoding="utf-8"))
    arrays = {one: numpy.load(models / name / "in" / f"{one}.npy") for one in told["inputs"]}
    if name.startswith("silero-vad-sequence"):
        return told, arrays if batch == 1 else None
    if name == "silero-vad":  # a window of every one of so many sounds
        return told, {"input": arrays["input"][:batch], "state": numpy.zeros((2, batch, 128), numpy.float32)}
    return told, {one: numpy.concatenate([array] * batch)[:batch] for one, array in arrays.items()}


def weight_bytes(path):
    import onnx

    graph = onnx.load(str(path)).graph
    return sum(len(one.raw_data) or 4 * (len(one.float_data) + len(one.int32_data)) for one in graph.initializer)


def contest(args, name, batch, threads):
    told, inputs = inputs_for(args.models, name, batch)
    if inputs is None:
        return None
    path, arrays = args.models / f"{name}.onnx", str(args.json.parent / "row.npz")
    fixed = {one: numpy.array(value, numpy.int64) for one, value in told.get("set", {}).items()}
    numpy.savez(arrays, **inputs, **fixed)
    driver, peers = Driver(args.driver), {}
    found = {"model": name, "batch": batch, "threads": threads, "weights": weight_bytes(path)}
    try:
        found["plan"] = driver.open(path, threads, **sizes_of(told, inputs, path))
        for one, array in inputs.items():
            driver.write(one, array)
        for library in LIBRARIES:
            try:
                peers[library] = Peer(library, path, threads, arrays)
            except Refused:
                print(f"{name}: {library} cannot run it", file=sys.stderr)
        if not peers:
            return None
        contestants = {"mica": (driver.process, driver.sample)}
        for library, peer in peers.items():
            contestants[library] = (peer.process, lambda seconds, peer=peer: (peer.sample(seconds), 0))
        result = measure(args, name, threads, contestants)
        found["grown"] = {library: peer.grown for library, peer in peers.items()}
    finally:
        driver.close()
        for peer in peers.values():
            peer.close()
    found["seconds"] = {one: 1e-9 * ns for one, ns in {"mica": result["ns"], **result["peers"]}.items()}
    found["heap_calls"] = result["allocs"]["mica"]
    for key in ("fastest", "ratio", "ratio_low", "ratio_high", "tie", "rounds", "disturbed"):
        found[key] = result[key]
    least = min(max(grown - found["weights"], 0) for grown in found["grown"].values())
    found["memory"] = found["plan"] / max(least, 1)
    return found


HEAD = ("| model | batch | threads | Mica, ms | onnxruntime | OpenVINO | ratio | spread | plan, MB "
        "| growth without weights, MB |")


def show(row):
    ms = [f"{1e3 * row['seconds'].get(one, float('nan')):.3g}" for one in ("mica", *LIBRARIES)]
    grown = ", ".join(f"{(row['grown'][one] - row['weights']) / 1e6:.1f}" for one in row["grown"])
    words = [""] if row["ratio"] >= 1 else [" level" if row["tie"] else " short"]
    words += ["disturbed"] if row["disturbed"] else []
    print(f"| {row['model']} | {row['batch']} | {row['threads']} | {' | '.join(ms)} | {row['ratio']:.2f}× | "
          f"{row['ratio_low']:.2f} to {row['ratio_high']:.2f} | {row['plan'] / 1e6:.1f} | {grown} |{' '.join(words)}",
          flush=True)


def main():
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
        return
    args = options(sys.argv[1:])
    names = [path.parent.name for path in sorted(args.models.glob("*/model.json"))]
    rows = []
    args.json.parent.mkdir(parents=True, exist_ok=True)
    print(HEAD)
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name in names:
        if args.filters and not any(one in name for one in args.filters):
            continue
        for batch in args.batch:
            for threads in args.threads:
                try:
                    row = contest(args, name, batch, threads)
                except Refused as error:
                    print(f"{name}, batch {batch}: Mica cannot run it: {error}", file=sys.stderr)
                    continue
                if row is not None:
                    rows.append(row)
                    show(row)
    args.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
    reached, level = sum(row["ratio"] >= 1 for row in rows), sum(row["tie"] for row in rows)
    across = sum(row["ratio"] >= 1 > row["ratio_low"] for row in rows)
    halved = sum(row["memory"] <= 0.5 for row in rows)
    print(f"\n{reached} of {len(rows)} rows at least as fast as the faster of both ({across} of them not in all rounds), "
          f"{level} level, {len(rows) - reached - level} behind; {halved} within half of their memory")


if __name__ == "__main__":
    main()
