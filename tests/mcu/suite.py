"""A list of checks, run as many at once as there are processors; the last line is the sum that ./dev adds up."""

import concurrent.futures
import os
import threading
import time
import traceback


class Suite:
    def __init__(self, filters):
        self.filters, self.checks = filters, []
        self.lock = threading.Lock()

    def add(self, name, check, *arguments):
        """check(*arguments) may return a line to print; it raises something if it does not hold."""
        if not self.filters or any(word in name for word in self.filters):
            self.checks.append((name, check, arguments))

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            passed = sum(pool.map(lambda entry: self.run_one(*entry), self.checks))
        print(f"{passed} passed, {len(self.checks) - passed} failed, 0 skipped")
        return 0 if passed == len(self.checks) > 0 else 1

    def run_one(self, name, check, arguments):
        start = time.monotonic()
        try:
            told, failure = check(*arguments), None
        except AssertionError as wrong:
            failure = str(wrong) or traceback.format_exc()
        except Exception:  # whatever it is, it is this check's failure
            failure = traceback.format_exc()
        with self.lock:
            if failure:
                print("\n".join("  " + line for line in failure.splitlines()[-25:]))
                print(f"FAIL {name}", flush=True)
            else:
                print(f"ok   {name:60} {time.monotonic() - start:4.1f} s", flush=True)
                if told:
                    print("\n".join("     " + line for line in told.splitlines()), flush=True)
        return failure is None
