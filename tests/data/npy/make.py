#!/usr/bin/env python3
"""Makes the .npy files of this folder with NumPy."""
from pathlib import Path

import numpy as np

here = Path(__file__).parent
base = np.arange(6).reshape(2, 3)
for name in ["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]:
    np.save(here / f"{name}.npy", base.astype(name))
np.save(here / "labels.npy", np.array([7, 9], dtype=np.int64))
np.save(here / "scalar.npy", np.array(2.5, dtype=np.float32))
np.save(here / "fortran.npy", np.asfortranarray(base.astype(np.float32)))
np.save(here / "big_endian.npy", base.astype(">f4"))
np.save(here / "complex.npy", base.astype(np.complex64))
with open(here / "version2.npy", "wb") as file:
    np.lib.format.write_array(file, base.astype(np.float32), version=(2, 0))
