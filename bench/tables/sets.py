#!/usr/bin/env python3
"""Mica's default net for tables against scikit-learn's, on the real sets that come with scikit-learn.

    ./dev bench --tables                    # or, with scikit-learn at hand: python3 bench/tables/sets.py build/mica

For each set and seed, the rows are split once into a file for training and one for the test. Then
    MLPClassifier/MLPRegressor with the defaults, after StandardScaler, and
    mica train mlp --data TRAIN.csv --seed SEED; mica eval --data TEST.csv --json
learn the one and are scored on the other: accuracy, or R2 for numbers. The exit status is 1 if Mica's mean is below
scikit-learn's on any set. California housing is fetched from the net by scikit-learn: it takes part only if it has been
before (sklearn.datasets.fetch_california_housing)."""

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

LOADERS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
    "california": lambda: datasets.fetch_california_housing(download_if_missing=False),
}


def load(name):
    """The bunch, and whether its target is a class; None: it is not here."""
    try:
        bunch = LOADERS[name]()
    except OSError:
        return None
    return bunch, "target_names" in bunch and name not in ("diabetes", "california")


def write_csv(path, bunch, is_class, inputs, targets):
    """A header with the names of the columns, the target last: names of classes as words, all else as numbers."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow([*bunch.feature_names, "target"])
        for row, target in zip(inputs, targets):
            rows.writerow([*map(repr, row.tolist()), bunch.target_names[target] if is_class else repr(float(target))])


def peer_score(is_class, seed, train, test):
    model = (MLPClassifier if is_class else MLPRegressor)(random_state=seed)
    pipeline = make_pipeline(StandardScaler(), model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 200 epochs are its default, enough or not
        pipeline.fit(*train)
    return pipeline.score(*test)


def mica_score(mica, folder, is_class, seed, extra):
    saved = folder / f"saved-{seed}"
    subprocess.run([mica, "train", "mlp", "--data", folder / "train.csv", "--seed", str(seed), "-q",
                    "--checkpoint", saved, "--overwrite", *extra], check=True, stdout=subprocess.DEVNULL)
    out = subprocess.run([mica, "eval", saved, "--data", folder / "test.csv", "--json"], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)["metrics"]["accuracy" if is_class else "r2"]


def compare(name, options, folder):
    """The scores of both for each seed, or None."""
    found = load(name)
    if found is None:
        return None
    bunch, is_class = found
    scores = []
    for seed in options.seeds:
        inputs, rest, targets, rest_targets = train_test_split(
            bunch.data, bunch.target, random_state=seed, stratify=bunch.target if is_class else None)
        write_csv(folder / "train.csv", bunch, is_class, inputs, targets)
        write_csv(folder / "test.csv", bunch, is_class, rest, rest_targets)
        ours = mica_score(options.mica, folder, is_class, seed, options.extra)
        peer = float("nan")
        if not options.mica_only:
            peer = peer_score(is_class, seed, (inputs, targets), (rest, rest_targets))
        scores.append((ours, peer))
    return is_class, len(inputs), numpy.array(scores)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mica", help="the program")
    parser.add_argument("--seeds", default="1-5", help="seeds of splits and of both nets, such as 1-5 (1-5)")
    parser.add_argument("--set", action="append", choices=LOADERS, help="only this set; may be repeated")
    parser.add_argument("--mica-only", action="store_true", help="without scikit-learn's nets")
    parser.add_argument("--options", default="", help='others than the defaults of mica train, such as "--lr 0.01"')
    options = parser.parse_args()
    options.extra = options.options.split()
    first, _, last = options.seeds.partition("-")
    options.seeds = range(int(first), int(last or first) + 1)
    return options


def main():
    options = parse()
    below = []
    print(f"{'set':<14} {'rows':>6}  {'score':<9} {'mica mlp':>17}  {'scikit-learn MLP':>17}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.set or LOADERS:
            result = compare(name, options, pathlib.Path(folder))
            if result is None:
                print(f"{name:<14} not here: left out")
                continue
            is_class, rows, scores = result
            mean, spread = scores.mean(axis=0), scores.std(axis=0)
            verdict = "" if options.mica_only else "" if mean[0] >= mean[1] else "  below"
            print(f"{name:<14} {rows:>6}  {'accuracy' if is_class else 'R2':<9} "
                  f"{mean[0]:>8.4f} ± {spread[0]:.4f}  {mean[1]:>8.4f} ± {spread[1]:.4f}{verdict}", flush=True)
            below += [name] if verdict else []
    print(f"means over {len(options.seeds)} seeds")
    sys.exit(f"below scikit-learn: {', '.join(below)}" if below else 0)


if __name__ == "__main__":
    main()
