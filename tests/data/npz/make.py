#!/usr/bin/env python3
"""Writes the .npz files of this folder, with NumPy.

    pip install numpy
    python3 tests/data/npz/make.py        # the files are checked in
"""
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
x = np.arange(6, dtype=np.float32).reshape(2, 3)
y = np.array([4, 9], dtype=np.int64)
np.savez(os.path.join(HERE, "stored.npz"), x=x, y=y)
np.savez_compressed(os.path.join(HERE, "packed.npz"), inputs=x, targets=y)
np.savez_compressed(
    os.path.join(HERE, "split.npz"), y_test=y, x_test=x, x_train=np.tile(x, (2, 1)), y_train=np.tile(y, 2)
)
np.savez(os.path.join(HERE, "others.npz"), a=x, b=y)
np.savez(os.path.join(HERE, "positions.npz"), x)
