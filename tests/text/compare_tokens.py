#!/usr/bin/env python3
"""Random texts through Mica's tokenizers and another implementation, which must agree on every token.

    tests/text/compare_tokens.py build/libmica.so MODEL --count 100000 [--seed N]
        against Hugging Face's `tokenizers` (PyPI): MODEL is a tokenizer.json, or a GGUF file with a gpt2 or bert
        vocabulary (read with `gguf`, PyPI), from which the same tokenizer is put together
    tests/text/compare_tokens.py build/libmica.so MODEL.gguf --llama LLAMA_CPP --build FOLDER_WITH_LIBLLAMA ...
        against llama.cpp, whose source and libllama.so are there

Texts are of all planes, with controls, white space of every kind, words, numbers, marks and bytes that are no UTF-8;
the other side gets those as U+FFFD, which is what Mica makes of them. Decoding must give the text back where the
vocabulary keeps it.
"""
import argparse
import ctypes
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata


# ---- Mica, from its shared library ----

class Options(ctypes.Structure):
    _fields_ = [("special", ctypes.c_bool), ("ends", ctypes.c_bool)]


class Decoder(ctypes.Structure):
    _fields_ = [("tokenizer", ctypes.c_void_p), ("special", ctypes.c_bool), ("begun", ctypes.c_bool),
                ("held", ctypes.c_ubyte * 8), ("held_bytes", ctypes.c_int)]


class Mica:
    def __init__(self, library, model):
        self.library = ctypes.CDLL(library)
        self.library.mica_error.restype = ctypes.c_char_p
        for name in ("mica_encode_scratch", "mica_decode_next", "mica_decode_end"):
            getattr(self.library, name).restype = ctypes.c_size_t
        self.context, self.file, self.tokenizer = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.library.mica_context_create(ctypes.byref(self.context), None)
        path = str(model).encode()
        if str(model).endswith(".json"):
            self.check(self.library.mica_tokenizer_of_json(self.context, ctypes.byref(self.tokenizer), path))
        else:
            self.check(self.library.mica_gguf_open(self.context, ctypes.byref(self.file), path))
            self.check(self.library.mica_tokenizer_of_gguf(self.context, ctypes.byref(self.tokenizer), self.file))
        self.room = 1 << 16
        self.scratch_bytes = self.library.mica_encode_scratch(self.tokenizer, ctypes.c_size_t(self.room))
        self.scratch = ctypes.create_string_buffer(self.scratch_bytes + 16)
        self.tokens = (ctypes.c_int32 * (4 * self.room))()
        self.text = ctypes.create_string_buffer(1 << 16)
        self.options = Options()

    def check(self, status):
        if status != 0:
            sys.exit(self.library.mica_error(self.context).decode())

    def encode(self, data):
        count = ctypes.c_size_t(4 * self.room)
        self.check(self.library.mica_encode(
            self.context, self.tokenizer, self.tokens, ctypes.byref(count), data, ctypes.c_size_t(len(data)),
            self.scratch, ctypes.c_size_t(self.scratch_bytes), ctypes.byref(self.options)))
        return self.tokens[:count.value]

    def decode(self, tokens):
        decoder, out = Decoder(), b""
        self.library.mica_decode_begin(ctypes.byref(decoder), self.tokenizer, True)
        for token in tokens:
            n = self.library.mica_decode_next(ctypes.byref(decoder), self.text, ctypes.c_size_t(1 << 16), token)
            out += self.text.raw[:n]
        n = self.library.mica_decode_end(ctypes.byref(decoder), self.text, ctypes.c_size_t(1 << 16))
        return out + self.text.raw[:n]


# ---- Hugging Face ----

def settings_of(path):
    from gguf import GGUFReader
    fields = GGUFReader(str(path)).fields
    return {key: field.contents() for key, field in fields.items() if key.startswith("tokenizer.")}


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def hugging_face(path):
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers as cut
    if str(path).endswith(".json"):
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True
        return tokenizer
    s = settings_of(path)
    texts, kinds = s["tokenizer.ggml.tokens"], s["tokenizer.ggml.token_type"]
    bytes_alone = cut.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = cut.ByteLevel(add_prefix_space=False)
    rules = {
        "gpt-2": gpt2,
        "mpt": gpt2,
        "smollm": cut.Sequence([cut.Digits(individual_digits=True), gpt2]),
        "starcoder": cut.Sequence([cut.Digits(individual_digits=True), gpt2]),
        "llama-bpe": cut.Sequence([cut.Split(Regex(LLAMA3 % "{1,3}"), "isolated"), bytes_alone]),
        "qwen2": cut.Sequence([cut.Split(Regex(LLAMA3 % ""), "isolated"), bytes_alone]),
        "falcon": cut.Sequence([cut.Punctuation("contiguous"), gpt2,
                                cut.Split(Regex("[0-9][0-9][0-9]"), "isolated")]),
    }
    if s["tokenizer.ggml.model"] == "bert":
        # GGUF marks the beginnings of words, WordPiece the other parts.
        vocabulary = {(t[1:] if t[0] == "▁" else t if k == 3 else "##" + t): i
                      for i, (t, k) in enumerate(zip(texts, kinds))}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = cut.BertPreTokenizer()
        return tokenizer
    if s["tokenizer.ggml.model"] == "t5":
        tokenizer = Tokenizer(models.Unigram(list(zip(texts, s["tokenizer.ggml.scores"])), unk_id=3))
        tokenizer.pre_tokenizer = cut.Metaspace()
        return tokenizer
    merges = [(m[0] + m[1:].split(" ", 1)[0], m[1:].split(" ", 1)[1]) for m in s["tokenizer.ggml.merges"]]
    if s["tokenizer.ggml.model"] == "gemma4":
        tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(texts)}, merges, byte_fallback=True))
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = cut.Split(" ", "merged_with_previous")
        tokenizer.add_tokens([AddedToken(t, normalized=False) for t, k in zip(texts, kinds) if k == 4])
        return tokenizer
    pre = s["tokenizer.ggml.pre"]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(texts)}, merges,
                                     ignore_merges=pre == "llama-bpe"))
    tokenizer.pre_tokenizer = rules[pre]
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t, k in zip(texts, kinds) if k == 4])
    return tokenizer


# ---- llama.cpp ----

SHIM = """
#include "llama.h"
static void quiet(enum ggml_log_level level, const char *text, void *user) { (void)level; (void)text; (void)user; }
const void *shim_open(const char *path)
{
    llama_log_set(quiet, 0);
    struct llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    struct llama_model *model = llama_model_load_from_file(path, params);
    return model ? llama_model_get_vocab(model) : 0;
}
int shim_encode(const void *vocab, const char *text, int bytes, int *tokens, int room)
{
    return llama_tokenize(vocab, text, bytes, tokens, room, false, false);
}
"""


class Llama:
    def __init__(self, source, build, model):
        folder = pathlib.Path(tempfile.mkdtemp())
        (folder / "shim.c").write_text(SHIM)
        libraries = next(pathlib.Path(build).rglob("libllama.so")).parent
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c", f"-I{source}/include",
                        f"-I{source}/ggml/include", f"-L{libraries}", "-lllama", f"-Wl,-rpath,{libraries}"], check=True)
        self.library = ctypes.CDLL(str(folder / "shim.so"))
        self.library.shim_open.restype = ctypes.c_void_p
        self.vocabulary = ctypes.c_void_p(self.library.shim_open(str(model).encode()))
        self.tokens = (ctypes.c_int * (1 << 18))()

    def encode(self, text):
        data = text.encode()
        count = self.library.shim_encode(self.vocabulary, data, len(data), self.tokens, 1 << 18)
        assert count >= 0
        return self.tokens[:count]


# ---- Texts ----

class Texts:
    def __init__(self, seed, oldest):
        self.random = random.Random(seed)
        self.known = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and (
            not oldest or unicodedata.category(chr(c)) != "Cn")]
        self.spaces = " \t\n\r\v\f\x85\xa0\u1680\u2003\u2028\u202f\u3000"
        self.words = ("the and I'll don't we've they're it's he'd I'm DON'T 'S 'RE x' ''s Hello WORLD naïve İstanbul "
                      "straße Ελλάδα Привет мир 你好 世界 こんにちは 안녕 नमस्ते ภาษา שלום مرحبا 3.14 1234567 ½ ٣٤٥ "
                      "<|endoftext|> <s> </s> [CLS] [UNK] ▁ Ġ ... ?! => -- {} http://a.b/c?d=e 😀 👨‍👩‍👧 é "
                      "\u0301 \u200d \ufeff \ufffd \x00 \x1b \x7f ſ 'ſ K'").split(" ")

    def character(self):
        r = self.random
        kind = r.random()
        if kind < 0.35:
            return chr(r.randrange(0x20, 0x7F))
        if kind < 0.5:
            return r.choice(self.spaces)
        if kind < 0.6:
            return chr(r.randrange(0x80, 0x3000))
        if kind < 0.65:
            return chr(r.randrange(0x300, 0x370))
        if kind < 0.7:
            return chr(r.randrange(0x4E00, 0xA000))
        if kind < 0.72:
            return chr(r.randrange(0, 0x20))
        if kind < 0.78:
            return r.choice("0123456789")
        return chr(r.choice(self.known))

    def one(self):
        r = self.random
        parts = []
        for _ in range(r.randrange(1, 9)):
            kind = r.random()
            if kind < 0.45:
                parts.append(r.choice(self.words))
            elif kind < 0.6:
                parts.append(r.choice(self.spaces) * r.randrange(1, 5))
            elif kind < 0.65:
                parts.append(r.choice("ab1 \n'-é中") * r.randrange(1, 40))
            else:
                parts.extend(self.character() for _ in range(r.randrange(1, 8)))
            if r.random() < 0.4:
                parts.append(" ")
        data = bytearray("".join(parts).encode())
        if r.random() < 0.1:
            for _ in range(r.randrange(1, 4)):
                at = r.randrange(len(data) + 1)
                data[at:at] = bytes([r.randrange(0x80, 0x100)])
        return bytes(data)


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("library")
    parse.add_argument("model")
    parse.add_argument("--count", type=int, default=10000)
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--llama")
    parse.add_argument("--build")
    parse.add_argument("--json", action="store_true", help="write what was put together as a tokenizer.json for Mica")
    parse.add_argument("--assigned", action="store_true", help="only characters that Python's Unicode has")
    parse.add_argument("--no-decode", action="store_true", help="the vocabulary does not keep the text")
    parse.add_argument("--no-marks", action="store_true",
                       help="leave out texts with <s>, which Hugging Face's Unigram takes for a token")
    args = parse.parse_args()
    texts = Texts(args.seed, args.assigned)
    theirs = Llama(args.llama, args.build, args.model) if args.llama else hugging_face(args.model)
    model = args.model
    if args.json:
        model = str(pathlib.Path(tempfile.mkdtemp()) / "tokenizer.json")
        theirs.save(model)
    ours = Mica(args.library, model)
    wrong, done = 0, 0
    while done < args.count:
        batch = [texts.one() for _ in range(min(1000, args.count - done))]
        valid = [data.decode("utf-8", "replace") for data in batch]
        if args.llama:
            wanted = [theirs.encode(text) for text in valid]
        else:
            wanted = [e.ids for e in theirs.encode_batch(valid, add_special_tokens=False)]
        for data, text, tokens in zip(batch, valid, wanted):
            if args.no_marks and ("<s>" in text or "</s>" in text):
                continue
            got = ours.encode(data)
            bad = got != tokens
            if not bad and not args.no_decode:
                back = ours.decode(got)
                bad = back != text.encode()
                got = (got, back)
            if bad:
                wrong += 1
                if wrong <= 5:
                    print(f"{data!r}\n  wanted {tokens}\n  got    {got}")
        done += len(batch)
    print(f"{pathlib.Path(args.model).name}: {done - wrong} of {done} texts agree with "
          f"{'llama.cpp' if args.llama else 'tokenizers'}")
    sys.exit(wrong > 0)


main()
