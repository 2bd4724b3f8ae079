"""Text models in NumPy, in double precision, one formula after the other: a third opinion beside Mica and llama.cpp.

    logits(open_gguf(path), tokens, context)        f64 [tokens, vocabulary]
    embedding(open_gguf(path), tokens)              f64 [width], of unit length

Slow, for small models. Architectures: llama, gpt2, qwen2, qwen3, gemma, gemma2, gemma3, phi3, bert.
"""
import math

import numpy


class Model:
    """Keys without the architecture's name, and weights as f64 arrays, rows first."""

    def __init__(self, architecture, keys, weights):
        self.architecture, self.keys, self.weights = architecture, keys, weights

    def key(self, name, otherwise=None):
        return self.keys.get(name, otherwise)

    def weight(self, name, part="weight"):
        return self.weights.get(f"{name}.{part}")


def open_gguf(path):
    import gguf
    reader = gguf.GGUFReader(str(path))
    keys = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("tokenizer.ggml.t")}
    architecture = keys["general.architecture"]
    keys = {name.removeprefix(architecture + "."): value for name, value in keys.items()}
    weights = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(numpy.float64) for t in reader.tensors}
    return Model(architecture, keys, weights)


# ---- Pieces ----

def rms_norm(x, weight, epsilon):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def layer_norm(x, weight, bias, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return centred / numpy.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon) * weight + bias


def silu(x):
    return x / (1 + numpy.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_erf(x):
    return 0.5 * x * (1 + numpy.vectorize(math.erf)(x / math.sqrt(2)))


def linear(model, name, x):
    y = x @ model.weight(name).T
    bias = model.weight(name, "bias")
    return y if bias is None else y + bias


def cap(x, most):
    return most * numpy.tanh(x / most) if most else x


# ---- Positions ----

def rope(model, width, context, local):
    """Angles of a position for each pair, and what cosines and sines are multiplied by."""
    key, name = model.key, model.architecture
    rotated = key("rope.dimension_count", width)
    base = key("rope.freq_base", 10000.0)
    if local and name == "gemma3":
        base = 10000.0
    if local:
        base = key("rope.freq_base_swa", base)
    angle = base ** (-2.0 * numpy.arange(rotated // 2) / rotated)
    original = key("rope.scaling.original_context_length", key("context_length"))
    factors = None
    if name in ("llama", "phi3"):
        long = "rope_factors_long" if context > original else "rope_factors_short"
        factors = model.weight("rope_freqs") if model.weight("rope_freqs") is not None else model.weight(long)
    if factors is not None:
        angle = angle / factors
    kind = key("rope.scaling.type", "linear")
    factor = key("rope.scaling.factor", 0) or 1.0
    magnitude = key("rope.scaling.attn_factor", 1.0)
    if kind == "none" or (local and name == "gemma3"):
        factor = 1.0
    if kind != "yarn":
        return angle / factor, magnitude
    bound = [rotated * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32, 1)]
    low, high = max(0, math.floor(bound[0])), min(rotated - 1, math.ceil(bound[1]))
    kept = 1 - numpy.clip((numpy.arange(rotated // 2) - low) / max(0.001, high - low), 0, 1)
    return angle / factor * (1 - kept) + angle * kept, magnitude * (1 + 0.1 * math.log(factor) if factor > 1 else 1)


def rotate(x, angle, magnitude, interleaved):
    """x [tokens, heads, width], from position 0 on."""
    turned = angle[None, None, :] * numpy.arange(len(x))[:, None, None]
    cos, sin = numpy.cos(turned) * magnitude, numpy.sin(turned) * magnitude
    pairs = len(angle)
    y = x.copy()
    first, second = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if interleaved else (
        slice(0, pairs), slice(pairs, 2 * pairs))
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y


# ---- A layer ----

def heads_of(model, block, x, heads, kv_heads, width):
    if model.weight(f"{block}.attn_qkv") is not None:
        both = linear(model, f"{block}.attn_qkv", x)
        q, k, v = numpy.split(both, [heads * width, (heads + kv_heads) * width], -1)
        if model.weight(f"{block}.attn_q", "bias") is not None:
            q, k, v = (part + model.weight(f"{block}.attn_{name}", "bias") for part, name in zip((q, k, v), "qkv"))
    else:
        q, k, v = (linear(model, f"{block}.attn_{name}", x) for name in "qkv")
    return q.reshape(len(x), heads, width), k.reshape(len(x), kv_heads, width), v.reshape(len(x), kv_heads, width)


def attention(model, block, x, context, window, causal=True):
    key, name = model.key, model.architecture
    heads = key("attention.head_count")
    kv_heads = key("attention.head_count_kv", heads)
    width = key("attention.key_length", key("embedding_length") // heads)
    q, k, v = heads_of(model, block, x, heads, kv_heads, width)
    if model.weight(f"{block}.attn_q_norm") is not None:
        epsilon = key("attention.layer_norm_rms_epsilon")
        q = rms_norm(q, model.weight(f"{block}.attn_q_norm"), epsilon)
        k = rms_norm(k, model.weight(f"{block}.attn_k_norm"), epsilon)
    if name not in ("gpt2", "bert"):
        angle, magnitude = rope(model, width, context, window > 0)
        q, k = (rotate(t, angle, magnitude, name == "llama") for t in (q, k))
    k, v = (numpy.repeat(t, heads // kv_heads, axis=1) for t in (k, v))
    scale = 1 / math.sqrt(width)
    if (name, key("block_count")) in (("gemma2", 46), ("gemma3", 62)):
        scale = 1 / math.sqrt(key("embedding_length") / heads)
    scores = numpy.einsum("qhd,khd->hqk", q, k) * scale
    if name == "gemma2":
        scores = cap(scores, key("attn_logit_softcapping", 50.0))
    behind = numpy.arange(len(x))[:, None] - numpy.arange(len(x))[None, :]
    if causal:
        scores[:, behind < 0] = -math.inf
    if window:
        scores[:, behind >= window] = -math.inf
    scores = numpy.exp(scores - scores.max(-1, keepdims=True))
    scores /= scores.sum(-1, keepdims=True)
    mixed = numpy.einsum("hqk,khd->qhd", scores, v).reshape(len(x), heads * width)
    return linear(model, f"{block}.attn_output", mixed)


def feed_forward(model, block, x):
    if model.architecture in ("gpt2", "bert"):
        gelu = gelu_tanh if model.architecture == "gpt2" else gelu_erf
        return linear(model, f"{block}.ffn_down", gelu(linear(model, f"{block}.ffn_up", x)))
    up = linear(model, f"{block}.ffn_up", x)
    if model.architecture == "phi3":
        gate, up = numpy.split(up, 2, -1)
    else:
        gate = linear(model, f"{block}.ffn_gate", x)
    act = gelu_tanh if model.architecture.startswith("gemma") else silu
    return linear(model, f"{block}.ffn_down", act(gate) * up)


def window_of(model, layer):
    """0: the layer sees everything before it."""
    name = model.architecture
    if name not in ("gemma2", "gemma3"):
        return 0
    window = model.key("attention.sliding_window", 4096 if name == "gemma2" else 0)
    period = model.key("attention.sliding_window_pattern", 2 if name == "gemma2" else 6)
    if isinstance(period, list):
        return window if period[layer] else 0
    return window if period == 0 or layer % period < period - 1 else 0


# ---- Models ----

def norm(model, name, x):
    if model.weight(name, "bias") is not None:
        return layer_norm(x, model.weight(name), model.weight(name, "bias"), model.key("attention.layer_norm_epsilon"))
    return rms_norm(x, model.weight(name), model.key("attention.layer_norm_rms_epsilon"))


def after(model, name, x):
    """A norm behind a branch, where the architecture has one."""
    return x if model.weight(name) is None else norm(model, name, x)


def logits(model, tokens, context=None):
    tokens = numpy.asarray(tokens)
    context = context or len(tokens)
    x = model.weight("token_embd")[tokens]
    if model.architecture == "gpt2":
        x = x + model.weight("position_embd")[: len(tokens)]
    if model.architecture.startswith("gemma"):
        x = x * math.sqrt(model.key("embedding_length"))
    for layer in range(model.key("block_count")):
        block = f"blk.{layer}"
        mixed = attention(model, block, norm(model, f"{block}.attn_norm", x), context, window_of(model, layer))
        x = x + after(model, f"{block}.post_attention_norm", mixed)
        fed = feed_forward(model, block, norm(model, f"{block}.ffn_norm", x))
        x = x + after(model, f"{block}.post_ffw_norm", fed)
    x = norm(model, "output_norm", x)
    output = model.weight("output") if model.weight("output") is not None else model.weight("token_embd")
    final = {"gemma2": 30.0}.get(model.architecture, 0.0)
    if model.architecture in ("gemma2", "gemma3"):
        final = model.key("final_logit_softcapping", final)
    return cap(x @ output.T, final)


def embedding(model, tokens):
    x = model.weight("token_embd")[tokens] + model.weight("position_embd")[: len(tokens)]
    if model.weight("token_types") is not None:
        x = x + model.weight("token_types")[0]
    x = norm(model, "token_embd_norm", x)
    for layer in range(model.key("block_count")):
        block = f"blk.{layer}"
        x = norm(model, f"{block}.attn_output_norm", x + attention(model, block, x, len(tokens), 0, causal=False))
        x = norm(model, f"{block}.layer_output_norm", x + feed_forward(model, block, x))
    pooled = {1: lambda: x.mean(0), 2: lambda: x[0], 3: lambda: x[-1]}[model.key("pooling_type", 1)]()
    return pooled / numpy.linalg.norm(pooled)
