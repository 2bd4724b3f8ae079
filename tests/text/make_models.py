#!/usr/bin/env python3
"""Small GGUF files with random weights, one for each architecture and for each kind of positions.

    make_models.py FOLDER [--quantize LLAMA_QUANTIZE] [NAME...]

They are for comparing logits: real in their keys, tensors and vocabularies, so that any runtime loads them, and small
(some 100 KB). Weights are scaled so that activations are about 1, attention is far from uniform and logits differ by a
few units. The same bytes in every run. Needs the packages gguf and numpy.
"""
import argparse
import math
import subprocess
import sys
import zlib
from pathlib import Path

import gguf
import numpy

# ---- Vocabularies ----

WORDS = ["the", "and", "of", "to", "in", "is", "it", "that", "was", "for", "on", "are", "with", "as", "be", "at", "one",
         "have", "this", "from", "or", "had", "by", "not", "word", "but", "what", "some", "we", "can", "out", "other"]
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def byte_characters():
    """The printable character that byte-pair vocabularies have for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return {b: chr(b) if b in printable else chr(next(others)) for b in range(256)}


def byte_pair_vocabulary(writer, pre):
    """256 bytes, then what merging the words letter by letter makes, and two special tokens."""
    characters = byte_characters()
    tokens, merges = [characters[b] for b in range(256)], []
    for word in WORDS:
        made = characters[ord(" ")]
        for letter in word:
            if made + letter not in tokens:
                tokens.append(made + letter)
                merges.append(f"{made} {letter}")
            made += letter
    special = ["<|endoftext|>", "<|im_end|>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens + special)
    writer.add_token_types([NORMAL] * len(tokens) + [CONTROL] * len(special))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(len(tokens))
    writer.add_eos_token_id(len(tokens) + 1)
    writer.add_add_bos_token(False)
    return len(tokens) + len(special)


def sentence_piece_vocabulary(writer):
    """Unknown, beginning, end, 256 bytes, then characters and pieces of words with scores."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256
    scores = [0.0] * len(tokens)
    pieces = [chr(c) for c in range(33, 127)] + ["▁"]
    for word in WORDS:
        pieces += [part for n in range(1, len(word) + 1) if (part := "▁" + word[:n]) not in pieces]
    tokens += pieces
    types += [NORMAL] * len(pieces)
    scores += [-float(len(pieces) - n) for n in range(len(pieces))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    return len(tokens)


def word_piece_vocabulary(writer):
    """What a bert vocabulary has after conversion: words begin with ▁, what goes on has no mark."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    types = [CONTROL, CONTROL, CONTROL, CONTROL, CONTROL]
    pieces = ["▁" + word for word in WORDS] + ["▁" + chr(c) for c in range(33, 127) if not chr(c).isupper()]
    pieces += [chr(c) for c in range(97, 123)]
    tokens += pieces
    types += [NORMAL] * len(pieces)
    writer.add_tokenizer_model("bert")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_type_count(2)
    writer.add_pad_token_id(0)
    writer.add_unk_token_id(1)
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(3)
    writer.add_sep_token_id(3)
    writer.add_mask_token_id(4)
    return len(tokens)


# ---- Weights ----

# llama.cpp looks gelu up in a table of f16 numbers: 5e-4 off. Branches behind a gelu are kept small, or logits would
# differ by more than 1e-3 on its account.
BEHIND_GELU = 0.15


class Weights:
    """Random tensors, written as they are made."""

    def __init__(self, writer, seed):
        self.writer, self.random = writer, numpy.random.default_rng(seed)

    def matrix(self, name, rows, columns, gain=1.0):
        values = self.random.standard_normal((rows, columns)) * (gain / math.sqrt(columns))
        self.writer.add_tensor(f"{name}.weight", values.astype(numpy.float32))

    def bias(self, name, width):
        self.writer.add_tensor(f"{name}.bias", (self.random.standard_normal(width) * 0.2).astype(numpy.float32))

    def norm(self, name, width, bias=False, about=1.0):
        values = about * (1 + 0.2 * self.random.standard_normal(width))
        self.writer.add_tensor(f"{name}.weight", values.astype(numpy.float32))
        if bias:
            self.bias(name, width)

    def vector(self, name, values):
        self.writer.add_tensor(f"{name}.weight", numpy.asarray(values, numpy.float32))


class Shape:
    """The sizes of a model; what an architecture leaves out is as usual."""

    def __init__(self, layers=2, width=64, heads=4, kv_heads=None, head=None, hidden=96, context=256, rotated=None):
        self.layers, self.width, self.heads, self.hidden, self.context = layers, width, heads, hidden, context
        self.kv_heads = kv_heads or heads
        self.head = head or width // heads
        self.rotated = rotated or self.head

    @property
    def q(self):
        return self.heads * self.head

    @property
    def kv(self):
        return self.kv_heads * self.head


def open_writer(path, architecture, shape, layer_norm=False):
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_name("random weights")  # llama.cpp takes some names for hints
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_file_type(0)
    if layer_norm:
        writer.add_layer_norm_eps(1e-5)
    else:
        writer.add_layer_norm_rms_eps(1e-5)
    if shape.kv_heads != shape.heads:
        writer.add_head_count_kv(shape.kv_heads)
    if shape.head != shape.width // shape.heads:
        writer.add_key_length(shape.head)
        writer.add_value_length(shape.head)
    return writer


def close_writer(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---- Architectures ----

def separate_heads(weights, block, shape, bias=False):
    for name, rows in (("q", shape.q), ("k", shape.kv), ("v", shape.kv)):
        weights.matrix(f"{block}.attn_{name}", rows, shape.width, 1.5 if name != "v" else 1)
        if bias:
            weights.bias(f"{block}.attn_{name}", rows)


def gated(weights, block, shape, bias=False, down=1.0):
    for name in ("gate", "up"):
        weights.matrix(f"{block}.ffn_{name}", shape.hidden, shape.width)
        if bias:
            weights.bias(f"{block}.ffn_{name}", shape.hidden)
    weights.matrix(f"{block}.ffn_down", shape.width, shape.hidden, down)
    if bias:
        weights.bias(f"{block}.ffn_down", shape.width)


def rope_scaling(writer, kind, factor=None, original=None, attention=None):
    writer.add_rope_scaling_type(kind)
    if factor:
        writer.add_rope_scaling_factor(factor)
    if original:
        writer.add_rope_scaling_orig_ctx_len(original)
    if attention:
        writer.add_rope_scaling_attn_factors(attention)


def llama(path, shape, scaling=None, factors=False, long_factors=False, biases=False, tied=False, fused=False):
    writer = open_writer(path, "llama", shape)
    writer.add_rope_dimension_count(shape.head)
    writer.add_rope_freq_base(10000.0)
    if scaling:
        rope_scaling(writer, *scaling)
    vocabulary = sentence_piece_vocabulary(writer)
    writer.add_vocab_size(vocabulary)
    weights = Weights(writer, zlib.crc32(path.stem.encode()))
    weights.matrix("token_embd", vocabulary, shape.width, 2 if tied else math.sqrt(shape.width))
    weights.norm("output_norm", shape.width)
    if not tied:
        weights.matrix("output", vocabulary, shape.width, 2)
    if factors:
        weights.vector("rope_freqs", numpy.linspace(1, 8, shape.head // 2))
    if long_factors:
        weights.vector("rope_factors_long", numpy.linspace(1, 16, shape.head // 2))
        weights.vector("rope_factors_short", numpy.linspace(1, 1.5, shape.head // 2))
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        weights.norm(f"{block}.attn_norm", shape.width)
        if fused:
            weights.matrix(f"{block}.attn_qkv", shape.q + 2 * shape.kv, shape.width, 1.5)
        else:
            separate_heads(weights, block, shape, biases)
        weights.matrix(f"{block}.attn_output", shape.width, shape.q)
        if biases:
            weights.bias(f"{block}.attn_output", shape.width)
        weights.norm(f"{block}.ffn_norm", shape.width)
        gated(weights, block, shape, biases)
    close_writer(writer)


def qwen(path, shape, version, scaling=None, tied=True):
    writer = open_writer(path, f"qwen{version}", shape)
    writer.add_rope_freq_base(1000000.0 if version == 2 else 10000.0)
    if scaling:
        rope_scaling(writer, *scaling)
    vocabulary = byte_pair_vocabulary(writer, "qwen2")
    weights = Weights(writer, zlib.crc32(path.stem.encode()))
    weights.matrix("token_embd", vocabulary, shape.width, 2)
    weights.norm("output_norm", shape.width)
    if not tied:
        weights.matrix("output", vocabulary, shape.width, 2)
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        weights.norm(f"{block}.attn_norm", shape.width)
        separate_heads(weights, block, shape, bias=version == 2)
        if version == 3:
            weights.norm(f"{block}.attn_q_norm", shape.head)
            weights.norm(f"{block}.attn_k_norm", shape.head)
        weights.matrix(f"{block}.attn_output", shape.width, shape.q)
        weights.norm(f"{block}.ffn_norm", shape.width)
        gated(weights, block, shape)
    close_writer(writer)


def gpt2(path, shape, tied=True):
    writer = open_writer(path, "gpt2", shape, layer_norm=True)
    vocabulary = byte_pair_vocabulary(writer, "gpt-2")
    weights = Weights(writer, zlib.crc32(path.stem.encode()))
    weights.matrix("token_embd", vocabulary, shape.width, 2)
    weights.matrix("position_embd", shape.context, shape.width, 2)
    weights.norm("output_norm", shape.width, bias=True)
    if not tied:
        weights.matrix("output", vocabulary, shape.width, 2)
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        weights.norm(f"{block}.attn_norm", shape.width, bias=True)
        weights.matrix(f"{block}.attn_qkv", 3 * shape.width, shape.width, 1.5)
        weights.bias(f"{block}.attn_qkv", 3 * shape.width)
        weights.matrix(f"{block}.attn_output", shape.width, shape.width)
        weights.bias(f"{block}.attn_output", shape.width)
        weights.norm(f"{block}.ffn_norm", shape.width, bias=True)
        weights.matrix(f"{block}.ffn_up", shape.hidden, shape.width)
        weights.bias(f"{block}.ffn_up", shape.hidden)
        weights.matrix(f"{block}.ffn_down", shape.width, shape.hidden, BEHIND_GELU)
        weights.bias(f"{block}.ffn_down", shape.width)
    close_writer(writer)


def gemma(path, shape, version=1, window=None, scaling=None):
    writer = open_writer(path, "gemma" if version == 1 else f"gemma{version}", shape)
    if window:
        writer.add_sliding_window(window)
    if version == 2:
        writer.add_attn_logit_softcapping(5.0)
        writer.add_final_logit_softcapping(6.0)
    if version == 3:
        writer.add_rope_freq_base(1000000.0)
        if scaling:
            rope_scaling(writer, *scaling)
    vocabulary = sentence_piece_vocabulary(writer)
    weights = Weights(writer, zlib.crc32(path.stem.encode()))
    weights.matrix("token_embd", vocabulary, shape.width, 2)
    weights.norm("output_norm", shape.width)
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        weights.norm(f"{block}.attn_norm", shape.width)
        separate_heads(weights, block, shape)
        if version == 3:
            weights.norm(f"{block}.attn_q_norm", shape.head)
            weights.norm(f"{block}.attn_k_norm", shape.head)
        weights.matrix(f"{block}.attn_output", shape.width, shape.q)
        weights.norm(f"{block}.ffn_norm", shape.width)
        gated(weights, block, shape, down=BEHIND_GELU)
        if version > 1:
            weights.norm(f"{block}.post_attention_norm", shape.width)
            weights.norm(f"{block}.post_ffw_norm", shape.width, about=BEHIND_GELU)
    close_writer(writer)


def phi3(path, shape, long_context=False):
    writer = open_writer(path, "phi3", shape)
    writer.add_rope_dimension_count(shape.rotated)
    writer.add_rope_freq_base(10000.0)
    writer.add_sliding_window(17)  # files have one; llama.cpp runs them without
    if long_context:
        rope_scaling(writer, gguf.RopeScalingType.LONGROPE, None, 32, 1.19)
    vocabulary = sentence_piece_vocabulary(writer)
    weights = Weights(writer, zlib.crc32(path.stem.encode()))
    weights.matrix("token_embd", vocabulary, shape.width, math.sqrt(shape.width))
    weights.norm("output_norm", shape.width)
    weights.matrix("output", vocabulary, shape.width, 2)
    if long_context:
        weights.vector("rope_factors_long", numpy.linspace(1, 20, shape.rotated // 2))
        weights.vector("rope_factors_short", numpy.linspace(1, 1.6, shape.rotated // 2))
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        weights.norm(f"{block}.attn_norm", shape.width)
        weights.matrix(f"{block}.attn_qkv", shape.q + 2 * shape.kv, shape.width, 1.5)
        weights.matrix(f"{block}.attn_output", shape.width, shape.q)
        weights.norm(f"{block}.ffn_norm", shape.width)
        weights.matrix(f"{block}.ffn_up", 2 * shape.hidden, shape.width)
        weights.matrix(f"{block}.ffn_down", shape.width, shape.hidden)
    close_writer(writer)


def bert(path, shape, pooling):
    writer = open_writer(path, "bert", shape, layer_norm=True)
    writer.add_causal_attention(False)
    writer.add_pooling_type(pooling)
    vocabulary = word_piece_vocabulary(writer)
    weights = Weights(writer, zlib.crc32(path.stem.encode()))
    weights.matrix("token_embd", vocabulary, shape.width, 2)
    weights.matrix("token_types", 2, shape.width, 2)
    weights.matrix("position_embd", shape.context, shape.width, 2)
    weights.norm("token_embd_norm", shape.width, bias=True)
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        separate_heads(weights, block, shape, bias=True)
        weights.matrix(f"{block}.attn_output", shape.width, shape.width)
        weights.bias(f"{block}.attn_output", shape.width)
        weights.norm(f"{block}.attn_output_norm", shape.width, bias=True)
        weights.matrix(f"{block}.ffn_up", shape.hidden, shape.width)
        weights.bias(f"{block}.ffn_up", shape.hidden)
        weights.matrix(f"{block}.ffn_down", shape.width, shape.hidden, BEHIND_GELU)
        weights.bias(f"{block}.ffn_down", shape.width)
        weights.norm(f"{block}.layer_output_norm", shape.width, bias=True)
    close_writer(writer)


# ---- The list ----

LINEAR, YARN, LONG = gguf.RopeScalingType.LINEAR, gguf.RopeScalingType.YARN, gguf.RopeScalingType.LONGROPE
GROUPED = {"heads": 4, "kv_heads": 2}

MODELS = {
    "llama": lambda p: llama(p, Shape(**GROUPED)),
    "llama-biases-tied": lambda p: llama(p, Shape(heads=2), biases=True, tied=True),
    "llama-fused": lambda p: llama(p, Shape(**GROUPED), fused=True),
    "llama-freqs": lambda p: llama(p, Shape(**GROUPED), factors=True),
    "llama-linear": lambda p: llama(p, Shape(**GROUPED), scaling=(LINEAR, 4.0)),
    "llama-yarn": lambda p: llama(p, Shape(heads=2, kv_heads=1), scaling=(YARN, 4.0, 64)),
    "llama-longrope": lambda p: llama(p, Shape(**GROUPED), scaling=(LONG, None, 32, 1.19), long_factors=True),
    "llama-one-kv": lambda p: llama(p, Shape(layers=3, heads=4, kv_heads=1)),
    "llama-256": lambda p: llama(p, Shape(width=256, heads=4, kv_heads=2, hidden=512)),
    "gpt2": lambda p: gpt2(p, Shape()),
    "gpt2-untied": lambda p: gpt2(p, Shape(layers=3), tied=False),
    "qwen2": lambda p: qwen(p, Shape(**GROUPED), 2),
    "qwen2-yarn": lambda p: qwen(p, Shape(heads=2, kv_heads=1), 2, scaling=(YARN, 4.0, 64), tied=False),
    "qwen3": lambda p: qwen(p, Shape(heads=4, kv_heads=2, head=32), 3),
    "gemma": lambda p: gemma(p, Shape(heads=4, kv_heads=1, head=32)),
    "gemma2": lambda p: gemma(p, Shape(layers=4, heads=4, kv_heads=2, head=32), 2, window=12),
    "gemma3": lambda p: gemma(p, Shape(layers=7, heads=4, kv_heads=2, head=32), 3, window=10),
    "gemma3-linear": lambda p: gemma(p, Shape(layers=7, heads=4, kv_heads=1, head=32), 3, window=16,
                                     scaling=(LINEAR, 8.0)),
    "phi3": lambda p: phi3(p, Shape(heads=4)),
    "phi3-long": lambda p: phi3(p, Shape(heads=4, kv_heads=2, rotated=12), long_context=True),
    "bert-mean": lambda p: bert(p, Shape(), gguf.PoolingType.MEAN),
    "bert-cls": lambda p: bert(p, Shape(layers=3, heads=2), gguf.PoolingType.CLS),
}

# Of which models quantized files are made too, and of which types; 256 divides the rows of llama-256 alone.
QUANTIZED = {
    "llama-256": ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K",
                  "IQ4_NL", "IQ4_XS"],
    "qwen2": ["Q8_0", "Q4_K_M"],
    "gemma3": ["Q8_0"],
    "gpt2": ["Q8_0"],
    "phi3": ["Q8_0"],
}


def make(folder, names=None, quantize=None):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or MODELS:
        path = folder / f"{name}.gguf"
        MODELS[name](path)
        for kind in QUANTIZED.get(name, []) if quantize else []:
            run = subprocess.run([str(quantize), path, folder / f"{name}.{kind}.gguf", kind],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if run.returncode:
                sys.exit(f"{run.stdout}\nmake_models.py: llama-quantize cannot make {name} of type {kind}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of " + ", ".join(MODELS))
    parser.add_argument("--quantize", help="llama.cpp's llama-quantize, for quantized files too")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in MODELS]
    if unknown:
        sys.exit(f"make_models.py: there is no model {unknown[0]}; there are {', '.join(MODELS)}")
    make(args.folder, args.names, args.quantize)


if __name__ == "__main__":
    main()
