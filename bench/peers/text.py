#!/usr/bin/env python3
"""Public text models: Mica and llama.cpp on the same files, row by row, in turns; best of all turns.

Rows: prompts of 128 and 512 tokens, and 64 tokens one after the other, of SmolLM2-135M in six types. llama.cpp is built
natively; its turns are with and without flash attention, and the better one counts. With one thread the time is that on
the processor, of both, so that other programs matter less; with more it is that of the clock on the wall. Then, of Mica
alone: resident memory beside the mapped file, against the plan, and the time until the first token.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TYPES = ["Q4_0", "Q4_1", "Q8_0", "Q4_K_M", "Q6_K", "F16"]
ROWS = [("prompt", 128), ("prompt", 512), ("decode", 64)]
# What is wanted of prompts: llama.cpp has no matrix kernel for Q4_1; files Q4_K_M and Q6_K are mostly Q5_0 and Q8_0.
PROMPT_AIM = {"Q4_0": 1.2, "Q8_0": 1.2, "F16": 1.2, "Q4_1": 2.0}
READ_AIM = {"F16": 0.85, "Q8_0": 0.85}  # of the read bandwidth, with one thread
MOST_START_MS, MOST_BEYOND = 50.0, 1 << 20


def options(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench --peers text", description=__doc__)
    parser.add_argument("filters", nargs="*", metavar="TYPE", help="of " + ", ".join(TYPES))
    parser.add_argument("--threads", default="1,2", help="numbers of threads (1,2)")
    parser.add_argument("--rounds", type=int, default=6, help="turns of each row (6)")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each turn of Mica (1)")
    parser.add_argument("--json", default="build/bench/text.json", help="the results (build/bench/text.json)")
    for name in ("--mica", "--oracle", "--models"):
        parser.add_argument(name, required=True, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    unknown = [one for one in given.filters if one not in TYPES]
    if unknown:
        parser.error(f"there is no type {unknown[0]}: {', '.join(TYPES)}")
    given.threads = [int(number) for number in given.threads.split(",")]
    return given


def call(command, **more):
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    if run.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{run.stderr[-2000:]}")
    return run.stdout


# ---- Turns ----

def turn_of_mica(args, path, row, threads):
    """Seconds at best, and what else it says of the row."""
    kind, tokens = row
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        call([args.mica, "bench", "--text", path, "--prompt", tokens if kind == "prompt" else 0,
              "--decode", tokens if kind == "decode" else 0, "--threads", threads, "--seconds", args.seconds,
              "--json", file.name])
        told = json.load(open(file.name, encoding="utf-8"))["rows"][0]
    return told["ms_min" if threads == 1 else "wall_ms_min"] / 1e3, told


def turn_of_llama(args, path, row, threads, flash):
    kind, tokens = row
    wall, processor = call([args.oracle, "bench", path, f"--{kind}", tokens, "--threads", threads, "--seconds",
                            args.seconds, *(["--flash"] if flash else [])]).split()
    return float(processor if threads == 1 else wall)


def contest(args, path, row, threads):
    """The best seconds of both, work in a second of Mica's best turn, the limit of all turns, heap calls."""
    mica = llama = float("inf")
    work = limit = calls = 0.0
    for turn in range(args.rounds):
        seconds, told = turn_of_mica(args, path, row, threads)
        mica, work, limit = min(mica, seconds), max(work, told["work"]), max(limit, told["limit_work"])
        calls = max(calls, told["heap_calls"])
        llama = min(llama, turn_of_llama(args, path, row, threads, turn % 2))
    return mica, llama, work, limit, calls, told["limit"]


def measure(args, kind, row, threads):
    name, tokens = row
    path = args.models / f"SmolLM2-135M-Instruct.{kind}.gguf"
    mica, llama, work, limit, calls, against = contest(args, path, row, threads)
    found = {"type": kind, "threads": threads, "row": f"{name} {tokens}", "mica": tokens / mica,
             "llama": tokens / llama, "ratio": llama / mica, "work": work, "limit": against,
             "percent_of_limit": 100 * work / limit, "heap_calls": calls,
             "aim": 1.0 if name == "decode" else PROMPT_AIM.get(kind, 1.0),
             "percent_aim": 100 * READ_AIM.get(kind, 0) if name == "decode" and threads == 1 else 0}
    found["reached"] = found["ratio"] >= found["aim"] and found["percent_of_limit"] >= found[
        "percent_aim"] and calls == 0
    return found


# ---- Memory and the beginning ----

def resident(process):
    """The most bytes of its own, beside files, that a running program had."""
    most = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                fields = dict(line.split(":", 1) for line in file)
            most = max(most, int(fields["RssAnon"].split()[0]) * 1024)
        except (OSError, KeyError, ValueError):
            break
        time.sleep(0.002)
    process.wait()
    return most


def memory(args, kind):
    path = args.models / f"SmolLM2-135M-Instruct.{kind}.gguf"
    common = [str(args.mica), "generate", str(path), "--prompt", "Once upon a time", "--json", "--context", "1024"]
    plan = json.loads(call([args.mica, "plan", path, "--context", 1024, "--json"]))
    told = plan["total"] + plan["model"]["tables"]  # the block, and the vocabulary and the net's description beside it
    most = resident(subprocess.Popen([*common, "--tokens", "1000"], stdout=subprocess.DEVNULL))
    starts = []  # of the whole program, without the prompt and the token
    for _ in range(10):
        begun = time.perf_counter()
        out = json.loads(call([*common, "--tokens", "1"]).splitlines()[-1])
        starts.append(1e3 * (time.perf_counter() - begun) - out["prompt_ms"] - out["token_ms"])
    return {"type": kind, "plan": told, "resident": most, "beyond": most - told, "start_ms": min(starts),
            "reached": most - told <= MOST_BEYOND and min(starts) < MOST_START_MS}


# ---- The report ----

HEAD = "| type | threads | row | Mica, tokens/s | llama.cpp | ratio | wanted | GB/s, GOP/s | of the limit |"


def show(found):
    rate = f"{found['work'] / 1e9:.1f} | {found['percent_of_limit']:.0f} % of {found['limit']}"
    print(f"| {found['type']} | {found['threads']} | {found['row']} | {found['mica']:.0f} | {found['llama']:.0f} | "
          f"{found['ratio']:.2f}× | {found['aim']:.1f}× | {rate} |{'' if found['reached'] else ' short'}", flush=True)


def main():
    args = options(sys.argv[1:])
    kinds = args.filters or TYPES
    results = {"rows": [], "memory": []}
    print(HEAD)
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|")
    for kind in kinds:
        for threads in args.threads:
            for row in ROWS:
                results["rows"].append(measure(args, kind, row, threads))
                show(results["rows"][-1])
    print("\n| type | plan, bytes | resident beside the file | beyond the plan | until the first token, ms |")
    print("|---|---:|---:|---:|---:|")
    for kind in kinds:
        found = memory(args, kind)
        results["memory"].append(found)
        print(f"| {kind} | {found['plan']:,} | {found['resident']:,} | {found['beyond']:,} | {found['start_ms']:.1f} |"
              f"{'' if found['reached'] else ' short'}", flush=True)
    os.makedirs(os.path.dirname(os.path.abspath(args.json)), exist_ok=True)
    with open(args.json, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    all_found = results["rows"] + results["memory"]
    print(f"\n{sum(one['reached'] for one in all_found)} of {len(all_found)} rows as wanted; {args.json}")


if __name__ == "__main__":
    main()
