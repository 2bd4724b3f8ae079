#!/usr/bin/env python3
"""Small text models as GGUF files, for the tests of the command: make_model.py llama|gpt2|bert FILE [SEED]

Random weights, a vocabulary of bytes and letters; nothing but Python is needed."""
import random
import struct
import sys

WIDTH, HEADS, KV, HIDDEN, LAYERS, CONTEXT = 64, 4, 2, 96, 2, 256


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def setting(key, kind, data):
    return text(key) + struct.pack("<I", kind) + data


def u32(key, value):
    return setting(key, 4, struct.pack("<I", value))


def f32(key, value):
    return setting(key, 6, struct.pack("<f", value))


def string(key, value):
    return setting(key, 8, text(value))


def array(key, kind, items):
    return setting(key, 9, struct.pack("<IQ", kind, len(items)) + b"".join(items))


def llama_vocabulary():
    words = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    words += ["\u2581"] + [chr(c) for c in range(ord("a"), ord("z") + 1)]
    kinds = [2, 3, 3] + [6] * 256 + [1] * 27
    return [
        string("tokenizer.ggml.model", "llama"),
        array("tokenizer.ggml.tokens", 8, [text(w) for w in words]),
        array("tokenizer.ggml.scores", 6, [struct.pack("<f", 0.0)] * len(words)),
        array("tokenizer.ggml.token_type", 5, [struct.pack("<i", k) for k in kinds]),
        u32("tokenizer.ggml.bos_token_id", 1),
        u32("tokenizer.ggml.eos_token_id", 2),
    ], len(words)


def bert_vocabulary():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words += ["\u2581" + chr(c) for c in range(ord("a"), ord("z") + 1)] + [chr(c) for c in range(ord("a"), ord("z") + 1)]
    kinds = [3, 3, 3, 3] + [1] * 52
    return [
        string("tokenizer.ggml.model", "bert"),
        array("tokenizer.ggml.tokens", 8, [text(w) for w in words]),
        array("tokenizer.ggml.token_type", 5, [struct.pack("<i", k) for k in kinds]),
        u32("tokenizer.ggml.token_type_count", 2),
        u32("tokenizer.ggml.unknown_token_id", 1),
        u32("tokenizer.ggml.bos_token_id", 2),
        u32("tokenizer.ggml.cls_token_id", 2),
        u32("tokenizer.ggml.seperator_token_id", 3),
        u32("tokenizer.ggml.padding_token_id", 0),
    ], len(words)


def tensors(kind, vocabulary):
    """(name, sizes, the first of them the rows; spread, middle)"""
    yield "token_embd.weight", (vocabulary, WIDTH), 0.5, 0
    if kind != "llama":
        yield "position_embd.weight", (CONTEXT, WIDTH), 0.1, 0
    ends = (".weight", ".bias") if kind != "llama" else (".weight",)
    norm = lambda name: [(name + end, (WIDTH,), 0.1, 1 if end == ".weight" else 0) for end in ends]
    matrix = lambda name, rows, columns: [(name + ".weight", (rows, columns), columns**-0.5, 0)] + (
        [(name + ".bias", (rows,), 0.1, 0)] if kind != "llama" else []
    )
    kv = WIDTH * KV // HEADS if kind == "llama" else WIDTH
    if kind == "bert":
        yield "token_types.weight", (2, WIDTH), 0.1, 0
        yield from norm("token_embd_norm")
    for layer in range(LAYERS):
        b = "blk.%d." % layer
        if kind != "bert":
            yield from norm(b + "attn_norm")
        if kind == "gpt2":
            yield from matrix(b + "attn_qkv", 3 * WIDTH, WIDTH)
        else:
            yield from matrix(b + "attn_q", WIDTH, WIDTH)
            yield from matrix(b + "attn_k", kv, WIDTH)
            yield from matrix(b + "attn_v", kv, WIDTH)
        yield from matrix(b + "attn_output", WIDTH, WIDTH)
        yield from norm(b + ("attn_output_norm" if kind == "bert" else "ffn_norm"))
        if kind == "llama":
            yield from matrix(b + "ffn_gate", HIDDEN, WIDTH)
        yield from matrix(b + "ffn_up", HIDDEN, WIDTH)
        yield from matrix(b + "ffn_down", WIDTH, HIDDEN)
        if kind == "bert":
            yield from norm(b + "layer_output_norm")
    if kind != "bert":
        yield from norm("output_norm")


def main():
    kind, path, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1
    draw = random.Random(seed)
    words, vocabulary = bert_vocabulary() if kind == "bert" else llama_vocabulary()
    eps = "layer_norm_rms_epsilon" if kind == "llama" else "layer_norm_epsilon"
    settings = [
        string("general.architecture", kind),
        string("general.name", "a small " + kind),
        u32(kind + ".block_count", LAYERS),
        u32(kind + ".embedding_length", WIDTH),
        u32(kind + ".attention.head_count", HEADS),
        u32(kind + ".feed_forward_length", HIDDEN),
        u32(kind + ".context_length", CONTEXT),
        f32(kind + ".attention." + eps, 1e-5),
    ] + words
    if kind == "llama":
        settings.append(u32(kind + ".attention.head_count_kv", KV))
    infos, data = [], b""
    for name, sizes, spread, middle in tensors(kind, vocabulary):
        count = 1
        for size in sizes:
            count *= size
        infos.append(
            text(name)
            + struct.pack("<I", len(sizes))
            + b"".join(struct.pack("<Q", size) for size in reversed(sizes))
            + struct.pack("<IQ", 0, len(data))
        )
        data += struct.pack("<%df" % count, *(draw.gauss(middle, spread) for _ in range(count)))
        data += b"\0" * (-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(settings)) + b"".join(settings) + b"".join(infos)
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % 32) + data)


main()
