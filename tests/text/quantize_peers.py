#!/usr/bin/env python3
"""Quantizing, Mica against llama.cpp: the squared error of each type, and the type of each tensor in each mix.

    pip install gguf numpy
    python3 tests/text/quantize_peers.py build/mica LLAMA_BIN MODEL.gguf

LLAMA_BIN is the folder of a build of llama.cpp with llama-quantize and libggml-base.so. MODEL is any GGUF file that both
can read; llama-quantize makes an F32 version of it first, which both quantize. Prints tables in Markdown, and ends with 1
if an error is larger than llama.cpp's or a type differs. Not part of the tests: it needs what is on the network.
"""
import ctypes
import json
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Q

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import make_golden_mixes as golden  # noqa: E402

# The name of a file that has this type only, if it is pure.
PURE = {"Q2_K": "Q2_K", "Q3_K": "Q3_K_S", "Q4_K": "Q4_K_S", "Q5_K": "Q5_K_S"}
TYPES = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS".split()
ROW, ROWS = 256, 16384


def rows_of_model(path):
    """Rows of 256 from all matrices of a model, at random."""
    rng = np.random.default_rng(3)
    parts = []
    for tensor in gguf.GGUFReader(path).tensors:
        if len(tensor.shape) == 2 and tensor.shape[1] > 1:
            values = np.asarray(tensor.data, np.float32).reshape(-1)
            rows = values[: values.size // ROW * ROW].reshape(-1, ROW)
            parts.append(rows[rng.integers(0, len(rows), min(len(rows), 256))])
    rows = np.concatenate(parts)
    return rows[rng.permutation(len(rows))[:ROWS]]


def peer_blocks(ggml, dtype, rows):
    block, size = GGML_QUANT_SIZES[dtype]
    made = np.zeros((len(rows), ROW // block * size), np.uint8)
    ggml.ggml_quantize_chunk(int(dtype), rows.ctypes.data, made.ctypes.data, 0, len(rows), ROW, None)
    return made


def our_blocks(mica, folder, dtype, kinds):
    """{kind: blocks}, by mica quantize --pure."""
    source, made = os.path.join(folder, "rows.gguf"), os.path.join(folder, "made.gguf")
    if not os.path.exists(source):
        out = gguf.GGUFWriter(source, "llama")
        for kind, rows in kinds.items():
            out.add_tensor(f"{kind}.weight", rows)
        out.write_header_to_file()
        out.write_kv_data_to_file()
        out.write_tensors_to_file()
        out.close()
    subprocess.run([mica, "quantize", source, made, "--type", PURE.get(dtype.name, dtype.name), "--pure", "-q"],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    tensors = gguf.GGUFReader(made).tensors
    assert all(t.tensor_type == dtype for t in tensors), dtype
    return {t.name[: -len(".weight")]: np.array(t.data) for t in tensors}


def error_of(blocks, dtype, rows):
    off = gguf.quants.dequantize(blocks, dtype).astype(np.float64).reshape(rows.shape) - rows
    return float(np.sum(off * off))


def compare_errors(mica, ggml, kinds, folder):
    """Prints the table; False if an error is larger than the peer's."""
    print("Squared error, Mica's over llama.cpp's:\n")
    print("| type | " + " | ".join(kinds) + " | the same bits |")
    print("|---|" + "---:|" * (len(kinds) + 1))
    good = True
    for name in TYPES:
        dtype = Q[name]
        ggml.ggml_quantize_init(int(dtype))
        ours = our_blocks(mica, folder, dtype, kinds)
        cells, same = [], True
        for kind, rows in kinds.items():
            theirs = peer_blocks(ggml, dtype, rows)
            same = same and np.array_equal(ours[kind].reshape(theirs.shape), theirs)
            ratio = error_of(ours[kind], dtype, rows) / error_of(theirs, dtype, rows)
            good = good and ratio <= 1
            cells.append(f"{ratio:.4f}")
        print(f"| {name} | {' | '.join(cells)} | {'yes' if same else 'no'} |", flush=True)
    return good


def our_types(mica, path, mix, pure=False):
    call = [mica, "quantize", path, "--type", mix, "--dry-run", "--json", "-q"] + (["--pure"] if pure else [])
    done = subprocess.run(call, check=True, stdout=subprocess.PIPE)
    return {t["name"]: t["to"] for t in json.loads(done.stdout)["tensors"]}


def compare_types(mica, tool, files):
    """Prints the table; False if a type differs."""
    print("\nTensors of the same type as llama-quantize's, of all:\n")
    print("| mix | " + " | ".join(files) + " |")
    print("|---|" + "---:|" * len(files))
    good = True
    for mix in golden.MIXES:
        cells = []
        for path in files.values():
            ours, theirs = our_types(mica, path, mix), golden.types_of(tool, path, mix)
            same = sum(ours.get(name) == dtype for name, dtype in theirs.items())
            good = good and same == len(theirs) == len(ours)
            cells.append(f"{same} of {len(theirs)}")
        print(f"| {mix} | {' | '.join(cells)} |", flush=True)
    return good


def main():
    mica, binaries, model = sys.argv[1:4]
    tool = os.path.join(binaries, "llama-quantize")
    os.environ["LD_LIBRARY_PATH"] = binaries
    ggml = ctypes.CDLL(os.path.join(binaries, "libggml-base.so"))
    size, pointer = ctypes.c_int64, ctypes.c_void_p
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, pointer, pointer, size, size, size, pointer]
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain.gguf")
        subprocess.run([tool, "--allow-requantize", model, plain, "F32"], check=True, capture_output=True)
        kinds = {
            "normal": rng.normal(0, 0.02, (ROWS, ROW)).astype(np.float32),
            "heavy_tails": (rng.standard_t(3, (ROWS, ROW)) * 0.02).astype(np.float32),
            "model": np.ascontiguousarray(rows_of_model(plain)),
        }
        good = compare_errors(mica, ggml, kinds, folder)
        files = {os.path.basename(model): plain}
        for number, one in enumerate(golden.models()):
            path = os.path.join(folder, f"{number}.gguf")
            golden.write_model(path, one)
            files[f"{one[0]} {one[1]}"] = path
        good = compare_types(mica, tool, files) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
