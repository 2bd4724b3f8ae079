"""Talks to build/tests/mica-onnx (tests/onnx/driver/main.c)."""
import subprocess
import tempfile
from pathlib import Path

import numpy


class Refused(Exception):
    pass


class Driver:
    def __init__(self, program):
        self.process = subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "tensor"

    def ask(self, *words):
        """What it says behind "ok"."""
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        if not line:
            raise Refused(f"it ended with {self.process.wait()} at: {' '.join(map(str, words))[:200]}")
        if line[0] != "ok":
            raise Refused(" ".join(line[1:]))
        return line[1:]

    def open(self, path, threads=1, **words):
        return int(self.ask("open", path, threads, *(f"{name}={value}" for name, value in words.items()))[0])

    def write(self, name, array):
        numpy.ascontiguousarray(array).tofile(self.file)
        self.ask("write", name, self.file)

    def read(self, name, verb="read"):
        shape = [int(size) for size in self.ask(verb, name, self.file)]
        return numpy.fromfile(self.file, numpy.float32).reshape(shape)

    def run(self):
        """Its heap calls."""
        return int(self.ask("run")[0])

    def step(self):
        loss, calls = self.ask("step")
        return float(loss), int(calls)

    def gradients(self):
        """The loss, heap calls, and the gradient of every parameter by its name."""
        loss, calls = self.ask("gradients")
        self.ask("parameters", self.file)
        names = self.file.read_text(encoding="utf-8").splitlines()
        return float(loss), int(calls), {name: self.read(name, "gradient") for name in names}

    def sample(self, seconds):
        """Seconds of a forward at best, and heap calls of all."""
        best, calls = self.ask("sample", int(1e9 * seconds))
        return 1e-9 * float(best), int(calls)

    def calls(self):
        self.ask("calls", self.file)
        return self.file.read_text(encoding="utf-8").splitlines()

    def resident(self):
        """Bytes of its own, beside files."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["RssAnon"].split()[0]) * 1024

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def sizes_of(told, arrays, path):
    """The words of "open": sizes that the model has by name, from arrays; inputs that are fixed."""
    import onnx

    words = dict(told.get("set", {}))
    for value in onnx.load(str(path), load_external_data=False).graph.input:
        if value.name not in arrays:
            continue
        dims, shape = value.type.tensor_type.shape.dim, arrays[value.name].shape
        names = [dim.dim_param for dim in dims]
        if any(not dim.dim_param and not dim.HasField("dim_value") for dim in dims):
            words[value.name] = "x".join(map(str, shape))
        else:
            words |= {name: size for name, size in zip(names, shape) if name}
    return words
