"""Single operations in PyTorch, each in the ways that may be its fastest.

Backward rows call the gradient's own functions, which are faster than a graph of autograd; results go into memory that
is there already wherever a function takes `out`.
"""

import torch
import torch.nn.functional as F
from torch_way import Way, among, first, numbers, with_compiled

aten = torch.ops.aten


# ---- Products ----


def sgemm(m, n, k):
    a, b, c = numbers(1, m, k), numbers(2, k, n), torch.empty(m, n)
    yield Way("mm", lambda: torch.mm(a, b, out=c), first)


def dense_fwd(m, n, k):
    x, w, b, y = numbers(1, m, k), numbers(2, k, n), numbers(3, n), torch.empty(m, n)
    turned = w.t().contiguous()
    yield Way("addmm", lambda: torch.addmm(b, x, w, out=y), first)
    yield Way("linear", lambda: F.linear(x, turned, b), first)
    packed = turned.to_mkldnn(), b.to_mkldnn(), x.to_mkldnn()
    yield Way("mkldnn", lambda: torch._C._nn.mkldnn_linear(packed[2], packed[0], packed[1]), lambda _, y: y.to_dense())


def dense_bwd(m, n, k):
    x, w, dy = numbers(1, m, k), numbers(2, k, n), numbers(4, m, n)
    dx, dw, db = torch.empty(m, k), torch.empty(k, n), torch.empty(n)
    w_turned, x_turned = w.t(), x.t()

    def call():
        return torch.mm(dy, w_turned, out=dx), torch.mm(x_turned, dy, out=dw), torch.sum(dy, 0, out=db)

    yield Way("mm", call, among(5, 6, 7))


# ---- Convolutions ----


def formats(axes, *tensors):
    """The tensors of a convolution channels first and last. One of a single axis is last only as a flat image."""
    yield "channels first", tensors
    if axes == 1:
        tensors = [t.unsqueeze(2) for t in tensors]
    yield "channels last", [t.contiguous(memory_format=torch.channels_last) for t in tensors]


def image(axes, channels, batch, side):
    return (batch, channels) + (side,) * axes


def padding(x, kernel):
    return [kernel // 2] if x.dim() == 3 else [kernel // 2 if x.shape[2] > 1 else 0, kernel // 2]


def conv(x, w, b, pad):
    return F.conv1d(x, w, b, padding=pad) if x.dim() == 3 else F.conv2d(x, w, b, padding=pad)


def conv_inputs(axes, batch, cin, cout, side, kernel):
    x = numbers(1, *image(axes, cin, batch, side))
    w = numbers(2, *image(axes, cin, cout, kernel))
    return x, w, numbers(3, cout)


def conv_fwd(axes, batch, cin, cout, side, kernel):
    x, w, b = conv_inputs(axes, batch, cin, cout, side, kernel)
    for name, (xi, wi) in formats(axes, x, w):
        pad = padding(xi, kernel)
        yield Way(name, lambda xi=xi, wi=wi, pad=pad: conv(xi, wi, b, pad), first)
    if axes == 2:
        pad = [kernel // 2] * 2
        blocked = x.to_mkldnn(), torch._C._nn.mkldnn_reorder_conv2d_weight(w.to_mkldnn(), pad, [1, 1], [1, 1], 1)
        yield Way("mkldnn", lambda: F.conv2d(*blocked, b.to_mkldnn(), padding=pad), lambda _, y: y.to_dense())


def gradients(dy, x, w, pad):
    ones = [1] * len(pad)
    return aten.convolution_backward.default(
        dy, x, w, [w.shape[0]], ones, pad, ones, False, [0] * len(pad), 1, [True, True, True]
    )


def conv_bwd(axes, batch, cin, cout, side, kernel):
    x, w, _ = conv_inputs(axes, batch, cin, cout, side, kernel)
    dy = numbers(7, *image(axes, cout, batch, side))
    for name, (dyi, xi, wi) in formats(axes, dy, x, w):
        pad = padding(xi, kernel)
        yield Way(name, lambda dyi=dyi, xi=xi, wi=wi, pad=pad: gradients(dyi, xi, wi, pad), among(4, 5, 6))


def matched_fwd(axes, batch, cin, cout, side, kernel):
    x, w, b = conv_inputs(axes, batch, cin, cout, side, kernel)
    for name, (xi, wi) in formats(axes, x, w):
        pad, over = padding(xi, kernel), tuple(range(2, xi.dim()))
        yield Way(name, lambda xi=xi, wi=wi, pad=pad, over=over: conv(xi, wi, b, pad).mean(over), first)


def matched_bwd(axes, batch, cin, cout, side, kernel):
    x, w, _ = conv_inputs(axes, batch, cin, cout, side, kernel)
    dmean, share = numbers(8, batch, cout), 1.0 / side**axes
    for name, (xi, wi) in formats(axes, x, w):
        pad = padding(xi, kernel)
        dm = dmean.view(batch, cout, *(1,) * (xi.dim() - 2))
        dy = torch.empty(batch, cout, *xi.shape[2:])
        if xi.dim() == 4 and name == "channels last":
            dy = dy.contiguous(memory_format=torch.channels_last)

        def call(dm=dm, dy=dy, xi=xi, wi=wi, pad=pad):
            torch.mul(dm, share, out=dy) if dm.shape == dy.shape else dy.copy_(dm * share)
            return gradients(dy, xi, wi, pad)

        yield Way(name, call, among(4, 5, 6))


# ---- Pooling ----


def pool_inputs(batch, channels, side):
    x = numbers(1, batch, channels, side, side)
    yield "channels first", x
    yield "channels last", x.contiguous(memory_format=torch.channels_last)


def max_pool_fwd(*size):
    for name, x in pool_inputs(*size):
        yield Way(name, lambda x=x: aten.max_pool2d_with_indices.default(x, [2, 2]), lambda _, y: y[0])


def max_pool_bwd(*size):
    for name, x in pool_inputs(*size):
        y, indices = aten.max_pool2d_with_indices.default(x, [2, 2])

        def call(x=x, dy=y, indices=indices):
            return aten.max_pool2d_with_indices_backward.default(
                dy, x, [2, 2], [2, 2], [0, 0], [1, 1], False, indices
            )

        yield Way(name, call, first)


def avg_pool_fwd(*size):
    for name, x in pool_inputs(*size):
        yield Way(name, lambda x=x: aten.avg_pool2d.default(x, [2, 2], [2, 2]), first)


def avg_pool_bwd(batch, channels, side):
    dy = numbers(0, batch, channels, side // 2, side // 2)
    for name, x in pool_inputs(batch, channels, side):
        form = torch.channels_last if name == "channels last" else torch.contiguous_format

        def call(x=x, dy=dy.contiguous(memory_format=form)):
            return aten.avg_pool2d_backward.default(dy, x, [2, 2], [2, 2], [0, 0], False, True, None)

        yield Way(name, call, first)


# ---- Element by element ----


def activation(into, plain):
    """Into memory that is there, and into memory of its own."""

    def maker(*size):
        x, y = numbers(1, *size), torch.empty(*size)
        yield from with_compiled(
            [Way("own memory", lambda: plain(x), first), Way("into", lambda: into(x, y), first)]
        )

    return maker


def activation_backward(function, *options):
    def maker(*size):
        dy, saved, dx = numbers(1, *size), numbers(2, *size), torch.empty(*size)
        overload = function.grad_input
        plain = function.default
        yield from with_compiled(
            [
                Way("own memory", lambda: plain(dy, saved, *options), first),
                Way("into", lambda: overload(dy, saved, *options, grad_input=dx), first),
            ]
        )

    return maker


def add(count, calls):
    a, b, y = numbers(1, count), numbers(2, count), torch.empty(count)

    def call():
        for _ in range(calls):
            torch.add(a, b, out=y)
        return y

    yield Way("into", call, first)


# ---- Rows: softmax, layer norm, dropout ----


def softmax_fwd(*size):
    x, y = numbers(1, *size), torch.empty(*size)
    into = aten._softmax.out
    yield from with_compiled(
        [
            Way("own memory", lambda: torch.softmax(x, 1), first),
            Way("into", lambda: into(x, 1, False, out=y), first),
        ]
    )


def softmax_bwd(*size):
    dy, y, dx = numbers(1, *size), numbers(2, *size), torch.empty(*size)
    plain, into = aten._softmax_backward_data.default, aten._softmax_backward_data.out
    yield from with_compiled(
        [
            Way("own memory", lambda: plain(dy, y, 1, torch.float32), first),
            Way("into", lambda: into(dy, y, 1, torch.float32, grad_input=dx), first),
        ]
    )


def layer_norm_fwd(rows, columns):
    x, g, b = numbers(1, rows, columns), numbers(2, columns), numbers(3, columns)
    yield from with_compiled(
        [Way("native", lambda: torch.native_layer_norm(x, [columns], g, b, 1e-5), lambda _, y: y[0])]
    )


def layer_norm_bwd(rows, columns):
    x, g, b = numbers(1, rows, columns), numbers(2, columns), numbers(3, columns)
    dy = numbers(6, rows, columns)
    _, mean, rstd = torch.native_layer_norm(x, [columns], g, b, 1e-5)
    plain = aten.native_layer_norm_backward.default
    call = lambda: plain(dy, x, [columns], mean, rstd, g, b, [True, True, True])
    yield from with_compiled([Way("native", call, among(7, 8, 9))])


def dropout_fwd(*size):
    x, y, mask = numbers(1, *size), torch.empty(*size), torch.empty(*size)
    drawn = torch.empty(*size, dtype=torch.bool)

    def by_hand():
        mask.bernoulli_(0.5)
        return torch.mul(x, mask.mul_(2.0), out=y)

    def by_uniform():
        torch.ge(mask.uniform_(), 0.5, out=drawn)
        return torch.mul(x, drawn, out=y).mul_(2.0)

    yield from with_compiled(
        [
            Way("dropout", lambda: F.dropout(x, 0.5, True)),
            Way("native", lambda: torch.native_dropout(x, 0.5, True)),
            Way("bernoulli", by_hand),
            Way("uniform", by_uniform),
        ]
    )


def dropout_bwd(*size):
    dy, dx = numbers(1, *size), torch.empty(*size)
    mask = numbers(0, *size) > 0
    noise = mask * 2.0
    plain = aten.native_dropout_backward.default
    yield from with_compiled(
        [
            Way("native", lambda: plain(dy, mask, 2.0)),
            Way("noise", lambda: torch.mul(dy, noise, out=dx)),
        ]
    )


KINDS = {
    "sgemm": sgemm,
    "dense_fwd": dense_fwd,
    "dense_bwd": dense_bwd,
    "conv_fwd": conv_fwd,
    "conv_bwd": conv_bwd,
    "matched_fwd": matched_fwd,
    "matched_bwd": matched_bwd,
    "max_pool_fwd": max_pool_fwd,
    "max_pool_bwd": max_pool_bwd,
    "avg_pool_fwd": avg_pool_fwd,
    "avg_pool_bwd": avg_pool_bwd,
    "relu_fwd": activation(lambda x, y: torch.clamp_min(x, 0.0, out=y), torch.relu),
    "sigmoid_fwd": activation(lambda x, y: torch.sigmoid(x, out=y), torch.sigmoid),
    "tanh_fwd": activation(lambda x, y: torch.tanh(x, out=y), torch.tanh),
    "gelu_fwd": activation(lambda x, y: aten.gelu.out(x, out=y), F.gelu),
    "relu_bwd": activation_backward(aten.threshold_backward, 0),
    "sigmoid_bwd": activation_backward(aten.sigmoid_backward),
    "tanh_bwd": activation_backward(aten.tanh_backward),
    "gelu_bwd": activation_backward(aten.gelu_backward),
    "add": add,
    "softmax_fwd": softmax_fwd,
    "softmax_bwd": softmax_bwd,
    "layer_norm_fwd": layer_norm_fwd,
    "layer_norm_bwd": layer_norm_bwd,
    "dropout_fwd": dropout_fwd,
    "dropout_bwd": dropout_bwd,
}
