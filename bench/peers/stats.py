"""From samples to a row of the report."""

from statistics import median, quantiles
from typing import NamedTuple

FEWEST_ROUNDS = 5
ENOUGH_CLEAN = 5  # rounds that nothing disturbed, to trust them alone
TIE, OF_LIMIT = 0.97, 90.0  # as near to the fastest peer as this, at so many percent of the limit, is level
LONG_CALL = 20e6  # ns; such a call is interrupted now and then on any system, for little of its time


class Sample(NamedTuple):
    ns: float  # of one call
    allocs: float  # heap calls of one
    interrupted: bool  # another program had the processor meanwhile

    @property
    def disturbed(self):
        return self.interrupted and self.ns < LONG_CALL


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high


def clean(rounds):
    """The rounds in which no program of others had the processor; all, if those are few."""
    kept = [one for one in rounds if not any(sample.disturbed for sample in one.values())]
    return kept if len(kept) >= ENOUGH_CLEAN else rounds


def summary(row, threads, rounds, limit):
    """The row of the report. A ratio is taken within a round, where both saw the same machine; the ratio of the
    row is the median of those, and its low and high are their quartiles."""
    kept = clean(rounds)
    times = {key: median(one[key].ns for one in kept) for key in rounds[0]}
    ours = times.pop("mica")
    fastest = min(times, key=times.get) if times else None
    result = {
        "name": row.name,
        "threads": threads,
        "ns": ours,
        "peers": times,
        "fastest": fastest,
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
        "tie": False,
        "percent_of_limit": 100.0 * float(limit[0]) / ours if limit[1] != "none" else None,
        "allocs": {key: median(one[key].allocs for one in rounds) for key in rounds[0]},
        "limit": limit[1],
        "aim": row.aim,
        "rounds": len(kept),
        "disturbed": len(kept) < ENOUGH_CLEAN or any(s.disturbed for one in kept for s in one.values()),
    }
    if fastest:
        ratios = [one[fastest].ns / one["mica"].ns for one in kept]
        result["ratio"] = median(ratios)
        result["ratio_low"], result["ratio_high"] = quartiles(ratios)
        result["tie"] = tied(result)
    return result


def tied(result):
    """A row that is behind by no more than its spread, or by little where there is little left to be had."""
    if result["ratio"] >= 1.0:
        return False
    return result["ratio_high"] >= 1.0 or (result["ratio"] >= TIE and (result["percent_of_limit"] or 0.0) >= OF_LIMIT)


def wants_more(result, aim, rounds, spent, seconds, patience):
    """Whether there is to be another round: a row whose spread lies across its aim, or that was disturbed, is run
    longer."""
    if rounds < FEWEST_ROUNDS and spent < patience * seconds:
        return True
    if spent < seconds:
        return True
    undecided = result["ratio"] is not None and result["ratio_low"] < aim <= result["ratio_high"]
    return (undecided or result["disturbed"]) and spent < patience * seconds
