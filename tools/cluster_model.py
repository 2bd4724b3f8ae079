#!/usr/bin/env python3
"""What communication costs in a cluster, on paper: the tables of docs/cluster.md, which has the assumptions in words.

    tools/cluster_model.py                      prints them
    tools/cluster_model.py --check DOCUMENT     fails if the document has others
    tools/cluster_model.py --renew DOCUMENT     puts them there
"""

import math
import re
import sys
from typing import NamedTuple

RANKS = [2**k for k in range(1, 11)]
SEGMENT = 64  # bytes: an owner has no less of a bucket
REPORT = 256 + 8  # bytes that a rank tells all others in every step: how it went, and the loss of its share
ADDING = 103e-6 / 4e6  # seconds per byte of a sum: add_1m with two threads, docs/peers.md
BACKWARD = 2 / 3  # of the step: the backward multiplies twice as much as the forward
HIDDEN = 0.5  # of the backward: how much of it can hide communication


class Link(NamedTuple):
    name: str
    latency: float  # seconds until a message arrives, beside its bytes
    overhead: float  # seconds that each message keeps its sender or receiver busy
    bandwidth: float  # bytes per second, each way at once


class Net(NamedTuple):
    name: str
    step: float  # seconds, on one rank alone
    buckets: list  # bytes, in the order in which they leave
    statistics: int = 0  # numbers that batch norm keeps


LINKS = [Link("10 Gbit/s", 20e-6, 5e-6, 10e9 / 8), Link("100 Gbit/s", 2e-6, 0.5e-6, 100e9 / 8)]

# Buckets are those that mica_ranks_create makes.
BLOCK = [9446400, 9449472, 9455616]  # of a transformer block, from its end
NETS = [
    Net("LeNet, batch 32", 0.60e-3, [407104, 5056]),
    Net("ResNet-18, 32x32, batch 32", 745e-3, [9461824, 9441280, 9441280, 7612416, 5904384, 2834688], 9600),
    Net("GPT-2 124M, 128 tokens", 654e-3, BLOCK * 12 + [154788864]),
]


def log2(ranks):
    return math.ceil(math.log2(ranks))


def ring(size, ranks, link):
    """Each rank passes a piece on 2 (ranks - 1) times, and waits for one each time."""
    return 2 * (ranks - 1) * (link.latency + size / ranks / link.bandwidth)


def tree(size, ranks, link):
    """All of it up a binomial tree, and down again."""
    return 2 * log2(ranks) * (link.latency + size / link.bandwidth)


def to_all(size, ranks, link):
    """A rank's part to every other: nobody waits for an answer in between."""
    each = max(link.overhead, max(size / ranks, SEGMENT) / link.bandwidth)
    return link.latency + (ranks - 1) * each


def owners(size, ranks, link):
    """Blocks to the owners of segments; then sums to all."""
    return 2 * to_all(size, ranks, link)


class Way(NamedTuple):
    name: str
    wire: object  # seconds of a bucket
    added: object  # how often each byte is added, one after the other
    parameters: bool = False  # travel after the update, instead of sums


WAYS = [
    Way("ring", ring, lambda ranks: (ranks - 1) / ranks),
    Way("tree", tree, log2),
    Way("owners", owners, lambda ranks: (ranks - 1) / ranks),
    Way("owners, `--shard`", to_all, lambda ranks: (ranks - 1) / ranks, True),
]


def communication(net, way, ranks, link):
    """Seconds of a step: all, and those that the backward can hide."""
    wire = [way.wire(size, ranks, link) for size in net.buckets]
    reports = log2(ranks) * link.latency + (ranks - 1) * (REPORT + 4 * net.statistics) / link.bandwidth
    rest = ADDING * sum(net.buckets) * way.added(ranks) + reports
    if way.parameters:
        rest += to_all(sum(net.buckets), ranks, link)
    return sum(wire) + rest, sum(wire[:-1])


def efficiency(net, way, ranks, link, faster=1):
    """Of a step's time, what is computing, for ranks that are so many times faster than those measured."""
    compute = net.step / faster
    everything, hideable = communication(net, way, ranks, link)
    exposed = everything - min(hideable, HIDDEN * BACKWARD * compute)
    return compute / (compute + exposed)


def milliseconds(seconds):
    digits = 3 - len(str(int(seconds * 1e3)))
    return f"{seconds * 1e3:,.{max(digits, 0)}f} ms"


def row(cells):
    return "| " + " | ".join(cells) + " |\n"


def header(columns):
    return row(["ranks", *columns]) + "|" + "---:|" * (len(columns) + 1) + "\n"


def cost_table(net):
    text = f"\n**{net.name}**: {sum(net.buckets) / 1e6:,.1f} MB of gradients in {len(net.buckets)} buckets, "
    text += f"{milliseconds(net.step)} of computing\n\n"
    text += header([f"{link.name}: {way.name}" if way is WAYS[0] else way.name for link in LINKS for way in WAYS])
    for ranks in RANKS:
        cells = [
            f"{milliseconds(communication(net, way, ranks, link)[0])}, "
            f"{100 * efficiency(net, way, ranks, link):.0f} %"
            for link in LINKS
            for way in WAYS
        ]
        text += row([f"{ranks:,}", *cells])
    return text


def faster_table(faster):
    way = WAYS[2]
    text = f"\n**Owners, with ranks that compute {faster} times as fast**\n\n"
    text += header([f"{net.name.split(',')[0]}, {link.name}" for net in NETS for link in LINKS])
    for ranks in RANKS:
        cells = [f"{100 * efficiency(net, way, ranks, link, faster):.0f} %" for net in NETS for link in LINKS]
        text += row([f"{ranks:,}", *cells])
    return text


def tables():
    return "".join(cost_table(net) for net in NETS) + faster_table(16)


def main():
    begin, end = "<!-- tools/cluster_model.py -->\n", "\n<!-- /tools/cluster_model.py -->\n"
    if len(sys.argv) == 1:
        sys.stdout.write(tables())
        return 0
    if len(sys.argv) != 3 or sys.argv[1] not in ("--check", "--renew"):
        sys.exit(__doc__)
    with open(sys.argv[2], encoding="utf-8") as file:
        document = file.read()
    pattern = re.compile(re.escape(begin) + "(.*?)" + re.escape(end), re.S)
    found = pattern.findall(document)
    if len(found) != 1:
        sys.exit(f"{sys.argv[2]}: expected one place between {begin.strip()} and {end.strip()}, found {len(found)}")
    if sys.argv[1] == "--renew":
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            file.write(pattern.sub(lambda _: begin + tables() + end, document))
    elif found[0] != tables():
        sys.exit(f"{sys.argv[2]}: the tables are others than {sys.argv[0]} prints: --renew puts them there")
    return 0


if __name__ == "__main__":
    sys.exit(main())
