"""Timing calls, and counting their heap calls."""

import ctypes
import math
import resource
import time
from itertools import repeat


class HeapCounts(ctypes.Structure):
    _fields_ = [("calls", ctypes.c_uint64), ("frees", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]


def heap_counter():
    """host/heap.c, if it was loaded in front of the C library; else nothing is counted."""
    try:
        counter = ctypes.CDLL(None).heap_now
    except AttributeError:
        return HeapCounts
    counter.restype = HeapCounts
    return counter


heap_now = heap_counter()


def time_calls(call, calls, threads):
    """Nanoseconds and heap calls for one call, and whether other programs had the processor."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    heap = heap_now().calls
    own, start = time.process_time_ns(), time.perf_counter_ns()
    for _ in repeat(None, calls):
        call()
    spent, own = time.perf_counter_ns() - start, time.process_time_ns() - own
    heap = heap_now().calls - heap
    disturbed = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw != before
    return (own if disturbed and threads == 1 else spent) / calls, heap / calls, disturbed


def calls_in(ns, call_ns):
    return max(1, math.ceil(ns / call_ns))
