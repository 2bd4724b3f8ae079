#!/usr/bin/env python3
"""Real ONNX models in Mica, against onnxruntime, and their training against PyTorch (./dev test --onnx).

    compare_models.py --driver build/tests/mica-onnx --models build/onnx/models [FILTER...]

run NAME         what make_models.py has written of onnxruntime's outputs: within 1e-4, no heap call. Models with int8:
                 within twice as far, and a step of the output's scale more, as onnxruntime with its optimizations is
                 from itself without (see rounding_limits)
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


def output_steps(path):
    """The scale of every output that DequantizeLinear makes; 0 for the others."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    numbers = {one.name: one for one in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    steps = {}
    for output in graph.output:
        node = makers[output.name]
        known = node.op_type == "DequantizeLinear" and node.input[1] in numbers
        steps[output.name] = float(numpy_helper.to_array(numbers[node.input[1]]).max()) if known else 0.0
    return steps


def rounding_limits(model):
    """For every output, the largest and the root mean square difference that roundings explain.

    A value that lies on the edge between two bytes falls either way, by the order of a sum; one step more or less
    then goes through all layers behind it. How far that leads depends on the model alone, and onnxruntime tells: with
    its optimizations off it computes floats between roundings, with them on (the outputs that are compared with) it
    computes integers. Both are right. A third way that is right, too, has errors of the same size that are independent
    of either: the root mean squares of two such add up to sqrt(2) of one, the largest ones to at most twice that. A
    step of the output's own scale is added, as the last rounding may fall either way in any case; half of it to the
    mean."""
    import onnxruntime

    how = onnxruntime.SessionOptions()
    how.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    how.intra_op_num_threads, how.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(model.path), how, providers=["CPUExecutionProvider"])
    given = {one.name: model.inputs[one.name] for one in session.get_inputs()}
    steps, limits = output_steps(model.path), {}
    for name, plain in zip(model.outputs, session.run(list(model.outputs), given)):
        off = plain - model.outputs[name]
        limits[name] = (2 * float(numpy.abs(off).max()) + 1.01 * steps[name],
                        1.5 * float(numpy.sqrt(numpy.square(off).mean())) + 0.5 * steps[name])
    return limits, steps


def run_int8(driver, model):
    plan = model.open(driver, model.inputs)
    calls = driver.run() + driver.run()
    require(calls == 0, f"{calls} heap calls in two runs")
    limits, steps = rounding_limits(model)
    told = []
    for name, wanted in model.outputs.items():
        got = driver.read(name)
        require(got.shape == wanted.shape, f"{name}: shape {got.shape}, expected {wanted.shape}")
        require(bool(numpy.isfinite(got).all()), f"{name}: not all numbers are finite")
        most, mean = float(numpy.abs(got - wanted).max()), float(numpy.sqrt(numpy.square(got - wanted).mean()))
        unit, word = (steps[name], "steps") if steps[name] > 0 else (1.0, "")
        told.append(f"{name} off by {most / unit:.2g} of {limits[name][0] / unit:.2g} {word}, "
                    f"on average {mean / unit:.2g} of {limits[name][1] / unit:.2g}")
        require(most <= limits[name][0] and mean <= limits[name][1], told[-1])
    return f"{'; '.join(told)}; plan {plan / 1e6:.1f} MB, {len(driver.calls())} calls"


def run_model(driver, model):
    if model.told.get("int8"):
        return run_int8(driver, model)
    plan = model.open(driver, model.inputs)
    calls = driver.run() + driver.run()
    errors = {name: farthest(driver.read(name), wanted) for name, wanted in model.outputs.items()}
    error = max(errors.values())
    within = model.told["tolerance"]
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
