#!/usr/bin/env python3
"""tests/mcu/library/check.py [BOARD...] [--keep]: the library on emulated boards.

Builds it with the toolchain files of cmake/, warnings as errors; links the small CNN of cnn.c, which has no heap; runs
inference, inference with weights in flash, and training steps; compares all numbers with those of a host; and fails if
code, memory or a stack frame exceeds its limit. Builds lie in build/mcu/library."""

import glob
import os
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "mcu"))
import harness  # noqa: E402

BUILD = os.path.join(ROOT, "build", "mcu", "library")
TOOLCHAINS = {
    "mps2-an386": ("arm-none-eabi", "cortex-m4"),
    "lm3s6965evb": ("arm-none-eabi", "cortex-m3"),
    "mps3-an547": ("arm-none-eabi", "cortex-m55"),
    "virt": ("riscv32-unknown-elf", "rv32imafc"),
}

# Bytes. "flash" is the whole program: code, constants and what belongs to the board. A processor without floats brings
# their arithmetic; RISC-V's code is larger.
LIMITS = {
    "inference": {"flash": 90000, "builder bytes": 8000, "builder peak": 13500, "inference stack": 3000},
    "flash": {"flash": 101000, "builder bytes": 8000, "block bytes": 6800, "inference stack": 3000},
    "training": {"flash": 150000, "builder bytes": 19000, "block bytes": 41000, "training stack": 3200},
}
MORE_FLASH = {"lm3s6965evb": 3000, "virt": 45000, "mps3-an547": 3000}
MOST_FRAME = 1024

# Frames over the limit of functions that no step of a net of floats runs: while it is built or compiled, and in copies
# of block-quantized values, whose blocks are that large.
NOT_IN_STEPS = {"mixes", "infer", "mica_view_reshape", "check_entry", "make_outputs", "mica_net_call", "move_line"}


def run_command(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(" ".join(command) + "\n" + done.stdout + done.stderr)
    return done.stdout


def build_library(folder, *options):
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        run_command(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DMICA_WERROR=ON", *options])
    run_command(["ninja", "-C", folder, "-j2", "mica_static"])
    return os.path.join(folder, "libmica.a")


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def write_weights(path):
    """The numbers of set_weights in cnn.c, as constants."""
    state = 12345
    with open(path, "w", encoding="ascii") as out:
        for name, count in (("conv1_weight", 72), ("conv1_bias", 8), ("conv2_weight", 1152), ("conv2_bias", 16),
                            ("dense_weight", 1440), ("dense_bias", 10)):
            numbers = []
            for _ in range(count):
                state = (state * 1664525 + 1013904223) % 2**32
                numbers.append(float32(float32((state >> 8) / 16777216 - 0.5) * float32(0.4)))
            out.write(f"static const float {name}[{count}] = {{")
            out.write(", ".join(f"{number:.9g}f" if "." in f"{number:.9g}" else f"{number:.9g}.0f" for number in numbers))
            out.write("};\n")


def numbers_of(output):
    """Values in their order: y0 comes twice in training."""
    return [(name, float(value)) for name, value in re.findall(r"^((?:y|loss)\d) = (\S+)$", output, re.MULTILINE)]


def host_numbers(defines):
    library = build_library(os.path.join(BUILD, "host"), "-DMICA_ONLY_ISAS=scalar", "-DMICA_TOOL=OFF", "-DMICA_TESTS=OFF",
                            "-DMICA_MPI=OFF", "-DMICA_ZLIB=OFF", "-DMICA_JPEG=OFF", "-DMICA_THREADS=OFF")
    program = os.path.join(BUILD, "host-cnn" + "".join(defines))
    run_command(["gcc", "-std=gnu11", "-O1", *defines, "-DON_HOST", "-I" + os.path.join(ROOT, "include"),
                 "-I" + os.path.join(ROOT, "mcu"), "-I" + BUILD, os.path.join(HERE, "cnn.c"),
                 os.path.join(HERE, "host.c"), library, "-lm", "-o", program])
    return numbers_of(run_command([program]))


def frames_over(folder, board, program):
    """Functions of the program whose frame is too large, by the compiler's own account (.su files)."""
    symbols = {line.split()[-1].split(".")[0]
               for line in run_command([harness.find_board(board).tool("nm"), program]).splitlines()}
    wrong = []
    for path in glob.glob(os.path.join(folder, "**", "*.su"), recursive=True):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                place, size, _ = line.rstrip("\n").split("\t")
                name = place.split(":")[-1].split(".")[0]
                if int(size) > MOST_FRAME and name in symbols and name not in NOT_IN_STEPS:
                    wrong.append((name, int(size), place.split("/src/")[-1].split(":")[0]))
    return wrong


def members(map_file):
    """The objects of the library that are linked, and their sections, from the linker's map."""
    kept = set()
    with open(map_file, encoding="utf-8") as lines:
        text = lines.read()
    text = text[text.index("Linker script and memory map"):]
    for section, size, name in re.findall(r"^ \.text\.(\S+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+) \S*\((\S+)\)", text,
                                          re.MULTILINE):
        if int(size, 16) > 0:
            kept.add((name.replace(".c.obj", ".c").replace(".c.o", ".c"), section.split(".")[0]))
    return kept


def check(board, kind, folder, library, defines, wanted):
    program = os.path.join(BUILD, f"{board}-{kind}.elf")
    code = harness.compile_object(board, os.path.join(HERE, "cnn.c"), program[:-4] + ".o",
                                  ["-I" + os.path.join(ROOT, "include"), "-I" + BUILD, *defines])
    map_file = program[:-4] + ".map"
    harness.link(board, [code, library], program, flags=["-Wl,-Map=" + map_file])
    result = harness.run(board, program)
    values, flaws = result["values"], []
    if result["code"] != 0:
        return [f"it ended with {result['code']}:\n{result['output']}"]
    got = numbers_of(result["output"])
    if [name for name, _ in got] != [name for name, _ in wanted]:
        flaws.append("its numbers are not those of the host")
    largest = max(abs(value) for _, value in wanted)
    apart = max((abs(a - b) for (_, a), (_, b) in zip(got, wanted)), default=0.0) / largest
    if not apart <= 1e-5:
        flaws.append(f"numbers differ from the host's by {apart:.2g} of the largest")
    sizes = harness.sizes(board, [program])
    values["flash"] = sizes["flash"]
    for name, limit in LIMITS[kind].items():
        limit += MORE_FLASH.get(board, 0) if name == "flash" else 0
        if values[name] > limit:
            flaws.append(f"{name}: {values[name]:,} bytes, more than {limit:,}")
    for name in ("heap calls in steps", "malloc bytes"):
        if values[name] != 0:
            flaws.append(f"{name}: {values[name]}")
    kept = members(map_file)
    for name, size, place in frames_over(folder, board, program):
        if (os.path.basename(place), name) in kept:
            flaws.append(f"{name} ({place}): a frame of {size:,} bytes, more than {MOST_FRAME:,}")
    counts = result["counts"]
    step = counts["training" if kind == "training" else "inference"]
    print(f"{board:12} {kind:10} code {sizes['code']:7,}  flash {sizes['flash']:7,}  block {values['block bytes']:6,}  "
          f"builder {values['builder bytes']:6,} (peak {values['builder peak']:6,})  "
          f"stack {values.get('training stack', values['inference stack']):5,}  "
          f"instructions {step['instructions']:9,}  apart {apart:.1g}")
    return flaws


def main():
    boards = [word for word in sys.argv[1:] if not word.startswith("-")] or list(TOOLCHAINS)
    os.makedirs(BUILD, exist_ok=True)
    write_weights(os.path.join(BUILD, "weights.h"))
    host = {"inference": host_numbers([]), "training": host_numbers(["-DTRAINING"])}
    failed = 0
    for board in boards:
        toolchain, cpu = TOOLCHAINS[board]
        for kind, training, defines in (("inference", "OFF", []), ("flash", "OFF", ["-DFLASH"]),
                                        ("training", "ON", ["-DTRAINING"])):
            if kind == "training" and board == "lm3s6965evb":
                continue  # 64 KB of RAM
            folder = os.path.join(BUILD, f"{cpu}-{'training' if training == 'ON' else 'inference'}")
            library = build_library(folder, f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/{toolchain}.cmake", f"-DMICA_CPU={cpu}",
                                    f"-DMICA_TRAINING={training}")
            for flaw in check(board, kind, folder, library, defines, host["training" if training == "ON" else "inference"]):
                print(f"FAILED {board} {kind}: {flaw}")
                failed += 1
    return 1 if failed else 0


sys.exit(main())
