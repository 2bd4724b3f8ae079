#!/usr/bin/env python3
"""Networks that people know: Mica, PyTorch (eager, channels last, compiled), onnxruntime and OpenVINO, in turns.

Each runs in a process of its own, in slices by turns; times are medians, ratios medians of those within a round. The
nets are bench/known/*.net, and the same in bench/known/models.py: parameters are handed over in order, so that their
numbers and shapes agree, and what both make of the same input is compared first, with onnxruntime too.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path.append(str(Path(__file__).resolve().parent))
import contest  # noqa: E402
import known_latency  # noqa: E402
import known_report  # noqa: E402
import known_rows  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
OUT = BUILD / "bench" / "known"
MICA = BUILD / "mica"
CLOSE = 1e-3  # how far results may be from each other, as a share of the largest


def options(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench --peers known", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help='rows whose name contains this; "latency": that of a small controller')
    parser.add_argument("--threads", default="1,2", help="numbers of threads (1,2)")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each row (7)")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each turn (0.3), and at least one call")
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile, the longest to start")
    parser.add_argument("--no-check", action="store_true", help="do not compare results first")
    parser.add_argument("--list", action="store_true", help="only the names of the rows")
    parser.add_argument("--json", default=str(BUILD / "bench" / "known.json"),
                        help="the results (build/bench/known.json)")
    given = parser.parse_args(arguments)
    try:
        given.threads = [int(one) for one in given.threads.split(",")]
    except ValueError:
        parser.error(f'--threads takes numbers, as in 1,2; not "{given.threads}"')
    if min(given.threads) < 1 or given.rounds < 1 or given.seconds < 0:
        parser.error("threads and rounds are at least 1, seconds at least 0")
    return given


def chosen(only):
    return [row for row in known_rows.ROWS if not only or any(part in row.name for part in only)]


# ---- Contestants ----


class Peer(contest.Contestant):
    """known_peer.py, whose first line is what it says of itself."""

    def __init__(self, key, spec):
        environment = {
            "OMP_NUM_THREADS": str(spec["threads"]),
            "MKL_NUM_THREADS": str(spec["threads"]),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        counter = BUILD / "bench" / "peers" / "heap.so"
        if counter.exists():
            environment["LD_PRELOAD"] = str(counter)
        command = [sys.executable, "-P", "-B", str(Path(__file__).with_name("known_peer.py")), json.dumps(spec)]
        with open(OUT / f"{key.replace(' ', '-')}.log", "w", encoding="utf-8") as log:
            super().__init__(key, command, spec["threads"], environment, log)
        self.told = json.loads(self.greeting[0])


def start_mica(threads):
    command = [str(MICA), "bench", "--serve", "--quick", "--threads", str(threads)]
    return contest.Contestant("mica", command, threads)


def prepare_mica(mica, row, train):
    kind = "train" if train else f"infer/{row.rows}" if row.rows else "infer"
    what = ["net", str(ROOT / "bench" / "known" / f"{row.net.name}.net"), kind, str(row.batch)]
    words = mica.ask(" ".join([*what, str(row.net.tokens or 1), *row.net.constants]))
    if words is None:
        raise contest.Failed(mica, f"cannot run {row.name}")
    mica.rest()
    return dict(zip(("parameters", "plan", "prepared_bytes", "work_bytes", "flops"), map(float, words[1:])))


def file_of(net, ending):
    """The net with Mica's weights, written by `mica convert`."""
    path = OUT / f"{'-'.join([net.name, *net.constants])}{ending}"
    source = ROOT / "bench" / "known" / f"{net.name}.net"
    if not path.exists() or path.stat().st_mtime < max(source.stat().st_mtime, MICA.stat().st_mtime):
        sets = [word for one in net.constants for word in ("--set", one)]
        plain = ["--plain"] if ending == ".onnx" else []  # OpenVINO has no functions
        subprocess.run([str(MICA), "convert", str(source), str(path), "--quiet", *plain, *sets], check=True)
    return str(path)


def specs(given, row, threads, train):
    """Who else runs it: each one's key, and what it is told."""
    base = {"net": row.net._asdict(), "train": train, "batch": row.batch, "threads": threads}
    ways = ["eager"] + ["channels_last"] * row.net.image + ["compile"] * (not given.no_compile)
    for way in ways:
        yield f"torch {way}", {**base, "library": "torch", "way": way, "weights": file_of(row.net, ".safetensors")}
    if not train:
        for library in ("onnxruntime", "openvino"):
            yield library, {**base, "library": library, "onnx": file_of(row.net, ".onnx")}


def start_peers(told):
    """All at once: they take their time. Those that cannot are said."""
    peers, failed = [], {}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for (key, _), waiting in [(one, pool.submit(Peer, *one)) for one in told]:
            try:
                peers.append(waiting.result())
            except contest.Failed as problem:
                line = problem.contestant.greeting
                failed[key] = json.loads(line[0])["failed"] if line else "it ended at once"
    return peers, failed


# ---- What they make ----


def agree(given, row):
    """Mica's results against PyTorch's and onnxruntime's with the same weights: the largest difference of each, as a
    share of the largest number."""
    import numpy

    wanted = [one for one in specs(given, row, 1, False) if one[0] in ("torch eager", "onnxruntime")]
    mica = start_mica(1)
    peers, failed = start_peers(wanted)
    found = dict(failed)
    try:
        parameters = prepare_mica(mica, row, False)["parameters"]
        with tempfile.TemporaryDirectory() as folder:
            results = {}
            for one in [mica, *peers]:
                path = os.path.join(folder, one.key.replace(" ", "-"))
                if one.ask(f"result 0 {path}") is None:
                    raise contest.Failed(one, "gave no result")
                results[one.key] = numpy.fromfile(path, numpy.float32)
        ours = results["mica"]
        for one in peers:
            theirs = results[one.key]
            if theirs.size != ours.size or one.told["parameters"] not in (None, parameters):
                found[one.key] = (f"{theirs.size} numbers and {one.told['parameters']} parameters, "
                                  f"not {ours.size} and {parameters:.0f}")
            else:
                scale = float(numpy.abs(ours).max()) or 1.0
                found[one.key] = float(numpy.abs(ours - theirs).max()) / scale
    finally:
        for one in [mica, *peers]:
            one.end()
    return found


def check(given, rows):
    """Of every net once. Returns what each differs by, and whether all is well."""
    found, good = {}, True
    for row in {row.net: row for row in rows}.values():
        name = "-".join([row.net.name, *row.net.constants])
        found[name] = agree(given, row)
        for key, difference in found[name].items():
            if not isinstance(difference, float) or not difference <= CLOSE:
                print(f"{name}: {key} differs: {difference}", file=sys.stderr)
                good = False
    return found, good


# ---- Rows ----


def hop():
    """Nanoseconds from the first processor to the second; None if that cannot be told."""
    told = subprocess.run([str(MICA), "bench", "--hop"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    found = re.match(r"([\d.]+) ns", told.stdout)
    return float(found[1]) if found else None


def take_rounds(given, threads, mica, peers):
    """Of each round, the nanoseconds of each, Mica's limit, and the hop."""
    rounds, hops, limits, heap = [], [], [], []
    ns = 1e9 * given.seconds
    for turn in range(given.rounds):
        present = [mica, *peers]
        first = turn % len(present)
        samples = {}
        with contest.machine():
            for one in present[first:] + present[:first]:
                samples[one.key] = one.sample(ns)
            limit = mica.ask(f"limit {min(ns, 5e7):.0f}")
            mica.rest()
            if threads == 2:
                hops.append(hop())
        rounds.append({key: sample.ns for key, sample in samples.items()})
        limits.append(float(limit[0]) if limit is not None else 0.0)
        heap.append({key: sample.allocs for key, sample in samples.items()})
    return rounds, [one for one in hops if one is not None], limits, heap


def measure(given, row, threads):
    peers, failed = start_peers(list(specs(given, row, threads, row.train)))
    mica = start_mica(threads)
    try:
        cost = prepare_mica(mica, row, row.train)
        rounds, hops, limits, heap = take_rounds(given, threads, mica, peers)
    finally:
        for one in [mica, *peers]:
            one.end()
    times = {key: median(one[key] for one in rounds) for key in rounds[0]}
    learned = cost["parameters"] * 4 * (4 if row.train else 1)  # with gradients and Adam's two states
    result = {
        "name": row.name, "net": row.net.name, "train": row.train, "batch": row.batch, "threads": threads,
        "ns": times["mica"], "peers": {key: ns for key, ns in times.items() if key != "mica"}, "failed": failed, **cost,
        "percent_of_peak": 100.0 * min(limits) / times["mica"],
        "grown": {one.key: max(one.told["grown"] - learned, 0.0) for one in peers},
        "heap_calls": {key: median(one[key] for one in heap) for key in heap[0]},
        "hop_ns": median(hops) if hops else None, "rounds": len(rounds),
    }
    return known_report.judge(result, rounds)


def main(arguments):
    given = options(arguments)
    if given.list:
        print("\n".join([*(row.name for row in known_rows.ROWS), "latency"]))
        return 0
    rows = chosen(given.only)
    latency = not given.only or "latency" in given.only
    if not rows and not latency:
        sys.exit(f"no row has {' or '.join(given.only)} in its name: {', '.join(row.name for row in known_rows.ROWS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    found, good = ({}, True) if given.no_check else check(given, rows)
    results, small = [], None
    known_report.head()
    for row in rows:
        for threads in given.threads:
            try:
                results.append(measure(given, row, threads))
            except contest.Failed as problem:  # it must not cost the others their results
                print(f"{row.name}, threads {threads}: {problem}; the row is left out", file=sys.stderr)
                good = False
                continue
            known_report.line(results[-1])
            known_report.write(given.json, found, results, small)
    if latency:
        small = known_latency.measure(given, start_peers, file_of, MICA)
        known_report.latency(small)
        known_report.write(given.json, found, results, small)
    print(f"\n{known_report.score(results)}\n{given.json}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
