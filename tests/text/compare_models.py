#!/usr/bin/env python3
"""Mica's text models against llama.cpp and against NumPy (./dev test --text).

    compare_models.py --mica build/mica --oracle build/text/llama_oracle --models build/models --small build/text/small
                      [FILTER...]

small    logits of small models of every architecture: within 1e-3 of llama.cpp's and 1e-4 of NumPy's in double
         precision; of quantized ones no farther from exact arithmetic than llama.cpp's are
smollm2  a real model in six types: the greedy text of 10 prompts, the distributions over 2,048 tokens of real text,
         perplexity over 16,384
minilm   embeddings from safetensors, against NumPy

A FILTER chooses those whose name contains it. Prints a line for each check, then their number.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

import make_models
import reference

ROOT = Path(__file__).resolve().parents[2]
THREADS = "2"
PROMPTS = ["The capital of France is", "Once upon a time, there was a little", "def fibonacci(n):\n    ",
           "The three laws of thermodynamics are", "Dear Sir or Madam,\n\nI am writing to",
           "In 1969, the first people", "Water boils at", "My favourite recipe begins with two eggs,",
           "Q: What is the largest planet of the solar system?\nA:", "<|im_start|>user\nWrite a haiku.<|im_end|>\n"]
SENTENCES = ["The cat sits on the mat.", "A quick brown fox jumps over the lazy dog", "Neural networks are trained.",
             "Crème brûlée, naïve façade, Ångström", "日本語の文章です。", "$ 3.14159 != 2.71828, isn't it?",
             "a", "Memory is planned before the first step, so that nothing can fail later on.", "UPPER lower MiXeD",
             "electroencephalographically antidisestablishmentarianism", "one two three four five " * 20, "emoji 🙂 here"]
CONTEXT, PIECE, TOKENS = 512, 2048, 16384


class Failed(Exception):
    pass


class Tally:
    def __init__(self, filters):
        self.filters, self.passed, self.failed = filters, 0, 0

    def wants(self, name):
        return not self.filters or any(one in name for one in self.filters)

    def check(self, name, run):
        """run() tells what it found, or raises."""
        if not self.wants(name):
            return
        try:
            told = run()
            self.passed += 1
            print(f"ok   {name:34} {told}", flush=True)
        except Failed as error:
            self.failed += 1
            print(f"FAIL {name:34} {error}", flush=True)


def require(holds, told):
    if not holds:
        raise Failed(told)


def command(*arguments, text=None):
    run = subprocess.run([str(one) for one in arguments], input=text, capture_output=True, text=True, check=False)
    require(run.returncode == 0, f"{' '.join(map(str, arguments))}: {run.stderr.strip() or run.returncode}")
    return run.stdout


class Contest:
    """Mica and llama.cpp on the same file."""

    def __init__(self, args, folder):
        self.mica, self.oracle, self.folder = args.mica, args.oracle, Path(folder)

    def logits(self, path, tokens, context, cache):
        """[tokens, vocabulary] of both, as mapped files."""
        numbers, theirs, ours = (self.folder / name for name in ("tokens", "theirs.f32", "ours.npy"))
        numbers.write_text(" ".join(map(str, tokens)) + "\n", encoding="ascii")
        common = ["--tokens", numbers, "--context", context, "--cache", cache, "--threads", THREADS]
        command(self.oracle, "logits", path, "--out", theirs, *common)
        command(self.mica, "perplexity", path, "--logits", ours, *common)
        peer = numpy.memmap(theirs, numpy.float32, "r").reshape(len(tokens), -1)
        mica = numpy.load(ours, mmap_mode="r")
        require(mica.shape == peer.shape, f"logits {mica.shape}, llama.cpp's {peer.shape}")
        return mica, peer

    def tokens_of(self, path, text, *options):
        return [int(number) for number in command(self.oracle, "tokenize", path, *options, text=text).split()]


# ---- Small models ----

def small_logits(contest, path):
    tokens = numpy.random.default_rng(7).integers(3, 300, 96)
    mica, peer = contest.logits(path, tokens, 96, "f32")
    exact = reference.logits(reference.open_gguf(path), tokens, 96)
    to_peer, to_exact = abs(mica - peer).max(), abs(mica - exact).max()
    told = f"farthest from llama.cpp {to_peer:.1e}, from NumPy {to_exact:.1e}"
    require(to_peer <= 1e-3 and to_exact <= 1e-4, told)
    return told


def small_quantized(contest, path):
    tokens = numpy.random.default_rng(7).integers(3, 300, 96)
    mica, peer = contest.logits(path, tokens, 96, "f32")
    exact = reference.logits(reference.open_gguf(path), tokens, 96)
    ours, theirs = (float(numpy.sqrt(((one - exact) ** 2).mean())) for one in (mica, peer))
    told = f"from exact arithmetic {ours:.1e} (llama.cpp {theirs:.1e})"
    require(ours <= 1.1 * theirs + 1e-4, told)
    return told


def vectors(text):
    """What `mica embed` and the oracle print: a vector a line."""
    return [numpy.array(json.loads(line) if line.startswith("[") else line.split(), float) for line in text.splitlines()]


def small_embedding(contest, path):
    lines = ["the word that was not in it", "can we have one", "is this from the other or not? we can, with the word."]
    text = "\n".join(lines) + "\n"
    mica, peer = vectors(command(contest.mica, "embed", path, text=text)), vectors(
        command(contest.oracle, "embed", path, text=text))
    require(len(mica) == len(lines), f"{len(mica)} vectors of {len(lines)} lines")
    model = reference.open_gguf(path)
    exact = [reference.embedding(model, contest.tokens_of(path, line, "--bos")) for line in lines]
    to_peer, to_exact = (max(abs(a - b).max() for a, b in zip(mica, others)) for others in (peer, exact))
    told = f"farthest from llama.cpp {to_peer:.1e}, from NumPy {to_exact:.1e}"
    require(to_peer <= 1e-3 and to_exact <= 2e-4, told)
    return told


# ---- SmolLM2 ----

def steps_of(contest, path, prompt, *options):
    """llama.cpp's greedy text: a token and the best two logits of each step."""
    numbers = contest.folder / "prompt"
    numbers.write_text(" ".join(map(str, prompt)), encoding="ascii")
    lines = command(contest.oracle, "greedy", path, "--tokens", numbers, "--count", 32, "--threads", THREADS,
                    *options).splitlines()
    return [(int(token), float(best) - float(second)) for token, best, second in map(str.split, lines)]


def first_difference(steps, tokens):
    """None: there is none up to the end of the text. 0 and 2 end a text and a turn; the last token may be one of them."""
    at = next((n for n, step in enumerate(steps) if n >= len(tokens) or step[0] != tokens[n]), None)
    ended = at == len(tokens) and (steps[at][0] in (0, 2) or (tokens and tokens[-1] in (0, 2)))
    return None if ended else at


def unrounded(contest, path):
    """The same weights in F32: from these llama.cpp rounds no activations."""
    plain = contest.folder / f"{path.stem}.F32.gguf"
    if not plain.exists():
        for old in contest.folder.glob("*.F32.gguf"):
            old.unlink()
        command(contest.mica, "quantize", path, plain, "--type", "F32")
    return plain


def exact_steps(contest, path, prompt):
    return steps_of(contest, unrounded(contest, path), prompt)


def undecided(contest, path, out, steps, at):
    """Why llama.cpp could have written what Mica did from token `at` on; None: it could not."""
    prompt = out["prompt_tokens"]
    if steps[at][1] <= 0.1:
        return "part at a near tie"
    for way in (["--cache", "f32"], ["--flash"]):
        own = first_difference(steps, [step[0] for step in steps_of(contest, path, prompt, *way)])
        if own is not None and own <= at:
            return "part where llama.cpp parts from itself"
    return None


def greedy(contest, path):
    """How far the texts agree. Where they part, llama.cpp must be undecided itself: its best two logits are near each
    other, or its own text parts no later when nothing but the type of its cache or the kind of its attention changes. A
    failure also tells whether llama.cpp writes Mica's token from the same weights in F32, without rounding activations:
    then it is its rounding that tips."""
    told = {}
    for prompt in PROMPTS:
        out = json.loads(command(contest.mica, "generate", path, "--prompt", prompt, "--tokens", 32, "--temperature", 0,
                                 "--threads", THREADS, "--json").splitlines()[-1])
        steps = steps_of(contest, path, out["prompt_tokens"])
        at = first_difference(steps, out["tokens"])
        why = "equal" if at is None else undecided(contest, path, out, steps, at)
        if why is None:
            own = first_difference(exact_steps(contest, path, out["prompt_tokens"]), out["tokens"])
            exact = "Mica's" if own is None or own > at else "another"
            require(False, f"{prompt!r} differs at token {at}, where llama.cpp's best two are {steps[at][1]:.3f} apart; "
                           f"from the same weights in F32 it writes {exact}")
        told[why] = told.get(why, 0) + 1
    return f"{len(PROMPTS)} texts: " + ", ".join(f"{count} {what}" for what, count in told.items())


def log_softmax(rows):
    rows = rows.astype(numpy.float64)
    rows -= rows.max(-1, keepdims=True)
    return rows - numpy.log(numpy.exp(rows).sum(-1, keepdims=True))


def divergence(a, b, rows=64):
    """Mean KL divergence of b's next-token distributions from a's, both logits."""
    total = 0.0
    for start in range(0, len(a), rows):
        p, q = log_softmax(a[start:start + rows]), log_softmax(b[start:start + rows])
        total += float((numpy.exp(p) * (p - q)).sum())
    return total / len(a)


def surprise(logits, tokens):
    """The sum of -log p over the second half of each chunk, as llama.cpp counts for perplexity, and how many there are."""
    total = count = 0
    for start in range(0, len(tokens), CONTEXT):
        rows = slice(start + CONTEXT // 2, start + CONTEXT - 1)
        wanted = tokens[rows.start + 1:rows.stop + 1]
        total -= log_softmax(logits[rows])[numpy.arange(len(wanted)), wanted].sum()
        count += len(wanted)
    return numpy.array([total, count])


def distributions(contest, path, tokens, text):
    """The mean KL divergence over the first piece, perplexity over all of them: single tokens differ by some 10 %, so that
    a text of 1,000 cannot tell 0.3 %."""
    ours, theirs = numpy.zeros(2), numpy.zeros(2)
    for start in range(0, len(tokens), PIECE):
        piece = tokens[start:start + PIECE]
        mica, peer = contest.logits(path, piece, CONTEXT, "f16")
        ours, theirs = ours + surprise(mica, piece), theirs + surprise(peer, piece)
        if start == 0:
            from_peer = divergence(peer, mica)
            own = divergence(peer, peer_logits(contest, path, peer.shape))
            exact = peer_logits(contest, unrounded(contest, path), peer.shape)
            from_exact, peer_from_exact = divergence(exact, mica), divergence(exact, peer)
    ours, theirs = (float(numpy.exp(total / count)) for total, count in (ours, theirs))
    file = contest.folder / "text"
    file.write_text(text, encoding="utf-8")
    said = json.loads(command(contest.mica, "perplexity", path, "--data", file, "--context", CONTEXT, "--threads", THREADS,
                              "--json").splitlines()[-1])
    told = (f"KL {from_peer:.1e} (llama.cpp from itself {own:.1e}), from exact arithmetic {from_exact:.1e} (llama.cpp "
            f"{peer_from_exact:.1e}), perplexity {ours:.4f} (llama.cpp {theirs:.4f}, {ours / theirs - 1:+.3%})")
    require(from_peer < max(1e-3, 1.2 * own) and abs(ours / theirs - 1) < 0.003, told)
    require(from_exact < max(1e-5, 1.1 * peer_from_exact), f"{told}: farther from exact arithmetic than llama.cpp")
    require(abs(said["perplexity"] / ours - 1) < 1e-4, f"{told}; `mica perplexity` says {said['perplexity']}")
    return told


def peer_logits(contest, path, shape):
    """llama.cpp's for the tokens of the last contest, with a cache of f32. From quantized weights: activations are rounded
    to 8 bits, so that the least change anywhere changes roundings everywhere, and this shows how much. From the same
    weights in F32: nothing is rounded."""
    numbers, other = contest.folder / "tokens", contest.folder / f"{path.stem}.logits"
    command(contest.oracle, "logits", path, "--out", other, "--tokens", numbers, "--context", CONTEXT, "--cache", "f32",
            "--threads", THREADS)
    logits = numpy.memmap(other, numpy.float32, "r").reshape(shape)
    other.unlink()
    return logits


def real_text(contest, path):
    """The first tokens of the documentation, and the text that is exactly these."""
    text = "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md")))[:TOKENS * 8]
    while len(tokens := contest.tokens_of(path, text)) > TOKENS:
        text = text[: -max(1, (len(tokens) - TOKENS))]
    while len(tokens) < TOKENS:
        text += " a"
        tokens = contest.tokens_of(path, text)
    require(len(tokens) == TOKENS, f"{len(tokens)} tokens")
    return text, tokens


# ---- MiniLM ----

def minilm_reference(folder):
    """Its weights under the names that a GGUF file has."""
    import safetensors.numpy
    weights = safetensors.numpy.load_file(folder / "model.safetensors")
    weights = {name.removeprefix("bert."): value for name, value in weights.items()}
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    names = {"embeddings.word_embeddings": "token_embd", "embeddings.token_type_embeddings": "token_types",
             "embeddings.position_embeddings": "position_embd", "embeddings.LayerNorm": "token_embd_norm"}
    for layer in range(config["num_hidden_layers"]):
        block, layer = f"blk.{layer}", f"encoder.layer.{layer}"
        names |= {f"{layer}.attention.self.query": f"{block}.attn_q", f"{layer}.attention.self.key": f"{block}.attn_k",
                  f"{layer}.attention.self.value": f"{block}.attn_v",
                  f"{layer}.attention.output.dense": f"{block}.attn_output",
                  f"{layer}.attention.output.LayerNorm": f"{block}.attn_output_norm",
                  f"{layer}.intermediate.dense": f"{block}.ffn_up", f"{layer}.output.dense": f"{block}.ffn_down",
                  f"{layer}.output.LayerNorm": f"{block}.layer_output_norm"}
    found = {f"{ours}.{part}": weights[f"{theirs}.{part}"].astype(numpy.float64) for theirs, ours in names.items()
             for part in ("weight", "bias") if f"{theirs}.{part}" in weights}
    keys = {"block_count": config["num_hidden_layers"], "attention.head_count": config["num_attention_heads"],
            "embedding_length": config["hidden_size"], "attention.layer_norm_epsilon": config["layer_norm_eps"],
            "pooling_type": 1}
    return reference.Model("bert", keys, found)


def minilm(contest, folder):
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model = minilm_reference(folder)
    ours = vectors(command(contest.mica, "embed", folder, "--threads", THREADS, text="\n".join(SENTENCES) + "\n"))
    require(len(ours) == len(SENTENCES), f"{len(ours)} vectors of {len(SENTENCES)} lines")
    cosines = []
    for sentence, vector in zip(SENTENCES, ours):
        exact = reference.embedding(model, tokenizer.encode(sentence).ids)
        cosines.append(float(exact @ vector / numpy.linalg.norm(vector)))
    told = f"least cosine of {len(cosines)} sentences {min(cosines):.8f}"
    require(min(cosines) >= 0.9999, f"{told}: {SENTENCES[cosines.index(min(cosines))]!r}")
    return told


# ---- All ----

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("mica", "oracle", "models", "small"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("filters", nargs="*", metavar="FILTER")
    args = parser.parse_args()
    tally = Tally(args.filters)
    with tempfile.TemporaryDirectory() as folder:
        contest = Contest(args, folder)
        for name in make_models.MODELS:
            run = small_embedding if name.startswith("bert") else small_logits
            tally.check(f"small {name}", lambda run=run, name=name: run(contest, args.small / f"{name}.gguf"))
        for name, kinds in make_models.QUANTIZED.items():
            for kind in kinds:
                tally.check(f"small {name}.{kind}", lambda name=name, kind=kind: small_quantized(
                    contest, args.small / f"{name}.{kind}.gguf"))
        for kind in ("Q4_1", "Q4_0", "Q8_0", "Q4_K_M", "Q6_K", "F16"):
            path = args.models / f"SmolLM2-135M-Instruct.{kind}.gguf"
            tally.check(f"smollm2 {kind}: greedy text", lambda path=path: greedy(contest, path))
            if tally.wants(f"smollm2 {kind}: distributions"):
                text, tokens = real_text(contest, path)
                tally.check(f"smollm2 {kind}: distributions", lambda path=path, text=text, tokens=tokens: distributions(
                    contest, path, tokens, text))
        tally.check("minilm", lambda: minilm(contest, args.models / "all-MiniLM-L6-v2"))
    print(f"{tally.passed} passed, {tally.failed} failed, 0 skipped")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
