#!/usr/bin/env python3
"""Writes tests/data/golden/*.txt: what PyTorch computes for small inputs, with all options.

    python3 tests/golden/make_golden.py        # needs PyTorch; the files it writes are checked in

A file holds cases of one family. tests/golden/golden.h reads them. Line by line:

    case <operation> <note>
    number <name> <values>...
    tensor <name> <dtype> <sizes>...
    <the tensor's values, row-major>

Inputs are exact in f32; everything is computed in double and written with nine digits.
"""
import os

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(20240229)
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "golden")


class Family:
    def __init__(self, name):
        self.path = os.path.join(OUT, name + ".txt")
        self.text = []

    def case(self, op, note, tensors, **numbers):
        self.text.append(f"case {op} {note}\n")
        for name, values in numbers.items():
            values = values if isinstance(values, (tuple, list)) else (values,)
            self.text.append(f"number {name} " + " ".join(f"{float(v):.9g}" for v in values) + "\n")
        for name, t in tensors.items():
            if t is None:
                continue
            kind = {torch.float64: "f32", torch.int64: "i32", torch.bool: "u8"}[t.dtype]
            sizes = "".join(f" {n}" for n in t.shape)
            self.text.append(f"tensor {name} {kind}{sizes}\n")
            values = [f"{float(v):.9g}" for v in t.detach().reshape(-1).tolist()]
            for i in range(0, len(values), 12):
                self.text.append(" ".join(values[i : i + 12]) + "\n")

    def write(self):
        with open(self.path, "w", encoding="ascii") as f:
            f.writelines(self.text)
        print(f"{os.path.normpath(self.path)}: {os.path.getsize(self.path)} bytes")


def rand(*shape, grad=True, scale=1.0):
    """Normal numbers with few digits, exact in f32."""
    t = (torch.randn(*shape, dtype=torch.float64) * scale * 256).round() / 256
    return t.requires_grad_(grad)


def backward(y, *inputs):
    """A random dy, and the gradients of its product with y."""
    dy = rand(*y.shape, grad=False)
    return dy, torch.autograd.grad(y, inputs, dy, allow_unused=True)


def conv():
    f = Family("conv")

    def one(op, fn, note, x, w, bias, **o):
        x, w, b = rand(*x), rand(*w, scale=0.5), rand(bias) if bias else None
        y = fn(x, w, b, **o)
        dy, grads = backward(y, x, w, *([b] if bias else []))
        tensors = {"x": x, "w": w, "b": b, "y": y, "dy": dy, "dx": grads[0], "dw": grads[1]}
        if bias:
            tensors["db"] = grads[2]
        names = {"padding": "pad", "output_padding": "output_pad"}
        f.case(op, note, tensors, **{names.get(k, k): v for k, v in o.items()})

    c1, c2, t1, t2 = F.conv1d, F.conv2d, F.conv_transpose1d, F.conv_transpose2d
    one("conv1d", c1, "plain", (2, 3, 9), (4, 3, 3), 4)
    one("conv1d", c1, "strided_padded", (2, 4, 10), (6, 4, 5), 6, stride=2, padding=2)
    one("conv1d", c1, "grouped_dilated", (1, 4, 12), (6, 2, 3), 0, dilation=2, groups=2, padding=1)
    one("conv2d", c2, "plain", (2, 3, 6, 7), (4, 3, 3, 3), 4)
    one("conv2d", c2, "same", (1, 8, 8, 8), (8, 8, 3, 3), 8, padding=(1, 1))
    one("conv2d", c2, "pointwise", (2, 5, 4, 4), (7, 5, 1, 1), 7)
    one("conv2d", c2, "strided", (2, 3, 9, 8), (5, 3, 3, 2), 5, stride=(2, 3), padding=(1, 0))
    one("conv2d", c2, "dilated", (1, 2, 9, 9), (3, 2, 3, 3), 3, dilation=(2, 3), padding=(2, 3))
    one("conv2d", c2, "grouped", (2, 6, 5, 5), (4, 3, 3, 3), 4, groups=2, padding=(1, 1))
    one("conv2d", c2, "depthwise", (2, 6, 7, 6), (6, 1, 3, 3), 6, groups=6, padding=(1, 1))
    one("conv2d", c2, "depthwise_multiplier", (1, 4, 7, 7), (8, 1, 3, 3), 0, groups=4, stride=(2, 2))
    one("conv_transpose1d", t1, "strided", (2, 3, 5), (3, 4, 4), 4, stride=2, padding=1)
    one("conv_transpose2d", t2, "plain", (1, 3, 4, 5), (3, 4, 3, 3), 4)
    one("conv_transpose2d", t2, "upsampling", (2, 4, 4, 4), (4, 3, 4, 4), 3, stride=(2, 2), padding=(1, 1))
    one("conv_transpose2d", t2, "output_pad_grouped", (1, 4, 3, 4), (4, 2, 3, 3), 4, stride=(2, 2),
        padding=(1, 1), output_padding=(1, 1), groups=2)
    one("conv_transpose2d", t2, "dilated", (1, 2, 4, 4), (2, 3, 2, 3), 3, dilation=(2, 2), stride=(1, 2))
    f.write()


def pool():
    f = Family("pool")

    def maximum(op, fn, note, shape, kernel, **o):
        x = (torch.randint(-9, 10, shape).double() / 4).requires_grad_()  # with ties
        y, indices = fn(x, kernel, return_indices=True, **o)
        dy, (dx,) = backward(y, x)
        o = {{"padding": "pad"}.get(k, k): v for k, v in o.items()}
        f.case(op, note, {"x": x, "y": y, "indices": indices, "dy": dy, "dx": dx}, kernel=kernel, **o)

    def average(op, fn, note, shape, kernel, **o):
        x = rand(*shape)
        y = fn(x, kernel, **o)
        dy, (dx,) = backward(y, x)
        if "count_include_pad" in o:
            o["exclude_pad"] = not o.pop("count_include_pad")
        o = {{"padding": "pad"}.get(k, k): v for k, v in o.items()}
        f.case(op, note, {"x": x, "y": y, "dy": dy, "dx": dx}, kernel=kernel, **o)

    def parts(op, fn, note, shape, size):
        x = rand(*shape)
        y = fn(x, size)
        dy, (dx,) = backward(y, x)
        f.case(op, note, {"x": x, "y": y, "dy": dy, "dx": dx})

    m1, m2, a1, a2 = F.max_pool1d, F.max_pool2d, F.avg_pool1d, F.avg_pool2d
    maximum("max_pool2d", m2, "pairs", (2, 3, 8, 18), (2, 2), stride=(2, 2))
    maximum("max_pool2d", m2, "overlapping_padded", (1, 2, 9, 20), (3, 3), stride=(2, 2), padding=(1, 1))
    maximum("max_pool2d", m2, "dilated", (1, 2, 9, 11), (2, 3), stride=(1, 1), dilation=(3, 2), padding=(1, 1))
    maximum("max_pool2d", m2, "ceil", (2, 2, 7, 9), (3, 2), stride=(2, 2), ceil_mode=True)
    maximum("max_pool2d", m2, "unbatched", (3, 6, 6), (3, 3), stride=(3, 3))
    maximum("max_pool1d", m1, "plain", (2, 3, 11), (2,), stride=(2,))
    maximum("max_pool1d", m1, "padded_dilated", (1, 3, 14), (3,), stride=(1,), padding=(1,), dilation=(2,))
    average("avg_pool2d", a2, "pairs", (2, 3, 8, 18), (2, 2), stride=(2, 2))
    average("avg_pool2d", a2, "padded", (1, 2, 9, 12), (3, 3), stride=(2, 2), padding=(1, 1))
    average("avg_pool2d", a2, "padding_excluded", (1, 2, 9, 12), (3, 3), stride=(2, 2), padding=(1, 1),
            count_include_pad=False)
    average("avg_pool2d", a2, "ceil", (1, 2, 8, 7), (3, 3), stride=(2, 2), padding=(1, 1), ceil_mode=True)
    average("avg_pool1d", a1, "padded", (2, 2, 11), (4,), stride=(3,), padding=(2,))
    average("avg_pool1d", a1, "excluded_ceil", (1, 3, 10), (3,), stride=(2,), padding=(1,), ceil_mode=True,
            count_include_pad=False)
    parts("adaptive_avg_pool2d", F.adaptive_avg_pool2d, "uneven", (2, 2, 7, 10), (3, 4))
    parts("adaptive_avg_pool2d", F.adaptive_avg_pool2d, "growing", (1, 2, 3, 4), (5, 6))
    parts("adaptive_avg_pool1d", F.adaptive_avg_pool1d, "uneven", (2, 3, 11), 4)
    parts("global_avg_pool", F.adaptive_avg_pool2d, "plain", (2, 5, 6, 7), (1, 1))
    f.write()


def norm():
    f = Family("norm")

    def stats(x, axes, eps):
        mean = x.mean(axes)
        return mean, 1 / torch.sqrt(x.var(axes, unbiased=False) + eps)

    def one(op, note, fn, x, params, mean_rstd, **numbers):
        x = rand(*x)
        gamma = rand(*params) if params else None
        beta = rand(*params) if params and op != "rms_norm" else None
        y = fn(x, gamma, beta)
        given = [t for t in (x, gamma, beta) if t is not None]
        dy, grads = backward(y, *given)
        grads = list(grads)
        mean, rstd = mean_rstd(x)
        tensors = {"x": x, "gamma": gamma, "beta": beta, "y": y, "mean": mean, "rstd": rstd, "dy": dy}
        for name, t in (("dx", x), ("dgamma", gamma), ("dbeta", beta)):
            tensors[name] = grads.pop(0) if t is not None else None
        f.case(op, note, tensors, **numbers)

    one("layer_norm", "rows", lambda x, g, b: F.layer_norm(x, (17,), g, b), (4, 17), (17,),
        lambda x: stats(x, (1,), 1e-5))
    one("layer_norm", "two_axes", lambda x, g, b: F.layer_norm(x, (3, 5), g, b, 0.01), (2, 4, 3, 5), (3, 5),
        lambda x: stats(x, (2, 3), 0.01), eps=0.01, axes=2)
    one("layer_norm", "bare", lambda x, g, b: F.layer_norm(x, (8,), g, b), (3, 2, 8), None,
        lambda x: stats(x, (2,), 1e-5))
    one("rms_norm", "rows", lambda x, g, b: F.rms_norm(x, (19,), g, 1e-5), (5, 19), (19,),
        lambda x: (None, 1 / torch.sqrt((x * x).mean(-1) + 1e-5)))
    one("rms_norm", "bare", lambda x, g, b: F.rms_norm(x, (6,), None, 0.1), (2, 3, 6), None,
        lambda x: (None, 1 / torch.sqrt((x * x).mean(-1) + 0.1)), eps=0.1)
    one("group_norm", "image", lambda x, g, b: F.group_norm(x, 3, g, b), (2, 6, 3, 5), (6,),
        lambda x: stats(x.reshape(2, 3, -1), (2,), 1e-5), groups=3)
    one("group_norm", "one_group", lambda x, g, b: F.group_norm(x, 1, g, b, 0.05), (2, 4, 7), (4,),
        lambda x: stats(x.reshape(2, 1, -1), (2,), 0.05), groups=1, eps=0.05)
    one("instance_norm", "image", lambda x, g, b: F.instance_norm(x, None, None, g, b), (2, 3, 4, 5), (3,),
        lambda x: stats(x.reshape(2, 3, -1), (2,), 1e-5))

    def batch(note, shape, training, momentum):
        x, gamma, beta = rand(*shape), rand(shape[1]), rand(shape[1])
        mean, var = rand(shape[1], grad=False), rand(shape[1], grad=False).abs() + 0.25
        new_mean, new_var = mean.clone(), var.clone()
        y = F.batch_norm(x, new_mean, new_var, gamma, beta, training, momentum, 1e-3)
        dy, grads = backward(y, x, gamma, beta)
        axes = [i for i in range(len(shape)) if i != 1]
        kept = stats(x, axes, 1e-3) if training else (mean, 1 / torch.sqrt(var + 1e-3))
        f.case("batch_norm", note,
               {"x": x, "gamma": gamma, "beta": beta, "running_mean": mean, "running_var": var, "y": y,
                "new_mean": new_mean, "new_var": new_var, "mean": kept[0], "rstd": kept[1], "dy": dy,
                "dx": grads[0], "dgamma": grads[1], "dbeta": grads[2]},
               eps=1e-3, momentum=momentum, inference=not training)

    batch("image", (3, 4, 3, 5), True, 0.1)
    batch("rows", (6, 11), True, 0.3)
    batch("sequence", (2, 3, 7), True, 0.1)
    batch("inference", (2, 3, 4, 4), False, 0.1)
    batch("inference_rows", (4, 5), False, 0.1)
    f.write()


def attention():
    f = Family("attention")

    def one(note, q, k, mask=None, causal=False, **numbers):
        q, k, v = rand(*q), rand(*k), rand(*k)
        tq, tk, group = q.shape[2], k.shape[2], q.shape[1] // k.shape[1]
        keys, values = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scale = numbers.get("scale", q.shape[3] ** -0.5)
        hide = None
        if causal:
            hide = torch.ones(tq, tk, dtype=torch.bool).tril(tk - tq)
        if mask is not None:
            hide = mask if hide is None else (
                mask & hide if mask.dtype == torch.bool else mask.masked_fill(~hide, float("-inf")))
        out = F.scaled_dot_product_attention(q, keys, values, attn_mask=hide, scale=scale)
        scores = q @ keys.transpose(2, 3) * scale
        if hide is not None:
            scores = scores.masked_fill(~hide, float("-inf")) if hide.dtype == torch.bool else scores + hide
        lse = scores.logsumexp(-1)
        dy, (dq, dk, dv) = backward(out, q, k, v)
        f.case("attention", note,
               {"q": q, "k": k, "v": v, "mask": mask, "out": out, "lse": lse, "dout": dy, "dq": dq, "dk": dk,
                "dv": dv}, causal=causal, **numbers)

    one("plain", (1, 2, 5, 4), (1, 2, 6, 4))
    one("scaled", (2, 1, 3, 8), (2, 1, 4, 8), scale=0.7)
    one("causal", (1, 2, 7, 5), (1, 2, 7, 5), causal=True)
    one("causal_cache", (1, 2, 3, 4), (1, 2, 8, 4), causal=True)
    one("grouped", (1, 4, 5, 4), (1, 2, 5, 4), causal=True)
    one("multi_query", (2, 3, 4, 4), (2, 1, 5, 4))
    one("added_mask", (2, 2, 4, 4), (2, 2, 5, 4), mask=rand(4, 5, grad=False))
    keep = torch.rand(2, 1, 4, 5) > 0.3
    keep[..., 0] = True
    one("boolean_mask", (2, 2, 4, 4), (2, 2, 5, 4), mask=keep)
    one("two_tiles", (1, 1, 70, 8), (1, 1, 130, 8), causal=True)
    f.write()


def loss():
    f = Family("loss")

    def one(op, note, fn, pred, target, weights=None, **numbers):
        more = {} if weights is None else {"class_weights": weights}
        for number, reduction in enumerate(("mean", "sum", "none")):
            value = fn(pred, target, reduction=reduction)
            (grad,) = torch.autograd.grad(value.sum(), pred)
            f.case(op, f"{note}_{reduction}",
                   {"pred": pred, "target": target, **more, "loss": value, "grad": grad}, reduction=number, **numbers)

    x, t = rand(5, 7), rand(5, 7, grad=False)
    one("mse_loss", "plain", F.mse_loss, x, t)
    one("l1_loss", "plain", F.l1_loss, x, t)
    one("huber_loss", "plain", F.huber_loss, x, t)
    one("huber_loss", "delta", lambda p, y, reduction: F.huber_loss(p, y, reduction=reduction, delta=0.4), x, t,
        delta=0.4)
    chance = (torch.randint(0, 65, (4, 6)).double() / 64).requires_grad_()  # 0 and 1 too
    yes = torch.randint(0, 5, (4, 6)).double() / 4
    one("bce_loss", "plain", F.binary_cross_entropy, chance, yes)
    one("bce_logits_loss", "plain", F.binary_cross_entropy_with_logits, rand(4, 6, scale=3.0), yes)
    one("bce_logits_loss", "far", F.binary_cross_entropy_with_logits, rand(4, 6, scale=90.0), yes)
    z, labels = rand(6, 9), torch.randint(0, 9, (6,))
    ignored = labels.clone()
    ignored[2] = ignored[4] = -100
    soft = torch.softmax(rand(6, 9, grad=False), -1).mul(1024).round().div(1024)
    one("cross_entropy", "labels", F.cross_entropy, z, labels)
    one("cross_entropy", "far", F.cross_entropy, rand(6, 9, scale=200.0), labels)
    one("cross_entropy", "ignored", F.cross_entropy, z, ignored, ignore=1, ignore_index=-100)
    one("cross_entropy", "smoothed", lambda p, y, reduction: F.cross_entropy(
        p, y, reduction=reduction, label_smoothing=0.2), z, ignored, smoothing=0.2, ignore=1, ignore_index=-100)
    one("cross_entropy", "soft", F.cross_entropy, z, soft)
    one("cross_entropy", "soft_smoothed", lambda p, y, reduction: F.cross_entropy(
        p, y, reduction=reduction, label_smoothing=0.1), z, soft, smoothing=0.1)
    p = torch.softmax(rand(6, 9, grad=False), -1).mul(1 << 16).round().div(1 << 16).requires_grad_()
    one("cross_entropy_probs", "labels", lambda q, y, reduction: F.nll_loss(q.log(), y, reduction=reduction), p,
        labels)
    own = torch.Generator().manual_seed(7)  # what follows stays as it is
    w = torch.randint(1, 33, (9,), generator=own).double() / 8

    def weighed(note, z, target, smoothing=0.0, **numbers):
        one("cross_entropy", "weighed_" + note, lambda p, y, reduction: F.cross_entropy(
            p, y, weight=w, reduction=reduction, label_smoothing=smoothing), z, target, smoothing=smoothing, weights=w,
            **numbers)

    weighed("labels", z, labels)
    weighed("ignored", z, ignored, ignore=1, ignore_index=-100)
    weighed("smoothed", z, ignored, smoothing=0.2, ignore=1, ignore_index=-100)
    weighed("soft", z, soft)
    weighed("soft_smoothed", z, soft, smoothing=0.1)
    one("cross_entropy_probs", "weighed_labels", lambda q, y, reduction: F.nll_loss(
        q.log(), y, weight=w, reduction=reduction), p, labels, weights=w)
    f.write()


def optimizer():
    """Parameters w [5, 7] and b [11] after each of ten steps with given gradients."""
    f = Family("optimizer")
    steps = 10
    kinds = ("sgd", "adam", "adamw", "rmsprop", "adagrad")
    makers = dict(zip(kinds, (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop,
                              torch.optim.Adagrad)))

    def one(kind, note, clip_norm=0.0, clip_value=0.0, decay_all=True, **o):
        w, b = rand(5, 7), rand(11)
        tensors = {"w": w.detach().clone(), "b": b.detach().clone(),
                   "dw": rand(steps, 5, 7, grad=False, scale=0.5), "db": rand(steps, 11, grad=False, scale=0.5)}
        groups = [{"params": [w]}, {"params": [b]}]
        if not decay_all:
            groups[1]["weight_decay"] = 0.0
        given = dict(o)
        if kind in ("adam", "adamw"):
            o.setdefault("weight_decay", 0.0)
            o["betas"] = (o.pop("beta1", 0.9), o.pop("beta2", 0.999))
        optimizer = makers[kind](groups, **o)
        after = {"w_after": [], "b_after": []}
        for step in range(steps):
            w.grad, b.grad = tensors["dw"][step].clone(), tensors["db"][step].clone()
            if clip_norm:
                torch.nn.utils.clip_grad_norm_([w, b], clip_norm)
            if clip_value:
                torch.nn.utils.clip_grad_value_([w, b], clip_value)
            optimizer.step()
            after["w_after"].append(w.detach().clone())
            after["b_after"].append(b.detach().clone())
        tensors.update({k: torch.stack(v) for k, v in after.items()})
        f.case(kind, note, tensors, kind=kinds.index(kind), clip_norm=clip_norm, clip_value=clip_value,
               decay_all=decay_all, **given)

    one("sgd", "plain", lr=0.1)
    one("sgd", "decay", lr=0.1, weight_decay=0.05)
    one("sgd", "momentum", lr=0.05, momentum=0.9)
    one("sgd", "momentum_decay", lr=0.05, momentum=0.9, weight_decay=0.02)
    one("sgd", "nesterov", lr=0.05, momentum=0.9, nesterov=True)
    one("sgd", "nesterov_decay", lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.02)
    one("sgd", "clip_norm", lr=0.1, clip_norm=0.7)
    one("sgd", "clip_norm_unreached", lr=0.1, clip_norm=100.0)
    one("sgd", "clip_value", lr=0.1, clip_value=0.2)
    one("adam", "defaults", lr=0.001)
    one("adam", "betas", lr=0.02, beta1=0.8, beta2=0.95, eps=1e-4)
    one("adam", "decay", lr=0.02, weight_decay=0.1)
    one("adam", "clip_norm", lr=0.02, clip_norm=0.5)
    one("adamw", "all", lr=0.02, weight_decay=0.1)
    one("adamw", "matrices_only", lr=0.02, weight_decay=0.3, decay_all=False, beta2=0.99)
    one("adamw", "clip_value", lr=0.02, weight_decay=0.01, clip_value=0.25)
    one("rmsprop", "plain", lr=0.01)
    one("rmsprop", "alpha_decay", lr=0.02, alpha=0.9, eps=1e-5, weight_decay=0.1)
    one("rmsprop", "momentum", lr=0.01, momentum=0.9)
    one("rmsprop", "momentum_clip_norm", lr=0.01, momentum=0.5, clip_norm=0.5)
    one("adagrad", "plain", lr=0.1)
    one("adagrad", "decay", lr=0.1, weight_decay=0.05)
    f.write()


def schedule():
    """The learning rate of every step. Warm-up: a line up to lr, then the schedule as if it began there."""
    f = Family("schedule")
    S = torch.optim.lr_scheduler
    kinds = ("constant", "step", "exponential", "cosine", "one_cycle")

    def one(kind, note, make, lr, steps, warmup=0, **numbers):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
        scheduler = make(optimizer) if make else None
        values = [lr * (i + 1) / (warmup + 1) for i in range(warmup)]
        while len(values) < steps:
            values.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if scheduler and len(values) < steps:
                scheduler.step()
        f.case(kind, note, {"lr": torch.tensor(values, dtype=torch.float64)}, kind=kinds.index(kind), peak=lr,
               warmup=warmup, **numbers)

    one("constant", "plain", None, 0.25, 5)
    one("constant", "warmup", None, 0.25, 12, warmup=7)
    one("step", "plain", lambda o: S.StepLR(o, 4), 0.5, 20, period=4)
    one("step", "gamma_warmup", lambda o: S.StepLR(o, 3, 0.5), 0.5, 20, warmup=5, period=3, gamma=0.5)
    one("exponential", "plain", lambda o: S.ExponentialLR(o, 0.95), 0.5, 40)
    one("exponential", "gamma_warmup", lambda o: S.ExponentialLR(o, 0.8), 0.5, 30, warmup=3, gamma=0.8)
    one("cosine", "plain", lambda o: S.CosineAnnealingLR(o, 40), 0.5, 41, total=40)
    one("cosine", "floor_warmup", lambda o: S.CosineAnnealingLR(o, 40, 0.05), 0.5, 51, warmup=10, total=50,
        min_lr=0.05)
    one("one_cycle", "forty", lambda o: S.OneCycleLR(o, 0.5, total_steps=40), 0.5, 40, total=40)
    one("one_cycle", "uneven", lambda o: S.OneCycleLR(o, 0.03, total_steps=37), 0.03, 37, total=37)


def recurrent():
    torch.manual_seed(1997)  # its numbers do not depend on the families before
    f = Family("recurrent")

    def one(op, note, steps, batch, inputs, hidden, state=True, bias=True, **o):
        layer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[op]
        if op == "rnn":
            o["nonlinearity"] = note.split("_")[0]
        m = layer(inputs, hidden, bias=bias, dtype=torch.float64, **o)
        weights = {"w_ih": m.weight_ih_l0, "w_hh": m.weight_hh_l0}
        if bias:
            weights |= {"b_ih": m.bias_ih_l0, "b_hh": m.bias_hh_l0}
        for w in weights.values():
            w.data = rand(*w.shape, grad=False, scale=0.5)
        x = rand(steps, batch, inputs)
        states = {"h_0": rand(1, batch, hidden)} if state else {}
        if state and op == "lstm":
            states["c_0"] = rand(1, batch, hidden)
        first = tuple(states.values()) if op == "lstm" else states.get("h_0")
        y, end = m(x, first) if state else m(x)
        ends = dict(zip(("h_n", "c_n"), end if op == "lstm" else (end,)))
        dy = rand(*y.shape, grad=False)
        dends = {"d" + k: rand(*v.shape, grad=False) for k, v in ends.items()}
        wanted = {"x": x, **weights, **states}
        grads = torch.autograd.grad((y, *ends.values()), tuple(wanted.values()), (dy, *dends.values()))
        tensors = {"x": x, "y": y, "dy": dy, **weights}
        tensors |= {k: v[0] for k, v in (*states.items(), *ends.items(), *dends.items())}
        tensors |= {"d" + k: g[0] if k in states else g for k, g in zip(wanted, grads)}
        f.case(op, note, tensors, relu=float(note.startswith("relu")))

    for op in ("lstm", "gru"):
        one(op, "plain", 5, 2, 3, 4)
        one(op, "wide", 3, 7, 5, 19)
        one(op, "long", 40, 1, 2, 3)
        one(op, "from_zero", 4, 3, 2, 5, state=False)
        one(op, "no_bias", 3, 2, 4, 3, bias=False)
        one(op, "single_step", 1, 3, 4, 8)
    for kind in ("tanh", "relu"):
        one("rnn", kind, 5, 2, 3, 4)
        one("rnn", kind + "_wide", 3, 4, 5, 11)
        one("rnn", kind + "_no_bias", 4, 2, 3, 5, bias=False, state=False)
    f.write()


def layer():
    """Layers and blocks by name: parameters under their full names, their gradients as d.<name>."""
    torch.manual_seed(20240301)  # so that families before this one can grow
    f = Family("layer")

    def one(kind, note, module, shape, **numbers):
        module = module.double().train()
        x = rand(*shape)
        named = dict(module.named_parameters())
        for t in named.values():
            t.data = rand(*t.shape, grad=False, scale=0.5)
        y = module(x)
        dy, grads = backward(y, x, *named.values())
        tensors = {"x": x, "y": y, "dy": dy, "dx": grads[0], **named}
        tensors.update({f"d.{name}": g for name, g in zip(named, grads[1:])})
        f.case(kind, note, tensors, **numbers)

    one("softmax", "last", nn.Softmax(-1), (3, 7), axis=-1)
    one("softmax", "channels", nn.Softmax(1), (2, 5, 3), axis=1)
    one("log_softmax", "last", nn.LogSoftmax(-1), (3, 7), axis=-1)
    one("log_softmax", "channels", nn.LogSoftmax(1), (2, 5, 3), axis=1)
    one("pad", "zeros", nn.ConstantPad2d((1, 2, 0, 3), 0.5), (2, 2, 3, 4), left=1, right=2, bottom=3, value=0.5)
    one("pad", "reflected", nn.ReflectionPad2d((1, 2, 0, 2)), (2, 2, 3, 4), left=1, right=2, bottom=2, reflect=1)

    class SqueezeExcite(nn.Module):
        def __init__(self, channels, units):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(channels, units), nn.Linear(units, channels)

        def forward(self, x):
            s = torch.sigmoid(self.fc2(torch.relu(self.fc1(x.mean((2, 3))))))
            return x * s[:, :, None, None]

    one("squeeze_excite", "half", SqueezeExcite(6, 3), (2, 6, 4, 3), reduction=2)

    class Residual(nn.Module):
        def __init__(self, channels, out, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(out)
            self.project = nn.Conv2d(channels, out, 1, stride, bias=False) if (channels, stride) != (out, 1) else None

        def forward(self, x):
            y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
            return torch.relu(y + (x if self.project is None else self.project(x)))

    one("residual", "plain", Residual(3, 3, 1), (2, 3, 5, 4), channels=3, stride=1)
    one("residual", "projected", Residual(2, 4, 2), (3, 2, 5, 6), channels=4, stride=2)
    f.write()


def text():
    """Parts of transformers, by PyTorch's own modules where it has them, under our names."""
    torch.manual_seed(20240302)
    f = Family("text")

    def one(kind, note, module, call, names, shape, **numbers):
        module = module.double()
        x = rand(*shape)
        params = dict(module.named_parameters())
        named = {}
        for name, t in params.items():
            for old, new in names.items():
                name = name.replace(old, new)
            named["l." + name] = t
            t.data = rand(*t.shape, grad=False, scale=0.3) + (1.0 if "norm" in name and "weight" in name else 0.0)
        y = call(module, x)
        dy, grads = backward(y, x, *named.values())
        tensors = {"x": x, "y": y, "dy": dy, "dx": grads[0], **named}
        tensors.update({f"d.{name}": g for name, g in zip(named, grads[1:])})
        f.case(kind, note, tensors, **numbers)

    def hide(t):
        return nn.Transformer.generate_square_subsequent_mask(t, dtype=torch.float64)

    names = {"self_attn.": "attention.", "in_proj_": "qkv.", "out_proj.": "out.", "linear1": "mlp.up",
             "linear2": "mlp.down"}
    for causal in (0, 1):
        note = "causal" if causal else "plain"
        one("multi_head_attention", note, nn.MultiheadAttention(12, 3, batch_first=True),
            lambda m, x: m(x, x, x, need_weights=False, attn_mask=hide(x.shape[1]) if causal else None)[0],
            names, (2, 5, 12), heads=3, causal=causal)
        one("transformer_block", note,
            nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True),
            lambda m, x: m(x, src_mask=hide(x.shape[1]) if causal else None), names, (2, 6, 8), heads=2,
            hidden=16, causal=causal)

    class Llama(nn.Module):
        """As Hugging Face's LlamaDecoderLayer computes, with gate and up, and q, k and v, in one matrix each."""

        def __init__(self, width, heads, kv, hidden):
            super().__init__()
            self.heads, self.kv, self.d = heads, kv, width // heads
            self.norm1, self.norm2 = nn.RMSNorm(width, 1e-5), nn.RMSNorm(width, 1e-5)
            self.attention, self.mlp = nn.Module(), nn.Module()
            self.attention.qkv = nn.Linear(width, (heads + 2 * kv) * self.d, bias=False)
            self.attention.out = nn.Linear(width, width, bias=False)
            self.mlp.up = nn.Linear(width, 2 * hidden, bias=False)
            self.mlp.down = nn.Linear(hidden, width, bias=False)

        def rope(self, x):
            frequency = 10000.0 ** -(torch.arange(0, self.d, 2, dtype=torch.float64) / self.d)
            angle = torch.outer(torch.arange(x.shape[2], dtype=torch.float64), frequency)
            cos, sin = torch.cat((angle, angle), -1).cos(), torch.cat((angle, angle), -1).sin()
            a, b = x.chunk(2, -1)
            return x * cos + torch.cat((-b, a), -1) * sin

        def forward(self, x):
            n, t, c = x.shape
            q, k, v = self.attention.qkv(self.norm1(x)).view(n, t, -1, self.d).transpose(1, 2).split(
                (self.heads, self.kv, self.kv), 1)
            q, k, v = self.rope(q), *(z.repeat_interleave(self.heads // self.kv, 1) for z in (self.rope(k), v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.attention.out(y.transpose(1, 2).reshape(n, t, c))
            gate, up = self.mlp.up(self.norm2(x)).chunk(2, -1)
            return x + self.mlp.down(F.silu(gate) * up)

    one("transformer_block", "llama", Llama(16, 4, 2, 12), lambda m, x: m(x), {}, (2, 5, 16), heads=4, kv_heads=2,
        hidden=12, causal=1, llama=1, eps=1e-5)
    f.write()


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    conv()
    pool()
    norm()
    attention()
    loss()
    optimizer()
    schedule()
    recurrent()
    layer()
    text()
