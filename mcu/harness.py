"""The emulated boards: building a program for one, running it there, and what it took.

    program = build("mps2-an386", "build/mcu/hello", ["mcu/hello.c"])
    result = run("mps2-an386", program)
    result["output"], result["code"], result["counts"]["loop"]["cycles"]

Everything is compiled into the folder that is given; nothing is written beside the sources. mcu/build and mcu/run
are the same for the command line."""

import json
import os
import re
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


class Failure(Exception):
    """A program that does not compile, or does not end. The text says why."""


class Board:
    """name: that of the QEMU machine. core: a heading. target: the name for mica export --target. model: of cycles."""

    def __init__(self, name, core, target, model, qemu, prefix, flags, link):
        self.name, self.core, self.target, self.model = name, core, target, model
        self.qemu, self.prefix, self.flags, self.link = qemu, prefix, flags, link
        self.source = "riscv.c" if "riscv" in prefix else "arm.c"

    def tool(self, name):
        return self.prefix + name


ARM = dict(qemu=["qemu-system-arm"], prefix="arm-none-eabi-", link=["--specs=nano.specs"])
BOARDS = {
    board.name: board
    for board in [
        Board("mps2-an386", "Cortex-M4F", "m4", "m4", **ARM,
              flags=["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]),
        Board("lm3s6965evb", "Cortex-M3", "m3", "m3", **ARM, flags=["-mcpu=cortex-m3", "-mthumb"]),
        Board("mps3-an547", "Cortex-M55", "m55", "m55", **ARM,
              flags=["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"]),
        Board("virt", "RV32IMAFC", "rv32", "rv32", ["qemu-system-riscv32", "-bios", "none"], "riscv64-unknown-elf-",
              # RAM lies above the first two gigabytes, where no signed address reaches
              ["--specs=picolibc.specs", "-march=rv32imafc", "-mabi=ilp32f", "-mcmodel=medany"], []),
    ]
}

# For kernels, -Os takes half as many cycles again as -O2.
FLAGS = ["-O2", "-g", "-ffunction-sections", "-fdata-sections", "-ffp-contract=off", "-Wall", "-Wextra"]


def find_board(name):
    if name not in BOARDS:
        raise Failure(f'there is no board "{name}"; known: {", ".join(BOARDS)}')
    return BOARDS[name]


def call(command, **options):
    """Runs a tool and returns what it printed. Failure with its messages if it failed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Failure(" ".join(command) + "\n" + done.stdout + done.stderr)
    return done.stdout


# ---- Building ----


def compile_object(board, source, target, flags=()):
    board = find_board(board)
    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    call([board.tool("gcc"), *board.flags, *FLAGS, "-I" + HERE, "-std=gnu11", *flags, "-c", source, "-o", target])
    return target


def harness_objects(board, folder):
    """The board's own objects. Programs built at the same time may share a folder: files are replaced whole."""
    board = find_board(board)
    objects = []
    for source in ("board.c", board.source, "libc.c"):
        target = os.path.join(folder, f"{board.name}-{source[:-2]}.o")
        path = os.path.join(HERE, source)
        if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(path):
            part = f"{target}.{os.getpid()}.o"
            # the loops that paint and copy must not become calls of a C library that may not be there
            compile_object(board.name, path, part, ["-fno-tree-loop-distribute-patterns"])
            os.replace(part, target)
        objects.append(target)
    return objects


def link(board, objects, program, stack=16384, flags=()):
    board = find_board(board)
    folder = os.path.dirname(os.path.abspath(program))
    call([board.tool("gcc"), *board.flags, *board.link, "-nostartfiles", "-Wl,--gc-sections", "-L" + HERE,
          "-T" + os.path.join(HERE, "boards", board.name + ".ld"), f"-Wl,--defsym=stack_bytes={stack}",
          "-Wl,--no-warn-rwx-segments", *harness_objects(board.name, folder), *objects, *flags, "-lm", "-o", program])
    return program


def build(board, program, sources, flags=(), stack=16384):
    """Compiles and links; PROGRAM.elf's objects lie beside it, as PROGRAM-SOURCE.o."""
    objects = [compile_object(board, source, object_of(program, source), flags) for source in sources]
    return link(board, objects, program, stack)


def object_of(program, source):
    return f"{program}-{os.path.splitext(os.path.basename(source))[0]}.o"


# ---- Sizes ----


def kept_object(board, file, entry):
    """An object with only what a function needs of it."""
    board = find_board(board)
    target = file[:-2] + "-kept.o"
    emulation = ["-melf32lriscv"] if "riscv" in board.prefix else []
    call([board.tool("ld"), *emulation, "-r", "--gc-sections", f"--entry={entry}", file, "-o", target])
    return target


def sizes(board, files):
    """Bytes of objects or a program, summed: code, constants (with the initial values of data), data, zeroed."""
    total = dict(code=0, constants=0, data=0, zeroed=0)
    for line in call([find_board(board).tool("size"), "-A", *files]).splitlines():
        words = line.split()
        if len(words) != 3 or not words[1].isdigit():
            continue
        section, count = words[0], int(words[1])
        if re.match(r"\.(text|vectors|init|fini|glue)", section):
            total["code"] += count
        elif re.match(r"\.s?(rodata|data\.rel\.ro)", section):
            total["constants"] += count
        elif re.match(r"\.(s|t)?data", section):
            total["data"] += count
        elif re.match(r"\.(s|t)?bss", section):
            total["zeroed"] += count
    total["flash"] = total["code"] + total["constants"] + total["data"]
    total["ram"] = total["data"] + total["zeroed"]
    return total


# ---- Running ----


def plugin():
    """The counting plugin, built on first use into build/mcu of the project, or where MCU_BUILD says."""
    folder = os.environ.get("MCU_BUILD") or os.path.join(os.path.dirname(HERE), "build", "mcu")
    sources = [os.path.join(HERE, "plugin", name) for name in sorted(os.listdir(os.path.join(HERE, "plugin")))]
    target = os.path.join(folder, "count.so")
    if not os.path.exists(target) or os.path.getmtime(target) < max(map(os.path.getmtime, sources)):
        os.makedirs(folder, exist_ok=True)
        part = f"{target}.{os.getpid()}"
        call(["gcc", "-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-o", part,
              *(source for source in sources if source.endswith(".c"))])
        os.replace(part, target)
    return target


def run(board, program, timeout=300):
    """Runs a program to its end: output, code (its exit code), counts by name, values that it reported, and the totals."""
    board = find_board(board)
    with tempfile.TemporaryDirectory() as folder:
        regions = os.path.join(folder, "regions")
        command = [*board.qemu, "-machine", board.name, "-display", "none", "-monitor", "none", "-serial", "none",
                   "-chardev", "stdio,id=console", "-semihosting-config", "enable=on,target=native,chardev=console",
                   "-plugin", f"{plugin()},model={board.model},out={regions}", "-kernel", program]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                  timeout=timeout, errors="replace")
        except subprocess.TimeoutExpired as late:
            raise Failure(f"{program} on {board.name}: not finished after {timeout} s") from late
        counted = read_regions(regions)
    if counted is None:
        raise Failure(f"{' '.join(command)}\n{done.stderr}")
    return dict(board=board.name, program=program, code=done.returncode, output=done.stdout, errors=done.stderr,
                counts=name_regions(done.stdout, counted), values=reported(done.stdout),
                total=dict(instructions=sum(r[0] for r in counted), cycles=sum(r[1] for r in counted)))


def read_regions(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="ascii") as lines:
        return [tuple(map(int, line.split()[2:])) for line in lines]


def name_regions(output, regions):
    """Marks come in pairs, the first of each after a line "count NAME". A name that comes again adds up."""
    counts = {}
    for index, name in enumerate(re.findall(r"^count (.+)$", output, re.MULTILINE)):
        if 2 * index + 1 >= len(regions):
            break
        instructions, cycles = regions[2 * index + 1]
        entry = counts.setdefault(name, dict(instructions=0, cycles=0, times=0))
        entry["instructions"] += instructions
        entry["cycles"] += cycles
        entry["times"] += 1
    return counts


def reported(output):
    pairs = re.findall(r"^(\S[^=\n]*?) = (\S+)$", output, re.MULTILINE)
    return {name: float(value) if re.search(r"[.en]", value) else int(value) for name, value in pairs}


def show(result, as_json=False):
    if as_json:
        return json.dumps(result, indent=2)
    lines = [result["output"].rstrip("\n")]
    for name, c in result["counts"].items():
        lines.append(f"{name}: {c['instructions']:,} instructions, {c['cycles']:,} modelled cycles")
    t = result["total"]
    lines.append(f"in all: {t['instructions']:,} instructions, {t['cycles']:,} modelled cycles; exit code {result['code']}")
    if "sizes" in result:
        s = result["sizes"]
        lines.append(f"code {s['code']:,}, flash {s['flash']:,}, RAM {s['ram']:,} bytes")
    return "\n".join(lines)
