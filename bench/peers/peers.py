#!/usr/bin/env python3
"""Mica and its peers in one run, row by row, in turns: docs/benchmarks.md, "Peers"."""

import argparse
import os
import re
import sys
import sysconfig
import tempfile

import contest
import report
import rows
import verify

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build")
OUT = os.path.join(BUILD, "bench")
PROGRAMS = os.path.join(OUT, "peers")


def options(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench --peers", description=__doc__)
    parser.add_argument("filters", nargs="*", metavar="FILTER", help="only the rows whose name contains one of these")
    parser.add_argument("--peers", default="debian", choices=["debian", "newest"], help="Debian's, or PyPI's newest")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, each in its own run (1,2)")
    parser.add_argument("--seconds", type=float, default=1.5, help="for each row, all contestants together (1.5)")
    parser.add_argument("--patience", type=float, default=2.5, help="times that, for rows that are not decided (2.5)")
    parser.add_argument("--quick", action="store_true", help="a rough look: a few rounds of each row")
    parser.add_argument("--verify", action="store_true", help="compare results instead of times")
    parser.add_argument("--table", choices=["readme", "full"], help="only print the last run's table, as Markdown")
    parser.add_argument("--out", default=os.path.join(OUT, "peers"), help="the report's path without its ending")
    given = parser.parse_args([one for one in arguments if one != "--peers"])  # alone it only got us here
    given.threads = [int(number) for number in given.threads.split(",")]
    if given.quick:
        given.seconds, given.patience = 0.3, 1.0
    return given


def commands(which, threads):
    """Each peer's key, command and environment."""
    count = str(threads)
    env = {"OMP_NUM_THREADS": count, "BLIS_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count}
    for name in ("onednn", "openblas", "blis", "mkl"):
        newer = os.path.join(PROGRAMS, f"{name}-newest")
        if which == "newest" and os.path.exists(newer):
            yield name, [newer, count], threads, {**env, "MKL_NUM_THREADS": count}
        elif name != "mkl":
            yield name, [os.path.join(PROGRAMS, name), count], threads, env
    command = [python_of(which), os.path.join(HERE, "torch_peer.py"), count]
    yield "pytorch", command, threads, {**env, **torch_environment(which, count)}


def python_of(which):
    """That has the PyTorch: tools/peers.sh has seen to it."""
    if which == "debian":
        return "/usr/bin/python3"
    own = os.path.join(BUILD, "torch", "bin", "python")
    return own if os.path.exists(own) else os.path.join(BUILD, "onnx", "python", "bin", "python")


def torch_environment(which, count):
    env = {"LD_PRELOAD": os.path.join(PROGRAMS, "heap.so"), "MKL_NUM_THREADS": count, "PYTHONDONTWRITEBYTECODE": "1"}
    if which == "debian":  # whose libblas.so.3 is any; this one shares the threads of OpenMP, which are PyTorch's own
        env["LD_LIBRARY_PATH"] = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}/openblas-openmp"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if "avx512vl" in file.read():
            env["ATEN_CPU_CAPABILITY"] = "avx512"
    return env


def start(given, threads):
    """Mica, and those of the peers that are there."""
    command = [os.path.join(BUILD, "mica"), "bench", "--serve", "--threads", str(threads)]
    peers = []
    with contest.machine():
        mica = contest.Contestant("mica", command, threads)
        for one in commands(given.peers, threads):
            try:
                peers.append(contest.Contestant(*one))
            except (contest.Failed, OSError) as problem:
                print(f"{one[0]} is left out: {problem}", file=sys.stderr)
    return mica, peers


def describe(machine, threads, mica, peers):
    machine["cpu"], machine["isa"], machine["commit"] = mica.greeting[0].rsplit(", ", 2)
    peak = re.search(r"peak ([\d.]+) GFLOP/s, copy ([\d.]+) GB/s", mica.greeting[1])
    machine.setdefault("peaks", []).append(
        {"threads": threads, "peak_gflops": float(peak[1]), "copy_gbs": float(peak[2])}
    )
    machine["peers"] = {peer.key: " ".join(peer.greeting) for peer in peers}


def measure_row(given, row, threads, mica, peers):
    """A peer that fails is left out from there on, and said so: it must not cost the others their results."""
    while True:
        try:
            with contest.machine():
                return contest.measure(row, threads, mica, peers, given.seconds, given.patience)
        except contest.Failed as problem:
            if problem.contestant is mica:
                raise
            print(f"{row.name}: {problem}; it is left out from here on", file=sys.stderr)
            peers.remove(problem.contestant)
            problem.contestant.end()


def measure(given, chosen):
    machine, results = {}, []
    for threads in given.threads:
        mica, peers = start(given, threads)
        describe(machine, threads, mica, peers)
        report.head(threads, machine)
        for row in chosen:
            results.append(measure_row(given, row, threads, mica, peers))
            report.line(results[-1])
            report.write(given.out, machine, results)
        for one in [mica, *peers]:
            one.end()
    print(f"\n{report.score(results)}\n{given.out}.json, .md, .html")
    return 0


def compare(given, chosen):
    mica, peers = start(given, given.threads[-1])
    with tempfile.TemporaryDirectory() as folder:
        bad = sum(verify.row(row, mica, peers, folder) for row in chosen if row.results)
    print(f"\n{bad} results differ" if bad else "\nall results agree")
    return 1 if bad else 0


def main(arguments):
    given = options(arguments)
    if given.table:
        machine, results = report.read(given.out + ".json")
        print(report.readme(results) if given.table == "readme" else report.markdown(machine, results), end="")
        return 0
    chosen = rows.chosen(given.filters)
    if not chosen:
        sys.exit(f"no row has {' or '.join(given.filters)} in its name: {', '.join(row.name for row in rows.ROWS)}")
    return compare(given, chosen) if given.verify else measure(given, chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
