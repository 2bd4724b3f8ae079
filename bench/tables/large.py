#!/usr/bin/env python3
"""A CSV file that does not fit: its memory and speed against those of its first part in memory.

    ./dev bench --large [BYTES]             # python3 bench/tables/large.py build/mica build/bench/make_large BYTES

make_large writes the file (to $TMPDIR or /tmp; it is deleted afterwards) and one of its first 200 MB. Each is trained on
for one epoch by `mica train mlp --data FILE --epochs 1`; the speed is that of the epoch, with its validation, as the tool
prints it, the memory is the most that was resident, as the system counted it. Exits with 1 if the large one takes more
than 200 MB, or trains at less than half the speed."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

MOST_BYTES = 200e6
LEAST_SPEED = 0.5
IN_MEMORY = 200_000_000


def run(command):
    """What it printed, its seconds, and the bytes of memory it had at most."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} failed:\n{out}")
    return out, time.monotonic() - began, usage.ru_maxrss * 1024


def train(mica, path, folder):
    out, seconds, resident = run([mica, "train", "mlp", "--data", path, "--epochs", "1", "--checkpoint",
                                  folder / "saved", "--overwrite"])
    speed = float(re.search(r"^epoch 1/1 .* ([\d,]+) samples/s$", out, re.M)[1].replace(",", ""))
    heap = re.search(r"^heap +(.*)$", out, re.M)[1]
    _, scan, _ = run([mica, "info", path])
    size = path.stat().st_size
    print(f"{size / 1e9:6.2f} GB  {speed:>10,.0f} samples/s  {resident / 1e6:7.1f} MB resident  "
          f"scan {size / 1e6 / scan:5.0f} MB/s  all {seconds:6.1f} s  heap {heap}", flush=True)
    return speed, resident


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    mica, make_large, size = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        speeds = []
        for part in (min(IN_MEMORY, int(size)), int(size)):
            path = folder / "table.csv"
            subprocess.run([make_large, str(part), path], check=True)
            speed, resident = train(mica, path, folder)
            speeds.append(speed)
    share = speeds[1] / speeds[0]
    print(f"{share:.2f} of the speed in memory (at least {LEAST_SPEED}), {resident / 1e6:.1f} MB resident "
          f"(at most {MOST_BYTES / 1e6:.0f})")
    sys.exit(share < LEAST_SPEED or resident > MOST_BYTES)


if __name__ == "__main__":
    main()
