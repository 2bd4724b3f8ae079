"""--verify: that every peer computes what Mica does, from the same numbers."""

import array
import math
import os

TOLERANCE = 2e-4  # of the largest value: sums of thousands of terms in different orders


def read(path):
    values = array.array("f")
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return values


def distance(ours, theirs):
    """The largest difference beside the largest value; infinite if they are not comparable."""
    if len(ours) != len(theirs) or not ours:
        return math.inf
    scale = max(map(abs, ours)) or 1.0
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    return worst / scale if math.isfinite(worst / scale) else math.inf


def row(one, mica, peers, folder):
    """Prints how far each peer is from Mica. Returns how many are too far."""
    mica.ask(f"prepare {one.name}")
    told = " ".join(["prepare", one.name, one.kind, *map(str, one.sizes)])
    present = [peer for peer in peers if peer.ask(told) is not None]
    bad, paths = 0, [os.path.join(folder, name) for name in ("ours.f32", "theirs.f32")]
    for index in one.results:
        mica.ask(f"result {index} {paths[0]}")
        ours = read(paths[0])
        for peer in present:
            if peer.ask(f"result {index} {paths[1]}") is None:
                continue
            off = distance(ours, read(paths[1]))
            bad += off > TOLERANCE
            print(f"{one.name:36} {index:2} {peer.key:9} {off:.1e} {'DIFFERS' if off > TOLERANCE else ''}", flush=True)
    for contestant in [mica, *present]:
        contestant.ask("drop")
    return bad
