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
    def is_known(self) -> bool:
        """Whether there are pairs enough, and nobody died in one."""
        return _enough(self.worse)

    @property
    def is_no_worse(self) -> bool:
        """Whether it is certain that ours is worse by no more than the margin."""
        return self.is_known and self.interval.upper <= MARGINS[self.measure]

    @property
    def chance(self) -> float:
        """How probable such a loss would be if ours were worse by the margin: one-sided, by Student's t."""
        if not self.is_known:
            return 1.0
        beyond = statistics.fmean(self.worse) - MARGINS[self.measure]
        error = statistics.stdev(self.worse) / math.sqrt(len(self.worse))
        if error == 0.0:
            return 0.0 if beyond > 0.0 else 1.0
        return float(stats.t.sf(beyond / error, len(self.worse) - 1))

    def __str__(self) -> str:
        return f"{self.workload} ({self.rival}, {self.measure.replace('_', ' ')})"


def goals(
    samples: Mapping[str, Samples],
    bounds: Mapping[str, float],
    every: Sequence[str],
    rivals: Mapping[str, Sequence[str]],
) -> list[Goal]:
    """Both goals: `every` names all workloads that there are, `rivals` all that can run on each, measured or not."""
    return [no_worse(samples, bounds, every, rivals), twice_as_good_on_half(samples, bounds, every, rivals)]


def no_worse(
    samples: Mapping[str, Samples],
    bounds: Mapping[str, float],
    every: Sequence[str],
    rivals: Mapping[str, Sequence[str]],
) -> Goal:
    """On no workload worse than a rival at equal latency, in utility, error or late windows.

    A workload on which ours does not hold the bound, or died, is lost. A rival that died, or did not run, is open.
    """
    few = [name for name, of in samples.items() if not _ran_enough(of)]
    lost = [
        name for name, of in samples.items() if name not in few and not held(_ours(of)["latency_p95_s"], bounds[name])
    ]
    by_workload = {
        name: list(_compared(name, of, bounds[name], rivals[name]))
        for name, of in samples.items()
        if name not in (*few, *lost)
    }
    known = [one for of in by_workload.values() for one in of if one.is_known]
    candidates = [one for of in by_workload.values() for one in of if not one.is_no_worse]
    # Holm's way: the least probable first, each against what is left of the level.
    worse: list[Compared] = []
    for left, one in zip(range(len(known), 0, -1), sorted(known, key=lambda each: each.chance), strict=True):
        if one.chance > LEVEL / left:
            break
        worse.append(one)
    open_ = [one for one in candidates if one not in worse]
    alone = [name for name, of in by_workload.items() if not of]
    missing = [name for name in every if name not in samples]
    said = [
        *([f"bound not held on {', '.join(lost)}"] if lost else []),
        *([f"worse: {', '.join(map(str, worse))}"] if worse else []),
        *([f"open: {', '.join(map(str, open_))}"] if open_ else []),
        *([f"fewer than {LEAST_PAIRS} runs: {', '.join(few)}"] if few else []),
        *([f"no rival held the bound on {', '.join(alone)}"] if alone else []),
        *([f"not measured: {len(missing)} of {len(every)}"] if missing else []),
    ]
    undecided = open_ or few or missing or not known
    verdict = FAILS if lost or worse else CANNOT_TELL if undecided else HOLDS
    margins = ", ".join(f"{measure.replace('_', ' ')} {margin:g}" for measure, margin in MARGINS.items())
    goal = f"on no workload worse than a rival that holds the bound too, by more than {margins}"
    return Goal(goal, "; ".join(said) or f"none of {len(known)} comparisons is", verdict)


def twice_as_good_on_half(
    samples: Mapping[str, Samples],
    bounds: Mapping[str, float],
    every: Sequence[str],
    rivals: Mapping[str, Sequence[str]],
) -> Goal:
    """Twice as good as all rivals in error or late windows on half of all workloads, measured or not."""
    words = {name: _twice_as_good_as_all(of, bounds[name], rivals[name]) for name, of in samples.items()}
    yes = [name for name, (word, _) in words.items() if word == HOLDS]
    no = [name for name, (word, _) in words.items() if word == FAILS]
    count, needed = len({*every, *samples}), math.ceil(len({*every, *samples}) / 2)
    verdict = HOLDS if len(yes) >= needed else FAILS if count - len(no) < needed else CANNOT_TELL
    shown = ", ".join(f"{name} ({words[name][1].replace('_', ' ')})" for name in yes) or "none"
    found = f"{shown}: {len(yes)} of {count}, {len(samples)} of {count} measured"
    return Goal("twice as good as all in error or in late windows on at least half of all workloads", found, verdict)


def _twice_as_good_as_all(of: Samples, bound_s: float, rivals: Sequence[str]) -> tuple[str, str]:
    """Whether ours is, and in what. Errors stand beside those of rivals that hold the bound, late windows beside all.

    Of two measures either will do, and of many rivals any is too many: each chance gets its part of the level.
    """
    ours, others = _ours(of), dict(_rivals(of))
    if not _ran_enough(of):
        return CANNOT_TELL, ""
    if not held(ours["latency_p95_s"], bound_s):
        return FAILS, ""
    words = []
    for measure in _HALVED:
        beside = [of for of in others.values() if measure != "error_mean" or not _breaks(of["latency_p95_s"], bound_s)]
        pairs = [_pairs(ours[measure], of[measure]) for of in beside]
        entered = all(rival in others for rival in rivals)
        if entered and pairs and all(_halves(of, LEVEL / len(_HALVED)) is True for of in pairs):
            return HOLDS, measure
        words.append((entered and not pairs) or any(_halves(of, LEVEL / len(pairs)) is False for of in pairs))
    return (FAILS if all(words) else CANNOT_TELL), ""


def _halves(pairs: Sequence[tuple[float, float]], level: float) -> bool | None:
    """Whether ours, of which less is better, is half of the other's or less, or is not, by all of the interval."""
    excess = [_TWICE * a - b for a, b in pairs]
    if not _enough(excess):
        return None
    found = intervals.mean(excess, level)
    # Nothing is half of nothing.
    return True if found.upper < 0.0 else False if found.lower >= 0.0 else None


def _enough(values: Sequence[float]) -> bool:
    return len(values) >= LEAST_PAIRS and not any(map(math.isnan, values))


def _ran_enough(of: Samples) -> bool:
    return len(_ours(of)["latency_p95_s"]) >= LEAST_PAIRS


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


def _breaks(latencies_s: Sequence[float], bound_s: float) -> bool:
    """Whether the median is beyond the bound; of a rival that died nobody knows."""
    return not any(map(math.isnan, latencies_s)) and statistics.median(latencies_s) > bound_s


def _compared(name: str, of: Samples, bound_s: float, rivals: Sequence[str]) -> Iterator[Compared]:
    """Of rivals that hold the bound; without pairs of those of which that is not known."""
    ran = dict(_rivals(of))
    for rival in dict.fromkeys((*ran, *rivals)):
        figures = ran.get(rival)
        if figures is None or not _breaks(figures["latency_p95_s"], bound_s):
            known = figures if figures and held(figures["latency_p95_s"], bound_s) else dict.fromkeys(MARGINS, ())
            for measure in MARGINS:
                yield Compared(name, rival, measure, _worse(measure, _ours(of)[measure], known[measure]))


def _worse(measure: str, ours: Sequence[float], other: Sequence[float]) -> list[float]:
    sign = -1.0 if measure in LARGER_IS_BETTER else 1.0
    return [sign * (a - b) for a, b in _pairs(ours, other)]


def _pairs(ours: Sequence[float], other: Sequence[float]) -> list[tuple[float, float]]:
    return list(zip(ours, other, strict=False))  # of a hopeless rival there are fewer runs


def _ours(of: Samples) -> Mapping[str, Sequence[float]]:
    return of[next(iter(of))]


def _rivals(of: Samples) -> Iterator[tuple[str, Mapping[str, Sequence[float]]]]:
    name = next(iter(of)).partition(" ")[0]
    return ((rival, figures) for rival, figures in of.items() if rival.partition(" ")[0] != name)
