"""The rows of ./dev bench --peers known: which marks they meet, as lines and as a file.

Marks: training at least 1.2 times the speed of PyTorch's best way, or as fast and at 90 % of the peak of multiply-adds;
inference as fast as the faster of PyTorch and onnxruntime; memory a third of PyTorch's for inference, half of it for
training.
"""

import json
from pathlib import Path
from statistics import median

TRAINING, LEVEL, OF_PEAK = 1.2, 1.0, 90.0
MEMORY = {False: 1 / 3, True: 1 / 2}
LEAST_BYTES = 1e6  # what a process has more of pages tells nothing of less
COLUMNS = ["mica", "torch eager", "torch channels_last", "torch compile", "onnxruntime", "openvino"]
TITLES = ["Mica", "eager", "ch. last", "compiled", "ORT", "OpenVINO"]


def fastest(times, keys):
    return min((key for key in times if key in keys), key=times.get, default=None)


def ratio(rounds, key):
    return median(one[key] / one["mica"] for one in rounds) if key else None


def judge(result, rounds):
    """The row with its ratios and marks."""
    times, train = result["peers"], result["train"]
    ways = [key for key in times if key.startswith("torch")]
    torch, other = fastest(times, ways), fastest(times, ["onnxruntime", "openvino"])
    held = fastest(times, ways if train else [*ways, "onnxruntime"])
    speed = ratio(rounds, held)
    least = min((result["grown"][key] for key in ways), default=None)
    shared = result["work_bytes"] / least if least is not None and least >= LEAST_BYTES else None
    met = None
    if speed is not None:
        level = speed >= LEVEL and (not train or result["percent_of_peak"] >= OF_PEAK)
        met = level or (train and speed >= TRAINING)
    return {
        **result, "best_torch": torch, "ratio_torch": ratio(rounds, torch), "best_runtime": other,
        "ratio_runtime": ratio(rounds, other), "torch_bytes": least, "memory": shared, "meets_speed": met,
        "meets_memory": shared <= MEMORY[train] if shared is not None else None,
        "meets_heap": result["heap_calls"]["mica"] == 0,
    }


def head():
    names = " ".join(f"{title:>9}" for title in TITLES)
    print(f"{'row, ms':<24} {'thr':>3} {names} {'PyTorch':>8} {'runtime':>8} {'peak':>5} {'MB':>15} {'prepared':>8} "
          f"{'heap':>4} {'hop':>4}  marks")


def ms(row, key):
    if key != "mica" and key not in row["peers"]:
        return f"{'fails' if key in row['failed'] else '-':>9}"
    return f"{1e-6 * (row['ns'] if key == 'mica' else row['peers'][key]):>9.4g}"


def times_faster(value):
    return f"{value:>7.2f}x" if value is not None else f"{'-':>8}"


def marks(row):
    told = {True: "ok", False: "short", None: "-"}
    return f"speed {told[row['meets_speed']]}, memory {told[row['meets_memory']]}"


def line(row):
    least = row["torch_bytes"]
    memory = f"{1e-6 * row['work_bytes']:.1f}/{1e-6 * least:.1f}" if least is not None else "-"
    hop = f"{row['hop_ns']:.0f}" if row["hop_ns"] is not None else "-"
    print(f"{row['name']:<24} {row['threads']:>3} {' '.join(ms(row, key) for key in COLUMNS)} "
          f"{times_faster(row['ratio_torch'])} {times_faster(row['ratio_runtime'])} {row['percent_of_peak']:>4.0f}% "
          f"{memory:>15} {1e-6 * row['prepared_bytes']:>8.1f} {row['heap_calls']['mica']:>4.0f} {hop:>4}  {marks(row)}",
          flush=True)
    for key, why in row["failed"].items():
        print(f"{'':<24} {key} fails: {why}", flush=True)


def latency(found):
    print(f"\n{'latency, us':<24} {'p50':>9} {'p99':>9} {'p99.9':>9} {'worst':>9}")
    for key, told in found["ns"].items():
        print(f"{key:<24} " + " ".join(f"{1e-3 * told[one]:>9.2f}" for one in ("p50", "p99", "p99.9", "worst")))
    for text, met in found["marks"].items():
        print(f"{text}: {'ok' if met else 'short'}")


def score(rows):
    def count(key):
        return f"{sum(row[key] is True for row in rows)} of {sum(row[key] is not None for row in rows)}"

    ahead = sum((row["ratio_torch"] or 0) >= 1 for row in rows)
    return (f"{len(rows)} rows: {count('meets_speed')} meet the mark of speed, {count('meets_memory')} that of memory, "
            f"{count('meets_heap')} without a heap call; {ahead} at least as fast as PyTorch")


def write(path, checked, rows, small):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    told = {"differences": checked, "rows": rows, "latency": small}
    Path(path).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
