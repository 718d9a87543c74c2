"""Results of two sides that ran in turn: the ratio, or the difference, of the runs that stood side by side."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from jettison.lab import intervals
from jettison.lab.bench.result import Result

_Run = TypeVar("_Run")


@dataclass(frozen=True)
class Pairs(Generic[_Run]):
    """Runs by side, of which the nth of each stood side by side; `config` goes into every result."""

    runs: Mapping[str, Sequence[_Run]]
    baseline: str = "plain"
    config: Mapping[str, Any] = field(default_factory=dict)

    def over(
        self,
        name: str,
        side: str,
        measure: Callable[[_Run], float],
        unit: str,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
    ) -> Result:
        """A measure of one side over that of the baseline, with its interval over the pairs.

        >>> runs = Pairs({"plain": [1.0, 1.0], "guard": [1.1, 1.1]})
        >>> found = runs.over("cost", "guard", float, "s", at_most=1.2)
        >>> round(found.ratio, 3), found.verdict
        (1.1, 'holds')
        """
        values, beside = self._measured(side, measure)
        ratio = intervals.mean_ratio(values, beside)
        return Result(
            name,
            statistics.median(values),
            unit,
            statistics.median(beside),
            ratio.value,
            at_most=at_most,
            at_least=at_least,
            config={"pairs": len(values), **self.config},
            required=True,
            interval=(ratio.lower, ratio.upper),
        )

    def added(
        self, name: str, side: str, measure: Callable[[_Run], float], unit: str, *, at_most: float | None = None
    ) -> Result:
        """What one side has more than the baseline, with its interval over the pairs."""
        values, beside = self._measured(side, measure)
        more = [a - b for a, b in zip(values, beside, strict=True)]
        base = statistics.median(beside)
        return repeated(name, more, unit, baseline=base, at_most=at_most, config=self.config)

    def _measured(self, side: str, measure: Callable[[_Run], float]) -> tuple[list[float], list[float]]:
        return [measure(run) for run in self.runs[side]], [measure(run) for run in self.runs[self.baseline]]


def repeated(
    name: str,
    values: Sequence[float],
    unit: str,
    *,
    baseline: float | None = None,
    at_most: float | None = None,
    at_least: float | None = None,
    config: Mapping[str, Any] | None = None,
) -> Result:
    """The mean of a figure that each pair gives, with its interval.

    >>> repeated("added", [30.0, 50.0], "ms", at_most=35.0).verdict
    'cannot tell'
    """
    found = intervals.mean(values)
    return Result(
        name,
        found.value,
        unit,
        baseline,
        at_most=at_most,
        at_least=at_least,
        config={"pairs": len(values), **(config or {})},
        required=True,
        interval=(found.lower, found.upper),
    )
