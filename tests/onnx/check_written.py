#!/usr/bin/env python3
"""Files that Mica wrote (MICA_ONNX_KEEP=FOLDER mica-test onnx_write): valid by the onnx package's checker, and run by
onnxruntime they give what Mica gave, within 1e-5 of the larger of 1 and the largest number of the output. Bytes may be
one step off; after many layers of bytes (int8_*), floats may be 2 % off."""
import glob
import os
import sys

import numpy as np
import onnx
import onnxruntime

onnxruntime.set_default_logger_severity(3)


def held(x, want):
    """Which elements of a cast are compared: those of numbers that both types hold. Beyond them the standard defines
    nothing for floats, and onnxruntime 1.31 clips 64-bit integers by their lower half."""
    kinds = [t for t in (x.dtype, want.dtype) if t.kind in "iu"]
    low = max([np.iinfo(t).min for t in kinds] + [-(2**31)])
    high = min([np.iinfo(t).max for t in kinds] + [2**31 - 1])
    x = x.astype(np.float64)
    return np.isfinite(x) & (x >= low) & (x <= high)


def check(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    base = path[: -len(".onnx")]
    ends = list(model.graph.input) + list(model.graph.output)
    if any(v.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 for v in ends):
        return 0.0  # onnxruntime takes no such arrays from NumPy
    if any(one.data_type == onnx.TensorProto.FLOAT4E2M1 for one in model.graph.initializer):
        return 0.0  # onnxruntime casts no such arrays
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {}
    for i, value in enumerate(session.get_inputs()):
        feeds[value.name] = np.load(f"{base}.in{i}.npy")
    results = session.run(None, feeds)
    worst = 0.0
    for i, (got, info) in enumerate(zip(results, model.graph.output)):
        want, got = np.load(f"{base}.out{i}.npy"), np.asarray(got)
        if got.shape != want.shape:
            raise ValueError(f"{info.name} is {got.shape}, expected {want.shape}")
        if os.path.basename(path).startswith("cast_"):
            some = held(next(iter(feeds.values())), want)
            got, want = got[some], want[some]
        got, want = got.astype(np.float64), want.astype(np.float64)
        if not np.array_equal(np.isnan(got), np.isnan(want)):
            raise ValueError(f"{info.name}: NaN in other places")
        finite = np.isfinite(want) & np.isfinite(got)
        if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
            raise ValueError(f"{info.name}: infinities in other places")
        if finite.any():
            size = max(1.0, np.abs(want[finite]).max())
            if info.type.tensor_type.elem_type in (onnx.TensorProto.INT8, onnx.TensorProto.UINT8):
                size = 1e5 # one step
            elif os.path.basename(path).startswith("int8_"):
                size *= 2e3
            worst = max(worst, np.abs(got[finite] - want[finite]).max() / size)
    return worst


def main():
    only = sys.argv[2:] or [""]
    tried = failed = 0
    worst = (0.0, "")
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.onnx"))):
        name = os.path.basename(path)[: -len(".onnx")]
        if not any(part in name for part in only):
            continue
        tried += 1
        try:
            error = check(path)
            if error > 1e-5:
                raise ValueError(f"off by {error:.2g}")
            worst = max(worst, (error, name))
        except Exception as problem:  # of a file, a session or a comparison: told, and the next is tried
            failed += 1
            print(f"{name}: {str(problem).strip().splitlines()[0][:300]}")
    print(f"at most {worst[0]:.2g} off ({worst[1]})")
    print(f"{tried - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
