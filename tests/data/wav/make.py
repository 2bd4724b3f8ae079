#!/usr/bin/env python3
"""Writes the .wav files of this folder, with Python's wave module and SciPy: sample i of channel c is
(i * (c + 3) % 11 - 5) / 8, which every format holds exactly.

    pip install scipy
    python3 tests/data/wav/make.py        # the files are checked in
"""
import os
import struct
import wave

import numpy as np
import scipy.io.wavfile

HERE = os.path.dirname(os.path.abspath(__file__))


def samples(frames, channels):
    return np.array([[(i * (c + 3) % 11 - 5) / 8 for c in range(channels)] for i in range(frames)])


def pcm(name, bits, channels, rate):
    values = samples(9, channels).reshape(-1)
    whole = [int(v * 2 ** (bits - 1)) for v in values]
    if bits == 8:
        data = bytes(w + 128 for w in whole)
    else:
        data = b"".join(struct.pack("<i", w)[: bits // 8] for w in whole)
    with wave.open(os.path.join(HERE, name), "wb") as f:
        f.setnchannels(channels)
        f.setsampwidth(bits // 8)
        f.setframerate(rate)
        f.writeframes(data)


def floats(name, dtype, channels, rate):
    scipy.io.wavfile.write(os.path.join(HERE, name), rate, samples(9, channels).astype(dtype))


pcm("pcm8.wav", 8, 1, 8000)
pcm("pcm16.wav", 16, 2, 16000)
pcm("pcm24.wav", 24, 2, 48000)
pcm("pcm32.wav", 32, 1, 44100)
floats("float32.wav", np.float32, 1, 22050)
floats("float64.wav", np.float64, 3, 96000)
