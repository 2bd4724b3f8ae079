"""Imported models that are trained, against PyTorch in single and in double precision (compare_models.py).

Two programs in single precision that are both right part by rounding. How far they may part is not known beforehand,
so PyTorch's own distance to double precision is measured beside Mica's.

mobilenetv2        as PyTorch exports by default: batch norm folded into convolutions, which then have a bias. What is
                   trained is this net, and the reference is the same net in PyTorch.
mobilenetv2-train  batch norm as it is, by the statistics of the batch.
minilm             as it is.

Of a million units before ReLU6, some are so near to 0 or 6 that rounding decides on which side. The gradients of all
layers before such a unit then differ, by 1e-4, or, where batch norm spreads it over the batch, by percents: PyTorch's
from its own in double precision as well. So gradients, and all of mobilenetv2-train, are compared with Softplus in
place of ReLU6, in the file and in PyTorch: all layers with weights remain, the noise is gone.
"""
import tempfile
from pathlib import Path

import numpy
import onnx
import torch
from torch import nn

import nets

STEPS = 20
RECIPES = {"mobilenetv2": {"sgd": 1e-2, "adam": 1e-4}, "mobilenetv2-train": {"sgd": 1e-3, "adam": 1e-4},
           "minilm": {"sgd": 0.1, "adam": 2e-5}}
LOSSES = {"mobilenetv2": "cross_entropy:logits", "mobilenetv2-train": "cross_entropy:logits", "minilm": "mse:sentence"}
WITHIN = 1e-4  # of PyTorch's losses
CALM = 1e-5    # PyTorch's own distance to double precision, in a recipe that can tell


# ---- Data ----

def waves(random, batch, size, classes=16):
    """Pictures of smooth waves with noise; the class is their direction and frequency."""
    target = random.integers(0, classes, batch)
    grid = numpy.arange(size) / size
    phases = random.uniform(0, 2 * numpy.pi, (batch, 3, 1, 1))
    down, across = (1 + target % 4)[:, None, None, None], (1 + target // 4)[:, None, None, None]
    image = numpy.sin(2 * numpy.pi * (down * grid[:, None] + across * grid) + phases)
    return (image + 0.3 * random.standard_normal(image.shape)).astype(numpy.float32), target


def batch_of(model, batch, seed, noise=False):
    """Inputs by name, and targets."""
    random = numpy.random.default_rng(seed)
    if "image" in model.inputs:
        shape = model.inputs["image"].shape
        if noise:
            image = random.standard_normal((batch, *shape[1:]), numpy.float32)
            return {"image": image}, random.integers(0, model.outputs["logits"].shape[1], batch)
        image, target = waves(random, batch, shape[2])
        return {"image": image}, target
    inputs = {name: numpy.concatenate([array] * batch)[:batch] for name, array in model.inputs.items()}
    inputs["input_ids"] = random.integers(1000, 30000, inputs["input_ids"].shape) * inputs["attention_mask"]
    target = random.standard_normal((batch, model.outputs["sentence"].shape[1]), numpy.float32)
    return inputs, target / numpy.linalg.norm(target, axis=1, keepdims=True)


# ---- The same net in PyTorch ----

def replace(net, kind, make):
    for module in net.modules():
        for name, child in list(module.named_children()):
            if isinstance(child, kind):
                setattr(module, name, make(child))
    return net


def with_bias(conv):
    return nn.Conv2d(conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding,
                     groups=conv.groups)


def initializers(path):
    return {one.name: onnx.numpy_helper.to_array(one) for one in onnx.load(str(path)).graph.initializer}


def folded(path, classes):
    """MobileNetV2 without batch norm, with the file's weights: both have their layers in the same order."""
    net = replace(nets.mobilenetv2(classes), nn.BatchNorm2d, lambda norm: nn.Identity())
    replace(net, nn.Conv2d, with_bias)
    given = initializers(path)
    nodes = [node for node in onnx.load(str(path)).graph.node if node.op_type in ("Conv", "Gemm")]
    layers = [module for module in net.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    for layer, node in zip(layers, nodes, strict=True):
        for parameter, name in zip((layer.weight, layer.bias), node.input[1:], strict=True):
            parameter.data = torch.from_numpy(given[name].copy())
    return net


def torch_net(model, path):
    """That of the file."""
    if model.name == "mobilenetv2":
        net = folded(path, model.outputs["logits"].shape[1])
    else:
        net = nets.Bert() if model.name == "minilm" else nets.mobilenetv2(model.outputs["logits"].shape[1])
        net.load_state_dict(torch.load(model.folder / "weights.pt"))
    if path != model.path:
        replace(net, nn.ReLU6, lambda one: nn.Softplus())
    return net.train()


def smooth(model, folder):
    """The model's file, or one with Softplus in place of ReLU6."""
    path, graph = Path(folder) / model.path.name, onnx.load(str(model.path))
    if not any(node.op_type == "Clip" for node in graph.graph.node) or model.name == "minilm":
        return model.path
    for node in graph.graph.node:
        if node.op_type == "Clip":
            node.op_type = "Softplus"
            del node.input[1:]
    onnx.save(graph, str(path))
    return path


def loss_of(model, net, inputs, target):
    """In the precision of the net's weights."""
    kind = next(net.parameters()).dtype
    arguments = [torch.from_numpy(inputs[name]) for name in model.told["inputs"]]
    y = net(*(one.to(kind) if one.is_floating_point() else one for one in arguments))
    if model.name == "minilm":
        return nn.functional.mse_loss(y[1], torch.from_numpy(target).to(kind))
    return nn.functional.cross_entropy(y, torch.from_numpy(target))


def open_training(driver, model, path, inputs, target, kind, rate):
    sizes = {"batch": len(target)}
    if "input_ids" in inputs:
        sizes["length"] = inputs["input_ids"].shape[1]
    driver.open(path, 2, train=f"{kind}:{rate}", loss=LOSSES[model.name], **sizes)
    for name, array in {**inputs, "target": target}.items():
        driver.write(name, array)


# ---- Gradients, layer by layer ----

def torch_gradients(model, net, inputs, target):
    loss = loss_of(model, net, inputs, target)
    loss.backward()
    return loss.item(), {name: one.grad.double().numpy() for name, one in net.named_parameters()}


def names_in_file(net, path):
    """The file's name of each parameter, and whether it is transposed there: found by its values."""
    given, found = initializers(path), {}
    for name, one in net.named_parameters():
        value = one.detach().numpy()
        for other, array in given.items():
            for turned in (False, True) if value.ndim == 2 else (False,):
                wanted = value.T if turned else value
                if array.shape == wanted.shape and array.dtype == value.dtype and (array == wanted).all():
                    found[name] = other, turned
    return found


def errors_of(model, path, found, inputs, target):
    """The losses of PyTorch in single and in double precision, and (name, Mica's error, PyTorch's) of every parameter,
    relative to its largest element. A shift before another norm changes nothing, so its gradient is nothing but
    rounding: that is measured by the largest gradient of all."""
    net = torch_net(model, path)
    names, rows = names_in_file(net, path), []
    single_loss, single = torch_gradients(model, net, inputs, target)
    double_loss, double = torch_gradients(model, torch_net(model, path).double(), inputs, target)
    largest = max(numpy.abs(one).max() for one in double.values())
    for name, wanted in double.items():
        other, turned = names[name]
        got = found[other].T if turned else found[other]
        scale = numpy.abs(wanted).max()
        scale = scale if scale > 1e-9 * largest else largest
        rows.append((name, *(numpy.abs(one - wanted).max() / scale for one in (got, single[name]))))
    return single_loss, double_loss, rows


def check_gradients(driver, model, require):
    """Of all parameters after one backward pass: the error is at most 5 times that of PyTorch, or 1e-5."""
    told = []
    with tempfile.TemporaryDirectory() as folder:
        path = smooth(model, folder)
        for batch, noise in ((2, True), (3, False)):
            inputs, target = batch_of(model, batch, 20 + batch, noise)
            open_training(driver, model, path, inputs, target, "sgd", 0.1)
            loss, calls, found = driver.gradients()
            single, double, rows = errors_of(model, path, found, inputs, target)
            require(calls == 0, f"{calls} heap calls")
            require(abs(loss - double) <= 1e-5 * abs(double), f"the loss is {loss}, expected {double}")
            for name, ours, theirs in rows:
                require(ours <= max(5 * theirs, 1e-5), f"{name}: off by {ours:.1e}, PyTorch by {theirs:.1e}")
            told.append(f"batch {batch}: off by {max(row[1] for row in rows):.1e} at most (PyTorch "
                        f"{max(row[2] for row in rows):.1e}), the loss by {abs(loss - double):.0e} "
                        f"({abs(single - double):.0e})")
    return f"{len(rows)} parameters; " + "; ".join(told)


# ---- Losses over steps ----

def torch_losses(model, net, inputs, target, kind):
    rate = RECIPES[model.name][kind]
    weights = net.parameters()
    optimizer = torch.optim.SGD(weights, rate, 0.9) if kind == "sgd" else torch.optim.Adam(weights, rate)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, net, inputs, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return numpy.array(losses)


def apart(some, others):
    return float((numpy.abs(some - others) / numpy.abs(others)).max())


def check_losses(driver, model, kind, require):
    """20 steps: within 1e-4 of PyTorch's, by a recipe where that is no accident."""
    inputs, target = batch_of(model, 8 if model.name == "mobilenetv2-train" else 4, 11)
    with tempfile.TemporaryDirectory() as folder:
        path = smooth(model, folder) if model.name == "mobilenetv2-train" else model.path
        open_training(driver, model, path, inputs, target, kind, RECIPES[model.name][kind])
        steps = [driver.step() for _ in range(STEPS)]
        single = torch_losses(model, torch_net(model, path), inputs, target, kind)
        double = torch_losses(model, torch_net(model, path).double(), inputs, target, kind)
    found = numpy.array([loss for loss, _ in steps])
    told = (f"rate {RECIPES[model.name][kind]:g}, {found[0]:.4f} to {found[-1]:.4f}; off by "
            f"{apart(found, single):.1e}; from double precision {apart(found, double):.1e}, "
            f"PyTorch {apart(single, double):.1e}")
    require(sum(calls for _, calls in steps) == 0, "heap calls")
    require(apart(single, double) <= CALM, f"this recipe can not tell: {told}")
    require(apart(found, single) <= WITHIN, told)
    require(found[-1] < 0.98 * found[0], f"nothing is learned: {told}")
    return told
