"""Borrowed estimates on a shed stream: their error against the unbiased ones, and the coverage of their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jettison.answers.borrow import borrow, effective_by_counts
from jettison.lab.reproduce.concept.methods import Strict
from jettison.lab.reproduce.concept.streams import Stream

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BorrowOutcome:
    """What came of the groups of the measured windows, `shed_groups` of which have fewer kept rows than they had rows.

    `coverage` is the share of those whose mean lies within its bounds; `coverage_none` that of groups without a kept row.
    Errors are mean relative ones over *all* groups, with borrowed estimates and with unbiased ones alone (1 where there is
    none). `flagged` is the share of all groups whose estimate is flagged as borrowed.
    """

    share: float
    coverage: float
    coverage_none: float
    error: float
    direct_error: float
    flagged: float
    shed_groups: int


def run_borrowing(stream: Stream, share: float, *, seed: int) -> BorrowOutcome:
    """Shed a stream by the strict rule and borrow from the windows before, whose own estimates are all there is."""
    method, random = Strict(), np.random.default_rng([seed, 13])
    history = np.full(stream.group_count, np.nan)
    found = []
    for number, window in enumerate(stream.windows):
        keep, weight = method.keep(window, share, random)
        groups, place, rows = np.unique(window.groups, return_inverse=True, return_counts=True)
        truth = np.bincount(place, window.values) / rows
        mean, variance, kept = _moments(place[keep], weight[keep], window.values[keep], len(groups))
        effective = _effective_rows(place[keep], weight[keep], rows)
        made = borrow(mean, variance, kept, effective_rows=effective, group_rows=rows, history=history[groups])
        if number:
            inside = (made.lower <= truth) & (truth <= made.upper)
            error = np.minimum(np.abs(made.value / truth - 1.0), 1.0)
            direct = np.where(kept > 0, np.minimum(np.abs(mean / truth - 1.0), 1.0), 1.0)
            found.append((inside, kept < rows, kept == 0, error, direct, made.borrowed))
        # Only what was estimated, never the truth, is remembered.
        history[groups[kept > 0]] = made.value[kept > 0]
    inside, shed, empty, error, direct, borrowed = (np.concatenate(part) for part in zip(*found, strict=True))
    return BorrowOutcome(
        share,
        coverage=_mean(inside[shed]),
        coverage_none=_mean(inside[empty]),
        error=_mean(error),
        direct_error=_mean(direct),
        flagged=_mean(borrowed),
        shed_groups=int(shed.sum()),
    )


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _effective_rows(group: NDArray[np.int64], weight: Floats, rows: NDArray[np.int64]) -> Floats:
    """How many independent rows the kept ones amount to, by weights or by exact counts, whichever says less.

    Weights alone are fooled where the rows that could be dropped all were: what is left then looks complete.
    """
    count, kept = len(rows), np.bincount(group, minlength=len(rows)).astype(float)
    total, risk = np.bincount(group, weight, count), np.bincount(group, weight * (weight - 1.0), count)
    by_weights = np.divide(total**2, risk, out=np.full(count, np.inf), where=risk > 1e-12)
    return np.asarray(np.minimum(by_weights, effective_by_counts(kept, rows.astype(float))), float)


def _moments(group: NDArray[np.int64], weight: Floats, values: Floats, count: int) -> tuple[Floats, Floats, Floats]:
    """Weighted mean, sample variance and number of kept rows by group; NaN where they do not exist."""
    kept = np.bincount(group, minlength=count).astype(float)
    total = np.bincount(group, weight, count)
    mean = np.divide(np.bincount(group, weight * values, count), total, out=np.full(count, np.nan), where=total > 0)
    plain = np.divide(np.bincount(group, values, count), kept, out=np.zeros(count), where=kept > 0)
    square = np.bincount(group, (values - plain[group]) ** 2, count)
    return mean, np.divide(square, kept - 1, out=np.full(count, np.nan), where=kept > 1), kept
