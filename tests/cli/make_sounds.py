#!/usr/bin/env python3
"""make_sounds.py FOLDER COUNT: WAV files of four made-up words in FOLDER/train and FOLDER/test, COUNT and COUNT/4 of
each: chirps up and down, a steady tone, two pulses. Pitch, loudness, start, rate, bits and channels vary; noise is added."""
import math
import os
import random
import struct
import sys
import wave


def sample(word, t, pitch):
    """At time t from 0 to 1 of the word."""
    envelope = math.sin(math.pi * t)
    if word == "up":
        return envelope * math.sin(2 * math.pi * (pitch * t + pitch * t * t) * 0.5)
    if word == "down":
        return envelope * math.sin(2 * math.pi * (3 * pitch * t - pitch * t * t) * 0.5)
    if word == "steady":
        return envelope * math.sin(2 * math.pi * 1.5 * pitch * t * 0.5)
    return (1 if t < 0.3 or t > 0.7 else 0) * math.sin(2 * math.pi * 1.5 * pitch * t * 0.5)


def write(path, word, rng):
    rate = rng.choice((8000, 16000, 22050))
    bits = rng.choice((8, 16, 24))
    channels = rng.choice((1, 2))
    length = rng.uniform(0.4, 0.7)
    start, total = rng.uniform(0, 0.3), rng.uniform(0.9, 1.2)
    pitch, level = rng.uniform(500, 900), rng.uniform(0.2, 0.8)
    data = bytearray()
    for i in range(int(total * rate)):
        t = (i / rate - start) / length
        v = level * sample(word, t, pitch) if 0 <= t <= 1 else 0
        v = max(-1, min(0.999, v + rng.gauss(0, 0.02)))
        whole = int(v * 2 ** (bits - 1))
        data += (bytes((whole + 128,)) if bits == 8 else struct.pack("<i", whole)[: bits // 8]) * channels
    with wave.open(path, "wb") as f:
        f.setnchannels(channels)
        f.setsampwidth(bits // 8)
        f.setframerate(rate)
        f.writeframes(bytes(data))


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    rng = random.Random(7)
    for part, number in (("train", count), ("test", max(1, count // 4))):
        for word in ("down", "pulses", "steady", "up"):
            os.makedirs(os.path.join(folder, part, word), exist_ok=True)
            for i in range(number):
                write(os.path.join(folder, part, word, f"{i}.wav"), word, rng)


main()
