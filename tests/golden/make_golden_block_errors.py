#!/usr/bin/env python3
"""Writes tests/data/golden/block_errors.txt: the squared error of llama.cpp's quantizers on rows that anybody can make.

    pip install gguf numpy
    python3 tests/golden/make_golden_block_errors.py libggml-base.so        # the file it writes is checked in

Each line is <dtype> <kind of rows> <squared error of 64 * 256 values>, without an importance matrix. The rows come from
a hash of the value's number: see rows_of here, and value_of in test_golden_block_errors.c.
"""
import ctypes
import os
import sys

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Q

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "golden", "block_errors.txt")
TYPES = (Q.Q2_K, Q.Q3_K, Q.Q4_K, Q.Q5_K, Q.Q6_K, Q.IQ4_NL, Q.IQ4_XS)
COUNT = 64 * 256


def rows_of(kind):
    """About normal: the sum of four random bytes; or its cube, which has heavy tails."""
    x = np.arange(COUNT, dtype=np.uint32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    total = sum((x >> np.uint32(8 * k)) & np.uint32(255) for k in range(4)).astype(np.float32)
    values = (total - np.float32(510)) / np.float32(512)
    return values**3 if kind == "heavy" else values


def main():
    ggml = ctypes.CDLL(sys.argv[1])
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    size, pointer = ctypes.c_int64, ctypes.c_void_p
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, pointer, pointer, size, size, size, pointer]
    with open(PATH, "w", encoding="ascii") as file:
        for dtype in TYPES:
            block, size = GGML_QUANT_SIZES[dtype]
            for kind in ("plain", "heavy"):
                rows = rows_of(kind).astype(np.float32)
                made = np.zeros(COUNT // block * size, np.uint8)
                ggml.ggml_quantize_init(int(dtype))
                ggml.ggml_quantize_chunk(int(dtype), rows.ctypes.data, made.ctypes.data, 0, COUNT // 256, 256, None)
                off = gguf.quants.dequantize(made, dtype).astype(np.float64) - rows
                file.write(f"{dtype.name.lower()} {kind} {np.sum(off * off):.9g}\n")


if __name__ == "__main__":
    main()
