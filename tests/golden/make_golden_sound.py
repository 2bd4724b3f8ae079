#!/usr/bin/env python3
"""Writes tests/data/golden/sound.txt: log-mel features as librosa computes them, in double precision.

    pip install librosa
    python3 tests/golden/make_golden_sound.py        # the file it writes is checked in

The format is that of make_golden.py. librosa puts a window that is shorter than its transform in the middle of it: the
samples are padded by as much, so that frames begin where Mica's do.
"""
import os

import librosa
import numpy as np

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "golden", "sound.txt")


def samples_of(rng, count, rate):
    """A chirp in noise that fades in from silence, exact in f32."""
    t = np.arange(count) / rate
    x = 0.6 * np.sin(2 * np.pi * (200 + 0.4 * rate * t / t[-1] / 2) * t) + 0.1 * rng.standard_normal(count)
    x *= np.clip((np.arange(count) - count // 4) / (count // 4), 0, 1)
    return np.round(x * 4096) / 4096


def log_mel(x, rate, window, hop, mels, low, high, floor):
    points = max(4, 1 << (window - 1).bit_length())
    left = (points - window) // 2
    padded = np.pad(x, (left, points - window - left))
    spectrum = librosa.stft(padded, n_fft=points, hop_length=hop, win_length=window, window="hann", center=False)
    filters = librosa.filters.mel(
        sr=rate, n_fft=points, n_mels=mels, fmin=low, fmax=high, htk=True, norm=None, dtype=np.float64
    )
    return np.log(filters @ np.abs(spectrum) ** 2 + floor).T


def put(text, name, values):
    text.append(f"tensor {name} f32" + "".join(f" {n}" for n in values.shape) + "\n")
    flat = [f"{v:.9g}" for v in values.reshape(-1)]
    for i in range(0, len(flat), 12):
        text.append(" ".join(flat[i : i + 12]) + "\n")


def main():
    rng = np.random.default_rng(11)
    cases = (
        ("default", 1200, dict(rate=16000, window=480, hop=320, mels=40, low=20, high=7600, floor=1e-6)),
        ("short", 700, dict(rate=8000, window=256, hop=80, mels=20, low=100, high=4000, floor=1e-3)),
        ("apart", 900, dict(rate=44100, window=250, hop=300, mels=5, low=0.001, high=20000, floor=1e-6)),
    )
    text = []
    for note, count, options in cases:
        x = samples_of(rng, count, options["rate"])
        text.append(f"case log_mel {note}\n")
        for name, value in options.items():
            text.append(f"number {name} {value:.9g}\n")
        put(text, "x", x)
        put(text, "y", log_mel(x, **options))
    with open(PATH, "w", encoding="ascii") as f:
        f.writelines(text)


main()
