"""What a concept is for a grouped aggregate and a join, how far two lie apart, and the rows that an accuracy asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.answers.estimate import quantile
from jettison.errors import refuse
from jettison.policies.groups.group_keys import Keys, looked_up

Floats = NDArray[np.float64]
_TOP = 10  # groups, as the paper compares


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A relative error that answers stay within, with a probability.

    Examples
    --------
    >>> round(Accuracy(error=0.05, confidence=0.95).rows(variation=1.0))
    1537
    """

    error: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not 0.0 < self.error < 1.0:
            refuse("`error` must lie in (0, 1)", repr(self.error), hint="0.05 for 5 %")
        quantile(self.confidence)  # refuses what is no confidence

    def rows(self, variation: float, panes: int = 1) -> float:
        """Rows of a large group that its mean needs from each pane, for values with this coefficient of variation."""
        return (quantile(self.confidence) * variation / (self.error * math.sqrt(panes))) ** 2

    def expected(self, rows: float, variation: float) -> float:
        """Relative error of a large group's mean to be expected from so many kept rows, at the same confidence.

        >>> round(Accuracy(0.05).expected(rows=1537, variation=1.0), 3)
        0.05
        """
        return self.error * math.sqrt(self.rows(variation) / rows) if rows > 0 else math.inf


@dataclass(frozen=True, eq=False)
class GroupConcept:
    """Concept of a grouped aggregate: rows by group, keys ascending and each there once."""

    keys: Keys
    rows: Floats

    @classmethod
    def of(cls, keys: ArrayLike) -> GroupConcept:
        """Frequencies of the groups among rows.

        >>> GroupConcept.of([3, 1, 3]).rows.tolist()
        [1.0, 2.0]
        """
        distinct, rows = np.unique(np.asarray(keys, np.int64), return_counts=True)
        return cls(distinct, rows.astype(float))

    def rows_of(self, keys: ArrayLike) -> Floats:
        """Rows of the given groups; 0 of one that is not there."""
        return looked_up(self.keys, self.rows, keys, 0.0)

    def top(self, count: int) -> Keys:
        """The groups with the most rows; among equals the smaller key."""
        return np.sort(self.keys[np.lexsort((self.keys, -self.rows))[:count]])


@dataclass(frozen=True, eq=False)
class JoinConcept:
    """Concept of an equi-join: the frequencies of both sides.

    Examples
    --------
    >>> JoinConcept(GroupConcept.of([1, 1, 2]), GroupConcept.of([1, 3])).matches.tolist()
    [2.0]
    """

    left: GroupConcept
    right: GroupConcept

    @property
    def keys(self) -> Keys:
        """Keys that both sides hold: only they form results."""
        return np.intersect1d(self.left.keys, self.right.keys, assume_unique=True)

    @property
    def matches(self) -> Floats:
        """Results that each of these keys forms."""
        return self.left.rows_of(self.keys) * self.right.rows_of(self.keys)


@dataclass(frozen=True, slots=True)
class ConceptShift:
    """What changed from one window to the next. All are shares in [0, 1] except the two counts.

    Parameters
    ----------
    distance
        Share of rows that would have to change group to turn one window's frequencies into the other's.
    overlap
        Share of groups, of those in either window, that are in both.
    top_change
        Share of the first window's largest groups that are not among the second one's.
    appeared, vanished
        Groups that only the second, only the first window holds.
    """

    distance: float
    overlap: float
    top_change: float
    appeared: int
    vanished: int


def shift(before: GroupConcept, after: GroupConcept) -> ConceptShift:
    """Compare two windows.

    >>> shift(GroupConcept.of([1, 1, 2, 2]), GroupConcept.of([1, 1, 3, 3]))
    ConceptShift(distance=0.5, overlap=0.3333333333333333, top_change=0.5, appeared=1, vanished=1)

    Notes
    -----
    The paper names distance ("mean set difference") and overlap ("mean set intersection") of top-10 results without
    formulas. `top_change` is its set difference; `distance` is total variation, which sees all groups and their rows.
    """
    keys = np.union1d(before.keys, after.keys)
    if not len(keys):
        return ConceptShift(0.0, 1.0, 0.0, 0, 0)
    first, second = before.rows_of(keys), after.rows_of(keys)
    both = int(((first > 0) & (second > 0)).sum())
    rows = first.sum(), second.sum()
    distance = 0.5 * np.abs(first / rows[0] - second / rows[1]).sum() if all(rows) else 1.0
    largest = before.top(_TOP)
    return ConceptShift(
        distance=min(float(distance), 1.0),  # sums of shares may exceed 1 by rounding
        overlap=both / len(keys),
        top_change=1.0 - len(np.intersect1d(largest, after.top(_TOP))) / len(largest) if len(largest) else 0.0,
        appeared=int((first == 0).sum()),
        vanished=int((second == 0).sum()),
    )
