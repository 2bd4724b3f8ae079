#!/usr/bin/env python3
"""Small ONNX models and backend tests, written byte by byte: no package is needed. make_onnx.py FOLDER

FOLDER/mlp.onnx        [batch, 4] -> [batch, 3]: two layers of weights, relu between them
FOLDER/softmax.onnx    the same, with a softmax at the end
FOLDER/fixed.onnx      the same, with a batch of 2 that is written into it
FOLDER/reshape.onnx    y = reshape(x, shape), shape being an input
FOLDER/conv.onnx       [batch, 1, 8, 8] -> [batch, 2]: convolution, batch norm, relu, max pooling, a dense layer
FOLDER/conv6.onnx      the same, with a Clip from 0 to 6 in place of the relu
FOLDER/quantized.onnx  [batch, 1, 6, 6] -> [batch, 5], of bytes: convolutions, a sum, pooling, a mean, a dense layer
FOLDER/biased.onnx     [batch, 4] -> [batch, 3]: x w1 + shift, shift being an input
FOLDER/words.onnx      [batch, 3] -> [batch, 3, 2]: rows of a table by indices, which may be negative, times w1
FOLDER/heads.onnx      [batch, 4] -> [batch, 8] and [batch, 3]: two outputs
FOLDER/sum.onnx        [batch, 4] and [batch, 3] -> [batch, 2]: two inputs with one batch
FOLDER/planes.onnx     [batch, 2, 4, 4] -> [batch, 3]: channels in front
FOLDER/attention.onnx  [batch, 6, 4] -> the same: attention of a sequence to itself, with a weight for each two places
FOLDER/passing.onnx    whose outputs are its input, and y = relu(x)
FOLDER/clash.onnx      whose outputs would be files of one name
FOLDER/inputs.onnx     more inputs than a command can be given
FOLDER/odd.onnx        nodes of types that there are not
FOLDER/domain.onnx     a node of a domain that the model does not name
FOLDER/checks/NAME     backend tests: one that passes, one whose output is wrong, one that is not supported, one of strings
FOLDER/x.npy, ...      inputs
"""
import pathlib
import random
import struct
import sys

FLOAT, UINT8, INT8, INT64, STRING = 1, 2, 3, 7, 8


def varint(value):
    out = b""
    value &= (1 << 64) - 1
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def value(name, kind, dims):
    shape = b"".join(block(1, block(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return block(1, name) + block(2, block(1, number(1, kind) + block(2, shape)))


def tensor(name, kind, dims, values):
    raw = struct.pack("<%d%s" % (len(values), {FLOAT: "f", UINT8: "B", INT8: "b", INT64: "q"}[kind]), *values)
    return b"".join(number(1, d) for d in dims) + number(2, kind) + block(8, name) + block(9, raw)


def attribute(name, whole):
    if isinstance(whole, list):
        return block(1, name) + b"".join(number(8, w) for w in whole) + number(20, 7)
    return block(1, name) + number(3, whole) + number(20, 2)


def node(kind, ins, outs, **attributes):
    names = b"".join(block(1, i) for i in ins) + b"".join(block(2, o) for o in outs)
    return names + block(3, outs[0] + "_node") + block(4, kind) + b"".join(
        block(5, attribute(k, v)) for k, v in attributes.items())


def model(nodes, inputs, outputs, weights=(), opset=17):
    graph = (b"".join(block(1, n) for n in nodes) + block(2, "graph") + b"".join(block(5, w) for w in weights) +
             b"".join(block(11, i) for i in inputs) + b"".join(block(12, o) for o in outputs))
    return number(1, 8) + block(2, "tests") + block(7, graph) + block(8, number(2, opset))


def npy(path, kind, dims, values, fortran=False):
    letter = {"<f4": "f", "<i8": "q", "<i4": "i", "|u1": "B"}[kind]
    shape = "".join("%d, " % d for d in dims)
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (kind, fortran, shape)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     struct.pack("<%d%s" % (len(values), letter), *values))


def mlp(batch, softmax):
    random.seed(1)
    some = lambda count: [random.uniform(-0.7, 0.7) for _ in range(count)]
    nodes = [node("MatMul", ["x", "w1"], ["a"]), node("Add", ["a", "b1"], ["b"]), node("Relu", ["b"], ["c"]),
             node("MatMul", ["c", "w2"], ["d"]), node("Add", ["d", "b2"], ["e" if softmax else "y"])]
    if softmax:
        nodes.append(node("Softmax", ["e"], ["y"], axis=1))
    weights = [tensor("w1", FLOAT, [4, 8], some(32)), tensor("b1", FLOAT, [8], some(8)),
               tensor("w2", FLOAT, [8, 3], some(24)), tensor("b2", FLOAT, [3], some(3))]
    return model(nodes, [value("x", FLOAT, [batch, 4])], [value("y", FLOAT, [batch, 3])], weights)


def conv(clip=False):
    random.seed(2)
    some = lambda count, least=-0.7: [random.uniform(least, 0.7) for _ in range(count)]
    nodes = [node("Conv", ["x", "conv.w", "conv.b"], ["a"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
             node("BatchNormalization", ["a", "g", "s", "m", "v"], ["b"]),
             node("Clip", ["b", "low", "high"], ["c"]) if clip else node("Relu", ["b"], ["c"]),
             node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2], strides=[2, 2]), node("Flatten", ["d"], ["e"]),
             node("Gemm", ["e", "dense.w", "dense.b"], ["y"], transB=1)]
    weights = [tensor("conv.w", FLOAT, [4, 1, 3, 3], some(36)), tensor("conv.b", FLOAT, [4], some(4)),
               tensor("g", FLOAT, [4], some(4, 0.3)), tensor("s", FLOAT, [4], some(4)),
               tensor("m", FLOAT, [4], some(4)), tensor("v", FLOAT, [4], some(4, 0.3)),
               tensor("dense.w", FLOAT, [2, 64], some(128)), tensor("dense.b", FLOAT, [2], some(2))]
    weights += [tensor("low", FLOAT, [], [0]), tensor("high", FLOAT, [], [6])] if clip else []
    return model(nodes, [value("x", FLOAT, ["batch", 1, 8, 8])], [value("y", FLOAT, ["batch", 2])], weights)


def attention():
    random.seed(3)
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("MatMul", ["x", "t"], ["a"]),
             node("Add", ["a", "places"], ["b"]), node("Softmax", ["b"], ["c"], axis=2),
             node("MatMul", ["c", "x"], ["y"])]
    places = tensor("places", FLOAT, [6, 6], [random.uniform(-1, 1) for _ in range(36)])
    shape = ["batch", 6, 4]
    return model(nodes, [value("x", FLOAT, shape)], [value("y", FLOAT, shape)], [places])


def quantized():
    random.seed(4)
    nodes, weights = [], []

    def pair(x, name, scale, zero):
        weights.extend([tensor(f"{name}.s", FLOAT, [], [scale]), tensor(f"{name}.z", UINT8, [], [zero])])
        nodes.append(node("QuantizeLinear", [x, f"{name}.s", f"{name}.z"], [f"{name}.q"]))
        nodes.append(node("DequantizeLinear", [f"{name}.q", f"{name}.s", f"{name}.z"], [name]))

    def constant(name, dims, axis):
        count = dims[0] * dims[1] * (9 if len(dims) > 2 else 1)
        weights.extend([tensor(f"{name}.q", INT8, dims, [random.randint(-127, 127) for _ in range(count)]),
                        tensor(f"{name}.s", FLOAT, [dims[axis]],
                               [random.uniform(0.002, 0.01) for _ in range(dims[axis])])])
        nodes.append(node("DequantizeLinear", [f"{name}.q", f"{name}.s"], [name], axis=axis))

    pair("x", "a", 0.02, 120)
    constant("conv.w", [4, 1, 3, 3], 0)
    nodes.append(node("Conv", ["a", "conv.w"], ["b"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]))
    nodes.append(node("Relu", ["b"], ["c"]))
    pair("c", "d", 0.03, 0)
    constant("more.w", [4, 4, 3, 3], 0)
    nodes.append(node("Conv", ["d", "more.w"], ["e"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]))
    pair("e", "f", 0.05, 100)
    nodes.append(node("Add", ["d", "f"], ["g"]))
    pair("g", "h", 0.06, 110)
    nodes.append(node("MaxPool", ["h"], ["i"], kernel_shape=[2, 2], strides=[2, 2]))
    pair("i", "j", 0.06, 110)
    nodes.append(node("GlobalAveragePool", ["j"], ["k"]))
    pair("k", "l", 0.05, 90)
    nodes.append(node("Flatten", ["l"], ["m"]))
    pair("m", "n", 0.05, 90)
    constant("dense.w", [4, 5], 1)
    nodes.append(node("MatMul", ["n", "dense.w"], ["o"]))
    pair("o", "y", 0.04, 128)
    return model(nodes, [value("x", FLOAT, ["batch", 1, 6, 6])], [value("y", FLOAT, ["batch", 5])], weights)


def check(folder, content, inputs, outputs):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(content)
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for i, t in enumerate(tensors):
            (data / f"{kind}_{i}.pb").write_bytes(t)


def main():
    out = pathlib.Path(sys.argv[1])
    (out / "mlp.onnx").write_bytes(mlp("batch", False))
    (out / "softmax.onnx").write_bytes(mlp("batch", True))
    (out / "fixed.onnx").write_bytes(mlp(2, False))
    (out / "unnamed").write_bytes(mlp("batch", False))
    reshape = model([node("Reshape", ["x", "shape"], ["y"])],
                    [value("x", FLOAT, [2, 6]), value("shape", INT64, ["rank"])], [value("y", FLOAT, ["p", "q"])])
    (out / "reshape.onnx").write_bytes(reshape)
    odd = model([node("Relu", ["x"], ["a"]), node("Frobnicate", ["a"], ["b"]), node("Twiddle", ["x"], ["c"]),
                 node("Add", ["b", "c"], ["y"])], [value("x", FLOAT, [2])], [value("y", FLOAT, [2])])
    (out / "odd.onnx").write_bytes(odd)
    domain = model([node("QuickGelu", ["x"], ["y"]) + block(7, "com.microsoft")], [value("x", FLOAT, [2])],
                   [value("y", FLOAT, [2])])
    (out / "domain.onnx").write_bytes(domain)
    (out / "conv.onnx").write_bytes(conv())
    (out / "conv6.onnx").write_bytes(conv(True))
    (out / "attention.onnx").write_bytes(attention())
    npy(out / "sequences.npy", "<f4", [5, 6, 4], [random.uniform(-2, 2) for _ in range(120)])
    (out / "quantized.onnx").write_bytes(quantized())
    biased = model([node("MatMul", ["x", "w1"], ["a"]), node("Add", ["a", "shift"], ["y"])],
                   [value("x", FLOAT, ["batch", 4]), value("shift", FLOAT, [3])], [value("y", FLOAT, ["batch", 3])],
                   [tensor("w1", FLOAT, [4, 3], [i / 10 for i in range(12)])])
    (out / "biased.onnx").write_bytes(biased)
    words = model([node("Gather", ["table", "x"], ["a"]), node("MatMul", ["a", "w1"], ["y"])],
                  [value("x", INT64, ["batch", 3])], [value("y", FLOAT, ["batch", 3, 2])],
                  [tensor("table", FLOAT, [5, 4], [i / 7 for i in range(20)]),
                   tensor("w1", FLOAT, [4, 2], [i / 3 - 1 for i in range(8)])])
    (out / "words.onnx").write_bytes(words)
    w1, w2 = tensor("w1", FLOAT, [4, 8], [i / 9 - 2 for i in range(32)]), tensor("w2", FLOAT, [8, 3], [0.1] * 24)
    heads = model([node("MatMul", ["x", "w1"], ["y"]), node("MatMul", ["y", "w2"], ["z"])],
                  [value("x", FLOAT, ["batch", 4])], [value("y", FLOAT, ["batch", 8]), value("z", FLOAT, ["batch", 3])],
                  [w1, w2])
    (out / "heads.onnx").write_bytes(heads)
    both = model([node("MatMul", ["x", "w1"], ["a"]), node("MatMul", ["goal", "w2"], ["b"]),
                  node("Add", ["a", "b"], ["y"])],
                 [value("x", FLOAT, ["batch", 4]), value("goal", FLOAT, ["batch", 3])],
                 [value("y", FLOAT, ["batch", 2])],
                 [tensor("w1", FLOAT, [4, 2], [0.1] * 8), tensor("w2", FLOAT, [3, 2], [0.2] * 6)])
    (out / "sum.onnx").write_bytes(both)
    npy(out / "goal.npy", "<f4", [3, 3], [i / 5 for i in range(9)])
    planes = model([node("Flatten", ["x"], ["a"]), node("MatMul", ["a", "w1"], ["y"])],
                   [value("x", FLOAT, ["batch", 2, 4, 4])], [value("y", FLOAT, ["batch", 3])],
                   [tensor("w1", FLOAT, [32, 3], [i / 50 - 1 for i in range(96)])])
    (out / "planes.onnx").write_bytes(planes)
    numbers = [i * 7 % 11 / 5 for i in range(32 * 60)]
    npy(out / "planes.npy", "<f4", [60, 2, 4, 4], numbers)
    npy(out / "planes-last.npy", "<f4", [60, 4, 4, 2], numbers)
    npy(out / "planes-labels.npy", "<i8", [60], [i % 3 for i in range(60)])
    npy(out / "planes-from-one.npy", "<i8", [60], [i % 3 + 1 for i in range(60)])
    npy(out / "planes-floats.npy", "<f4", [60], [i % 3 + 0.5 for i in range(60)])
    npy(out / "planes-bytes.npy", "|u1", [60, 2, 4, 4], [i * 7 % 251 for i in range(32 * 60)])
    npy(out / "bytes.npy", "|u1", [5, 4], list(range(20)))
    npy(out / "indices.npy", "<i4", [2, 3], [0, 1, 2, 3, 4, -1])
    npy(out / "fortran.npy", "<f4", [5, 4], list(range(20)), fortran=True)
    (out / "weights.pt").write_bytes(b"PK\x03\x04" + bytes(100))
    npy(out / "shift.npy", "<f4", [3], [0.1, 0.2, 0.3])
    x, y = value("x", FLOAT, [5, 4]), value("y", FLOAT, [5, 4])
    (out / "passing.onnx").write_bytes(model([node("Relu", ["x"], ["y"])], [x], [x, y]))
    clash = [value(n, FLOAT, [5, 4]) for n in ("a:b", "a/b")]
    (out / "clash.onnx").write_bytes(model([node("Relu", ["x"], ["a:b"]), node("Neg", ["x"], ["a/b"])], [x], clash))
    many = [value("x%d" % i, FLOAT, [2]) for i in range(70)]
    (out / "inputs.onnx").write_bytes(model([node("Relu", ["x0"], ["y"])], many, [value("y", FLOAT, [2])]))
    npy(out / "x.npy", "<f4", [5, 4], [i / 10 - 1 for i in range(20)])
    npy(out / "two.npy", "<f4", [2, 6], list(range(12)))
    npy(out / "shape.npy", "<i8", [3], [3, 2, 2])
    npy(out / "wide.npy", "<f4", [5, 5], list(range(25)))
    samples = [[random.uniform(-1, 1) for _ in range(4)] for _ in range(600)]
    npy(out / "samples.npy", "<f4", [600, 4], [v for s in samples for v in s])
    npy(out / "labels.npy", "<i8", [600], [(s[0] > 0) + (s[1] > 0) for s in samples])
    npy(out / "targets.npy", "<f4", [600, 3], [v for s in samples for v in (s[0], s[1] * s[2], -s[3])])
    pictures = [[random.uniform(-1, 1) for _ in range(64)] for _ in range(300)]
    npy(out / "pictures.npy", "<f4", [300, 1, 8, 8], [v for p in pictures for v in p])
    npy(out / "sides.npy", "<i8", [300], [int(sum(p[:32]) > sum(p[32:])) for p in pictures])
    relu = model([node("Relu", ["x"], ["y"])], [value("x", FLOAT, [2])], [value("y", FLOAT, [2])])
    x, y = tensor("x", FLOAT, [2], [-1, 2]), tensor("y", FLOAT, [2], [0, 2])
    checks = out / "checks"
    check(checks / "passes", relu, [x], [y])
    check(checks / "known", reshape, [tensor("x", FLOAT, [2, 6], list(range(12))), tensor("shape", INT64, [2], [4, 3])],
          [tensor("y", FLOAT, [4, 3], list(range(12)))])
    check(checks / "wrong", relu, [x], [tensor("y", FLOAT, [2], [0, 2.1])])
    check(checks / "shaped", relu, [x], [tensor("y", FLOAT, [2, 1], [0, 2])])
    check(checks / "odd", odd, [x], [y])
    check(checks / "damaged", relu[:-7], [x], [y])
    text = model([node("Identity", ["x"], ["y"])], [value("x", STRING, [2])], [value("y", STRING, [2])])
    check(checks / "texts", text, [x], [y])


main()
