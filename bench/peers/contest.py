"""Contestants, one process each, and one row measured on all of them in turns."""

import contextlib
import fcntl
import os
import subprocess
import time

import stats

SAMPLE_NS = 8e6  # the least time of a sample: long beside coming to speed after a sleep, short beside a round
IDLE_SECONDS = 0.2  # for a process to come to rest


class Failed(Exception):
    """A contestant that ended, or could not do what it had begun."""

    def __init__(self, contestant, what):
        super().__init__(f"{contestant.key} {what}")
        self.contestant = contestant


def tasks_of(pid):
    """The threads of a process, the main one first."""
    return sorted(map(int, os.listdir(f"/proc/{pid}/task")))


def spread(pid, threads):
    """Gives a process's main thread one processor and each of its helpers another. Left to itself the system may run two
    of them on one for some milliseconds after they slept, as here they do before every sample. Whoever has several crews
    of helpers (OpenMP's and OpenBLAS's) made one after the other. A thread alone stays on the last processor, away from
    this program."""
    processors = sorted(os.sched_getaffinity(0))
    if threads == 1:
        processors = processors[-1:]
    for i, task in enumerate(tasks_of(pid)):
        place = 1 + (i - 1) % (threads - 1) if i > 0 and threads > 1 else 0
        os.sched_setaffinity(task, {processors[place % len(processors)]})


def release(pid):
    """Undoes spread."""
    for task in tasks_of(pid):
        os.sched_setaffinity(task, os.sched_getaffinity(0))


def rest(pid):
    """Waits until all threads of a process sleep: some spin for a while when their work is done."""
    end = time.monotonic() + IDLE_SECONDS
    while busy(pid) and time.monotonic() < end:
        time.sleep(0.0002)


def busy(pid):
    for task in tasks_of(pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as file:
            if file.read().rpartition(")")[2].split()[0] == "R":
                return True
    return False


class Contestant:
    """A program that answers lines: bench/serve.c says which."""

    def __init__(self, key, command, threads, environment=None, errors=None):
        self.key = key
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            bufsize=1,
            env={**os.environ, **(environment or {})},
        )
        self.greeting = []
        for line in self.process.stdout:
            if line.strip() == "ready":
                spread(self.process.pid, threads)
                return
            self.greeting.append(line.strip())
        self.end()
        raise Failed(self, f"ended at once: {' '.join(command)}")

    def ask(self, line):
        """The words of the answer; None if it is a refusal."""
        answer = ""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        if not answer:
            raise Failed(self, f"ended when asked: {line}")
        words = answer.split()
        return None if words and words[0] == "no" else words

    def rest(self):
        rest(self.process.pid)

    def sample(self, ns=SAMPLE_NS):
        words = self.ask(f"sample {ns:.0f}")
        if words is None:
            raise Failed(self, "failed in a row that it had prepared")
        self.rest()
        return stats.Sample(float(words[0]), float(words[1]), words[2] == "1")

    def end(self):
        """Whoever does not end with its input is ended."""
        try:
            self.process.communicate(timeout=10)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def machine():
    """The machine for ourselves: MICA_BENCH_LOCK names a file that all who measure here lock."""
    path = os.environ.get("MICA_BENCH_LOCK")
    if not path:
        yield
        return
    with open(path, "a", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def measure(row, threads, mica, peers, seconds, patience):
    """Samples in turns for so long, and up to `patience` times that while the spread lies across the aim."""
    if mica.ask(f"prepare {row.name}") is None:
        raise Failed(mica, f"has no row {row.name}")
    told = " ".join(["prepare", row.name, row.kind, *map(str, row.sizes)])
    modes = {}
    for peer in peers:
        answer = peer.ask(told)
        peer.rest()
        if answer is not None:
            modes[peer.key] = " ".join(answer[1:])
    mica.rest()
    present = [mica] + [peer for peer in peers if peer.key in modes]
    rounds, limit = [], ["0", "none"]
    start = time.monotonic()
    while True:
        first = len(rounds) % len(present)  # nobody is always the one after the slowest
        rounds.append({one.key: one.sample() for one in present[first:] + present[:first]})
        limit = mica.ask(f"limit {SAMPLE_NS:.0f}") or limit
        mica.rest()
        spent = time.monotonic() - start
        result = stats.summary(row, threads, rounds, limit)
        if not stats.wants_more(result, row.aim, len(rounds), spent, seconds, patience):
            break
    for one in present:
        one.ask("drop")
    result["modes"] = modes
    return result
