"""What the rows of PyTorch's side share."""

import ctypes
import os
from typing import Callable, NamedTuple, Optional

import torch

COMPILES = hasattr(torch, "compile")  # from version 2
if COMPILES:  # what it compiles for vectors looks for their exp and log here
    ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"), mode=ctypes.RTLD_GLOBAL)


class Way(NamedTuple):
    name: str
    call: Callable
    result: Optional[Callable] = None  # (index of Mica's tensor, what call gave) -> that tensor as Mica has it
    grad: bool = False  # needs autograd; else it runs in inference mode


def numbers(index, *shape):
    """What Mica's row has in its tensor of that index: states of a generator, all at once by doubling."""
    count, low = 1, 0xFFFFFFFF
    for size in shape:
        count *= size
    factor, term = torch.tensor([1664525]), torch.tensor([1013904223])
    while factor.numel() < count:  # s[n + i] = factor[i] s[n] + term[i]
        factor, term = (
            torch.cat([factor, factor * factor[-1] & low]),
            torch.cat([term, (factor * term[-1] + term) & low]),
        )
    start = ((index + 1) * 2654435761 + 1) & low
    state = (factor[:count] * start + term[:count]) & low
    return ((state >> 8).to(torch.float32) * 2.0**-23 - 1.0).view(*shape)


def compiled(call, **options):
    """Compiled as for a fixed shape; only asked for where COMPILES."""
    torch._dynamo.reset()
    return torch.compile(call, dynamic=False, **options)


def first(_index, value):
    """The only result, whatever its index."""
    return value


def among(*indices):
    """The results of a call in the order of these indices of Mica's tensors."""
    return lambda index, values: values[indices.index(index)]


def with_compiled(ways):
    """The first of the ways compiled too, where this PyTorch compiles."""
    yield from ways
    if COMPILES:
        yield ways[0]._replace(name=f"{ways[0].name}, compiled", call=compiled(ways[0].call))
