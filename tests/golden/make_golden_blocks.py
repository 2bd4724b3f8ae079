#!/usr/bin/env python3
"""Writes tests/data/golden/blocks.txt: what the `gguf` package makes of block-quantized values.

    pip install gguf numpy
    python3 tests/golden/make_golden_blocks.py        # the file it writes is checked in

Each line is a conversion, with floats as the eight hexadecimal digits of their bits:

    decode <dtype> <bytes of a block> <its values>
    encode <dtype> <values> <bytes of the block they make>
"""
import os

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Q

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "golden", "blocks.txt")

# Where the f16 scales of a block lie.
SCALES = {
    Q.Q4_0: (0,), Q.Q4_1: (0, 2), Q.Q5_0: (0,), Q.Q5_1: (0, 2), Q.Q8_0: (0,), Q.Q2_K: (80, 82), Q.Q3_K: (108,),
    Q.Q4_K: (0, 2), Q.Q5_K: (0, 2), Q.Q6_K: (208,), Q.IQ4_NL: (0,), Q.IQ4_XS: (0,),
}  # fmt: skip
WRITTEN = (Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0)

# The first blocks of a type have these: of usual sizes, zero, negative, subnormal, the largest.
SPECIAL = (0.0123, -0.0, -0.75, 2.0**-24, -1000 * 2.0**-24, 65504.0)


def blocks_of(rng, dtype, count):
    """Random bytes with finite scales."""
    size = GGML_QUANT_SIZES[dtype][1]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for k, place in enumerate(SCALES[dtype]):
        scales = rng.normal(0, 0.05, count).astype(np.float16)
        for i in range(min(count, len(SPECIAL))):
            scales[i] = SPECIAL[(i + 2 * k) % len(SPECIAL)]
        blocks[:, place : place + 2] = scales.view(np.uint8).reshape(count, 2)
    return blocks


def rows_of(rng, count):
    """Values to be quantized: usual ones, and what is hard about rounding."""
    rows = rng.normal(0, 1, (count, 32)).astype(np.float32)
    rows *= np.float32(10.0) ** rng.integers(-3, 3, (count, 1)).astype(np.float32)
    grid = np.arange(32, dtype=np.float32)
    special = [
        grid * 0,  # zero: the scale is -0 where its divisor is negative
        -grid * 0,
        grid * 0 + 3.25,  # all equal
        np.where(grid == 5, -1.5, 0),  # one value, negative
        np.where(grid == 6, 1.5, np.where(grid == 21, -1.5, 0.25)),  # two of the largest magnitude
        np.where(grid == 6, -1.5, np.where(grid == 21, 1.5, 0.25)),
        (grid - 16) * 0.5 + np.where(grid == 0, -119, 0),  # halves, where the scale of q8_0 is 1
        np.where(grid == 0, 127, 0.5 - grid % 2),  # more of them
        np.where(grid == 31, -8, grid % 16 * 0.5 - 3.75),  # quarters, where that of q4_0 is 1
        np.where(grid == 1, 15, grid * 0.25),  # halves of q4_1
        grid * 1e-6,  # a subnormal scale
        grid * 1e-8 - 1.5e-7,  # one that is 0 as f16, but not as f32
        grid * 3000 - 40000,  # the minimum is near the largest f16
        (grid - 7) * 1e6,  # a scale that is infinite as f16
        np.nextafter(np.float32(1), np.float32(2)) * (grid - 15.5),
        grid % 3 - 1,
    ]
    # What has both zeros as its minimum may get either: the reference leaves it to the order of its vector lanes.
    return np.concatenate([np.array(special, dtype=np.float32), rows])


def digits(values):
    return "".join(f"{v:08x}" for v in values.astype(np.float32).view(np.uint32))


def main():
    rng = np.random.default_rng(20250301)
    lines = []
    for dtype in SCALES:
        blocks = blocks_of(rng, dtype, 16 if GGML_QUANT_SIZES[dtype][0] == 32 else len(SPECIAL))
        values = gguf.quants.dequantize(blocks, dtype)
        for block, row in zip(blocks, values):
            lines.append(f"decode {dtype.name.lower()} {block.tobytes().hex()} {digits(row)}\n")
    rows = rows_of(rng, 20)
    for dtype in WRITTEN:
        for row, block in zip(rows, gguf.quants.quantize(rows, dtype)):
            lines.append(f"encode {dtype.name.lower()} {digits(row)} {block.tobytes().hex()}\n")
    with open(PATH, "w", encoding="ascii") as file:
        file.writelines(lines)
    print(f"{os.path.normpath(PATH)}: {os.path.getsize(PATH)} bytes")


if __name__ == "__main__":
    main()
