"""One net in PyTorch, onnxruntime or OpenVINO, for known.py: known_peer.py SPEC, which is JSON.

Answers the lines that bench/serve.c describes, but has one row, which it prepares before it says "ready" behind a line
of JSON: its parameters, and how many bytes the process grew by. Besides: "latency N", the percentiles of N calls.
"""

import gc
import json
import struct
import sys
import time
from pathlib import Path

import numpy

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE))
sys.path.append(str(HERE.parent / "known"))
import known_rows  # noqa: E402
import runtimes  # noqa: E402
from clock import calls_in, time_calls  # noqa: E402

LEARNING_RATE = 1e-6  # as in bench/served_net.c
WARM_UP = 3


def net_of(spec):
    told = dict(spec["net"])
    return known_rows.Net(**{**told, "shape": tuple(told["shape"])})


# ---- PyTorch ----


def stored(path):
    """The tensors of a safetensors file in the order of the file, without what is not learned."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        head = json.loads(file.read(length))
        head.pop("__metadata__", None)
        for name, told in sorted(head.items(), key=lambda item: item[1]["data_offsets"][0]):
            begin, end = told["data_offsets"]
            file.seek(8 + length + begin)
            values = numpy.frombuffer(file.read(end - begin), numpy.float32).reshape(told["shape"])
            if not name.rpartition(".")[2].startswith("running_"):
                yield name, values


def load(torch, model, path):
    """By order; the shapes must agree."""
    own, given = list(model.named_parameters()), 0
    with torch.no_grad():
        for name, values in stored(path):
            if given == len(own) or tuple(own[given][1].shape) != values.shape:
                raise ValueError(f"{name} {values.shape} has no place in PyTorch's net")
            own[given][1].copy_(torch.from_numpy(values.copy()))
            given += 1
    if given != len(own):
        raise ValueError(f"{own[given][0]} of PyTorch's net is not in {path}")


def trained(torch, model, loss, x, way):
    output = model(x)
    if output.dim() > 1 and loss.__name__ == "cross_entropy":
        target = torch.from_numpy(known_rows.integers(output.shape[-1], *output.shape[:-1]))
    else:
        target = torch.from_numpy(known_rows.numbers(1, *output.shape))
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=True)

    def score(given, wanted):
        return loss(model(given), wanted)

    forward = torch.compile(score, dynamic=False) if way == "compile" else score

    def step():
        forward(x, target).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def wake(torch, train):
    """Its threads are there, and what it loads when first used: neither is a net's memory."""
    some = torch.ones(512, 512)
    torch.mm(some, some).relu_()
    if train:
        layer = torch.nn.Linear(4, 4)
        optimizer = torch.optim.Adam(layer.parameters(), fused=True)
        layer(torch.ones(4, 4)).sum().backward()
        optimizer.step()
    del some
    runtimes.give_back()


def of_torch(spec):
    import ctypes
    import os

    import torch

    ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"), mode=ctypes.RTLD_GLOBAL)
    import models

    torch.set_num_threads(spec["threads"])
    wake(torch, spec["train"])
    before = runtimes.resident()
    net, way = net_of(spec), spec["way"]
    model = models.MAKERS[net.name]().train(spec["train"])
    load(torch, model, spec["weights"])
    x = torch.from_numpy(known_rows.fed(net, spec["batch"]))
    if net.image and way != "eager":
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    parameters = sum(one.numel() for one in model.parameters())
    if spec["train"]:
        return before, parameters, trained(torch, model, models.loss_of(net.name), x, way)
    torch.set_grad_enabled(False)
    if way != "compile":
        guard = torch.inference_mode()
        guard.__enter__()
        return before, parameters, lambda: model(x)
    import torch._inductor.config

    torch._inductor.config.freezing = True
    compiled = torch.compile(model, dynamic=False)
    return before, parameters, lambda: compiled(x)


# ---- ONNX ----


def of_onnx(spec):
    net = net_of(spec)
    given = {net.input: known_rows.fed(net, spec["batch"])}
    before, run = runtimes.OF_LIBRARY[spec["library"]](spec["onnx"], spec["threads"], given)
    return before, None, run


# ---- Both ----


def as_array(value):
    """The first output of whatever it is."""
    if hasattr(value, "detach"):
        return value.detach().float().contiguous().numpy()
    return numpy.ascontiguousarray(value[0], numpy.float32)


def percentiles(call, count):
    """Nanoseconds: the median, p99, p99.9 and the worst of so many calls."""
    taken, now = [0] * count, time.perf_counter_ns
    for i in range(count):
        start = now()
        call()
        taken[i] = now() - start
    taken.sort()
    return [taken[min(count - 1, int(count * share))] for share in (0.5, 0.99, 0.999)] + [taken[-1]]


def grown_by(before, call):
    for _ in range(WARM_UP):
        call()
    gc.collect()
    runtimes.forget_most()
    call()
    return runtimes.most_resident() - before


def main():
    spec = json.loads(sys.argv[1])
    try:
        before, parameters, call = (of_torch if spec["library"] == "torch" else of_onnx)(spec)
        grown = grown_by(before, call)
    except Exception as problem:  # whatever a library raises for what it cannot do
        print(json.dumps({"failed": repr(problem)[:300]}), flush=True)
        return
    gc.disable()
    call_ns = min(time_calls(call, 1, spec["threads"])[0] for _ in range(3))
    print(json.dumps({"parameters": parameters, "grown": grown}) + "\nready", flush=True)
    for line in sys.stdin:
        command, *words = line.split()
        if command == "sample":
            ns = float(words[0])
            for _ in range(calls_in(0.25 * ns, call_ns)):
                call()
            spent, heap, disturbed = time_calls(call, calls_in(ns, call_ns), spec["threads"])
            call_ns = min(call_ns, spent)
            answer = f"{spent:.3f} {heap:.3f} {int(disturbed)}"
        elif command == "latency":
            answer = " ".join(map(str, percentiles(call, int(words[0]))))
        elif command == "result":
            as_array(call()).tofile(words[1])
            answer = "ok"
        else:
            answer = "no such command"
        print(answer, flush=True)


if __name__ == "__main__":
    main()
