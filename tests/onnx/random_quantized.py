#!/usr/bin/env python3
"""Random quantized models, by Mica and by onnxruntime.

random_quantized.py MICA FOLDER [--first SEED] [--count N] [FILTER...]

Each is a chain, with side ways, of products, sums, pooling, moves and other operators between QuantizeLinear and
DequantizeLinear, or of integer operators. Every byte of the output must be within one step of what onnxruntime gives
with its optimizations, or without them: both are right, and differ where a value lies on the edge between two bytes.
An edge can move what comes after it by many steps. So where more than one step is found, all bytes on the way are
compared, and it counts only if those before the first such place are the same in all three."""
import argparse
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
ALL, NONE = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


class Value:
    """Floats that DequantizeLinear made of bytes: both names, (scale, zero), the shape, roughly how large they are."""

    def __init__(self, floats, data, scale, shape, size):
        self.floats, self.bytes, self.scale, self.shape, self.size = floats, data, scale, shape, size


class Graph:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.names = [], [], 0
        self.gain = self.random.choice([1.0, 1.0, 4.0, 12.0])  # what saturates, and amplifies edges

    def chance(self, share):
        return self.random.random() < share

    def number(self, least, most):
        return int(self.random.integers(least, most + 1))

    def name(self, start):
        self.names += 1
        return f"{start}{self.names}"

    def constant(self, array):
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, kind, ins, outs=1, **attributes):
        names = [self.name(kind.lower()) for _ in range(outs)]
        self.nodes.append(helper.make_node(kind, ins, names, **attributes))
        return names[0] if outs == 1 else names

    def scale(self, size, kind=None):
        """A scale that bytes of either type need for such numbers, and any zero point."""
        kind = kind or (np.uint8 if self.chance(0.6) else np.int8)
        low = np.iinfo(kind).min
        zero = low + int(self.random.choice([0, 255, 128, self.number(0, 255)], p=[0.3, 0.05, 0.25, 0.4]))
        gain = self.gain if self.chance(0.5) else 1.0
        return np.float32(size * self.random.uniform(1.5, 5) / 255 / gain), kind(zero)

    def restore(self, data, scale, shape, size):
        ins = [data, self.constant(scale[0]), self.constant(scale[1])]
        return Value(self.node("DequantizeLinear", ins), data, scale, shape, size)

    def rounded(self, floats, scale, shape, size):
        ins = [floats, self.constant(scale[0]), self.constant(scale[1])]
        return self.restore(self.node("QuantizeLinear", ins), scale, shape, size)

    def ended(self, floats, shape, size):
        """With an activation now and then, and a scale of its own."""
        if self.chance(0.3):
            floats = self.node("Relu", [floats])
        elif self.chance(0.2):
            floats = self.node("Clip", [floats, self.constant(np.float32(0)), self.constant(np.float32(6))])
        return self.rounded(floats, self.scale(size), shape, size)

    def again(self, floats, like, shape):
        """Mostly with the same scale."""
        scale = like.scale if self.chance(0.8) else self.scale(like.size)
        return self.rounded(floats, scale, shape, like.size)


# ---- Products ----


class Weights:
    def __init__(self, g, shape, axis, terms):
        self.channels, self.axis = shape[axis], axis
        self.each = g.chance(0.6)
        base = g.random.uniform(0.5, 2) / (127 * np.sqrt(terms))
        self.size = base * 127 * np.sqrt(terms) * 0.5
        share = g.random.uniform(0.3, 1, self.channels) if self.each else 1.0
        self.scale = np.float32(base * share)
        least = -128 if g.chance(0.15) else -127
        data = g.random.integers(least, 128, shape).astype(np.int8)
        if g.chance(0.1):
            data = np.where(data < 0, least, 127).astype(np.int8)
        zeros = (self.channels,) if self.each else ()
        kind = g.random.random()
        self.data, self.zero = data, np.zeros(zeros, np.int8)
        if kind < 0.2:
            self.data = (data.astype(int) + 128).astype(np.uint8)
            self.zero = (np.zeros(zeros) + (128 if kind < 0.1 else g.number(100, 150))).astype(np.uint8)
        elif kind < 0.3:
            self.zero = (np.zeros(zeros) + g.number(-20, 20)).astype(np.int8)

    def axes(self, axis=None):
        return {"axis": self.axis if axis is None else axis} if self.each else {}

    def floats(self, g):
        ins = [g.constant(self.data), g.constant(self.scale), g.constant(self.zero)]
        return g.node("DequantizeLinear", ins, **self.axes())

    def bias(self, g, v):
        steps = np.float32(v.scale[0] * self.scale)
        data = np.round(g.random.standard_normal(self.channels) * v.size * self.size / steps).astype(np.int32)
        if g.chance(0.3):
            return g.constant((data * steps).astype(np.float32))
        zero = np.zeros((self.channels,) if self.each else (), np.int32)
        return g.node("DequantizeLinear", [g.constant(data), g.constant(steps), g.constant(zero)], **self.axes(0))

    def integers(self, g, v, kind, shape, **attributes):
        """QLinearConv or QLinearMatMul."""
        scale = g.scale(v.size * self.size, type(v.scale[1]))
        ins = [v.bytes] + [g.constant(c) for c in (*v.scale, self.data, self.scale, self.zero, *scale)]
        return g.restore(g.node(kind, ins, **attributes), scale, shape, v.size * self.size)


def conv(g, v):
    count, channels, *sides = v.shape
    groups = 1
    if g.chance(0.4):
        divisors = [d for d in range(1, channels + 1) if channels % d == 0]
        groups = channels if g.chance(0.6) else int(g.random.choice(divisors))
    outputs = groups * (g.number(1, max(1, 12 // groups)) if groups < channels else g.number(1, 2))
    taps = [1] * len(sides) if g.chance(0.3) else [g.number(1, min(5, s)) for s in sides]
    before = [g.number(0, t // 2) for t in taps]
    after = before if g.chance(0.7) else [g.number(0, t // 2) for t in taps]
    strides = [g.number(1, 2) for _ in sides]
    wide = [g.number(1, 2) if g.chance(0.1) else 1 for _ in sides]
    left = [(s + b + a - w * (t - 1) - 1) // n + 1
            for s, b, a, w, t, n in zip(sides, before, after, wide, taps, strides)]
    if min(left) < 1:
        return None
    terms = channels // groups * int(np.prod(taps))
    w = Weights(g, (outputs, channels // groups, *taps), 0, terms)
    shape = (count, outputs, *left)
    windows = {"kernel_shape": taps, "strides": strides, "pads": before + after, "dilations": wide, "group": groups}
    if g.chance(0.2):
        return w.integers(g, v, "QLinearConv", shape, **windows)
    ins = [v.floats, w.floats(g)] + ([w.bias(g, v)] if g.chance(0.7) else [])
    return g.ended(g.node("Conv", ins, **windows), shape, v.size * w.size)


def dense(g, v):
    terms, units = v.shape[-1], g.number(1, 40)
    gemm = len(v.shape) == 2 and g.chance(0.5)
    turned = gemm and g.chance(0.5)
    w = Weights(g, (units, terms) if turned else (terms, units), 0 if turned else 1, terms)
    shape = (*v.shape[:-1], units)
    if not gemm and g.chance(0.3):
        return w.integers(g, v, "QLinearMatMul", shape)
    ins = [v.floats, w.floats(g)] + ([w.bias(g, v)] if gemm and g.chance(0.7) else [])
    y = g.node("Gemm", ins, transB=int(turned)) if gemm else g.node("MatMul", ins)
    return g.ended(y, shape, v.size * w.size)


def sums(g, v):
    """ConvInteger or MatMulInteger, of bytes as they are or quantized by their range."""
    image = len(v.shape) == 4
    channels, units = v.shape[1 if image else -1], g.number(1, 20)
    w = g.random.integers(-127, 128, (units, channels, 3, 3) if image else (channels, units)).astype(np.int8)
    data, scale, zero = v.bytes, g.constant(v.scale[0]), g.constant(v.scale[1])
    if g.chance(0.5):
        data, scale, zero = g.node("DynamicQuantizeLinear", [v.floats], 3)
    ins = [data, g.constant(w), zero]
    y = g.node("ConvInteger", ins, pads=[1, 1, 1, 1]) if image else g.node("MatMulInteger", ins)
    factor = np.float32(1 / (127 * np.sqrt(channels * (9 if image else 1))))
    y = g.node("Mul", [g.node("Cast", [y], to=TensorProto.FLOAT), g.node("Mul", [scale, g.constant(factor)])])
    shape = (v.shape[0], units, *v.shape[2:]) if image else (*v.shape[:-1], units)
    return g.ended(y, shape, v.size * 0.5)


# ---- Between products ----


def pooled(g, v):
    *front, high, wide = v.shape
    kind = g.random.choice(["MaxPool", "AveragePool", "GlobalAveragePool"], p=[0.5, 0.2, 0.3])
    if kind == "GlobalAveragePool":
        return g.ended(g.node(kind, [v.floats]), (*front, 1, 1), v.size * 0.5)
    pad, stride = g.number(0, 1), g.number(1, 2)
    taps = 2 + pad
    if min(high, wide) + 2 * pad < taps:
        return None
    shape = (*front, *((s + 2 * pad - taps) // stride + 1 for s in (high, wide)))
    y = g.node(kind, [v.floats], kernel_shape=[taps, taps], pads=[pad] * 4, strides=[stride, stride])
    return g.again(y, v, shape) if kind == "MaxPool" else g.ended(y, shape, v.size)


def moved(g, v, values):
    rank = len(v.shape)
    mates = [u for u in values if rank == 4 and u.shape[0] == v.shape[0] and u.shape[2:] == v.shape[2:]]
    if mates and g.chance(0.4):
        other = mates[g.number(0, len(mates) - 1)]
        shape = (v.shape[0], v.shape[1] + other.shape[1], *v.shape[2:])
        return g.again(g.node("Concat", [v.floats, other.floats], axis=1), v, shape)
    if rank > 2 and g.chance(0.5):
        axes = [*range(rank - 2), rank - 1, rank - 2]
        return g.again(g.node("Transpose", [v.floats], perm=axes), v, tuple(v.shape[a] for a in axes))
    return g.again(g.node("Flatten", [v.floats]), v, (v.shape[0], int(np.prod(v.shape[1:]))))


def changed(g, v, values):
    same = [u for u in values if u.shape == v.shape]
    other = same[g.number(0, len(same) - 1)]
    kind = g.random.choice(["Add", "Mul", "MatMul", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Neg", ""],
                           p=[0.4, 0.1, 0.1, 0.1, 0.06, 0.06, 0.06, 0.06, 0.06])
    if kind == "MatMul" and len(v.shape) > 2:
        axes = [*range(len(v.shape) - 2), len(v.shape) - 1, len(v.shape) - 2]
        turned = g.rounded(g.node("Transpose", [v.floats], perm=axes), v.scale, None, v.size)
        size = v.size ** 2 * np.sqrt(v.shape[-1])
        return g.ended(g.node(kind, [v.floats, turned.floats]), (*v.shape[:-1], v.shape[-2]), size)
    if kind in ("Add", "Mul"):
        size = v.size + other.size if kind == "Add" else v.size * other.size
        return g.ended(g.node(kind, [v.floats, other.floats]), v.shape, size)
    floats = g.node(kind, [v.floats]) if kind not in ("", "MatMul") else v.floats
    return g.ended(floats, v.shape, min(v.size, 1.0) if kind in ("Sigmoid", "Tanh") else v.size)


def extended(g, v, values):
    rank, kind = len(v.shape), g.random.random()
    if kind < 0.08:
        return sums(g, v) if rank != 3 or g.chance(0.5) else conv(g, v)
    if kind < 0.55:
        return conv(g, v) if rank == 4 or (rank == 3 and g.chance(0.4)) else dense(g, v)
    if kind < 0.7 and rank == 4:
        return pooled(g, v)
    return moved(g, v, values) if kind < 0.8 else changed(g, v, values)


# ---- Models ----


def make(seed):
    """A model, the shape of its input, and the step of its output."""
    g = Graph(seed)
    shape = (g.number(1, 3), g.number(1, 9), g.number(3, 12), g.number(3, 12))
    shape = shape if g.chance(0.75) else shape[:3] if g.chance(0.5) else (shape[0], g.number(2, 200))
    values = [g.rounded("x", g.scale(1.5), shape, 1.5)]
    v = values[0]
    for _ in range(g.number(1, 6)):
        v = extended(g, v, values) or v
        values.append(v)
        if g.chance(0.15):
            v = values[g.number(0, len(values) - 1)]
    v = values[-1]
    whole = g.chance(0.2)
    output = v.bytes if whole else v.floats
    needed, nodes = {output}, []
    for node in reversed(g.nodes):
        if needed.intersection(node.output):
            nodes.insert(0, node)
            needed.update(node.input)
    kind = helper.np_dtype_to_tensor_dtype(v.scale[1].dtype) if whole else TensorProto.FLOAT
    graph = helper.make_graph(nodes, "random", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(output, kind, None)],
                              [c for c in g.constants if c.name in needed])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, shape, 1.0 if whole else float(v.scale[0])


class Runner:
    def __init__(self, mica, folder):
        self.mica, self.folder = mica, folder

    def results(self, model, x):
        """All outputs, by name: of Mica, of onnxruntime with optimizations, and without."""
        path = str(self.folder / "model.onnx")
        onnx.save(model, path)
        names = [o.name for o in model.graph.output]
        found = []
        for level in (ALL, NONE):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads, options.graph_optimization_level = 1, level
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            found.append(dict(zip(names, session.run(None, {"x": x}))))
        np.save(self.folder / "x.npy", x)
        subprocess.run([self.mica, "run", path, "--input", f"x={self.folder / 'x.npy'}", "--output",
                        str(self.folder), "-q"], check=True, capture_output=True, text=True)
        return [{name: np.load(self.folder / f"{name}.npy") for name in names}, *found]

    def trace(self, model, x):
        """Bytes that are more than a step off although all before them are the same; "": an edge explains all."""
        made, types = {}, {c.name: c.data_type for c in model.graph.initializer}
        shown = {o.name for o in model.graph.output}
        for node in model.graph.node:
            made.update((name, node) for name in node.output)
        ends = {n.output[0]: types[n.input[2 if n.op_type == "QuantizeLinear" else 7]] for n in model.graph.node
                if n.op_type in ("QuantizeLinear", "QLinearConv", "QLinearMatMul")}
        for name, kind in ends.items():
            if name not in shown:
                model.graph.output.append(helper.make_tensor_value_info(name, kind, None))
        ours, *theirs = self.results(model, x)
        for name in ends:
            before, left = set(), list(made[name].input)
            while left:
                at = left.pop()
                if at in ends:
                    before.add(at)
                elif at in made:
                    left.extend(made[at].input)
            off = [int(np.abs(ours[name].astype(int) - t[name].astype(int)).max(initial=0)) for t in theirs
                   if all(np.array_equal(ours[b], t[b]) for b in before)]
            if off and min(off) > 1:
                return f"{made[name].op_type} {name} is {min(off)} steps off"
        return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mica")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("filters", nargs="*")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    runner = Runner(given.mica, given.folder)
    seeds = range(given.first, given.first + given.count)
    if given.filters and not any(f in "random quantized" for f in given.filters):
        seeds = range(0)
    failed = refused = edges = 0
    for seed in seeds:
        model, shape, step = make(seed)
        x = (np.random.default_rng(seed + 1000000).standard_normal(shape) * 1.5).astype(np.float32)
        try:
            ours, *theirs = (next(iter(r.values())).astype(np.float64) / step for r in runner.results(model, x))
            off = np.minimum(*(np.abs(ours - t) for t in theirs)).max(initial=0)
            why = runner.trace(model, x) if off > 1.01 else ""
            edges += off > 1.01 and not why
        except subprocess.CalledProcessError as problem:
            why = problem.stderr.strip()
        except Exception:  # onnxruntime does not take it
            refused += 1
            continue
        if why:
            failed += 1
            print(f"seed {seed}: {why[:300]}", flush=True)
    print(f"{edges} moved by edges, {refused} refused by onnxruntime")
    print(f"{len(seeds) - failed - refused} passed, {failed} failed, 0 skipped")
    return 1 if failed or refused * 20 > len(seeds) else 0


if __name__ == "__main__":
    sys.exit(main())
