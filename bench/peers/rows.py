"""The rows that Mica and its peers are measured on, and what is aimed at in each.

A row is its name in `mica bench`, its kind and sizes (what a peer's program is told, so that no peer has a list of
rows of its own), the aim, and the tensors of Mica's row that --verify compares with the peers'.
"""

from typing import NamedTuple


class Row(NamedTuple):
    name: str
    kind: str
    sizes: tuple
    aim: float  # the time of the fastest peer over ours, at least
    results: tuple = ()  # indices of Mica's tensors that come out of it


def square(size, aim):
    return Row(f"sgemm_{size}", "sgemm", (size, size, size), aim, (0,))


def dense(batch, inputs, outputs, aim):
    name = f"dense_{batch}x{inputs}x{outputs}"
    yield Row(f"{name}_fwd", "dense_fwd", (batch, outputs, inputs), aim, (0,))
    yield Row(f"{name}_bwd", "dense_bwd", (batch, outputs, inputs), aim, (5, 6, 7))


def convolution(name, kind, sizes, aims):
    """sizes: axes, batch, channels in and out, side, kernel"""
    yield Row(f"{name}_fwd", f"{kind}_fwd", sizes, aims[0], (0,))
    yield Row(f"{name}_bwd", f"{kind}_bwd", sizes, aims[1], (4, 5, 6))


def matched(axes, kernel):
    name, side = (f"conv1d_matched_{kernel}", 1024) if axes == 1 else (f"conv2d_matched_{kernel}x{kernel}", 32)
    return convolution(name, "matched", (axes, 1, 1, 32, side, kernel), (1.2, 1.2))


def pooling(kind, batch, channels, side):
    name = f"{kind}_pool2d_{batch}x{channels}x{side}x{side}"
    yield Row(f"{name}_fwd", f"{kind}_pool_fwd", (batch, channels, side), 1.0, (0,))
    yield Row(f"{name}_bwd", f"{kind}_pool_bwd", (batch, channels, side), 1.0, (1,))


def by_rows(kind, rows, columns, aim, backward=(0,)):
    yield Row(f"{kind}_{rows}x{columns}_fwd", f"{kind}_fwd", (rows, columns), aim, (0,))
    yield Row(f"{kind}_{rows}x{columns}_bwd", f"{kind}_bwd", (rows, columns), aim, backward)


def losses(kind, rows, columns, aim):
    """The aim is that of value and gradient together."""
    name = f"{kind}_{rows}x{columns}"
    yield Row(f"{name}_fwd", f"{kind}_fwd", (rows, columns), 1.2, (0,))
    yield Row(f"{name}_fwd_bwd", f"{kind}_both", (rows, columns), aim, (0, 3))


def optimizer(kind, aim):
    yield Row(f"{kind}_1m", kind, (1000000, 1), aim)
    yield Row(f"{kind}_50x20k", kind, (20000, 50), aim)


def block(tokens, width, aim):
    name = f"transformer_block_1x{tokens}x{width}_h8"
    yield Row(f"{name}_fwd", "block_fwd", (1, tokens, width, 8), aim)
    yield Row(f"{name}_both", "block_both", (1, tokens, width, 8), aim)


ROWS = [
    square(64, 1.0),
    square(128, 1.0),
    square(256, 1.0),
    square(512, 1.1),
    square(1024, 1.1),
    square(2048, 1.1),
    Row("sgemm_512x2048x512", "sgemm", (512, 512, 2048), 1.1, (0,)),
    *dense(32, 256, 512, 1.2),
    *dense(1, 1024, 32, 1.2),
    *convolution("conv2d_8x64x32x32_to_128_3x3", "conv", (2, 8, 64, 128, 32, 3), (1.5, 1.5)),
    *matched(2, 3),
    *matched(2, 5),
    *matched(2, 7),
    *convolution("conv1d_8x64x256_to_128_3", "conv", (1, 8, 64, 128, 256, 3), (1.1, 1.1)),
    *matched(1, 3),
    *matched(1, 5),
    *matched(1, 7),
    *pooling("max", 4, 32, 16),
    *pooling("max", 8, 64, 32),
    *pooling("avg", 4, 32, 16),
    *pooling("avg", 8, 64, 32),
    *by_rows("softmax", 32, 128, 1.1),
    *by_rows("relu", 32, 512, 1.2),
    *by_rows("sigmoid", 32, 512, 1.2),
    *by_rows("tanh", 32, 512, 1.2),
    *by_rows("gelu", 32, 512, 1.2),
    Row("add_1m", "add", (1 << 20, 1), 1.0, (0,)),
    Row("add_into_dst_1000x512", "add", (512, 1000), 3.0, (0,)),
    *by_rows("layer_norm", 32, 512, 1.1, (7, 8, 9)),
    *by_rows("layer_norm", 4, 512, 1.1, (7, 8, 9)),
    Row("dropout_32x512_fwd", "dropout_fwd", (32, 512), 20.0),
    Row("dropout_32x512_bwd", "dropout_bwd", (32, 512), 3.0),
    Row("lstm_1x16_128_256_fwd", "lstm_fwd", (1, 16, 128, 256), 1.2, (0, 8, 9)),
    Row("lstm_64x16_128_256_fwd", "lstm_fwd", (64, 16, 128, 256), 1.2, (0, 8, 9)),
    Row("lstm_64x16_128_256_fwd_bwd", "lstm_both", (64, 16, 128, 256), 1.2, (0, 13, 14, 15, 16, 17)),
    *losses("mse", 32, 512, 10.0),
    *losses("cross_entropy", 32, 10, 20.0),
    *losses("cross_entropy", 256, 1000, 4.0),
    *optimizer("sgd", 1.2),
    *optimizer("adam", 4.0),
    *optimizer("adamw", 4.0),
    *block(64, 256, 3.0),
    *block(128, 512, 2.5),
    Row("cnn_step_32", "cnn_step", (32,), 6.0),
    Row("cnn_infer_32", "cnn_infer", (32,), 6.0),
    Row("cnn_infer_1", "cnn_infer", (1,), 6.0),
    Row("gpt_step_16x64_d128_h4_l4", "gpt_step", (16, 64, 128, 4, 4, 256), 3.0),
]


def chosen(filters):
    """The rows whose name contains one of the filters; without filters all."""
    return [row for row in ROWS if not filters or any(part in row.name for part in filters)]
