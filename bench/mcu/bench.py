#!/usr/bin/env python3
"""bench.py MICA FOLDER [--json FILE] [--boards LIST] [--no-peers]: exported nets and their peers on emulated boards."""

import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "mcu"), HERE]

import harness
import limits
import peers

COLUMNS = ("code", "flash", "ram", "stack", "instructions", "cycles")
MLP = limits.Row("MLP 32-32-16-8, f32 inference", "mlp", "mlp", [], None, None, None)


def line(name, figures, note=""):
    cells = []
    for key in COLUMNS:
        value = figures.get(key)
        scaled = None if value is None else value / 1000
        digits = 3 if key in ("code", "flash", "ram", "stack") else 1
        cells.append("-" if scaled is None else f"{scaled:,.{digits}f}")
    print(f"  {name:36}" + "".join(f"{cell:>12}" for cell in cells) + ("  " + note if note else ""))


def heading(title):
    print(f"\n{title}")
    names = ("code KB", "flash KB", "RAM KB", "+ stack KB", "k instr", "k cycles")
    print("  " + " " * 36 + "".join(f"{name:>12}" for name in names))


def measure_row(row, mica, folder, boards):
    """{board: figures}; a net that cannot be exported has its reason instead."""
    found = {}
    for board in boards:
        try:
            found[board] = limits.measure(row, mica, os.path.join(folder, row.name), board)
        except harness.Failure as failure:
            found[board] = dict(failure=str(failure).strip().splitlines()[-1])
    return found


def show_row(row, found, with_peers):
    heading(row.title)
    for board, figures in found.items():
        name = f"Mica, {harness.BOARDS[board].core}"
        if "failure" in figures:
            print(f"  {name:34}  not measured: {figures['failure']}")
        else:
            line(name, figures)
    for name, figures in peers.MEASURED_BEFORE.get(row.title, []) if with_peers else []:
        line(f"{name}, Cortex-M4F *", {key: value * 1000 for key, value in figures.items()})


def show_limits(results):
    print("\nLimits, on the Cortex-M4F (RAM with stack)")
    missed = 0
    for row, found in results:
        figures = found.get(limits.BOARD)
        if figures is None or "failure" in figures:
            print(f"  {row.title:34} not measured")
            missed += 1
            continue
        cells = []
        for key, (measured, most, holds) in limits.reached(row, figures).items():
            missed += not holds
            cells.append(f"{key} {measured / 1000:,.2f} of {most / 1000:,.1f} {'reached' if holds else 'NOT REACHED'}")
        print(f"  {row.title:34} " + "; ".join(cells))
    return missed


def show_mlp(mica, folder, boards, with_peers):
    found = measure_row(MLP, mica, folder, boards)
    show_row(MLP, found, False)
    headers = os.path.join(os.path.dirname(folder), "emlearn")
    others = {}
    for board in boards if with_peers and os.path.isdir(headers) else []:
        others[board] = peers.measure_emlearn(headers, folder, board)
        line(f"emlearn, {harness.BOARDS[board].core}", others[board])
    return found, others


def main():
    mica, folder, *words = sys.argv[1:]
    mica, folder = os.path.abspath(mica), os.path.abspath(folder)
    path = words[words.index("--json") + 1] if "--json" in words else None
    boards = words[words.index("--boards") + 1].split(",") if "--boards" in words else list(harness.BOARDS)
    for board in boards:
        harness.find_board(board)
    with_peers = "--no-peers" not in words
    os.makedirs(folder, exist_ok=True)
    print("GCC -O2; KB = 1,000 bytes. Code, flash (with weights) and RAM are those of the net's own object. Cycles are modelled.")
    results = []
    for row in limits.ROWS:
        results.append((row, measure_row(row, mica, folder, boards)))
        show_row(*results[-1], with_peers)
    mlp, emlearn = show_mlp(mica, folder, boards, with_peers)
    if with_peers:
        print("\n* measured earlier, from sources that no package has: docs/microcontrollers.md")
    missed = show_limits(results) if limits.BOARD in boards else 0
    if path:
        written = dict(boards={name: harness.BOARDS[name].core for name in boards},
                       rows=[dict(title=row.title, limits=row.limits, mica=found,
                                  measured_before=dict(peers.MEASURED_BEFORE.get(row.title, []))) for row, found in results],
                       mlp=dict(mica=mlp, emlearn=emlearn), missed=missed)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(written, file, indent=2)
            file.write("\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except harness.Failure as wrong:
        sys.exit(f"bench --mcu: {wrong}")
