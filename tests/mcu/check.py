#!/usr/bin/env python3
"""check.py MICA FOLDER [FILTER...]: what runs on the emulated boards: the harness, exported nets, the examples, and the
limits of docs/microcontrollers.md. Files go to FOLDER."""

import json
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "mcu"), os.path.join(ROOT, "bench", "mcu"), HERE]

import exported
import harness
import limits
import random_nets
from suite import Suite

MICA, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])

# ---- The harness ----

# The cost of a hundred instructions: those that a model has a range for cost their mean.
COSTS = {
    "mps2-an386": dict(multiply=100, divide=700, float=300, load=101),
    "lm3s6965evb": dict(multiply=100, divide=700),
    "mps3-an547": dict(multiply=100, divide=700),
    "virt": dict(multiply=100, divide=1900),
}
SLACK = 8  # instructions beside the hundred: returning from count_begin(), the call, the mark


def board_works(board):
    program = harness.build(board, os.path.join(FOLDER, f"boards-{board}.elf"), [os.path.join(HERE, "boards.c")])
    result = harness.run(board, program)
    assert result["code"] == 7, result
    assert result["output"].startswith("a line\n-2147483648\n"), result["output"]
    assert abs(result["values"]["minus a third"] + 1 / 3) < 1e-7 and result["values"]["nothing"] == 0, result
    assert 1024 <= result["values"]["stack"] <= 1100, result["values"]
    for name, cycles in COSTS[board].items():
        count = result["counts"][name]
        assert 100 <= count["instructions"] <= 100 + SLACK, (name, count)
        assert cycles <= count["cycles"] <= cycles + 2 * SLACK, (name, count)


def fault_is_told(board):
    program = harness.build(board, os.path.join(FOLDER, f"fault-{board}.elf"), [os.path.join(HERE, "boards.c")],
                            ["-DFAULT"])
    result = harness.run(board, program)
    assert result["code"] == 99 and "fault:" in result["output"], result


# ---- Exported nets ----

# The built-in nets, smaller where they would not fit a board.
BUILT_IN = {
    "mlp": ["mlp"],
    "lenet": ["lenet"],
    "resnet_small": ["resnet-small", "--set", "width=4"],
    "lstm": ["lstm", "--set", "width=16", "--set", "length=8"],
    "gpt_tiny": ["gpt-tiny", "--set", "width=16", "--set", "length=8", "--set", "layers=1"],
    "keywords": ["keywords", "--set", "width=8", "--set", "blocks=1"],
}
BOARDS = ["mps2-an386", "virt"]
RANDOM = range(8)


def check_export(name, arguments):
    """The same outputs, or losses, as the library, on two boards; RAM as promised."""
    net = exported.export(MICA, arguments[0], os.path.join(FOLDER, name), name, *arguments[1:])
    for board in BOARDS:
        result = exported.run_test(board, net)
        assert result["code"] == 0, f"{board}: exit code {result['code']}\n{result['output']}{result['errors']}"
        check_ram(board, net)
    check_arena(BOARDS[0], net)
    return f"{net.constants['RAM_BYTES']:,} bytes of RAM"


def check_ram(board, net):
    """The constant of the header is what the linker reports of the object."""
    size = harness.sizes(board, [os.path.join(net.folder, f"{net.name}-{board}-test.elf-{net.name}.o")])
    assert size["ram"] == net.constants["RAM_BYTES"], (board, size, net.constants["RAM_BYTES"])


def check_arena(board, net):
    """A painted block of that size is written to its end, and nothing beside it."""
    program = os.path.join(net.folder, f"{net.name}-{board}-arena.elf")
    flags = [*net.definitions(), f"-D{net.name.upper()}_OWN_ARENA"]
    harness.build(board, program, [net.source, os.path.join(HERE, "arena.c")], flags)
    values = harness.run(board, program)["values"]
    assert values["words outside"] == 0 and values["first byte"] == 0, values
    assert values["bytes written"] == net.constants["RAM_BYTES"], (values, net.constants["RAM_BYTES"])


def check_random(seed, train):
    path = os.path.join(FOLDER, f"random{seed}.net")
    with open(path, "w", encoding="ascii") as file:
        file.write(random_nets.text(seed))
    kind = ["--train", "--batch", str(1 + seed % 3)] if train else []
    try:
        return check_export(f"random{seed}" + ("_train" if train else ""), [path, *kind])
    except (AssertionError, harness.Failure) as wrong:
        raise AssertionError(f"{wrong}\n{random_nets.text(seed)}") from wrong


def int8_same_bytes(name, arguments, board):
    """A net in bytes, with the instructions that the processor has for them: the library's bytes, all of them."""
    folder = os.path.join(FOLDER, f"{name}-{board}")
    os.makedirs(folder, exist_ok=True)
    checkpoint = os.path.join(folder, "trained")
    harness.call([MICA, "train", *arguments, "--epochs", "1", "--checkpoint", checkpoint, "--overwrite", "--quiet"])
    net = exported.export(MICA, checkpoint, folder, name, "--int8", "--target", harness.find_board(board).target)
    result = exported.run_test(board, net)
    assert result["code"] == 0, f"exit code {result['code']}\n{result['output']}{result['errors']}"
    check_ram(board, net)
    return result["output"].strip()


def saved_goes_on(board):
    """What was learned is saved, lost, and loaded again."""
    net = exported.export(MICA, os.path.join(ROOT, "bench", "mcu", "xor.net"), os.path.join(FOLDER, "saved"), "xor",
                          "--train", "--batch", "4", "--optimizer", "adam")
    program = os.path.join(net.folder, f"saved-{board}.elf")
    harness.build(board, program, [net.source, os.path.join(HERE, "saved.c")], ["-I" + net.folder])
    result = harness.run(board, program)
    assert result["code"] == 0, result["output"]
    return result["output"].strip()


def arduino_builds(board):
    """The folder of --layout arduino: its header in C++, its source from src/."""
    folder = os.path.join(FOLDER, "arduino")
    net = os.path.join(ROOT, "bench", "mcu", "xor.net")
    harness.call([MICA, "export", net, "-o", folder, "--name", "xor", "--layout", "arduino", "--train", "--quiet"])
    for name in ("library.properties", "library.json", "extras/xor_test.c", "extras/xor.md"):
        assert os.path.getsize(os.path.join(folder, name)) > 0, name
    with open(os.path.join(folder, "library.json"), encoding="utf-8") as file:
        assert json.load(file)["name"] == "xor"
    program, source = os.path.join(folder, "sketch.elf"), os.path.join(folder, "src")
    flags = ["-I" + source, "-fno-exceptions", "-fno-rtti", "-x", "c++", "-std=gnu++17"]
    sketch = harness.compile_object(board, os.path.join(HERE, "sketch.cpp"), program + "-sketch.o", flags)
    code = harness.compile_object(board, os.path.join(source, "xor.c"), program + "-xor.o")
    result = harness.run(board, harness.link(board, [sketch, code], program))
    assert result["code"] == 0, result["output"]


# ---- Examples ----

EXAMPLES = {
    "vibration": ["mps2-an386", "lm3s6965evb"],
    "keywords": ["mps3-an547", "mps2-an386"],
    "pendulum": ["mps2-an386", "virt"],
}


def example_learns(name, board):
    """Its build.sh makes it from the net file and the data; the program itself says whether it learned enough."""
    folder = os.path.join(FOLDER, f"example-{name}-{board}")
    harness.call([os.path.join(ROOT, "examples", "mcu", name, "build.sh"), folder, board],
                 env=dict(os.environ, MICA_TOOL=MICA))
    result = harness.run(board, os.path.join(folder, name + ".elf"))
    assert result["code"] == 0, result["output"] + result["errors"]
    shown = [line for line in result["output"].splitlines() if re.search("before|after|load|percent", line)]
    return "\n".join(shown)


# ---- All of them ----


def main():
    os.makedirs(FOLDER, exist_ok=True)
    harness.plugin()
    for board in harness.BOARDS:
        harness.harness_objects(board, FOLDER)
    suite = Suite(sys.argv[3:])
    for name, boards in EXAMPLES.items():  # the slowest first
        for board in boards:
            suite.add(f"example {name} on {board}", example_learns, name, board)
    for name, arguments in BUILT_IN.items():
        suite.add(f"built-in {name}, training", check_export, name + "_train", [*arguments, "--train"])
        suite.add(f"built-in {name}", check_export, name, arguments)
    for seed in RANDOM:
        suite.add(f"random net {seed}, training", check_random, seed, True)
        suite.add(f"random net {seed}", check_random, seed, False)
    for board in harness.BOARDS:
        suite.add(f"int8 lenet on {board}", int8_same_bytes, "lenet_int8", ["lenet", "--data", "digits:300"], board)
        suite.add(f"int8 depthwise on {board}", int8_same_bytes, "depthwise_int8",
                  [os.path.join(HERE, "depthwise.net"), "--data", "digits:300"], board)
    suite.add("saved, lost and loaded again", saved_goes_on, "mps2-an386")
    suite.add("a library for Arduino, in C++", arduino_builds, "mps2-an386")
    for row in limits.ROWS:
        suite.add(f"limits: {row.title}", limits.check, row, MICA, os.path.join(FOLDER, "limits"))
    for board in harness.BOARDS:
        suite.add(f"board {board}: output, counts, stack", board_works, board)
        suite.add(f"board {board}: a fault is told", fault_is_told, board)
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
