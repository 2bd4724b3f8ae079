#!/usr/bin/env python3
"""Runs the commands of a document, and compares what they say with what it shows: commands.py BUILD DOCUMENT...

Blocks fenced as ```sh are run in their order by bash -e, in a folder of the document's own, with BUILD first in PATH
and this repository as $MICA. Each must
end with 0, or with what a comment before it says. A block without a language right after it is what the command says,
shortened: each of its lines is one of the output's, in that order. Numbers may be a little off, as they depend on the
processor: by a third, by 0.05, or by 10 %, unless a comment says that they may not.

    <!-- sh: ends 3 -->
    <!-- sh: exact -->
"""

import os
import re
import subprocess
import sys
import tempfile

NUMBER = re.compile(r"(?<![A-Za-z_])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


class Block:
    def __init__(self, line, comment):
        self.line, self.text, self.shown = line, "", None
        self.exact = comment == "exact"
        self.code = int(comment.split()[1]) if comment.startswith("ends ") else 0


def blocks_of(document):
    blocks, comment, language, after = [], "", None, False
    with open(document, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            note, fence = re.fullmatch(r"<!-- sh: (exact|ends \d+) -->\n?", line), re.fullmatch(r"```(\w*)\n?", line)
            if language is not None and fence:
                after, language = language == "sh", None
            elif language == "sh":
                blocks[-1].text += line
            elif language == "":
                if blocks and blocks[-1].shown is not None:
                    blocks[-1].shown += line
            elif fence:
                language = fence[1]
                if language == "sh":
                    blocks.append(Block(number + 1, comment))
                    comment = ""
                elif language == "" and after:
                    blocks[-1].shown = ""
            elif note:
                comment = note[1]
            elif line.strip() and language is None:
                after = False
                if comment:
                    raise SystemExit(f"{document}:{number}: a comment says how a command ends, and none follows")
    return blocks


def value(text):
    return float(text.replace(",", ""))


def is_near(shown, said, percent):
    a, b = value(shown), value(said)
    return abs(a - b) <= max(max(abs(a), abs(b)) / 3, 10 if percent else 0.05)


def is_like(shown, said, exact):
    shown, said = " ".join(shown.split()), " ".join(said.split())
    if exact or shown == said:
        return shown == said
    if NUMBER.sub("#", shown) != NUMBER.sub("#", said):
        return False
    return all(
        is_near(a[0], b[0], shown[a.end() : a.end() + 2] == " %")
        for a, b in zip(NUMBER.finditer(shown), NUMBER.finditer(said))
    )


def missing_line(block, said):
    """The first line shown that is not said, after those before it; None if all are."""
    rest = iter(said.splitlines())
    for line in (block.shown or "").splitlines():
        if line.strip() and not any(is_like(line, other, block.exact) for other in rest):
            return line
    return None


def check(document, folder, environment):
    wrong, blocks = 0, blocks_of(document)
    for block in blocks:
        command = ["bash", "-e", "-c", block.text]
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        said = done.stdout.decode("utf-8", "replace")
        line = missing_line(block, said)
        if done.returncode != block.code or line is not None:
            wrong += 1
            what = f"does not say: {line}" if done.returncode == block.code else f"ends with {done.returncode}"
            print(f"{document}:{block.line}: {block.text.splitlines()[0]} ... {what}\n{said}")
        if done.returncode != block.code:
            break  # those after it build on it
    print(f"{document}: {len(blocks)} blocks of commands, {wrong} wrong")
    return wrong == 0 and len(blocks) > 0


def main():
    build, documents = os.path.abspath(sys.argv[1]), sys.argv[2:]
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = dict(os.environ, PATH=build + ":" + os.environ["PATH"], LC_ALL="C.UTF-8", MICA=root)
    good = True
    for document in documents:
        with tempfile.TemporaryDirectory() as folder:
            good = check(document, folder, environment) and good
    return 0 if good else 1


sys.exit(main())
