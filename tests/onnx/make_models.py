#!/usr/bin/env python3
"""Makes the ONNX models of ./dev test --onnx and ./dev bench --peers onnx, and what onnxruntime computes with them.

    make_models.py OUT --minilm FOLDER --silero FOLDER --magika FOLDER [FILTER...]

OUT/NAME.onnx           exported by PyTorch: NAME by its TorchScript exporter, NAME-dynamo by the newer one, NAME-train with
                        batch norm as it is; NAME-int8 from NAME by onnxruntime's quantizer (QDQ); or a public model
OUT/NAME/in/*.npy       an array for every input
OUT/NAME/out/*.npy      what onnxruntime gives for them
OUT/NAME/model.json     inputs and outputs in the model's order, sizes, and what to compare with which tolerance
OUT/NAME/weights.pt     of models that are trained: what PyTorch begins with

What is there already is kept. Nets are in nets.py.
"""
import argparse
import json
import shutil
import sys
import warnings
from pathlib import Path

import numpy
import onnx
import onnxruntime
import torch

import nets

OPSET = 17
BATCH, LENGTH = 2, 32
TRAINED = ("mobilenetv2-train", "minilm")  # in PyTorch too, which begins with weights.pt
STEPS, WINDOW, CONTEXT = 40, 512, 64  # of silero-vad, at 16 kHz


def image(seed, size=224, batch=BATCH):
    return numpy.random.default_rng(seed).standard_normal((batch, 3, size, size), numpy.float32)


def sentences(seed, words=30522, batch=BATCH, length=LENGTH):
    random = numpy.random.default_rng(seed)
    ids = random.integers(1000, words, (batch, length), numpy.int64)
    mask = numpy.ones_like(ids)
    for row in range(1, batch):
        mask[row, length - 5 * row:] = 0
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}


def speech(seed=5):
    """Something that is silent, sings and is silent again, at 16 kHz: [steps, 576], each with the end of the one before."""
    random = numpy.random.default_rng(seed)
    count = STEPS * WINDOW
    time = numpy.arange(count) / 16000
    pitch = 140 + 30 * numpy.sin(2 * numpy.pi * 1.3 * time)
    phase = 2 * numpy.pi * numpy.cumsum(pitch) / 16000
    voice = sum(numpy.sin(k * phase) / k * (1 + numpy.sin(2 * numpy.pi * 3.1 * time + k)) for k in range(1, 24))
    loud = (time > 0.25) & (time < 0.9)
    sound = (0.1 * voice * loud + 0.003 * random.standard_normal(count)).astype(numpy.float32)
    padded = numpy.concatenate([numpy.zeros(CONTEXT, numpy.float32), sound])
    return numpy.stack([padded[k * WINDOW:k * WINDOW + WINDOW + CONTEXT] for k in range(STEPS)])


# ---- Exporting ----

class Model:
    """A net to export: its inputs by name, the names of its outputs, and which axes have a name."""

    def __init__(self, build, inputs, outputs, axes, exporters=("torchscript", "dynamo")):
        self.build, self.inputs, self.outputs, self.axes, self.exporters = build, inputs, outputs, axes, exporters


def exported(args):
    pixels = {"image": {0: "batch"}}
    text = {0: "batch", 1: "length"}
    return {
        "resnet18": Model(lambda: nets.settle(nets.resnet18(), (3, 224, 224)), {"image": image(1)}, ["logits"], pixels),
        "mobilenetv2": Model(lambda: nets.settle(nets.mobilenetv2(), (3, 224, 224)), {"image": image(2)}, ["logits"],
                             pixels),
        "mobilenetv2-train": Model(lambda: nets.settle(nets.mobilenetv2(100), (3, 96, 96)), {"image": image(8, 96)},
                                   ["logits"], pixels, ("unfolded",)),
        "vit": Model(lambda: nets.ViT().eval(), {"image": image(3)}, ["logits"], pixels),
        "tagger": Model(lambda: nets.Tagger().eval(), {"words": sentences(4, 5000)["input_ids"]}, ["tags"],
                        {"words": text}, ("torchscript",)),
        "minilm": Model(lambda: nets.minilm(args.minilm), sentences(6), ["hidden", "sentence"],
                        {name: text for name in sentences(6)}),
    }


def export(model, net, path, exporter):
    arguments = tuple(torch.from_numpy(array) for array in model.inputs.values())
    common = {"input_names": list(model.inputs), "output_names": model.outputs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter != "dynamo":
            mode = torch.onnx.TrainingMode.PRESERVE if exporter == "unfolded" else torch.onnx.TrainingMode.EVAL
            torch.onnx.export(net, arguments, str(path), dynamo=False, opset_version=OPSET, dynamic_axes=model.axes,
                              training=mode, do_constant_folding=exporter != "unfolded", **common)
        else:
            sizes = {}
            shapes = tuple({axis: sizes.setdefault(size, torch.export.Dim(size, max=512)) for axis, size in
                            model.axes[name].items()} for name in model.inputs)
            torch.onnx.export(net, arguments, str(path), dynamo=True, external_data=False, dynamic_shapes=shapes,
                              verbose=False, **common)


class Calibration:
    def __init__(self, batches):
        self.batches = iter(batches)

    def get_next(self):
        return next(self.batches, None)

    def __iter__(self):
        return self.batches


def quantize(source, path, batches, convolutional):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    CalibrationDataReader.register(Calibration)
    ready = path.with_suffix(".ready.onnx")
    quant_pre_process(str(source), str(ready), skip_symbolic_shape=True)
    quantize_static(str(ready), str(path), Calibration(batches), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                    op_types_to_quantize=None if convolutional else ["MatMul", "Gemm", "Conv"])
    ready.unlink()


# ---- Reference outputs ----

def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def write(out, name, inputs, outputs, **more):
    for kind, arrays in (("in", inputs), ("out", outputs)):
        (out / name / kind).mkdir(parents=True, exist_ok=True)
        for key, array in arrays.items():
            numpy.save(out / name / kind / f"{key}.npy", numpy.ascontiguousarray(array))
    told = {"name": name, "inputs": list(inputs), "outputs": list(outputs), "tolerance": 1e-4, **more}
    (out / name / "model.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def run_and_write(out, name, inputs, **more):
    runner = session(out / f"{name}.onnx")
    given = {one.name: inputs[one.name] for one in runner.get_inputs()}
    names = [one.name for one in runner.get_outputs()]
    write(out, name, given, dict(zip(names, runner.run(names, given))), **more)


def make_exported(args, out, name, model):
    wanted = [name + suffix for suffix in ("", "-dynamo", "-int8") if chosen(args, name + suffix)]
    if not wanted or all((out / one / "model.json").exists() for one in wanted):
        return
    torch.manual_seed(7)
    net = model.build()
    for exporter in model.exporters:
        full = f"{name}-dynamo" if exporter == "dynamo" else name
        try:
            export(model, net, out / f"{full}.onnx", exporter)
        except Exception as error:  # the exporter's own faults are many
            print(f"{full}: {exporter} cannot export it: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        run_and_write(out, full, model.inputs, exporter=exporter)
        if full in TRAINED:
            torch.save(net.state_dict(), out / full / "weights.pt")
    if "torchscript" in model.exporters and name != "tagger":
        batches = [{key: image(50 + k) if key == "image" else sentences(50 + k)[key] for key in model.inputs}
                   for k in range(4)]
        quantize(out / f"{name}.onnx", out / f"{name}-int8.onnx", batches, "image" in model.inputs and name != "vit")
        run_and_write(out, f"{name}-int8", model.inputs, int8=True)


# ---- Public models ----

def make_silero(args, out):
    """Step by step with its state, and as one sequence."""
    name, sound = "silero-vad", speech()
    if chosen(args, name):
        shutil.copy(args.silero / "silero_vad.onnx", out / f"{name}.onnx")
        runner, state, steps = session(out / f"{name}.onnx"), numpy.zeros((2, 1, 128), numpy.float32), []
        for window in sound:
            output, state = runner.run(["output", "stateN"], {"input": window[None], "state": state,
                                                              "sr": numpy.array(16000, numpy.int64)})
            steps.append((output, state))
        write(out, name, {"input": sound, "state": numpy.zeros_like(state)},
              {"output": numpy.stack([one[0] for one in steps]), "stateN": numpy.stack([one[1] for one in steps])},
              steps=STEPS, set={"sr": 16000}, carries={"stateN": "state"})
    name = "silero-vad-sequence"
    if chosen(args, name):
        shutil.copy(args.silero / "silero_vad_16k_sequence.onnx", out / f"{name}.onnx")
        start = numpy.zeros((1, 1, 128), numpy.float32)
        run_and_write(out, name, {"input": sound, "h": start, "c": start})


def make_magika(args, out):
    if not chosen(args, "magika"):
        return
    shutil.copy(args.magika / "model.onnx", out / "magika.onnx")
    text = Path(__file__).read_bytes()
    given = numpy.full((2, 2048), 256, numpy.int32)  # 256 is padding: the beginning and the end of a file
    for row, part in enumerate((text, text[:700])):
        begin, end = part[:1024], part[-1024:]
        given[row, :len(begin)] = list(begin)
        given[row, 2048 - len(end):] = list(end)
    run_and_write(out, "magika", {"bytes": given})


def chosen(args, name):
    return not args.filters or any(one in name for one in args.filters)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("filters", nargs="*")
    for name in ("--minilm", "--silero", "--magika"):
        parser.add_argument(name, type=Path, required=True)
    return parser.parse_intermixed_args()


def main():
    args = options()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(2)
    for name, model in exported(args).items():
        make_exported(args, args.out, name, model)
    make_silero(args, args.out)
    make_magika(args, args.out)


if __name__ == "__main__":
    main()
