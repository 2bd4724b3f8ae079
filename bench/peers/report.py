"""What a run shows: a line for each row, and the files."""

import json

import page

NAMES = {"onednn": "oneDNN", "openblas": "OpenBLAS", "blis": "BLIS", "mkl": "MKL", "pytorch": "PyTorch"}
KEYS = tuple(NAMES)


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


def ratio(row):
    if row["ratio"] is None:
        return "-"
    return f"{row['ratio']:.2f} ({row['ratio_low']:.2f}-{row['ratio_high']:.2f})"


def percent(row):
    return "-" if row["percent_of_limit"] is None else f"{row['percent_of_limit']:.0f} % of {row['limit']}"


def verdict(row):
    if row["ratio"] is None:
        return ""
    if row["ratio"] < 1.0:
        return "tie" if row.get("tie") else "BEHIND"
    return "below the aim" if row["ratio"] < row["aim"] else "ok"


def plural(threads):
    return f"{threads} thread" if threads == 1 else f"{threads} threads"


def about(machine):
    peaks = "; ".join(
        f"{plural(one['threads'])}: {one['peak_gflops']:.0f} GFLOP/s, copy {one['copy_gbs']:.1f} GB/s"
        for one in machine["peaks"]
    )
    peers = ", ".join(machine["peers"].values())
    return f"{machine['cpu']}, {machine['isa']}, {machine['commit']} ({peaks}). Peers: {peers}."


def score(rows):
    measured = [row for row in rows if row["ratio"] is not None]
    ahead = sum(row["ratio"] >= 1.0 for row in measured)
    ties = sum(row.get("tie", False) for row in measured)
    reached = sum(row["ratio"] >= row["aim"] for row in measured)
    return (
        f"{len(measured)} rows with a peer: {ahead} at least as fast as the fastest of them, {ties} tied with it, "
        f"{reached} as far ahead as is aimed at."
    )


# ---- On the terminal ----


def head(threads, machine):
    peak = machine["peaks"][-1]
    print(f"\n{machine['cpu']}, {machine['isa']}, {machine['commit']}; {', '.join(machine['peers'].values())}")
    print(f"{plural(threads)}: peak {peak['peak_gflops']} GFLOP/s, copy {peak['copy_gbs']} GB/s")
    columns = (f"{NAMES[key]:>9}" for key in KEYS)
    print(f"{'row':36} {'Mica':>9}", *columns, f"{'ratio (quartiles)':>20} {'aim':>5}  of the limit")


def line(row):
    print(
        f"{row['name']:36} {duration(row['ns']):>9}",
        *(f"{duration(row['peers'].get(key)):>9}" for key in KEYS),
        f"{ratio(row):>20} {row['aim']:>5} {percent(row):>13} ",
        verdict(row),
        "~" if row["disturbed"] else "",
        flush=True,
    )


# ---- Files ----


def markdown(machine, rows):
    names = " | ".join(NAMES[key] for key in KEYS)
    lines = ["# Mica and its peers", "", about(machine), "", score(rows)]
    for threads in sorted({row["threads"] for row in rows}):
        lines += ["", f"## {plural(threads).capitalize()}", ""]
        lines.append(f"| row | Mica | {names} | ratio (quartiles) | aim | of the limit | heap calls | |")
        lines.append("|---" + "|---:" * (len(KEYS) + 5) + "|---|")
        for row in rows:
            if row["threads"] == threads:
                times = " | ".join(duration(row["peers"].get(key)) for key in KEYS)
                lines.append(
                    f"| {row['name']} | {duration(row['ns'])} | {times} | {ratio(row)} | {row['aim']:g} | "
                    f"{percent(row)} | {heap_calls(row)} | {verdict(row)} |"
                )
    return "\n".join(lines) + "\n"


def heap_calls(row):
    """Ours, then the fastest peer's."""
    ours = f"{row['allocs']['mica']:.0f}"
    return ours if row["fastest"] is None else f"{ours}; {NAMES[row['fastest']]} {row['allocs'][row['fastest']]:.0f}"


def readme(rows):
    """The table of the README: a row once, with the ratio at each number of threads."""
    counts = sorted({row["threads"] for row in rows})
    head = " | ".join(f"{plural(n)} | fastest peer | ratio" for n in counts)
    lines = [f"| | {head} | heap calls, Mica and that peer |", "|---" + "|---:" * (3 * len(counts) + 1) + "|"]
    for name in dict.fromkeys(row["name"] for row in rows):
        of = {row["threads"]: row for row in rows if row["name"] == name}
        cells = []
        for n in counts:
            row = of.get(n)
            fast = row and row["fastest"]
            cells.append(duration(row["ns"]) if row else "-")
            cells.append(f"{NAMES[fast]} {duration(row['peers'][fast])}" if fast else "-")
            cells.append(f"**{row['ratio']:.2f}**" if fast else "-")
        cells.append(heap_calls(of[min(of)]))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write(path, machine, rows):
    texts = {
        "json": json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n",
        "md": markdown(machine, rows),
        "html": page.html(machine, rows),
    }
    for ending, text in texts.items():
        with open(f"{path}.{ending}", "w", encoding="utf-8") as file:
            file.write(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    return found["machine"], found["rows"]
