#!/usr/bin/env python3
"""The vocabularies of llama.cpp with their texts and tokens, against `mica tokenize`.

    tests/text/vectors.py build/mica LLAMA_CPP/models

Every ggml-vocab-NAME.gguf with .inp (texts, between lines of __ggml_vocab_test__) and .out (their tokens, a line each)
must agree, both ways: where a vocabulary keeps the text as it is, decoding must give it back.
"""
import json
import pathlib
import subprocess
import sys

# Normalize the text, or strip it: decoding cannot give it back.
LOSSY = {"bert-bge"}


def mica(tool, arguments, data):
    done = subprocess.run([tool, "tokenize", *arguments, "--json"], input=data, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"mica tokenize {' '.join(arguments)}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def main():
    tool, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    failures = vocabularies = texts = 0
    for answers in sorted(folder.glob("ggml-vocab-*.gguf.out")):
        model = answers.with_suffix("")
        name = model.stem.removeprefix("ggml-vocab-")
        inputs = model.with_suffix(".gguf.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
        wanted = [[int(word) for word in line.split()] for line in answers.read_text().splitlines()]
        inputs = inputs[:len(wanted)]
        wrong = 0
        for text, tokens in zip(inputs, wanted, strict=True):
            got = mica(tool, [str(model)], text.encode())
            texts += 1
            bad = got["tokens"] != tokens
            if not bad and name not in LOSSY:
                bad = "".join(got["pieces"]) != text
            if not bad and name not in LOSSY and text == inputs[-1]:
                back = mica(tool, [str(model), "--decode", "--special"], " ".join(map(str, tokens)).encode())
                bad = back["text"] != text
            if bad:
                wrong += 1
                print(f"{name}: {text!r}\n  wanted {tokens}\n  got    {got}")
        vocabularies += 1
        failures += wrong > 0
        print(f"{name}: {len(inputs) - wrong} of {len(inputs)} texts")
    print(f"{vocabularies - failures} of {vocabularies} vocabularies, {texts} texts")
    sys.exit(failures > 0 or vocabularies == 0)


main()
