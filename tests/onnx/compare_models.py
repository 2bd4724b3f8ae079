#!/usr/bin/env python3
"""Real ONNX models in Mica, against onnxruntime, and their training against PyTorch (./dev test --onnx).

    compare_models.py --driver build/tests/mica-onnx --models build/onnx/models [FILTER...]

run NAME         what make_models.py has written of onnxruntime's outputs: within 1e-4, no heap call; models with int8
                 within their own steps
steps NAME       one window after the other, with the state of the one before (silero-vad)
gradients NAME   of every parameter, against PyTorch in double precision: as near as PyTorch in single precision
train NAME KIND  20 steps by SGD and by Adam: losses within 1e-4 of PyTorch's (training.py says of which nets)

A FILTER chooses those whose name contains it. Prints a line for each check, then their number.
"""
import argparse
import json
import sys
from pathlib import Path

import numpy
import torch

import training
from driver import Driver, Refused, sizes_of


class Failed(Exception):
    pass


class Tally:
    def __init__(self, filters):
        self.filters, self.passed, self.failed = filters, 0, 0

    def check(self, name, run):
        """run() tells what it found, or raises."""
        if self.filters and not any(one in name for one in self.filters):
            return
        try:
            told = run()
            self.passed += 1
            print(f"ok   {name:34} {told}", flush=True)
        except (Failed, Refused) as error:
            self.failed += 1
            print(f"FAIL {name:34} {error}", flush=True)


def require(holds, told):
    if not holds:
        raise Failed(told)


class Model:
    def __init__(self, models, name):
        self.name, self.path, self.folder = name, models / f"{name}.onnx", models / name
        self.told = json.loads((self.folder / "model.json").read_text(encoding="utf-8"))
        self.inputs = {one: numpy.load(self.folder / "in" / f"{one}.npy") for one in self.told["inputs"]}
        self.outputs = {one: numpy.load(self.folder / "out" / f"{one}.npy") for one in self.told["outputs"]}

    def open(self, driver, inputs, **more):
        words = sizes_of(self.told, inputs, self.path) | more
        plan = driver.open(self.path, 2, **words)
        for name, array in inputs.items():
            driver.write(name, array)
        return plan


def farthest(got, wanted):
    """The largest error: absolute, or relative to the largest number wanted if that is below 1."""
    require(got.shape == wanted.shape, f"shape {got.shape}, expected {wanted.shape}")
    require(bool(numpy.isfinite(got).all()), "not all numbers are finite")
    return float(numpy.abs(got - wanted).max() / min(1.0, numpy.abs(wanted).max())) if got.size else 0.0


def run_model(driver, model):
    plan = model.open(driver, model.inputs)
    calls = driver.run() + driver.run()
    errors = {name: farthest(driver.read(name), wanted) for name, wanted in model.outputs.items()}
    error = max(errors.values())
    within = model.told["tolerance"]
    if model.told.get("int8"):  # a step of the last scale: a value on the edge between two may fall either way
        within = 0.02 * max(float(numpy.abs(wanted).max()) for wanted in model.outputs.values())
    require(calls == 0, f"{calls} heap calls in two runs")
    require(error <= within, f"off by {error:.2g}, expected at most {within:.2g}: {errors}")
    return f"off by {error:.1e}, plan {plan / 1e6:.1f} MB, {len(driver.calls())} calls"


def run_steps(driver, model):
    windows = model.inputs["input"]
    first = {**model.inputs, "input": windows[:1]}
    model.open(driver, first)
    error = 0.0
    for step, window in enumerate(windows):
        driver.write("input", window[None])
        require(driver.run() == 0, f"heap calls in step {step}")
        error = max([error] + [farthest(driver.read(name), wanted[step]) for name, wanted in model.outputs.items()])
        for output, name in model.told["carries"].items():
            driver.ask("carry", output, name)
    require(error <= model.told["tolerance"], f"off by {error:.2g}")
    loud = int((model.outputs["output"] > 0.5).sum())
    return f"off by {error:.1e} at most, {len(windows)} steps, {loud} of them speech"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filters", nargs="*")
    parser.add_argument("--driver", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    args = parser.parse_intermixed_args()
    tally = Tally(args.filters)
    torch.set_num_threads(1)  # two would spin, where something else runs

    def with_driver(check, *arguments):
        driver = Driver(args.driver)
        try:
            return check(driver, *arguments)
        finally:
            driver.close()

    for path in sorted(args.models.glob("*/model.json")):
        model = Model(args.models, path.parent.name)
        if "carries" in model.told:
            tally.check(f"steps {model.name}", lambda model=model: with_driver(run_steps, model))
        else:
            tally.check(f"run {model.name}", lambda model=model: with_driver(run_model, model))
        if model.name not in training.RECIPES:
            continue
        tally.check(f"gradients {model.name}", lambda m=model: with_driver(training.check_gradients, m, require))
        for kind in training.RECIPES[model.name]:
            tally.check(f"train {model.name} {kind}",
                        lambda m=model, k=kind: with_driver(training.check_losses, m, k, require))
    print(f"{tally.passed} passed, {tally.failed} failed, 0 skipped")
    sys.exit(tally.failed > 0 or tally.passed == 0)


if __name__ == "__main__":
    main()
