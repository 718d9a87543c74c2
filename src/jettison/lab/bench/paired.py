"""Results of two sides that ran in turn: the ratio, or the difference, of the runs that stood side by side."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from jettison.lab import intervals
from jettison.lab.bench.result import Result

_Run = TypeVar("_Run")


def over(
    name: str,
    runs: Mapping[str, Sequence[_Run]],
    side: str,
    measure: Callable[[_Run], float],
    unit: str,
    *,
    baseline: str = "plain",
    at_most: float | None = None,
    at_least: float | None = None,
    config: Mapping[str, Any] | None = None,
) -> Result:
    """A measure of one side over that of the baseline, with its interval over the pairs.

    >>> found = over("cost", {"plain": [1.0, 1.0], "guard": [1.1, 1.1]}, "guard", float, "s", at_most=1.2)
    >>> round(found.ratio, 3), found.verdict
    (1.1, 'holds')
    """
    values, beside = ([measure(run) for run in runs[one]] for one in (side, baseline))
    ratio = intervals.mean_ratio(values, beside)
    return Result(
        name,
        statistics.median(values),
        unit,
        statistics.median(beside),
        ratio.value,
        at_most=at_most,
        at_least=at_least,
        config={"pairs": len(values), **(config or {})},
        required=True,
        interval=(ratio.lower, ratio.upper),
    )


def added(
    name: str,
    runs: Mapping[str, Sequence[_Run]],
    side: str,
    measure: Callable[[_Run], float],
    unit: str,
    *,
    baseline: str = "plain",
    **how: Any,
) -> Result:
    """What one side has more than the baseline, with its interval over the pairs; `how` is as in `repeated`."""
    values, beside = ([measure(run) for run in runs[one]] for one in (side, baseline))
    more = [a - b for a, b in zip(values, beside, strict=True)]
    return repeated(name, more, unit, baseline=statistics.median(beside), **how)


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
