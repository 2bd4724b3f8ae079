"""./dev bench --peers known without PyPI's packages: the nets, Mica's side, the marks, and rows against programs made
up here.

test_known.py MICA
"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(ROOT, "bench", "peers"))

import contest  # noqa: E402
import known  # noqa: E402
import known_latency  # noqa: E402
import known_report  # noqa: E402
import known_rows  # noqa: E402

MICA = os.path.join(ROOT, "build", "mica")

# A peer that takes the nanoseconds it is told, and has grown by 64 MB.
PEER = """
import json, sys
print(json.dumps({"parameters": 7, "grown": 64e6}) + "\\nready", flush=True)
for line in sys.stdin:
    print(f"{sys.argv[1]} 2 0" if line.startswith("sample") else "1000 2000 90000 100000", flush=True)
"""

SMALL = ["policy-train-64", "policy-infer-1", "lenet5-train-32", "dscnn-infer-1"]


class MadeUp(contest.Contestant):
    def __init__(self, key, spec):
        super().__init__(key, [sys.executable, "-c", PEER, str(spec["ns"])], spec["threads"])
        self.told = json.loads(self.greeting[0])


def made_up(told):
    peers, failed = [], {}
    for key, spec in told:
        if key == "openvino":
            failed[key] = "made up"
        else:
            peers.append(MadeUp(key, {**spec, "ns": 1e9 if key.endswith("eager") else 2e9}))
    return peers, failed


def row_of(name):
    return next(row for row in known_rows.ROWS if row.name == name)


def options(*words):
    with contextlib.redirect_stderr(io.StringIO()):
        return known.options(list(words))


def result(train, percent=50.0, work=1e6, grown=4e6, heap=0.0):
    times = {"torch eager": 3.0, "torch compile": 2.0, **({} if train else {"onnxruntime": 1.0})}
    return {"train": train, "peers": times,
            "grown": {"torch eager": grown, "torch compile": 2 * grown}, "percent_of_peak": percent, "work_bytes": work,
            "heap_calls": {"mica": heap}}


def rounds(ours, train):
    return [{"mica": ours, "torch eager": 3.0, "torch compile": 2.0, **({} if train else {"onnxruntime": 1.0})}] * 3


class Marks(unittest.TestCase):
    def test_training_is_held_against_the_best_way_of_pytorch(self):
        self.assertTrue(known_report.judge(result(True), rounds(1.6, True))["meets_speed"])
        self.assertFalse(known_report.judge(result(True), rounds(1.8, True))["meets_speed"])
        self.assertTrue(known_report.judge(result(True, percent=91.0), rounds(1.8, True))["meets_speed"])
        self.assertFalse(known_report.judge(result(True, percent=91.0), rounds(2.2, True))["meets_speed"])

    def test_inference_is_held_against_the_faster_of_pytorch_and_onnxruntime(self):
        level = known_report.judge(result(False), rounds(1.0, False))
        self.assertTrue(level["meets_speed"])
        self.assertEqual((level["best_torch"], level["ratio_torch"]), ("torch compile", 2.0))
        self.assertFalse(known_report.judge(result(False, percent=99.0), rounds(1.01, False))["meets_speed"])

    def test_memory_is_held_against_the_way_that_takes_least(self):
        self.assertTrue(known_report.judge(result(True, work=2e6), rounds(1, True))["meets_memory"])
        self.assertFalse(known_report.judge(result(False, work=2e6), rounds(1, False))["meets_memory"])
        self.assertIsNone(known_report.judge(result(False, grown=9e5), rounds(1, False))["meets_memory"])

    def test_the_last_line_counts(self):
        rows = [known_report.judge(result(True), rounds(ours, True)) for ours in (1.0, 1.8, 3.0)]
        self.assertIn("3 rows: 1 of 3 meet the mark of speed, 3 of 3 that of memory", known_report.score(rows))
        self.assertIn("2 at least as fast as PyTorch", known_report.score(rows))

    def test_latency(self):
        told = {"p50": 1000.0, "p99": 1900.0, "p99.9": 9000.0, "worst": 1e5}
        good = known_latency.judge({"mica": told, "other": {**told, "p99.9": 9500.0}})
        self.assertEqual(list(good.values()), [True, True, True])
        bad = known_latency.judge({"mica": {**told, "p50": 1300.0, "p99": 2700.0}, "other": told})
        self.assertEqual(list(bad.values()), [False, False, False])


class Options(unittest.TestCase):
    def test_what_cannot_be_is_refused(self):
        for words in (["--threads", "x"], ["--threads", "0"], ["--rounds", "0"], ["--seconds", "-1"], ["row"]):
            with self.assertRaises(SystemExit, msg=words):
                options(*words)

    def test_only(self):
        self.assertEqual(len(known.chosen([])), len(known_rows.ROWS))
        self.assertEqual([row.name for row in known.chosen(["unet"])], ["unet-train-4", "unet-infer-1"])
        with self.assertRaises(SystemExit) as problem:
            known.main(["--only", "no-such-net"])
        self.assertIn("no row has no-such-net", str(problem.exception))


class Nets(unittest.TestCase):
    def test_every_net_is_a_file_with_the_inputs_that_peers_are_told(self):
        for row in known_rows.ROWS:
            path = os.path.join(ROOT, "bench", "known", f"{row.net.name}.net")
            words = [MICA, "info", path] + [word for one in row.net.constants for word in ("--set", one)]
            told = subprocess.run([*words, "--json"], capture_output=True, text=True, check=True)
            info = json.loads(told.stdout)
            self.assertIn(row.net.input, json.dumps(info), row.name)

    def test_every_net_of_a_row_has_a_module_of_its_name(self):
        text = Path(ROOT, "bench", "known", "models.py").read_text(encoding="utf-8")
        for row in known_rows.ROWS:
            self.assertIn(f'"{row.net.name}":', text)

    def test_bad_nets_are_refused_and_the_server_goes_on(self):
        lines = ["net", "net x", "net no-such.net infer 1 1", "net a.net guess 1 1", "net a.net infer 0 1", "sample 1",
                 f"net {ROOT}/bench/known/control.net infer 1 1 side=x", f"net {ROOT}/bench/known/minilm.net train 1 9",
                 f"net {ROOT}/bench/known/control.net infer 1 1"]
        told = subprocess.run([MICA, "bench", "--serve", "--quick"], input="\n".join(lines) + "\n", capture_output=True,
                              text=True, check=True)
        answers = told.stdout.split("ready\n")[1].splitlines()
        self.assertEqual([one.split()[0] for one in answers], ["no"] * 8 + ["ok"])
        self.assertEqual(answers[-1].split()[1], str(8 * 64 + 64 + 64 * 64 + 64 + 64 * 4 + 4))


class Rows(unittest.TestCase):
    def setUp(self):
        self.start_peers, self.file_of = known.start_peers, known.file_of
        known.start_peers, known.file_of = made_up, lambda net, ending: net.name + ending
        known.MICA = Path(MICA)

    def tearDown(self):
        known.start_peers, known.file_of = self.start_peers, self.file_of

    def test_a_row_against_made_up_peers(self):
        given = options("--rounds", "2", "--seconds", "0.001")
        for name in SMALL:
            row = row_of(name)
            found = known.measure(given, row, 1)
            self.assertEqual(found["heap_calls"]["mica"], 0, name)
            self.assertEqual(found["best_torch"], "torch eager", name)
            self.assertGreater(found["ratio_torch"], 1.0, name)
            self.assertGreater(found["flops"], 0.0, name)
            self.assertGreater(found["work_bytes"], 0.0, name)
            learned = 4 * found["parameters"] * (4 if row.train else 1)
            rest = found["plan"] - found["work_bytes"] - found["prepared_bytes"]
            self.assertTrue(learned <= rest < learned + 4096, name)  # buffers begin at multiples of 64 bytes
            # steps that learn prepare nothing; nor does the policy, whose one sample reads its weights in place
            self.assertEqual(found["prepared_bytes"] > 0, name == "dscnn-infer-1", name)
            self.assertEqual(found["failed"], {} if row.train else {"openvino": "made up"}, name)
            with contextlib.redirect_stdout(io.StringIO()) as shown:
                known_report.line(found)
            self.assertIn("speed ok", shown.getvalue())
            self.assertIn(f" {1e-6 * found['prepared_bytes']:.1f}    0 ", shown.getvalue())

    def test_a_whole_run_writes_its_file(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as shown:
            known.OUT = Path(folder)
            path = os.path.join(folder, "known.json")
            words = ["--only", "policy-infer", "--only", "latency", "--threads", "1", "--rounds", "1", "--seconds", "0",
                     "--no-check", "--json", path]
            self.assertEqual(known.main(words), 0)
            told = json.loads(Path(path).read_text(encoding="utf-8"))
        self.assertEqual([row["name"] for row in told["rows"]], ["policy-infer-1"])
        self.assertLess(told["latency"]["ns"]["mica"]["p50"], told["latency"]["ns"]["mica"]["worst"])
        self.assertIn("1 rows: 1 of 1 meet the mark of speed", shown.getvalue())


class Programs(unittest.TestCase):
    def test_latency(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "l.json")
            words = [MICA, "bench", "--latency", "--quick", "--json"]
            told = subprocess.run([*words, path], capture_output=True, text=True, check=True)
            found = json.loads(Path(path).read_text(encoding="utf-8"))["latency"]
        self.assertIn("2000 runs", told.stdout)
        self.assertTrue(0 < found["p50_ns"] <= found["p99_ns"] <= found["p999_ns"] <= found["worst_ns"])
        bad = subprocess.run([*words, "/no/such/folder/l.json"], capture_output=True)
        self.assertEqual(bad.returncode, 3)

    def cost_of(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "b.json")
            run = [MICA, "bench", "--quick", "--exactly", "relu_32x512_fwd", *words, "--json", path]
            subprocess.run(run, capture_output=True, check=True)
            told = json.loads(Path(path).read_text(encoding="utf-8"))
        self.assertEqual([one["name"] for one in told["cases"]], ["relu_32x512_fwd"])
        return told["machine"], told["cases"][0]

    def test_costs_are_counted_or_it_is_said_why_not(self):
        machine, row = self.cost_of()
        if machine["counted_by"] is None:
            self.assertIn("counters", machine["not_counted"])
            self.assertIsNone(row["instructions"])
            self.assertIsNone(row["bytes_moved"])
        else:
            self.assertIsNone(machine["not_counted"])
            self.assertGreater(row["instructions"], 32 * 512 / 16)
        self.assertEqual(subprocess.run([MICA, "bench", "--cost", "magic"], capture_output=True).returncode, 2)

    @unittest.skipUnless(shutil.which("valgrind"), "there is no valgrind")
    def test_costs_by_valgrind(self):
        machine, row = self.cost_of("--cost", "callgrind")
        self.assertEqual((machine["counted_by"], machine["not_counted"]), ("callgrind", None))
        self.assertTrue(32 * 512 / 16 < row["instructions"] < 32 * 512 * 40)
        self.assertLess(row["bytes_moved"], 32 * 512 * 4 * 4)

    def test_calls_alone_measure_nothing(self):
        told = subprocess.run([MICA, "bench", "--exactly", "relu_32x512_fwd", "--calls", "3"], capture_output=True)
        self.assertEqual((told.returncode, told.stdout), (0, b""))
        for words in (["--calls", "0"], ["--calls", "1", "--exactly", "relu_32x512"]):
            self.assertEqual(subprocess.run([MICA, "bench", *words], capture_output=True).returncode, 2, words)

    def test_hop(self):
        told = subprocess.run([MICA, "bench", "--hop"], capture_output=True, text=True)
        if len(os.sched_getaffinity(0)) < 2:
            self.assertEqual(told.returncode, 1)
            self.assertIn("two processors", told.stderr)
        else:
            self.assertRegex(told.stdout, r"^\d+ ns from processor \d+ to \d+\n$")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        MICA = os.path.abspath(sys.argv.pop(1))
    unittest.main()
