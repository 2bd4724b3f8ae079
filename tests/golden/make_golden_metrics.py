#!/usr/bin/env python3
"""Writes tests/data/golden/metrics.txt: what scikit-learn says of small predictions, for tests/cli/test_metrics.c.

    python3 tests/golden/make_golden_metrics.py    # needs scikit-learn; the file it writes is checked in

The format is that of make_golden.py.
"""
import os
import random

from sklearn import metrics

random.seed(20261116)
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "golden", "metrics.txt")
lines = []


def case(kind, note, tensors, numbers):
    lines.append(f"case {kind} {note}")
    for name, value in numbers.items():
        lines.append(f"number {name} {float(value):.17g}")
    for name, (dtype, values) in tensors.items():
        lines.append(f"tensor {name} {dtype} {len(values)}")
        for i in range(0, len(values), 12):
            lines.append(" ".join(f"{v:.9g}" for v in values[i : i + 12]))


def exact(value):
    """Few digits, exact in f32."""
    return round(value * 32) / 32


def regression(note, count, mean, deviation, noise):
    truth = [exact(random.gauss(mean, deviation)) for _ in range(count)]
    said = [exact(t + random.gauss(0, noise)) for t in truth]
    case("regression", note, {"truth": ("f32", truth), "said": ("f32", said)},
         {"rmse": metrics.mean_squared_error(truth, said) ** 0.5, "mae": metrics.mean_absolute_error(truth, said),
          "r2": metrics.r2_score(truth, said)})


def classes(note, count, known, named, right):
    truth = [random.randrange(named) for _ in range(count)]
    said = [t if random.random() < right else random.randrange(named) for t in truth]
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        truth, said, labels=list(range(known)), zero_division=0)
    case("classes", note,
         {"truth": ("i32", truth), "said": ("i32", said), "precision": ("f32", precision), "recall": ("f32", recall),
          "f1": ("f32", f1), "support": ("i32", support)},
         {"classes": known, "macro": metrics.f1_score(truth, said, average="macro"),
          "accuracy": metrics.accuracy_score(truth, said)})


def ranking(note, count, share, levels):
    truth = [int(random.random() < share) for _ in range(count)]
    value = [exact(round(random.gauss(0.7 * t, 1) * levels) / levels) for t in truth]
    case("ranking", note, {"truth": ("i32", truth), "value": ("f32", value)},
         {"auc": metrics.roc_auc_score(truth, value)})


regression("near_zero", 40, 0, 1, 0.5)
regression("far_from_zero", 40, 300000, 50, 30)
regression("worse_than_mean", 25, 5, 0.25, 2)
classes("three", 60, 3, 3, 0.7)
classes("two", 50, 2, 2, 0.8)
classes("some_never_occur", 40, 6, 4, 0.5)
ranking("few_ties", 60, 0.5, 256)
ranking("many_ties", 80, 0.3, 1)
ranking("rare", 70, 0.1, 4)
with open(OUT, "w", encoding="ascii") as f:
    f.write("\n".join(lines) + "\n")
print(os.path.normpath(OUT))
