#!/usr/bin/env python3
"""Writes tests/data/golden/mixes.txt: the type that llama-quantize gives each tensor of several models.

    pip install gguf numpy
    python3 tests/golden/make_golden_mixes.py llama-quantize        # the file it writes is checked in

    model <architecture> <layers> <heads> <heads of keys and values> <experts>
    tensor <name> <values of a row> <rows> <matrices>
    layer <name without blk.N.> <values of a row> <rows> <matrices>         the same in every layer
    mix <name> <a letter of TYPES for each tensor: those outside of layers, then layer by layer>
    pure <name> <the same with --pure>
"""
import os
import re
import subprocess
import sys
import tempfile

import gguf
import numpy as np

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "golden", "mixes.txt")
TYPES = "f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs".split()
MIXES = (
    "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ4_NL IQ4_XS"
).split()


def llama(row, down, tied, extra=()):
    """Tensors of a llama-like model: those outside of layers, and those of one. Rows are few: nobody runs it."""
    outside = [("token_embd.weight", row, 3), ("output_norm.weight", row, 1)]
    if not tied:
        outside.append(("output.weight", row, 3))
    layer = [("attn_norm.weight", row, 1), ("attn_q.weight", row, 2), ("attn_k.weight", row, 2),
             ("attn_v.weight", row, 2), ("attn_output.weight", row, 2), ("ffn_norm.weight", row, 1),
             ("ffn_gate.weight", row, 2), ("ffn_up.weight", row, 2), ("ffn_down.weight", down, 2)]  # fmt: skip
    return outside, layer + list(extra)


def models():
    """(architecture, layers, heads, heads of keys and values, experts, tensors outside of layers, tensors of one)"""
    yield "llama", 24, 32, 8, 0, *llama(256, 512, False)
    yield "llama", 30, 9, 3, 0, *llama(576, 1536, True)
    yield "llama", 80, 64, 8, 0, *llama(256, 256, False)
    yield "llama", 5, 4, 4, 0, *llama(80, 96, False)
    yield "qwen2", 17, 14, 2, 0, *llama(256, 256, True, [("attn_q.bias", 256, 1), ("attn_v.bias", 256, 1)])
    yield "qwen3", 28, 16, 8, 0, *llama(256, 768, True, [("attn_q_norm.weight", 128, 1), ("attn_k_norm.weight", 128, 1)])
    yield "gemma3", 26, 4, 1, 0, *llama(1152, 6912, True, [("post_ffw_norm.weight", 1152, 1)])
    experts = [("ffn_gate_inp.weight", 256, 8), ("ffn_gate_exps.weight", 256, 2, 8), ("ffn_up_exps.weight", 256, 2, 8),
               ("ffn_down_exps.weight", 256, 2, 8)]  # fmt: skip
    outside, layer = llama(256, 256, False)
    yield "llama", 32, 32, 8, 8, outside, [t for t in layer if not t[0].startswith("ffn_")] + experts
    gpt2 = [("attn_qkv.weight", 768, 2), ("attn_qkv.bias", 768, 1), ("attn_output.weight", 768, 2),
            ("ffn_up.weight", 768, 2), ("ffn_down.weight", 3072, 2), ("ffn_down.bias", 768, 1)]  # fmt: skip
    yield "gpt2", 12, 12, 12, 0, llama(768, 768, False)[0] + [("position_embd.weight", 768, 4)], gpt2
    phi3 = [("attn_norm.weight", 256, 1), ("attn_qkv.weight", 256, 2), ("attn_output.weight", 256, 2),
            ("ffn_up.weight", 256, 2), ("ffn_down.weight", 256, 2)]  # fmt: skip
    yield "phi3", 32, 32, 32, 0, llama(256, 256, False)[0], phi3
    bert = [("attn_q.weight", 384, 2), ("attn_k.weight", 384, 2), ("attn_v.weight", 384, 2), ("attn_v.bias", 384, 1),
            ("attn_output.weight", 384, 2), ("attn_output_norm.weight", 384, 1), ("ffn_up.weight", 384, 2),
            ("ffn_down.weight", 1536, 2), ("layer_output_norm.weight", 384, 1)]  # fmt: skip
    tokens = [("token_embd.weight", 384, 3), ("token_types.weight", 384, 2), ("position_embd.weight", 384, 4)]
    yield "bert", 6, 12, 12, 0, tokens, bert


def named(layers, outside, layer):
    """All tensors, (name, sizes)."""
    full = list(outside) + [(f"blk.{i}.{t[0]}", *t[1:]) for i in range(layers) for t in layer]
    return [(t[0], t[1:]) for t in full]


def write_model(path, model):
    """A file with everything that llama-quantize asks for; returns its tensors' names."""
    arch, layers, heads, heads_kv, experts, outside, layer = model
    out = gguf.GGUFWriter(path, arch)
    row = outside[0][1]
    out.add_block_count(layers)
    out.add_context_length(128)
    out.add_embedding_length(row)
    out.add_feed_forward_length(2 * row)
    out.add_head_count(heads)
    out.add_head_count_kv(heads_kv)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_layer_norm_eps(1e-5)
    out.add_causal_attention(arch != "bert")
    out.add_sliding_window(64)
    if experts:
        out.add_expert_count(experts)
        out.add_expert_used_count(2)
    tensors = named(layers, outside, layer)
    rng = np.random.default_rng(5)
    for name, sizes in tensors:
        shape = [n for n in reversed(sizes) if n > 1]
        out.add_tensor(name, rng.normal(0, 0.02, shape).astype(np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return [name for name, _ in tensors]


def types_of(tool, path, mix, pure=False):
    """What llama-quantize would make of the tensors."""
    call = [tool, "--allow-requantize", "--dry-run"] + (["--pure"] if pure else []) + [path, mix]
    done = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = {}
    for line in done.stdout.splitlines():
        match = re.match(r"\[ *\d+/ *\d+\] (\S+) .*type = *(\w+), .*?(?:\((\w+)\))?$", line)
        if match:
            found[match[1]] = (match[3] or match[2]).lower()
    if done.returncode != 0 or not found:
        raise SystemExit(f"{' '.join(call)}:\n{done.stdout[-2000:]}")
    return found


def main():
    tool = sys.argv[1]
    with open(PATH, "w", encoding="ascii") as file, tempfile.TemporaryDirectory() as folder:
        for model in models():
            arch, layers, heads, heads_kv, experts, outside, layer = model
            file.write(f"model {arch} {layers} {heads} {heads_kv} {experts}\n")
            for word, tensors in (("tensor", outside), ("layer", layer)):
                for name, row, rows, *more in tensors:
                    file.write(f"{word} {name} {row} {rows} {more[0] if more else 1}\n")
            path = os.path.join(folder, "model.gguf")
            names = write_model(path, model)
            for word, mix in [("mix", m) for m in MIXES] + [("pure", m) for m in ("Q4_K_M", "Q5_0", "IQ4_XS")]:
                types = types_of(tool, path, mix, word == "pure")
                file.write(f"{word} {mix} {''.join(chr(97 + TYPES.index(types[n])) for n in names)}\n")


if __name__ == "__main__":
    main()
