"""What a concept is for a grouped aggregate and a join, and the rows that a wanted accuracy asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.answers.estimate import quantile
from jettison.errors import refuse
from jettison.policies.groups.group_keys import Keys, looked_up

Floats = NDArray[np.float64]


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
