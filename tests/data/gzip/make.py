#!/usr/bin/env python3
"""Makes the .gz files of this folder."""
import gzip
import struct
from pathlib import Path

here = Path(__file__).parent
idx = bytes([0, 0, 8, 3]) + struct.pack(">3I", 5, 3, 2) + bytes(range(30))
(here / "images.idx.gz").write_bytes(gzip.compress(idx, mtime=0))
# Two members, as when files are joined.
(here / "numbers.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n", mtime=0) + gzip.compress(b"3,4\n", mtime=0))
(here / "text.txt.gz").write_bytes(gzip.compress(b"to be or not to be\n" * 1000, mtime=0))
