"""./dev bench --peers without its peers: the arithmetic, the report, and a run of Mica against programs made up here.

test_peers.py MICA
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "peers"))

import contest  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import stats  # noqa: E402
import verify  # noqa: E402

MICA = os.path.join(HERE, "..", "..", "build", "mica")

# A peer that has one kind of row, takes the nanoseconds it is told, and gives the sum of Mica's numbers as its result.
PEER = """
import struct, sys
print("Peer 1.0\\nready", flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "prepare" and words[2] != "add":
        answer = "no such kind"
    elif words[0] == "sample":
        answer = f"{sys.argv[1]} 2 0"
    elif words[0] == "result":
        def numbers(index):
            state = (index + 1) * 2654435761 + 1 & 0xFFFFFFFF
            for _ in range(512):
                state = state * 1664525 + 1013904223 & 0xFFFFFFFF
                yield (state >> 8) * 2.0**-23 - 1.0
        values = [a + b for a, b in zip(numbers(1), numbers(2))]
        open(words[2], "wb").write(struct.pack("512f", *values))
        answer = "ok"
    else:
        answer = "ok as told"
    print(answer, flush=True)
"""

ADD = rows.Row("add_into_dst_1000x512", "add", (512, 1000), 3.0, (0,))


def sample(ns, allocs=0.0, interrupted=False):
    return stats.Sample(ns, allocs, interrupted)


class Arithmetic(unittest.TestCase):
    def test_the_ratio_is_the_median_within_rounds(self):
        # The machine slows down by ten in the last round: the ratio of that round does not.
        rounds = [{"mica": sample(n), "slow": sample(9 * n), "fast": sample(2 * n)} for n in (100, 100, 1000)]
        rounds[0]["fast"] = sample(150)
        found = stats.summary(ADD, 2, rounds, ["50", "copy"])
        self.assertEqual((found["name"], found["threads"], found["ns"]), (ADD.name, 2, 100))
        self.assertEqual((found["fastest"], found["peers"]), ("fast", {"slow": 900, "fast": 200}))
        self.assertEqual((found["ratio"], found["ratio_low"], found["ratio_high"]), (2.0, 1.75, 2.0))
        self.assertEqual(found["percent_of_limit"], 50.0)

    def test_without_a_peer_there_is_no_ratio(self):
        found = stats.summary(ADD, 1, [{"mica": sample(7)}], ["0", "none"])
        self.assertEqual((found["fastest"], found["ratio"], found["percent_of_limit"]), (None, None, None))
        self.assertFalse(stats.wants_more(found, 3.0, 5, 2.0, 1.0, 3.0) and not found["disturbed"])

    def test_disturbed_rounds_are_left_out_where_enough_are_not(self):
        good = [{"mica": sample(10), "peer": sample(20)}] * stats.ENOUGH_CLEAN
        bad = [{"mica": sample(10), "peer": sample(500, interrupted=True)}] * 20
        self.assertEqual(stats.summary(ADD, 1, good + bad, ["0", "none"])["ratio"], 2.0)
        few = stats.summary(ADD, 1, good[1:] + bad, ["0", "none"])
        self.assertEqual((few["ratio"], few["disturbed"]), (50.0, True))
        self.assertFalse(sample(stats.LONG_CALL, interrupted=True).disturbed)

    def test_a_row_across_its_aim_is_run_longer(self):
        found = {"ratio": 1.2, "ratio_low": 1.1, "ratio_high": 1.3, "disturbed": False}
        more = lambda aim, rounds, spent: stats.wants_more(found, aim, rounds, spent, 1.0, 3.0)
        self.assertTrue(more(2.0, 9, 0.5))  # time is left
        self.assertTrue(more(2.0, 2, 1.5))  # too few rounds
        self.assertFalse(more(2.0, 9, 1.5))  # decided: below
        self.assertFalse(more(1.0, 9, 1.5))  # decided: above
        self.assertTrue(more(1.2, 9, 1.5))
        self.assertFalse(more(1.2, 9, 3.5))  # patience ends

    def test_a_tie_is_behind_by_its_spread_or_by_little_at_the_limit(self):
        def found(ratio, high, percent):
            return stats.tied({"ratio": ratio, "ratio_high": high, "percent_of_limit": percent})

        self.assertFalse(found(1.0, 1.1, 99.0))  # ahead
        self.assertTrue(found(0.9, 1.0, None))
        self.assertFalse(found(0.96, 0.99, 95.0))
        self.assertTrue(found(0.97, 0.98, 90.0))
        self.assertFalse(found(0.97, 0.98, 89.0))
        self.assertFalse(found(0.98, 0.99, None))
        rounds = [{"mica": sample(100), "peer": sample(ns)} for ns in (95, 96, 97, 101, 101)]
        row = stats.summary(ADD, 1, rounds, ["50", "copy"])
        self.assertEqual((row["ratio"], row["tie"], report.verdict(row)), (0.97, True, "tie"))
        row = stats.summary(ADD, 1, [{"mica": sample(100), "peer": sample(90)}] * 5, ["50", "copy"])
        self.assertEqual((row["tie"], report.verdict(row)), (False, "BEHIND"))

    def test_distance(self):
        self.assertEqual(verify.distance([1.0, -4.0], [1.0, -3.0]), 0.25)
        self.assertEqual(verify.distance([1.0], [1.0, 2.0]), float("inf"))
        self.assertEqual(verify.distance([1.0], [float("nan")]), float("inf"))

    def test_rows(self):
        names = [row.name for row in rows.ROWS]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual([row.name for row in rows.chosen(["sgemm_512", "gpt"])],
                         ["sgemm_512", "sgemm_512x2048x512", "gpt_step_16x64_d128_h4_l4"])


class Options(unittest.TestCase):
    def test_peers_takes_no_filter_for_its_value(self):
        given = peers.options(["--peers", "sgemm", "lstm", "--threads", "1,4"])
        self.assertEqual((given.peers, given.filters, given.threads), ("debian", ["sgemm", "lstm"], [1, 4]))
        self.assertEqual(peers.options(["--peers=newest", "--quick"]).peers, "newest")


    def test_the_newest_come_instead_of_debians_where_they_are(self):
        before = peers.PROGRAMS
        with tempfile.TemporaryDirectory() as folder:
            peers.PROGRAMS = folder
            for name in ("openblas-newest", "mkl-newest"):
                open(os.path.join(folder, name), "w", encoding="ascii").close()
            told = {which: {one[0]: os.path.basename(one[1][0]) for one in peers.commands(which, 1)}
                    for which in ("debian", "newest")}
        peers.PROGRAMS = before
        self.assertEqual(list(told["debian"]), ["onednn", "openblas", "blis", "pytorch"])
        self.assertEqual([told["newest"][key] for key in ("onednn", "openblas", "blis", "mkl")],
                         ["onednn", "openblas-newest", "blis", "mkl-newest"])


class Report(unittest.TestCase):
    def setUp(self):
        rounds = [{"mica": sample(100), "onednn": sample(250, 4), "pytorch": sample(1500, 31)}] * 5
        self.rows = [{**stats.summary(ADD, n, rounds, ["90", "copy"]), "modes": {"onednn": "a<b"}} for n in (1, 2)]
        self.rows.append({**stats.summary(ADD._replace(name="alone"), 1, [{"mica": sample(5)}], ["0", "none"]),
                          "modes": {}})
        self.machine = {"cpu": "A <cpu>", "isa": "avx2", "commit": "commit 1", "peers": {"onednn": "oneDNN 2"},
                        "peaks": [{"threads": 1, "peak_gflops": 100.0, "copy_gbs": 10.0}]}

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "peers")
            report.write(path, self.machine, self.rows)
            self.assertEqual(report.read(path + ".json"), (self.machine, self.rows))
            with open(path + ".json", encoding="utf-8") as file:
                row = json.load(file)["rows"][0]
            self.assertLessEqual({"name", "threads", "ns", "peers", "fastest", "ratio", "ratio_low", "ratio_high",
                                  "percent_of_limit", "allocs"}, set(row))
            self.assertEqual(row["allocs"], {"mica": 0, "onednn": 4, "pytorch": 31})
            with open(path + ".html", encoding="utf-8") as file:
                page = file.read()
        self.assertIn("A &lt;cpu&gt;", page)
        self.assertIn("a&lt;b", page)
        self.assertNotIn("http", page)  # nothing is fetched

    def test_tables(self):
        self.assertIn(f"| {ADD.name} | 100 ns | 250 ns | - | - | - | 1.50 us | 2.50 (2.50-2.50) | 3 | 90 % of copy | "
                      "0; oneDNN 4 | below the aim |", report.markdown(self.machine, self.rows))
        self.assertIn(f"| {ADD.name} | 100 ns | oneDNN 250 ns | **2.50** | 100 ns | oneDNN 250 ns | **2.50** | "
                      "0; oneDNN 4 |", report.readme(self.rows))
        self.assertIn("2 rows with a peer: 2 at least as fast as the fastest of them, 0 tied with it, 0 as", report.score(self.rows))

    def test_durations(self):
        self.assertEqual([report.duration(ns) for ns in (None, 1, 99.94, 1234, 5e6, 7e9)],
                         ["-", "1.00 ns", "99.9 ns", "1.23 us", "5.00 ms", "7.00 s"])


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "peer.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PEER)
        self.mica = contest.Contestant("mica", [MICA, "bench", "--serve", "--quick"], 1)
        self.peers = [contest.Contestant(key, [sys.executable, path, ns], 1) for key, ns in (("a", "1"), ("b", "1e12"))]

    def tearDown(self):
        for one in [self.mica, *self.peers]:
            one.end()
        self.folder.cleanup()

    def test_a_row(self):
        found = contest.measure(ADD, 1, self.mica, self.peers, 0.0, 1.0)
        self.assertEqual((found["fastest"], found["peers"], found["limit"]), ("a", {"a": 1.0, "b": 1e12}, "copy"))
        self.assertEqual(found["allocs"], {"mica": 0, "a": 2, "b": 2})
        self.assertTrue(0.0 < found["ratio"] < 1.0 < found["ns"])
        self.assertEqual(found["modes"], {"a": "as told", "b": "as told"})
        alone = contest.measure(rows.chosen(["relu_32x512_fwd"])[0], 1, self.mica, self.peers, 0.0, 1.0)
        self.assertEqual((alone["peers"], alone["ratio"]), ({}, None))

    def test_results_agree(self):
        self.assertEqual(verify.row(ADD, self.mica, self.peers, self.folder.name), 0)

    def test_every_row_is_one_of_mica(self):
        listed = subprocess.run([MICA, "bench", "--list"], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual([row.name for row in rows.ROWS if row.name not in listed], [])
        self.assertIsNone(self.mica.ask("prepare no_such_row"))

    def test_who_ends_at_once_is_named(self):
        with self.assertRaisesRegex(contest.Failed, "nobody ended at once"):
            contest.Contestant("nobody", ["true"], 1)

    def test_a_peer_that_fails_is_left_out(self):
        given = peers.options(["--quick"])
        present = list(self.peers)
        present[0].process.kill()
        with contextlib.redirect_stderr(io.StringIO()) as said:
            found = peers.measure_row(given, ADD, 1, self.mica, present)
        self.assertEqual((found["fastest"], [peer.key for peer in present]), ("b", ["b"]))
        self.assertIn("a ended when asked: prepare", said.getvalue())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        MICA = os.path.abspath(sys.argv.pop(1))
    unittest.main()
