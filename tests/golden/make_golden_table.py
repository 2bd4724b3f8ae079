#!/usr/bin/env python3
"""Writes tests/data/golden/table.txt: random tables as CSV, what pandas says of their columns and scikit-learn makes of
them, for tests/data/test_table_golden.c.

    python3 tests/golden/make_golden_table.py    # needs pandas and scikit-learn; the file it writes is checked in

The format is that of make_golden.py; a file is a tensor of its bytes.
"""
import csv
import io
import os
import random

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

random.seed(20261117)
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "golden", "table.txt")
MISSING = ["", "NA", "N/A", "NaN", "null", "None", "?", "-"]
WORDS = ["red", "São Paulo", "a,b", "x;y", 'say "hi"', "two\nlines", "t\tt", "p|q", "1.2.3"]
HOW = ["mean", "median", "drop"]
lines = []


def tensor(name, dtype, values):
    values = np.asarray(values)
    lines.append(" ".join(["tensor", name, dtype, *map(str, values.shape)]))
    flat = values.reshape(-1)
    for i in range(0, len(flat), 12):
        lines.append(" ".join(f"{v:.9g}" for v in flat[i : i + 12]))


def spelled(value, comma):
    text = random.choice([repr(value), f"{value:.3f}", f"{value:e}", f"{value:+.4g}", f" {value:.2f} "])
    return text.replace(".", ",") if comma and random.random() < 0.5 else text


def some(values, share):
    return [random.choice(MISSING) if random.random() < share else v for v in values]


def columns(rows, comma, words):
    start = np.datetime64("1999-12-30T22:00:00")
    when = [start + np.timedelta64(random.randrange(20 * 365 * 86400), "s") for _ in range(rows)]
    near = [spelled(random.gauss(1000, 0.5), comma) for _ in range(rows)]
    far = [spelled(random.gauss(0, 1) * 10 ** random.randint(-3, 5), comma) for _ in range(rows)]
    return {"near, m": some(near, 0.2), "far": far, "word": some([random.choice(words) for _ in range(rows)], 0.1),
            "when": some([str(w).replace("T", " ") for w in when], 0.1)}


def numbers_of(column):
    """As Mica documents it: blanks are cut off, and a comma is a decimal one where it is not the delimiter."""
    return np.array([np.nan if v.strip() in MISSING else float(v.replace(",", ".")) for v in column])


def encoded(table, how):
    """Inputs as one array, and which rows are kept."""
    blocks, keep = [], np.ones(len(table), bool)
    for name in table.columns:
        column = table[name]
        missing = column.isin(MISSING).to_numpy()
        if name == "word":
            known = sorted(set(column[~missing]), key=str.encode)
            one_hot = OneHotEncoder(categories=[known], handle_unknown="ignore", sparse_output=False)
            blocks += [one_hot.fit_transform(column.to_frame().to_numpy()), np.zeros((len(table), 1))]
        else:
            times = pd.to_datetime(column.where(~missing)).to_numpy() if name == "when" else None
            values = (times - np.datetime64(0, "s")) / np.timedelta64(1, "s") if name == "when" else numbers_of(column)
            scaled = StandardScaler().fit_transform(values[:, None])
            blocks.append(SimpleImputer(strategy="median" if how == "median" else "mean").fit_transform(scaled))
            if name == "when":
                for period in (365.2425 * 86400, 86400):
                    angle = 2 * np.pi * values / period
                    blocks += [np.nan_to_num(np.sin(angle))[:, None], np.nan_to_num(np.cos(angle))[:, None]]
        if missing.any() and how != "drop":
            blocks.append(missing[:, None].astype(float))
        keep &= ~missing if how == "drop" else True
    return np.concatenate(blocks, 1), keep


def statistics(column):
    missing = column.isin(MISSING)
    values = pd.Series(numbers_of(column))
    return [missing.sum(), values.nunique(), values.min(), values.max(), values.mean(), values.std(ddof=0),
            values.median()]


def case(note, rows, delimiter, header, end, quoting, how, classes):
    words = random.sample(WORDS, 4)
    data = columns(rows, delimiter != ",", words)
    target = [random.choice(words) if classes else f"{random.gauss(-3, 40):.4f}" for _ in range(rows)]
    data["target"] = some(target, 0.05)
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=quoting)
    if header:
        writer.writerow(data)
    writer.writerows(zip(*data.values()))
    # What another program reads of the file, not what went into it.
    table = pd.read_csv(io.StringIO(file.getvalue(), newline=""), sep=delimiter, header=0 if header else None,
                        names=list(data), dtype=str, keep_default_na=False)
    inputs, keep = encoded(table[["near, m", "far", "word", "when"]], how)
    keep &= ~table["target"].isin(MISSING).to_numpy()
    lines.append(f"case table {note}")
    lines.append(f"number rows {rows}")
    lines.append(f"number header {int(header)}")
    lines.append(f"number delimiter {ord(delimiter)}")
    lines.append(f"number missing {HOW.index(how)}")
    tensor("file", "u8", list(file.getvalue().encode()))
    tensor("near", "f32", statistics(table["near, m"]))
    tensor("far", "f32", statistics(table["far"]))
    counts = table["word"][~table["word"].isin(MISSING)].value_counts()
    tensor("words", "i32", [counts[w] for w in sorted(counts.index, key=str.encode)])
    tensor("inputs", "f32", inputs[keep])
    kept = table["target"][keep]
    if classes:
        known = sorted(set(table["target"]) - set(MISSING), key=str.encode)
        tensor("targets", "f32", [[known.index(t)] for t in kept])
    else:
        scaler = StandardScaler().fit(numbers_of(table["target"])[:, None])
        tensor("targets", "f32", scaler.transform(numbers_of(kept)[:, None]))
        lines.append(f"number unit {scaler.mean_[0]:.9g} {scaler.scale_[0]:.9g}")


case("comma", 40, ",", True, "\n", csv.QUOTE_MINIMAL, "mean", False)
case("semicolon", 40, ";", True, "\r\n", csv.QUOTE_MINIMAL, "median", False)
case("tab", 30, "\t", True, "\n", csv.QUOTE_ALL, "drop", True)
case("bar", 30, "|", False, "\r\n", csv.QUOTE_MINIMAL, "mean", True)
case("no_header", 50, ",", False, "\n", csv.QUOTE_ALL, "median", False)
with open(OUT, "w", encoding="ascii") as out:
    out.write("\n".join(lines) + "\n")
