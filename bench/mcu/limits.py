"""What exported nets may take on the Cortex-M4F, and whether they do."""

import os

import exported
import harness

HERE = os.path.dirname(os.path.abspath(__file__))
MEASURE = os.path.join(HERE, "measure.c")
BOARD = "mps2-an386"  # whose cycle model the limits are about


class Row:
    """A net, how it is exported, and at most how many bytes of code, of RAM with stack, and cycles."""

    def __init__(self, title, name, net, options, code, ram, cycles):
        self.title, self.name, self.net, self.options = title, name, net, options
        self.limits = dict(code=code, ram=ram, cycles=cycles)


ROWS = [
    Row("small CNN, f32 inference", "cnn", "cnn", [], 3000, 4000, 220_000),
    Row("small CNN, int8 inference", "cnn_int8", "cnn", ["--int8"], 2500, 1700, 140_000),
    Row("small CNN, f32 training step", "cnn_train", "cnn", ["--train"], 6000, 29_000, 480_000),
    Row("XOR, training step, batch 4", "xor_train", "xor", ["--train", "--batch", "4"], 2000, 500, 8_000),
]


def prepare(row, mica, folder, board):
    """Exports it for a board. int8 wants data to see how large activations get; the nets are trained on it, too."""
    os.makedirs(folder, exist_ok=True)
    source, options = os.path.join(HERE, row.net + ".net"), list(row.options)
    if row.net == "cnn":
        source, data = trained(mica, folder)
        if "--int8" in options:
            options += ["--data", data]
    return exported.export(mica, source, os.path.join(folder, board), row.name, *options,
                           *target_option(mica, board))


def target_option(mica, board):
    """--target, if this exporter has one."""
    usage = harness.call([mica, "help", "export"])
    return ["--target", harness.find_board(board).target] if "--target" in usage else []


def trained(mica, folder):
    """The small CNN, trained on digits of 12 x 12 pixels: its checkpoint, and the data."""
    checkpoint = os.path.join(folder, "cnn-trained")
    data = os.path.join(folder, "x.npy") + "," + os.path.join(folder, "y.npy")
    if not os.path.exists(os.path.join(checkpoint, "checkpoint.safetensors")):
        root = os.path.dirname(os.path.dirname(HERE))
        library = os.path.join(os.path.dirname(mica), "libmica.a")
        program = os.path.join(folder, "make_digits")
        harness.call(["gcc", "-O2", "-I" + os.path.join(root, "include"), os.path.join(HERE, "make_digits.c"), library,
                      "-lz", "-ljpeg", "-lpthread", "-lm", "-o", program])
        harness.call([program, folder])
        harness.call([mica, "train", os.path.join(HERE, "cnn.net"), "--data", data, "--epochs", "8", "--checkpoint",
                      checkpoint, "--overwrite", "--quiet"])
    return checkpoint, data


def measure(row, mica, folder, board):
    return exported.measure(board, prepare(row, mica, folder, board), MEASURE)


def reached(row, figures):
    """For each limit: what was measured, the limit, and whether it holds."""
    measured = dict(code=figures["code"], ram=figures["ram"] + figures["stack"], cycles=figures["cycles"])
    return {key: (measured[key], most, measured[key] <= most) for key, most in row.limits.items()}


def check(row, mica, folder):
    """For the tests: an AssertionError that names what is over its limit."""
    found = reached(row, measure(row, mica, os.path.join(folder, row.name), BOARD))
    over = [f"{key} {measured:,}, the limit is {most:,}" for key, (measured, most, holds) in found.items() if not holds]
    assert not over, "; ".join(over)
    return ", ".join(f"{key} {measured:,} of {most:,}" for key, (measured, most, _) in found.items())
