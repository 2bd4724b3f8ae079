#!/usr/bin/env python3
"""The mica command on files that were changed at random: checkpoints, net files, data.

    command.py MICA SECONDS [SEED]

MICA should be built with sanitizers. A run must end with one of the command's own codes, without a word of a
sanitizer, print nothing that a terminal obeys, and JSON that is JSON. What does not is kept in ./found/, with the
command that shows it. Nets are changed word by word and metadata field by field, so that most of them get past the
parser; everything else byte by byte.
"""
import json, os, random, re, shutil, struct, subprocess, sys, tempfile, time, zlib

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(HERE, "..", "data", "hostile")
NUMBERS = ("0 1 -1 2 3 7 1e9 1e300 nan inf -inf 0.5 1e-300 0x10 65536 1000000 00012 -0 2147483647 2147483648 4294967296 "
           "9223372036854775807 -9223372036854775808 18446744073709551615 4611686018427387904").split() + ["", " ", "1 ", "1 2"]
OPTIONS = ("axis=0 axis=1 axis=-1 axis=7 pad=1 pad=100000 stride=2 stride=0 dilation=3 groups=2 relu gelu softmax one_hot "
           "ignore=0 target=x causal heads=2 kv_heads=1 start=1 stop=2 stop=-1 step=0 rate=0.5 no_bias hidden=5 rotary "
           "smoothing=0.1 i32 u8 i64").split()
TIMEOUT = 120  # seconds; a large net is slow under sanitizers, and no flaw


class Mutator:
    def __init__(self, seed, words):
        self.r = random.Random(seed)
        self.words = words

    def number(self):
        return self.r.choice(NUMBERS)

    def bytes(self, data, changes=None):
        data, r = bytearray(data), self.r
        for _ in range(changes or r.choice([1, 1, 2, 4, 16])):
            if not data:
                break
            at, kind = r.randrange(len(data)), r.randrange(5)
            if kind == 0:
                data[at] = r.randrange(256)
            elif kind == 1:
                data[at] ^= 1 << r.randrange(8)
            elif kind == 2:
                del data[at:at + r.choice([1, 2, 8, 100])]
            elif kind == 3:
                data[at:at] = r.choice([b"\0", b"\xff", b"\n", b"9", b"-", b'"', b",", b"\x1b[", b"\xc2\x9b"])
            else:
                data[at:at + 4] = struct.pack(">I", r.choice([0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 65536]))
        return bytes(data)

    def line(self):
        sizes = [self.r.choice([self.number(), "1", "2", "4", "8", "0 1", "3x3"]) for _ in range(self.r.randrange(3))]
        return " ".join([self.r.choice(self.words)] + sizes + self.r.sample(OPTIONS, self.r.randrange(3)))

    def net(self, text):
        lines, r = text.split("\n"), self.r
        for _ in range(r.choice([1, 1, 2, 3, 5])):
            lines = lines or [""]
            at, kind = r.randrange(len(lines)), r.randrange(8)
            if kind == 0:
                parts = re.split(r"(\d+)", lines[at])
                if len(parts) > 1:
                    parts[r.randrange(1, len(parts), 2)] = self.number()
                lines[at] = "".join(parts)
            elif kind == 1:
                lines.insert(at, self.line())
            elif kind == 2:
                del lines[at]
            elif kind == 3:
                lines[at] += " " + r.choice(OPTIONS)
            elif kind == 4:
                lines.insert(r.randrange(len(lines) + 1), lines[at])
            elif kind == 5:
                lines[at] = re.sub(r"\w+", r.choice(self.words), lines[at], count=1)
            elif kind == 6:
                shape = ", ".join(r.choice(["1", "2", "8", self.number()]) for _ in range(r.randrange(4)))
                lines.insert(at, "input y%d [%s]%s" % (r.randrange(9), shape, r.choice(["", " i32", " u8"])))
            else:
                lines[at] = self.bytes(lines[at].encode("latin1", "replace"), 1).decode("latin1")
        return "\n".join(lines)

    def metadata(self, own, others):
        r = self.r
        for _ in range(r.choice([1, 1, 2, 3])):
            key, kind = r.choice(sorted(own) or ["mica.net"]), r.randrange(7)
            if kind == 0:
                own.pop(key, None)
            elif kind <= 2:
                own[key] = self.number()
            elif kind == 3:
                own["mica.net"] = self.net(own.get("mica.net", ""))
            elif kind == 4:
                own[key] = self.bytes(own.get(key, "").encode(), 2).decode("latin1")
            elif kind == 5:
                other = r.choice(others)
                key = r.choice(sorted(other))
                own[key] = other[key]
            else:
                key = r.choice(["mica.sample", "mica.mean", "mica.deviation", "mica.vocabulary", "mica.classes"])
                between = "\n" if key == "mica.classes" else " "
                own[key] = between.join(self.number() for _ in range(r.randrange(5)))

    def png(self, data):
        """Changed, with checksums that are right again."""
        data, at = self.bytes(data), 8
        out = data[:8]
        while at + 8 <= len(data):
            size = struct.unpack(">I", data[at:at + 4])[0]
            if size > len(data):
                break
            body = data[at + 4:at + 8 + size]
            out += data[at:at + 4] + body + struct.pack(">I", zlib.crc32(body))
            at += 12 + size
        return out


def read_checkpoint(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), data[8 + size:]


def write_checkpoint(path, header, tensors):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + tensors)


def is_json(out):
    def refuse(word):
        raise ValueError(word)
    try:
        try:
            json.loads(out, parse_constant=refuse)
        except json.JSONDecodeError:  # a line for each
            for line in out.splitlines():
                json.loads(line, parse_constant=refuse)
        return True
    except ValueError:
        return False


class Command:
    def __init__(self, mica, folder):
        self.mica, self.folder, self.runs, self.found = os.path.abspath(mica), folder, 0, 0
        self.kept = os.path.abspath("found")
        self.environment = dict(
            os.environ, LC_ALL="C.UTF-8", UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:exitcode=98",
            ASAN_OPTIONS="allocator_may_return_null=1:max_allocation_size_mb=1500:hard_rss_limit_mb=3500:exitcode=99")

    def flaw(self, arguments, code, out, err):
        if code == "timeout" or code not in (0, 1, 2, 3, 4):
            return f"ends with {code}"
        if b"runtime error" in err or b"Sanitizer" in err:
            return "a sanitizer"
        if "--json" in arguments and code == 0 and not is_json(out.decode("utf-8", "replace")):
            return "no JSON"
        if any((c < 32 and c not in b"\n\t") or c == 127 for c in (b"" if arguments[0] == "generate" else out + err)):
            return "controls for a terminal"
        return None

    def run(self, arguments, changed):
        self.runs += 1
        try:
            done = subprocess.run([self.mica] + arguments, cwd=self.folder, env=self.environment, timeout=TIMEOUT,
                                  stdin=subprocess.DEVNULL, capture_output=True)
            code, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as slow:
            code, out, err = "timeout", slow.stdout or b"", slow.stderr or b""
        flaw = self.flaw(arguments, code, out, err)
        if flaw is None:
            return
        self.found += 1
        place = os.path.join(self.kept, str(self.found))
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        shutil.copy(os.path.join(self.folder, changed), place)
        open(os.path.join(place, "command"), "w").write("mica " + " ".join(arguments) + "\n")
        open(os.path.join(place, "stderr"), "wb").write(err)
        print(f"{place}: {flaw}: mica {' '.join(arguments)}", flush=True)


def prepare(mica, folder):
    """Sound files of each kind to begin with. Returns the nets' words."""
    def call(*arguments):
        return subprocess.run([mica, *arguments], cwd=folder, capture_output=True, text=True).stdout
    shutil.copytree(FILES, folder, dirs_exist_ok=True)
    for kind in ("png", "npy", "jpeg"):
        shutil.copytree(os.path.join(HERE, "..", "data", kind), os.path.join(folder, kind))
    for name in ("mlp", "lenet", "lstm", "gpt-tiny"):
        open(os.path.join(folder, name + ".net"), "w").write(call("info", name, "--text"))
    small = ["--set", "width=8", "--set", "length=8", "--epochs", "1", "-q", "--checkpoint"]
    call("train", "mlp", "--data", "flowers.csv", "--epochs", "1", "-q", "--checkpoint", "c1")
    call("train", "gpt-tiny", "--data", "small.txt", "--set", "layers=1", *small, "c2")
    call("train", "lstm", "--data", "small.txt", *small[:2], *small[4:], "c3")
    call("train", "ten.net", "--data", "flowers.csv", "--epochs", "1", "-q", "--checkpoint", "c4")
    for number, name in enumerate(8 * ["grey.pgm", "colour.ppm"]):
        place = os.path.join(folder, "pictures", name[:4])
        os.makedirs(place, exist_ok=True)
        shutil.copy(os.path.join(folder, "jpeg", name), os.path.join(place, f"{number}{name[-4:]}"))
    call("train", "mlp", "--data", "pictures", "--size", "6x6", "--set", "hidden=4", "--augment", "flip,shift=1,rotate=9",
         "--epochs", "1", "-q", "--checkpoint", "c5")
    return [line.split()[0] for line in call("help", "layers").splitlines() if line[:1].isalpha()]


def list_files(folder, *ends):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(ends))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    mica, end = os.path.abspath(sys.argv[1]), time.time() + float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    with tempfile.TemporaryDirectory() as folder:
        m = Mutator(seed, prepare(mica, folder))
        r, command = m.r, Command(mica, folder)
        checkpoints = [path for path in list_files(folder, ".safetensors") if os.path.getsize(path) < 100000]
        others = [read_checkpoint(path)[0]["__metadata__"] for path in checkpoints]
        nets, data = list_files(folder, ".net"), list_files(folder, ".png", ".npy", ".csv", ".jpg", ".ppm", ".pgm")
        data = [path for path in data if "," not in path]
        while time.time() < end:
            kind = r.choice(["checkpoint", "checkpoint", "resume", "net", "data"])
            shutil.rmtree(os.path.join(folder, "out"), ignore_errors=True)
            to_json = r.choice([[], ["--json"]])
            if kind in ("checkpoint", "resume"):
                header, tensors = read_checkpoint(r.choice(checkpoints))
                m.metadata(header["__metadata__"], others)
                os.makedirs(os.path.join(folder, "out"))
                path = "out/checkpoint.safetensors"
                write_checkpoint(os.path.join(folder, path), header, tensors)
                inputs = r.choice(["flowers.csv", "small.txt", "ok.png", "u8.npy", "two_x.npy", "jpeg/halved.jpg", "pictures"])
                part = ["--part", r.choice(["all", "train", "validation", "test"]), "--threads", "1"]
                command.run(["train", "--checkpoint", "out", "--resume", "--threads", "1", "-q", "--epochs", "2"]
                            if kind == "resume" else
                            r.choice([["eval", path, "--show", "5", *part], ["eval", path, *part, *to_json],
                                      ["run", path, inputs, "--threads", "1", *to_json],
                                      ["run", path, inputs, "--label", "-1", *to_json],
                                      ["generate", path, "--tokens", "12"], ["info", path, *to_json],
                                      ["plan", path, "--train", "--batch", "3"]]), path)
            elif kind == "net":
                text = m.net(open(r.choice(nets), encoding="latin1").read())
                open(os.path.join(folder, "changed.net"), "w", encoding="latin1", errors="replace").write(text)
                known = r.choice(["flowers.csv", "small.txt", "digits:20"])
                command.run(r.choice([["plan", "changed.net", *to_json], ["info", "changed.net", *to_json],
                                      ["plan", "changed.net", "--train", "--batch", "4"],
                                      ["train", "changed.net", "--data", known, "--epochs", "1", "-q", "--checkpoint",
                                       "out", *r.choice([[], ["--report", "report.html"], ["--budget", "40K"]])]]),
                            "changed.net")
            else:
                source = r.choice(data)
                content, end_of_name = open(source, "rb").read(), source[-4:]
                content = m.png(content) if end_of_name == ".png" else m.bytes(content)
                path = "changed" + end_of_name
                open(os.path.join(folder, path), "wb").write(content)
                label = ["--label", "-1"] if end_of_name == ".csv" else []
                command.run(r.choice([["info", path, *to_json], ["run", "img.safetensors", path, *label],
                                      ["run", "c1", path, *label], ["run", "c5", path, "jpeg"]]), path)
    print(f"seed {seed}: {command.runs} runs, {command.found} flaws")
    sys.exit(command.found > 0)


main()
