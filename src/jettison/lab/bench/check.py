"""`jettison bench --check FILE`: are stored ratios still what they were? Worse, as good, or cannot tell."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from jettison.errors import refuse
from jettison.lab.bench.result import Result
from jettison.lab.intervals import Interval

LOSS = 1.10
"""A ratio may be worse by this factor."""
ROUNDS = 8
_LEAST_ROUNDS = 3
_UNKNOWN_HALF = math.inf

Measure = Callable[[str, str | None], Sequence[Result]]
"""Runs a benchmark by name, or one case of it, once: its pairs are one round."""


class Verdict(enum.Enum):
    """What the rounds say."""

    WORSE = "worse"
    AS_GOOD = "as good"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Stored:
    """A ratio on file, with half the width of its interval as a logarithm, and which way is better."""

    name: str
    benchmark: str
    ratio: float
    half: float
    lower_is_better: bool
    case: str | None = None


@dataclass
class Checked:
    """A stored ratio and what was measured of it since, round by round."""

    stored: Stored
    ratios: list[float] = field(default_factory=list)

    @property
    def loss(self) -> Interval:
        """How many times worse than stored, with its 95 % interval: rounds by Student's t, and the stored one's own.

        >>> of = Checked(Stored("cost", "cost", 1.0, 0.0, True), [1.2, 1.21, 1.2])
        >>> round(of.loss.value, 2), of.verdict.value
        (1.2, 'worse')
        """
        logs = np.log(self.ratios) - math.log(self.stored.ratio)
        logs = logs if self.stored.lower_is_better else -logs
        centre = float(logs.mean()) if len(logs) else 0.0
        half = _UNKNOWN_HALF
        if len(logs) >= _LEAST_ROUNDS:
            own = float(stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs)))
            half = math.hypot(own, self.stored.half)
        return Interval(math.exp(centre), math.exp(centre - half), math.exp(min(centre + half, 700.0)))

    @property
    def verdict(self) -> Verdict:
        """Worse if all of the interval is beyond the loss allowed, as good if none of it is."""
        if self.loss.lower > LOSS:
            return Verdict.WORSE
        return Verdict.AS_GOOD if self.loss.upper <= LOSS else Verdict.CANNOT_TELL

    @property
    def is_open(self) -> bool:
        """Whether another round may decide it: never where the stored ratio has no interval, once it has been seen."""
        decidable = math.isfinite(self.stored.half) or not self.ratios
        return self.verdict is Verdict.CANNOT_TELL and decidable


def stored_ratios(path: Path, only: str | None = None) -> list[Stored]:
    """The ratios of a file of results that have a bar, which tells which way is better; of one benchmark, or of all."""
    try:
        rows = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        hint = "make one with `jettison bench NAME --json FILE`"
        refuse("--check needs a file of results", f"{path} ({error})", hint=hint, cause=error)
    found = [stored for row in rows if (stored := _stored(row)) and only in (None, stored.benchmark)]
    if not found:
        hint = "results with a ratio, a bar and the name of their benchmark are checked"
        refuse("--check needs stored ratios", f"none in {path}", hint=hint)
    return found


def _stored(row: Mapping[str, Any]) -> Stored | None:
    benchmark, ratio = row.get("config", {}).get("benchmark"), row.get("ratio")
    one_sided = (row.get("at_most") is None) != (row.get("at_least") is None)
    if benchmark is None or not ratio or not one_sided:
        return None
    bounds = row.get("interval")
    # A bound that was not finite is null; a ratio without an interval decides nothing.
    half = math.log(bounds[1] / bounds[0]) / 2 if bounds and all(bounds) else _UNKNOWN_HALF
    return Stored(row["name"], benchmark, ratio, half, row.get("at_most") is not None, row["config"].get("case"))


def check(stored: Sequence[Stored], measure: Measure, *, rounds: int = ROUNDS) -> list[Checked]:
    """Run the cases round by round, each until all of its ratios are decided or the rounds are over.

    A ratio that is not measured any more stays undecided.
    """
    checked = [Checked(one) for one in stored]
    for benchmark, case in dict.fromkeys((one.benchmark, one.case) for one in stored):
        mine = [one for one in checked if (one.stored.benchmark, one.stored.case) == (benchmark, case)]
        for _ in range(rounds):
            found = {one.name: one.ratio for one in measure(benchmark, case)}
            for one in mine:
                if (ratio := found.get(one.stored.name)) is not None and ratio > 0.0:
                    one.ratios.append(ratio)
            if not any(one.is_open and one.stored.name in found for one in mine):
                break
    return checked


def as_result(one: Checked) -> Result:
    """For the table and the file: the loss beside the one allowed; the command fails where it is certain."""
    loss = one.loss
    return Result(
        f"{one.stored.name}: worse by",
        loss.value,
        "",
        ratio=loss.value,
        at_most=LOSS,
        config={"stored": one.stored.ratio, "rounds": one.ratios, "verdict": one.verdict.value},
        required=True,
        interval=(loss.lower, loss.upper),
    )
