"""What a concept is for each kind of query, and the rows that a wanted accuracy asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.errors import InvalidSetting, explain
from jettison.estimate import quantile

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]


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
        if not self.error > 0.0:
            raise InvalidSetting(explain("`error` must be positive", repr(self.error), hint="0.05 for 5 %"))
        quantile(self.confidence)  # refuses what is no confidence

    def rows(self, variation: float) -> float:
        """Rows of a large group that its mean needs, for values with this coefficient of variation."""
        z = quantile(self.confidence)
        return (z * variation / self.error) ** 2


@dataclass(frozen=True, slots=True)
class ScalarConcept:
    """Concept of a scalar aggregate: how many rows, their mean and their variance.

    Examples
    --------
    >>> concept = ScalarConcept(rows=46_000, mean=500.0, variance=250_000.0)
    >>> round(concept.keep_fraction(Accuracy(0.05)), 4)
    0.0323
    """

    rows: float
    mean: float
    variance: float

    @classmethod
    def of(cls, values: ArrayLike, rows: float | None = None) -> ScalarConcept:
        """Concept of a sample, for a window of `rows` rows."""
        x = np.asarray(values, float)
        variance = float(x.var(ddof=1)) if len(x) > 1 else float("inf")
        return cls(float(len(x)) if rows is None else rows, float(x.mean()) if len(x) else float("nan"), variance)

    @property
    def variation(self) -> float:
        """Coefficient of variation; infinite where it is unknown, so that everything is kept."""
        if not np.isfinite(self.variance) or not np.isfinite(self.mean) or self.mean == 0.0:
            return float("inf")
        return float(np.sqrt(self.variance) / abs(self.mean))

    def keep_fraction(self, accuracy: Accuracy) -> float:
        """Share to keep so that the mean of all rows meets the accuracy.

        Rows are kept independently, so the mean's relative variance is variation^2 (1 - p) / (p rows).
        """
        needed = accuracy.rows(self.variation)
        return 1.0 if not np.isfinite(needed) or self.rows <= 0 else needed / (needed + self.rows)

    def keep_fraction_of_sum(self, accuracy: Accuracy) -> float:
        """The same for a weighted sum, whose error also comes from not knowing how many rows there were."""
        needed = accuracy.rows(float(np.hypot(1.0, self.variation)))
        return 1.0 if not np.isfinite(needed) or self.rows <= 0 else needed / (needed + self.rows)


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
        wanted = np.asarray(keys, np.int64)
        if not len(self.keys):
            return np.zeros(wanted.shape)
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[place] == wanted, self.rows[place], 0.0)

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
