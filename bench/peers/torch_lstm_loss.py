"""LSTM and losses in PyTorch, each in the ways that may be its fastest."""

import torch
import torch.nn.functional as F
from torch_way import COMPILES, Way, among, compiled, first, numbers, with_compiled

aten = torch.ops.aten

# ---- LSTM ----


def lstm_of(inputs, hidden):
    layer = torch.nn.LSTM(inputs, hidden)
    with torch.no_grad():
        for index, one in zip((2, 3, 4, 5), layer.parameters()):
            one.copy_(numbers(index, *one.shape) / 16.0)
    return layer


def lstm_fwd(steps, batch, inputs, hidden):
    layer = lstm_of(inputs, hidden).eval()
    x, state = numbers(1, steps, batch, inputs), (numbers(6, 1, batch, hidden), numbers(7, 1, batch, hidden))

    def result(index, value):
        return value[0] if index == 0 else value[1][index - 8]

    yield Way("LSTM", lambda: layer(x, state), result)
    if steps == 1:
        cell = torch.nn.LSTMCell(inputs, hidden)
        with torch.no_grad():
            for one, other in zip(cell.parameters(), layer.parameters()):
                one.copy_(other)
        hc = state[0][0], state[1][0]

        def one_step():
            return cell(x[0], hc)

        yield Way("LSTMCell", one_step, lambda index, value: value[1 if index == 9 else 0])


def lstm_both(steps, batch, inputs, hidden):
    layer = lstm_of(inputs, hidden)
    x, dy = numbers(1, steps, batch, inputs).requires_grad_(), numbers(12, steps, batch, hidden)
    wanted = [x, *layer.parameters()]

    def call():
        y, _ = layer(x)
        return (y, *torch.autograd.grad(y, wanted, dy))

    yield Way("LSTM, autograd", call, among(0, 13, 14, 15, 16, 17), grad=True)


# ---- Losses ----


def mse_fwd(*size):
    p, t = numbers(1, *size), numbers(2, *size)
    yield from with_compiled([Way("mse_loss", lambda: F.mse_loss(p, t), first)])


def mse_both(*size):
    p, t, grad = numbers(1, *size), numbers(2, *size), torch.empty(*size)
    plain, one = aten.mse_loss_backward.default, torch.ones(())
    leaf = p.clone().requires_grad_()

    def by_autograd(loss_of=F.mse_loss):
        loss = loss_of(leaf, t)
        return loss, torch.autograd.grad(loss, leaf)[0]

    def by_hand():
        torch.sub(p, t, out=grad)
        flat = grad.view(-1)
        return torch.dot(flat, flat) / flat.numel(), grad.mul_(2.0 / flat.numel())

    yield Way("functions", lambda: (F.mse_loss(p, t), plain(one, p, t, 1)), among(0, 3))
    yield Way("by hand", by_hand, among(0, 3))
    yield Way("autograd", by_autograd, among(0, 3), grad=True)
    if COMPILES:
        quick = compiled(F.mse_loss)
        yield Way("autograd, compiled", lambda: by_autograd(quick), among(0, 3), grad=True)


def classes(rows, columns):
    return torch.arange(rows) * 7 % columns


def cross_entropy_fwd(*size):
    p, t = numbers(1, *size), classes(*size)
    yield from with_compiled([Way("cross_entropy", lambda: F.cross_entropy(p, t), first)])


def cross_entropy_both(*size):
    p, t = numbers(1, *size), classes(*size)
    leaf, one = p.clone().requires_grad_(), torch.ones(())
    forward, backward = aten.nll_loss_forward.default, aten.nll_loss_backward.default
    through = aten._log_softmax_backward_data.default

    def by_functions():
        logs = torch.log_softmax(p, 1)
        loss, weight = forward(logs, t, None, 1, -100)
        return loss, through(backward(one, logs, t, None, 1, -100, weight), logs, 1, torch.float32)

    def by_autograd(loss_of=F.cross_entropy):
        loss = loss_of(leaf, t)
        return loss, torch.autograd.grad(loss, leaf)[0]

    yield Way("functions", by_functions, among(0, 3))
    yield Way("autograd", by_autograd, among(0, 3), grad=True)
    if COMPILES:
        quick = compiled(F.cross_entropy)
        yield Way("autograd, compiled", lambda: by_autograd(quick), among(0, 3), grad=True)


KINDS = {
    "lstm_fwd": lstm_fwd,
    "lstm_both": lstm_both,
    "mse_fwd": mse_fwd,
    "mse_both": mse_both,
    "cross_entropy_fwd": cross_entropy_fwd,
    "cross_entropy_both": cross_entropy_both,
}
