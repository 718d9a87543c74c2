"""Borrowed estimates on a shed stream: their error against the unbiased ones, and the coverage of their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jettison.concept.borrow import borrow, worth_by_counts
from jettison.reproduce.concept.methods import Strict
from jettison.reproduce.concept.streams import Stream

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BorrowOutcome:
    """All groups of the measured windows that have fewer kept rows than they had rows.

    Parameters
    ----------
    share
        Share of the rows processed.
    coverage
        Share of these groups whose mean lies within its bounds; `coverage_none` for those without a kept row.
    error, direct_error
        Mean relative error over *all* groups with borrowed estimates, and with unbiased ones alone (1 where there is none).
    flagged
        Share of all groups whose estimate is flagged as borrowed.
    shed_groups
        Groups with dropped rows, on which `coverage` rests.
    """

    share: float
    coverage: float
    coverage_none: float
    error: float
    direct_error: float
    flagged: float
    shed_groups: int


def run_borrowing(stream: Stream, share: float, *, seed: int, confidence: float = 0.95) -> BorrowOutcome:
    """Shed a stream by the strict rule and borrow from the windows before, whose own estimates are all there is."""
    method, random = Strict(), np.random.default_rng([seed, 13])
    history = np.full(stream.group_count, np.nan)
    covered: list[NDArray[Any]] = []
    empty, errors, direct, flags = covered.copy(), covered.copy(), covered.copy(), covered.copy()
    for number, window in enumerate(stream.windows):
        keep, weight = method.keep(window, share, random)
        groups, place, rows = np.unique(window.groups, return_inverse=True, return_counts=True)
        truth = np.bincount(place, window.values) / rows
        mean, variance, kept = _moments(place[keep], weight[keep], window.values[keep], len(groups))
        worth = _effective_rows(place[keep], weight[keep], rows)
        made = borrow(
            mean, variance, kept, effective_rows=worth, group_rows=rows, history=history[groups], confidence=confidence
        )
        if number:
            shed = kept < rows
            inside = (made.lower <= truth) & (truth <= made.upper)
            covered.append(inside[shed])
            empty.append(inside[kept == 0])
            errors.append(np.minimum(np.abs(made.value / truth - 1.0), 1.0))
            direct.append(np.where(kept > 0, np.minimum(np.abs(mean / truth - 1.0), 1.0), 1.0))
            flags.append(made.borrowed)
        # Only what was estimated, never the truth, is remembered.
        history[groups[kept > 0]] = made.value[kept > 0]
    return BorrowOutcome(
        share,
        coverage=_mean(covered),
        coverage_none=_mean(empty),
        error=_mean(errors),
        direct_error=_mean(direct),
        flagged=_mean(flags),
        shed_groups=sum(map(len, covered)),
    )


def _mean(parts: list[NDArray[Any]]) -> float:
    together = np.concatenate(parts)
    return float(together.mean()) if len(together) else float("nan")


def _effective_rows(group: NDArray[np.int64], weight: Floats, rows: NDArray[np.int64]) -> Floats:
    """What the kept rows are worth, by their weights or by the exact counts, whichever says less.

    Weights alone are fooled where the rows that could be dropped all were: what is left then looks complete.
    """
    count, kept = len(rows), np.bincount(group, minlength=len(rows)).astype(float)
    total, risk = np.bincount(group, weight, count), np.bincount(group, weight * (weight - 1.0), count)
    by_weights = np.divide(total**2, risk, out=np.full(count, np.inf), where=risk > 1e-12)
    return np.asarray(np.minimum(by_weights, worth_by_counts(kept, rows.astype(float))), float)


def _moments(group: NDArray[np.int64], weight: Floats, values: Floats, count: int) -> tuple[Floats, Floats, Floats]:
    """Weighted mean, sample variance and number of kept rows by group; NaN where they do not exist."""
    kept = np.bincount(group, minlength=count).astype(float)
    total = np.bincount(group, weight, count)
    mean = np.divide(np.bincount(group, weight * values, count), total, out=np.full(count, np.nan), where=total > 0)
    plain = np.divide(np.bincount(group, values, count), kept, out=np.zeros(count), where=kept > 0)
    square = np.bincount(group, (values - plain[group]) ** 2, count)
    return mean, np.divide(square, kept - 1, out=np.full(count, np.nan), where=kept > 1), kept
