#!/usr/bin/env python3
"""Writes this folder's files: digits of seven segments, shifted and with noise, in the format and under the names of MNIST."""
import gzip
import os
import random
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
SEGMENTS = ("abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg")
LINES = {"a": (0, 0, 0, 8), "g": (8, 8, 0, 8), "d": (16, 16, 0, 8), "f": (0, 8, 0, 0), "b": (0, 8, 8, 8), "e": (8, 16, 0, 0),
         "c": (8, 16, 8, 8)}


def image(digit, draw):
    pixels = bytearray(28 * 28)
    top, left = draw.randint(2, 8), draw.randint(3, 14)
    for segment in SEGMENTS[digit]:
        row0, row1, column0, column1 = LINES[segment]
        for row in range(row0, row1 + 2):
            for column in range(column0, column1 + 2):
                pixels[(top + row) * 28 + left + column] = 255
    for _ in range(20):
        pixels[draw.randrange(28 * 28)] ^= 255
    return pixels


def write(name, count, draw):
    labels = bytes(i % 10 for i in range(count))
    images = b"".join(image(label, draw) for label in labels)
    for kind, header, body in (("images-idx3", struct.pack(">IIII", 0x803, count, 28, 28), images),
                               ("labels-idx1", struct.pack(">II", 0x801, count), labels)):
        with open(os.path.join(HERE, f"{name}-{kind}-ubyte.gz"), "wb") as f:
            f.write(gzip.compress(header + body, mtime=0))


write("train", 400, random.Random(1))
write("t10k", 100, random.Random(2))
