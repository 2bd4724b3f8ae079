"""Nets that mica export wrote, on the emulated boards."""

import os
import re

import harness


class Exported:
    """A net in folder/NAME.c and .h: what its header says."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.source = os.path.join(folder, name + ".c")
        self.test = os.path.join(folder, name + "_test.c")
        with open(os.path.join(folder, name + ".h"), encoding="utf-8") as text:
            self.header = text.read()
        self.constants = {
            key: int(value)
            for key, value in re.findall(rf"^#define {name.upper()}_(\w+) +(\d+)", self.header, re.MULTILINE)
        }

    def has(self, function):
        return re.search(rf"\b{self.name}_{function}\(", self.header) is not None

    def type_of(self, pattern):
        found = re.search(pattern, self.header)
        return found.group(1) if found else None

    def definitions(self):
        """For bench/mcu/measure.c and tests/mcu/arena.c, which are about any net."""
        value = self.type_of(rf"(\w+) \*{self.name}_input\(")
        flags = [f"-DNET={self.name}", f'-DNET_HEADER="{self.name}.h"', f"-I{self.folder}", f"-DINPUT={value}",
                 "-DINPUT_RANGE=" + ("100.0f" if value == "int8_t" else "2.0f" if "int" in value else "1.0f"),
                 f"-DINPUTS={self.constants['INPUT_SIZE']}", f"-DRAM_BYTES={self.constants['RAM_BYTES']}"]
        if self.has("init"):
            flags.append("-DINIT")
        target = self.type_of(rf"{self.name}_train_step\(const (\w+) \*")
        if target:
            flags += ["-DTRAIN", f"-DTARGET={target}", f"-DOUTPUTS={self.constants['OUTPUT_SIZE']}"]
        return flags


def export(mica, net, folder, name, *options):
    """mica export; Failure with its message if it refuses."""
    os.makedirs(folder, exist_ok=True)
    harness.call([mica, "export", net, "-o", folder, "--name", name, "--quiet", *options])
    return Exported(folder, name)


def run_test(board, exported, flags=()):
    """The test that came with an export, on a board: its result, as harness.run has it."""
    program = os.path.join(exported.folder, f"{exported.name}-{board}-test.elf")
    harness.build(board, program, [exported.source, exported.test], flags)
    return harness.run(board, program)


def measure(board, exported, measure_source, flags=()):
    """One counted run or training step: sizes of the net's own object, stack, instructions, cycles."""
    program = os.path.join(exported.folder, f"{exported.name}-{board}.elf")
    defined = exported.definitions()
    net = harness.compile_object(board, exported.source, harness.object_of(program, exported.source), flags)
    main = harness.compile_object(board, measure_source, program + "-main.o", defined)
    result = harness.run(board, harness.link(board, [net, main], program))
    if result["code"] != 0:
        raise harness.Failure(f"{program}: exit code {result['code']}\n{result['output']}")
    size = harness.sizes(board, [net])
    return dict(code=size["code"], constants=size["constants"] + size["data"], flash=size["flash"], ram=size["ram"],
                stack=result["values"]["stack"], **{k: result["counts"]["step"][k] for k in ("instructions", "cycles")})
