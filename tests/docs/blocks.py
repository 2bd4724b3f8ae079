#!/usr/bin/env python3
"""Compiles every C block of the documents: blocks.py BUILD DOCUMENT...

A block with a main() is a program: it is compiled, linked with BUILD/libmica.a and run; one that includes mica/mpi.h is
linked with libmica_mpi too, and only compiled where BUILD has none. Any other is put into a frame,
a file of this folder that declares what the block takes for granted, where the frame has the line "/* block */", and
compiled. The frame is "function", whose block is the inside of a function, unless a comment before the block names another:

    <!-- c: file -->        the frame tests/docs/file.c.in
    <!-- c: + -->           compiled together with the block before: at the frame's next mark, or after that block
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MARK = "/* block */\n"
COMPILER = ["gcc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-Wno-unused"]
FOLDERS = ["-I" + os.path.join(ROOT, folder) for folder in ("include", "src", "tests", ".")]


class Block:
    def __init__(self, document, line, frame):
        self.document, self.line, self.frame, self.text = document, line, frame, ""

    def name(self):
        return f"{self.document}:{self.line}"

    def placed(self):
        """The text, with its place in the document for the compiler's messages."""
        return f'#line {self.line} "{self.document}"\n{self.text}'


def blocks_of(document):
    blocks, inside, frame = [], False, None
    with open(document, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            comment = re.fullmatch(r"<!-- c: (\S+) -->\n?", line)
            if inside and line.rstrip() == "```":
                inside = False
            elif inside:
                blocks[-1].text += line
            elif line.rstrip() == "```c":
                inside = True
                blocks.append(Block(document, number + 1, frame or "function"))
                frame = None
            elif comment:
                frame = comment[1]
            elif line.strip():
                if frame:
                    raise SystemExit(f"{document}:{number}: a comment names the frame {frame}, and no block follows")
    return blocks


def units_of(blocks):
    """Lists of blocks that are compiled together."""
    units = []
    for block in blocks:
        if block.frame != "+":
            units.append([block])
        elif units:
            units[-1].append(block)
        else:
            raise SystemExit(f"{block.name()}: there is no block before, to go on with")
    return units


def source_of(unit):
    if is_program(unit):
        return unit[0].placed()
    path = os.path.join(HERE, unit[0].frame + ".c.in")
    if not os.path.exists(path):
        raise SystemExit(f"{unit[0].name()}: there is no frame {path}")
    with open(path, encoding="utf-8") as file:
        pieces = file.read().split(MARK)
    source = pieces[0]
    for i, block in enumerate(unit):
        source += block.placed()
        if i + 1 < len(pieces):
            source += f'#line 1 "{unit[0].frame}.c.in"\n' + pieces[i + 1]
    return source + "".join(pieces[len(unit) + 1 :])


def is_program(unit):
    return re.search(r"\bint main\(", unit[0].text) is not None


def check(unit, build, folder):
    """What is wrong with a unit: the empty string if nothing is."""
    source, program = os.path.join(folder, "block.c"), os.path.join(folder, "block")
    with open(source, "w", encoding="utf-8") as file:
        file.write(source_of(unit))
    mpi = os.path.join(build, "libmica_mpi.so")
    uses_mpi = "#include <mica/mpi.h>" in unit[0].text
    if not is_program(unit) or (uses_mpi and not os.path.exists(mpi)):
        command = [*COMPILER, *FOLDERS, "-fsyntax-only", source]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr
    with open(os.path.join(build, "mica.pc"), encoding="utf-8") as file:
        libraries = re.search(r"^Libs\.private: (.*)$", file.read(), re.M)[1].split()
    command = [*COMPILER, FOLDERS[0], source, os.path.join(build, "libmica.a"), *libraries, "-o", program]
    if uses_mpi:
        command += [mpi, "-Wl,-rpath," + os.path.abspath(build)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        done = subprocess.run([program], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr + f"ended with {done.returncode}\n"


def main():
    build, documents = sys.argv[1], sys.argv[2:]
    blocks = [block for document in documents for block in blocks_of(document)]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for unit in units_of(blocks):
            said = check(unit, build, folder)
            if said:
                wrong += 1
                print(f"{unit[0].name()}: this block does not compile, or its program fails:\n{said}")
    print(f"{len(blocks)} blocks, {wrong} wrong")
    return 1 if wrong or not blocks else 0


sys.exit(main())
