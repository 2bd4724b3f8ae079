#!/usr/bin/env python3
"""Text models of random sizes and settings: Mica against NumPy in double precision and against llama.cpp.

    random_models.py --mica build/mica --oracle build/text/llama_oracle --quantize LLAMA/bin/llama-quantize
                     [--first SEED] [--count N] [--keep FOLDER]

Each seed is a model: an architecture, sizes that no kernel is made for, positions, windows, caps, biases, fused or
separate matrices, a type of weights, of the cache, a chunk, threads. Prints a line for each, then the largest
differences. Needs the packages gguf and numpy.
"""
import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy

import make_models
import reference

TYPES = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K", "IQ4_NL",
         "IQ4_XS"]
ARCHITECTURES = ["llama", "gpt2", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3"]
LINEAR, YARN, LONG, NONE = (getattr(gguf.RopeScalingType, name) for name in ("LINEAR", "YARN", "LONGROPE", "NONE"))
WORDS = list(make_models.WORDS)


class Draw:
    """The random choices of one model."""

    def __init__(self, seed):
        self.random, self.seed = random.Random(seed), seed
        r = self.random
        self.name = r.choice(ARCHITECTURES)
        self.type = r.choice(TYPES) if r.random() < 0.5 else "F32"
        self.cache = r.choice(["f32", "f32", "f16", "q8_0"])
        self.layers = r.randint(1, 5)
        self.tokens = r.randint(2, 100)
        self.context = r.choice([self.tokens, self.tokens + r.randint(0, 50), max(2, self.tokens // 2)])
        self.tokens -= self.tokens % self.context if self.tokens > self.context else 0  # whole pieces
        self.trained = max(self.context, r.choice([48, 100, 256, 1000]))
        self.chunk, self.threads = r.choice([1, 3, 16, 31, 128]), r.choice([1, 2, 3])
        self.sizes()
        self.said = []

    def sizes(self):
        r = self.random
        self.kv_heads = r.choice([1, 1, 2, 3])
        self.heads = self.kv_heads * r.choice([1, 2, 3, 5])
        self.free_head = self.name in ("qwen3", "gemma", "gemma2", "gemma3", "llama") and r.random() < 0.5
        if self.name == "gpt2":
            self.kv_heads = self.heads
        if self.type in ("F32", "F16", "BF16"):
            self.head = 2 * r.randint(2, 41)
            width, self.hidden = r.randint(9, 130), r.randint(5, 200)
        else:
            self.head = r.choice([32, 64, 96, 8, 24])
            block = r.choice([32, 32, 256])
            width, self.hidden = block * r.randint(1, 4), block * r.randint(1, 5)
            while not self.free_head and self.heads * self.head % block:
                self.head += 8
        if self.cache == "q8_0":
            self.head = (self.head + 31) // 32 * 32
        self.width = width if self.free_head else self.heads * self.head
        if self.type not in ("F32", "F16", "BF16") and self.free_head:
            while self.heads * self.head % 32:
                self.head += 2 if self.cache != "q8_0" else 32
        self.rotated = self.head

    def chance(self, share, label):
        yes = self.random.random() < share
        if yes:
            self.said.append(label)
        return yes

    def __str__(self):
        return (f"{self.seed} {self.name} {self.type} cache {self.cache}: {self.layers} layers, width {self.width}, "
                f"heads {self.heads}/{self.kv_heads} of {self.head}, hidden {self.hidden}, {self.tokens} tokens, context "
                f"{self.context} of {self.trained}, chunk {self.chunk}, threads {self.threads}; {', '.join(self.said)}")


# ---- Settings ----

def write_sizes(d, writer):
    writer.add_context_length(d.trained)
    writer.add_embedding_length(d.width)
    writer.add_block_count(d.layers)
    writer.add_feed_forward_length(d.hidden)
    writer.add_head_count(d.heads)
    writer.add_file_type(0)
    epsilon = d.random.choice([1e-6, 1e-5, 1e-3])
    (writer.add_layer_norm_eps if d.name == "gpt2" else writer.add_layer_norm_rms_eps)(epsilon)
    if d.kv_heads != d.heads or d.random.random() < 0.5:
        writer.add_head_count_kv(d.kv_heads)
    if d.free_head or d.random.random() < 0.3:
        writer.add_key_length(d.head)
        writer.add_value_length(d.head)


def write_rope(d, writer):
    """Which scaling, if any."""
    if d.name == "gpt2":
        return None
    if d.name in ("gemma", "gemma2", "gemma3", "phi3") and d.head > 4 and d.chance(0.3, "partial"):
        d.rotated = 2 * d.random.randint(1, d.head // 2)
    if d.rotated != d.head or d.random.random() < 0.5:
        writer.add_rope_dimension_count(d.rotated)
    if d.chance(0.7, "base"):
        writer.add_rope_freq_base(float(d.random.choice([100, 5000, 10000, 250000, 1000000])))
    kind = None
    if d.chance(0.5, "scaling"):
        kind = d.random.choice([LINEAR, YARN, NONE] + ([LONG] if d.name in ("llama", "phi3") else []))
        d.said.append(kind.name)
        writer.add_rope_scaling_type(kind)
        # of gemma2 llama.cpp takes a factor for layers with a window even where the type says that there is none
        if kind != LONG and (kind, d.name) != (NONE, "gemma2"):
            writer.add_rope_scaling_factor(d.random.choice([2.0, 4.0, 8.5]))
        if kind == LONG:  # llama.cpp rounds its context up to 256 before it chooses between short and long factors
            writer.add_rope_scaling_orig_ctx_len(300 if d.chance(0.5, "short") else max(1, d.context // 2))
        elif kind == YARN and d.chance(0.8, "original"):
            writer.add_rope_scaling_orig_ctx_len(d.random.choice([16, 40, 200]))
        if d.chance(0.3, "magnitude"):
            writer.add_rope_scaling_attn_factors(d.random.choice([0.8, 1.19]))
    return kind


def write_window(d, writer):
    if d.name == "phi3" and d.chance(0.5, "unused window"):
        writer.add_sliding_window(3)
    if d.name not in ("gemma2", "gemma3"):
        return
    if d.chance(0.9 if d.name == "gemma3" else 0.95, "window"):
        writer.add_sliding_window(d.random.randint(1, 40))
        if d.chance(0.5, "pattern"):
            one_each = [d.random.random() < 0.5 for _ in range(d.layers)]
            one_each[d.random.randrange(d.layers)] = True  # llama.cpp wants a layer with a window
            writer.add_sliding_window_pattern(one_each if d.chance(0.5, "of layers") else d.random.choice([0, 2, 3, 4]))
        if d.chance(0.3, "window base"):
            writer.add_float32(f"{d.name}.rope.freq_base_swa", 700.0)
    if d.name == "gemma2" and d.chance(0.7, "caps") or d.name == "gemma3" and d.chance(0.3, "cap"):
        writer.add_final_logit_softcapping(d.random.choice([3.0, 6.5]))
        if d.name == "gemma2":
            writer.add_attn_logit_softcapping(d.random.choice([0.7, 5.0]))


# ---- Weights ----

def write_heads(d, weights, block, fused, bias):
    q, kv = d.heads * d.head, d.kv_heads * d.head
    if fused:
        weights.matrix(f"{block}.attn_qkv", q + 2 * kv, d.width, 1.5)
    for name, rows in (("q", q), ("k", kv), ("v", kv)):
        if not fused:
            weights.matrix(f"{block}.attn_{name}", rows, d.width, 1.5 if name != "v" else 1)
        if bias == "separate":
            weights.bias(f"{block}.attn_{name}", rows)
    if bias == "fused":
        weights.bias(f"{block}.attn_qkv", q + 2 * kv)


def write_feed_forward(d, weights, block, bias):
    behind = make_models.BEHIND_GELU if d.name.startswith("g") else 1.0
    parts = {"gpt2": [("up", d.hidden)], "phi3": [("up", 2 * d.hidden)]}.get(
        d.name, [("gate", d.hidden), ("up", d.hidden)])
    for name, rows in parts:
        weights.matrix(f"{block}.ffn_{name}", rows, d.width)
        if bias:
            weights.bias(f"{block}.ffn_{name}", rows)
    weights.matrix(f"{block}.ffn_down", d.width, d.hidden, behind)
    if bias:
        weights.bias(f"{block}.ffn_down", d.width)


def write_layers(d, weights):
    fused = d.name == "gpt2" or (d.chance(0.7 if d.name == "phi3" else 0.3, "fused"))
    # llama.cpp reads biases of queries, keys and values for all, others where it says so here
    bias = "fused" if d.name == "gpt2" else None
    if d.name != "gpt2" and d.chance(0.4, "biases"):
        bias = "fused" if fused and d.chance(0.5, "fused ones") else "separate"
    more = d.name == "gpt2" or (d.name == "llama" and d.chance(0.3, "all biases"))
    layer_norm = d.name == "gpt2"
    for layer in range(d.layers):
        block = f"blk.{layer}"
        weights.norm(f"{block}.attn_norm", d.width, bias=layer_norm)
        write_heads(d, weights, block, fused, bias)
        if d.name in ("qwen3", "gemma3"):
            weights.norm(f"{block}.attn_q_norm", d.head)
            weights.norm(f"{block}.attn_k_norm", d.head)
        weights.matrix(f"{block}.attn_output", d.width, d.heads * d.head)
        if more:
            weights.bias(f"{block}.attn_output", d.width)
        weights.norm(f"{block}.ffn_norm", d.width, bias=layer_norm)
        write_feed_forward(d, weights, block, more)
        if d.name in ("gemma2", "gemma3"):
            weights.norm(f"{block}.post_attention_norm", d.width)
            weights.norm(f"{block}.post_ffw_norm", d.width, about=make_models.BEHIND_GELU)


def write_factors(d, weights, kind):
    if kind == LONG:
        weights.vector("rope_factors_long", numpy.linspace(1, 16, d.rotated // 2))
        weights.vector("rope_factors_short", numpy.linspace(1, 1.5, d.rotated // 2))
    elif d.name == "llama" and d.chance(0.3, "factors"):
        weights.vector("rope_freqs", numpy.linspace(1, 8, d.rotated // 2))


def write(d, path):
    writer = gguf.GGUFWriter(str(path), d.name)
    writer.add_name("random weights")
    write_sizes(d, writer)
    kind = write_rope(d, writer)
    write_window(d, writer)
    make_models.WORDS = d.random.sample(WORDS, d.random.randint(1, len(WORDS)))
    if d.name in ("gpt2", "qwen2", "qwen3"):
        vocabulary = make_models.byte_pair_vocabulary(writer, "qwen2" if d.name != "gpt2" else "gpt-2")
    else:
        vocabulary = make_models.sentence_piece_vocabulary(writer)
    if d.name == "llama":
        writer.add_vocab_size(vocabulary)
    weights = make_models.Weights(writer, d.seed)
    tied = d.name in ("gemma", "gemma2") or d.chance(0.5, "tied")
    weights.matrix("token_embd", vocabulary, d.width, 2)
    if d.name == "gpt2":
        weights.matrix("position_embd", d.trained, d.width, 2)
    weights.norm("output_norm", d.width, bias=d.name == "gpt2")
    if not tied:
        weights.matrix("output", vocabulary, d.width, 2)
    write_factors(d, weights, kind)
    write_layers(d, weights)
    make_models.close_writer(writer)
    return vocabulary


# ---- Comparing ----

def command(*arguments):
    run = subprocess.run([str(one) for one in arguments], capture_output=True, text=True, errors="replace", check=False)
    if run.returncode:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: {run.stderr.strip()[-600:] or run.returncode}")


def exact_logits(path, tokens, context):
    """Pieces of `context` tokens, each by itself."""
    model = reference.open_gguf(path)
    return numpy.concatenate([reference.logits(model, tokens[at:at + context], context)
                              for at in range(0, len(tokens), context)])


def typical(difference):
    """Of half of the tokens it is smaller: single ones are on the edge between two others, and far off by chance."""
    return float(numpy.median(numpy.sqrt((difference ** 2).mean(-1))))


def compare(args, folder, seed):
    """What is wrong, or None; and the largest differences."""
    d = Draw(seed)
    path, plain = folder / f"{seed}.gguf", folder / f"{seed}.f32.gguf"
    vocabulary = write(d, plain)
    if d.type == "F32":
        plain.rename(path)
    else:
        command(args.quantize, *(["--pure"] if d.chance(0.5, "pure") else []), plain, path, d.type)
        plain.unlink()
    tokens = numpy.random.default_rng(seed).integers(0, vocabulary, d.tokens)
    numbers, theirs, ours = (folder / name for name in ("tokens", "theirs.f32", "ours.npy"))
    numbers.write_text(" ".join(map(str, tokens)) + "\n", encoding="ascii")
    common = ["--tokens", numbers, "--context", d.context]
    command(args.mica, "perplexity", path, "--logits", ours, "--cache", d.cache, "--threads", d.threads,
            "--chunk", d.chunk, *common)
    command(args.oracle, "logits", path, "--out", theirs, "--cache", "f16" if d.cache == "f16" else "f32",
            "--threads", 1, *common)
    mica, peer = numpy.load(ours), numpy.fromfile(theirs, numpy.float32).reshape(d.tokens, -1)
    exact = exact_logits(path, tokens, d.context)
    if not args.keep:
        path.unlink()
    far = {"llama.cpp": abs(mica - peer).max(), "NumPy": abs(mica - exact).max(), "theirs": abs(peer - exact).max(),
           "rms": typical(mica - exact), "their rms": typical(peer - exact)}
    far["scale"] = float(exact.std())
    floats, gelu = d.type in ("F32", "F16", "BF16"), d.name.startswith("g")
    if not numpy.isfinite(mica).all():
        wrong = "not finite"
    elif d.cache == "q8_0":
        wrong = far["rms"] > 0.05 * far["scale"] + (0 if floats else 1.5 * far["their rms"])
    elif not floats:
        wrong = far["rms"] > 1.25 * far["their rms"] + 1e-3
    elif d.cache == "f16":
        wrong = far["rms"] > 3e-3
    else:
        wrong = far["NumPy"] > 2e-4 or (d.type == "F32" and far["llama.cpp"] > (3e-3 if gelu else 1e-3))
    return d, wrong, far


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("mica", "oracle", "quantize"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="a folder where the models stay")
    args = parser.parse_args()
    failed, most = 0, {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for seed in range(args.first, args.first + args.count):
            try:
                d, wrong, far = compare(args, folder, seed)
            except RuntimeError as error:
                print(f"FAIL {Draw(seed)} {error}", flush=True)
                failed += 1
                continue
            told = ", ".join(f"{name} {value:.1e}" for name, value in far.items())
            print(f"{'FAIL' if wrong else 'ok  '} {d}: {told}", flush=True)
            failed += bool(wrong)
            group = (d.type if d.type in ("F32", "F16", "BF16") else "quantized", d.cache)
            seen = most.setdefault(group, {"models": 0})
            seen["models"] += 1
            for name, value in far.items():
                seen[name] = max(seen.get(name, 0.0), value)
    for group, seen in sorted(most.items()):
        print(f"{group[0]}, cache {group[1]}: {seen['models']} models; largest " + ", ".join(
            f"{name} {value:.1e}" for name, value in seen.items() if name not in ("models", "scale")))
    print(f"{args.count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
