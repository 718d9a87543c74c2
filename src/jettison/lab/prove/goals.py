"""Whether Jettison met what it set out for beside its rivals: holds, fails, or cannot tell.

Three words, because nothing found is not the same as nothing there. That no rival is better is said only where all of an
interval says so, to a margin; that one is better, only where it would hardly be found by chance among so many comparisons.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from jettison.lab import intervals
from jettison.lab.intervals import Interval
from jettison.lab.prove.judge import LARGER_IS_BETTER

Samples = Mapping[str, Mapping[str, Sequence[float]]]
"""Figures of the runs, by entrant and measure. Jettison comes first, and again under other names that begin with its own."""

MARGINS: Mapping[str, float] = {"utility": 0.02, "error_mean": 0.01, "late_windows": 0.02}
"""A rival that is better by no more than this is not called better."""
LEAST_PAIRS = 5
LEVEL = 0.05
_TWICE = 2.0
_HALVED = ("error_mean", "late_windows")
HOLDS, FAILS, CANNOT_TELL = "holds", "fails", "cannot tell"


@dataclass(frozen=True, slots=True)
class Goal:
    """What was to be shown, what was found, and the verdict."""

    goal: str
    found: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure of a rival at equal latency: by how much ours is worse, over the pairs."""

    workload: str
    rival: str
    measure: str
    worse: Sequence[float]

    @property
    def interval(self) -> Interval:
        return intervals.mean(self.worse)

    @property
    def is_no_worse(self) -> bool:
        """Whether it is certain that ours is worse by no more than the margin."""
        return len(self.worse) >= LEAST_PAIRS and self.interval.upper <= MARGINS[self.measure]

    @property
    def chance(self) -> float:
        """How probable such a loss would be if ours were no worse: one-sided, by Student's t."""
        count, mean = len(self.worse), statistics.fmean(self.worse)
        if count < LEAST_PAIRS or math.isnan(mean):
            return 1.0
        error = statistics.stdev(self.worse) / math.sqrt(count)
        if error == 0.0:
            return 0.0 if mean > 0.0 else 1.0
        return float(stats.t.sf(mean / error, count - 1))

    def __str__(self) -> str:
        return f"{self.workload} ({self.rival}, {self.measure.replace('_', ' ')})"


def goals(samples: Mapping[str, Samples], bounds: Mapping[str, float], every: Sequence[str]) -> list[Goal]:
    """Both goals, over the workloads measured; `every` names those that there are."""
    return [no_worse(samples, bounds), twice_as_good_on_half(samples, bounds, every)]


def no_worse(samples: Mapping[str, Samples], bounds: Mapping[str, float]) -> Goal:
    """On no workload worse than a rival at equal latency, in utility, error or late windows.

    A workload on which ours does not hold the bound, or died, is lost.
    """
    lost = [name for name, of in samples.items() if not held(_ours(of)["latency_p95_s"], bounds[name])]
    compared = [one for name, of in samples.items() if name not in lost for one in _compared(name, of, bounds[name])]
    candidates = [one for one in compared if not one.is_no_worse]
    # Holm's way: the least probable first, each against what is left of the level.
    worse: list[Compared] = []
    for left, one in zip(range(len(compared), 0, -1), sorted(compared, key=lambda each: each.chance), strict=True):
        if one.chance > LEVEL / left:
            break
        worse += [one] if one in candidates else []
    open_ = [one for one in candidates if one not in worse]
    said = [
        *([f"bound not held on {', '.join(lost)}"] if lost else []),
        *([f"worse: {', '.join(map(str, worse))}"] if worse else []),
        *([f"open: {', '.join(map(str, open_))}"] if open_ else []),
    ]
    verdict = FAILS if lost or worse else CANNOT_TELL if open_ or not samples else HOLDS
    margins = ", ".join(f"{measure.replace('_', ' ')} {margin:g}" for measure, margin in MARGINS.items())
    goal = f"on no workload worse than a rival that holds the bound too, by more than {margins}"
    return Goal(goal, "; ".join(said) or f"none of {len(compared)} comparisons is", verdict)


def twice_as_good_on_half(samples: Mapping[str, Samples], bounds: Mapping[str, float], every: Sequence[str]) -> Goal:
    """Twice as good as all rivals in error or late windows on half of all workloads, measured or not."""
    words = {name: _twice_as_good_as_all(of, bounds[name]) for name, of in samples.items()}
    yes = [name for name, (word, _) in words.items() if word == HOLDS]
    no = [name for name, (word, _) in words.items() if word == FAILS]
    count, needed = len({*every, *samples}), math.ceil(len({*every, *samples}) / 2)
    verdict = HOLDS if len(yes) >= needed else FAILS if count - len(no) < needed else CANNOT_TELL
    shown = ", ".join(f"{name} ({words[name][1].replace('_', ' ')})" for name in yes) or "none"
    found = f"{shown}: {len(yes)} of {count}, {len(samples)} of {count} measured"
    return Goal("twice as good as all in error or in late windows on at least half of all workloads", found, verdict)


def _twice_as_good_as_all(of: Samples, bound_s: float) -> tuple[str, str]:
    """Whether ours is, and in what. Errors stand beside those of rivals that hold the bound, late windows beside all."""
    ours, others = _ours(of), dict(_rivals(of))
    if not held(ours["latency_p95_s"], bound_s):
        return FAILS, ""
    words = []
    for measure in _HALVED:
        beside = [of for of in others.values() if measure != "error_mean" or held(of["latency_p95_s"], bound_s)]
        found = [_halves(ours[measure], of[measure]) for of in beside]
        if found and all(each is True for each in found):
            return HOLDS, measure
        words.append(not found or any(each is False for each in found))
    return (FAILS if all(words) else CANNOT_TELL), ""


def _halves(ours: Sequence[float], other: Sequence[float]) -> bool | None:
    """Whether ours, of which less is better, is half of the other's or less, or is not, by all of the interval."""
    found = intervals.mean([_TWICE * a - b for a, b in zip(ours, other, strict=False)])
    # Nothing is half of nothing.
    return True if found.upper < 0.0 else False if found.lower >= 0.0 else None


def word(measure: str, ours: Sequence[float], other: Sequence[float]) -> str:
    """What the pairs of one measure say of ours, this comparison by itself.

    >>> word("error_mean", [0.1, 0.11, 0.1], [0.2, 0.22, 0.2]), word("utility", [0.8, 0.9], [0.9, 0.8])
    ('better', 'cannot tell')
    """
    found = intervals.mean(_worse(measure, ours, other))
    return "better" if found.upper < 0.0 else "worse" if found.lower > 0.0 else CANNOT_TELL


def held(latencies_s: Sequence[float], bound_s: float) -> bool:
    """Whether the median is within the bound, and no run died."""
    return not any(map(math.isnan, latencies_s)) and statistics.median(latencies_s) <= bound_s


def _compared(name: str, of: Samples, bound_s: float) -> Iterator[Compared]:
    for rival, figures in _rivals(of):
        if held(figures["latency_p95_s"], bound_s):
            for measure in MARGINS:
                yield Compared(name, rival, measure, _worse(measure, _ours(of)[measure], figures[measure]))


def _worse(measure: str, ours: Sequence[float], other: Sequence[float]) -> list[float]:
    sign = -1.0 if measure in LARGER_IS_BETTER else 1.0
    return [sign * (a - b) for a, b in zip(ours, other, strict=False)]  # of a hopeless rival there are fewer runs


def _ours(of: Samples) -> Mapping[str, Sequence[float]]:
    return of[next(iter(of))]


def _rivals(of: Samples) -> Iterator[tuple[str, Mapping[str, Sequence[float]]]]:
    name = next(iter(of)).partition(" ")[0]
    return ((rival, figures) for rival, figures in of.items() if rival.partition(" ")[0] != name)
