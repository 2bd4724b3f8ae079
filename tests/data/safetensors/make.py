#!/usr/bin/env python3
"""Makes the .safetensors files of this folder with Python's package (pip install safetensors numpy),
and checks one that Mica wrote: make.py [FILE]."""
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

here = Path(__file__).parent


def every_dtype():
    base = np.arange(6).reshape(2, 3)
    kinds = [np.float32, np.float64, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8]
    tensors = {np.dtype(k).name: (base * 3 - 4).astype(k) if np.dtype(k).kind != "u" else base.astype(k) for k in kinds}
    tensors["bool"] = base % 2 == 0
    tensors["uint16"] = base.astype(np.uint16)
    tensors["scalar"] = np.array(2.5, dtype=np.float32)
    tensors["empty"] = np.zeros((3, 0, 2), dtype=np.float32)
    return tensors


if len(sys.argv) > 1:
    for name, tensor in load_file(sys.argv[1]).items():
        print(name, tensor.dtype, tensor.shape, tensor.flatten()[:6].tolist())
else:
    save_file(every_dtype(), here / "dtypes.safetensors",
              metadata={"format": "np", "quote": 'a "b" \\ \n', "snow": "\u2603 \U0001f600"})
    save_file({}, here / "nothing.safetensors")
    rng = np.random.default_rng(0)
    save_file({f"layer.{i}.weight": rng.standard_normal((4, 5)).astype(np.float32) for i in range(3)},
              here / "layers.safetensors")
