#!/usr/bin/env python3
"""Makes the pictures of this folder: a 7 in black ink on transparent paper, and a 0 in grey on black."""
import math
import struct
import zlib

SIZE = 42


def distance(x, y, a, b):
    dx, dy = b[0] - a[0], b[1] - a[1]
    t = max(0, min(1, ((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy)))
    return math.hypot(x - a[0] - t * dx, y - a[1] - t * dy)


def ink(strokes, x, y):
    return max(0, min(1, 2.2 - min(distance(x + 0.5, y + 0.5, a, b) for a, b in strokes)))


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def write(path, colour, pixel):
    """pixel(x, y) gives the bytes of one pixel. Rows take the filters 0 (none) and 1 (left) in turns."""
    rows = b""
    for y in range(SIZE):
        row = b"".join(pixel(x, y) for x in range(SIZE))
        step = len(row) // SIZE
        if y % 2:
            row = bytes((v - (row[i - step] if i >= step else 0)) % 256 for i, v in enumerate(row))
        rows += bytes([y % 2]) + row
    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIZE, SIZE, 8, colour, 0, 0, 0))
                  + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


seven = [((11, 9), (31, 9)), ((31, 9), (19, 34))]
circle = [(21 + 8 * math.cos(a * math.pi / 8), 21 + 12 * math.sin(a * math.pi / 8)) for a in range(17)]
zero = list(zip(circle, circle[1:]))
write("seven.png", 4, lambda x, y: bytes([0, round(255 * ink(seven, x, y))]))
write("zero.png", 0, lambda x, y: bytes([round(220 * ink(zero, x, y))]))
