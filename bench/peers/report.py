"""What a run shows: a line for each row, and the files."""

import json

KEYS = ("onednn", "openblas", "blis", "pytorch")


def duration(ns):
    if ns is None:
        return "-"
    for unit in ("ns", "us", "ms"):
        if ns < 1000.0:
            break
        ns /= 1000.0
    else:
        unit = "s"
    digits = 2 if ns < 10 else 1 if ns < 100 else 0
    return f"{ns:.{digits}f} {unit}"


def ratio(result):
    if result["ratio"] is None:
        return "-"
    return f"{result['ratio']:.2f} ({result['ratio_low']:.2f}-{result['ratio_high']:.2f})"


def verdict(result):
    if result["ratio"] is None:
        return ""
    return "BEHIND" if result["ratio"] < 1.0 else "below the aim" if result["ratio"] < result["aim"] else "ok"


def head(threads, machine):
    peak = machine["peaks"][-1]
    print(f"\n{machine['cpu']}, {machine['isa']}, commit {machine['commit'].removeprefix('commit ')}")
    for version in machine["peers"].values():
        print(f"  {version}")
    print(f"{threads} threads: peak {peak['peak_gflops']} GFLOP/s, copy {peak['copy_gbs']} GB/s")
    print(f"{'row':36} {'mica':>9}", *(f"{key:>9}" for key in KEYS), f"{'ratio (quartiles)':>20} {'aim':>5}")


def line(result):
    times = (f"{duration(result['peers'].get(key)):>9}" for key in KEYS)
    print(
        f"{result['name']:36} {duration(result['ns']):>9}",
        *times,
        f"{ratio(result):>20} {result['aim']:>5}",
        percent(result),
        verdict(result),
        "~" if result["disturbed"] else "",
        flush=True,
    )


def percent(result):
    share = result["percent_of_limit"]
    return " " * 13 if share is None else f"{share:3.0f} % of {result['limit']:4}"


def write(path, machine, results):
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump({"machine": machine, "rows": results}, file, indent=1)


def total(results):
    measured = [one for one in results if one["ratio"] is not None]
    reached = sum(one["ratio"] >= one["aim"] for one in measured)
    ahead = sum(one["ratio"] >= 1.0 for one in measured)
    print(f"\n{len(measured)} rows with a peer: {ahead} at least as fast as the fastest peer, {reached} reach the aim")
