"""PyTorch's side: answers the lines that bench/serve.c describes. torch_peer.py THREADS

As in peer.hpp, a kind of row has one or more ways to do it, and the fastest is measured.
"""

import ctypes
import gc
import sys
import time

import torch
import torch_lstm_loss
import torch_nets
import torch_ops
from clock import calls_in, time_calls

TRIAL_SECONDS, TRIAL_SAMPLES = 0.05, 3
KINDS = {**torch_ops.KINDS, **torch_lstm_loss.KINDS, **torch_nets.KINDS}


def tried(way, threads):
    """The best time of a call; None if this PyTorch cannot do it that way."""
    try:
        with torch.inference_mode(not way.grad):
            way.call()
            best = time_calls(way.call, 1, threads)[0]
            end = time.monotonic() + TRIAL_SECONDS
            samples = 0
            while samples < TRIAL_SAMPLES or time.monotonic() < end:
                best = min(best, time_calls(way.call, calls_in(1e8 * TRIAL_SECONDS, best), threads)[0])
                samples += 1
        return best
    except Exception as problem:  # whatever a version of PyTorch raises for what it does not have
        print(f"torch_peer: {way.name}: {problem!r}"[:300], file=sys.stderr)
        return None


def ways_of(maker, sizes):
    """What it makes, up to the first that this PyTorch has not got."""
    try:
        yield from maker(*sizes)
    except Exception as problem:
        print(f"torch_peer: {problem!r}"[:300], file=sys.stderr)


class Server:
    def __init__(self, threads):
        self.threads, self.way, self.call_ns = threads, None, 0.0

    def prepare(self, _name, kind, *sizes):
        self.way = None
        maker = KINDS.get(kind)
        if maker is None:
            return "no it has nothing of that kind"
        for way in ways_of(maker, map(int, sizes)):
            ns = tried(way, self.threads)
            if ns is not None and (self.way is None or ns < self.call_ns):
                self.way, self.call_ns = way, ns
        gc.collect()
        return f"ok {self.way.name}" if self.way else "no it cannot do that"

    def sample(self, ns):
        with torch.inference_mode(not self.way.grad):
            for _ in range(calls_in(0.25 * float(ns), self.call_ns)):
                self.way.call()
            spent, heap, disturbed = time_calls(self.way.call, calls_in(float(ns), self.call_ns), self.threads)
        self.call_ns = min(self.call_ns, spent)
        return f"{spent:.3f} {heap:.3f} {int(disturbed)}"

    def result(self, index, path):
        if self.way.result is None:
            return "no result to be had"
        with torch.inference_mode(not self.way.grad):
            value = self.way.result(int(index), self.way.call())
        with open(path, "wb") as file:
            plain = value.detach().contiguous()
            file.write(ctypes.string_at(plain.data_ptr(), 4 * plain.numel()))
        return "ok"

    def drop(self):
        self.way = None
        gc.collect()
        return "ok"

    def answer(self, command, *words):
        if command == "prepare":
            return self.prepare(*words)
        if self.way is None:
            return "no row is prepared"
        return {"sample": self.sample, "result": self.result, "drop": self.drop}[command](*words)


def main():
    threads = int(sys.argv[1])
    torch.set_num_threads(threads)
    some = torch.ones(512, 512)
    torch.mm(some, some).relu_()  # the threads of BLAS, then OpenMP's, are there from the beginning
    gc.disable()
    print(f"PyTorch {torch.__version__}\nready", flush=True)
    server = Server(threads)
    for line in sys.stdin:
        print(server.answer(*line.split()), flush=True)


if __name__ == "__main__":
    main()
