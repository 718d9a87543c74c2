"""How far the concepts of two consecutive windows lie apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jettison.policies.groups.concepts import GroupConcept


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


def shift(before: GroupConcept, after: GroupConcept, *, top: int = 10) -> ConceptShift:
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
    distance = 0.5 * np.abs(_shares(first) - _shares(second)).sum() if first.any() and second.any() else 1.0
    return ConceptShift(
        distance=min(float(distance), 1.0),  # sums of shares may exceed 1 by rounding
        overlap=both / len(keys),
        top_change=set_change(before.top(top), after.top(top)),
        appeared=int((first == 0).sum()),
        vanished=int((second == 0).sum()),
    )


def set_change(before: np.ndarray, after: np.ndarray) -> float:
    """Share of the first set that is not in the second.

    >>> set_change(np.array([1, 2, 3, 4]), np.array([3, 4, 5, 6]))
    0.5
    """
    return 1.0 - len(np.intersect1d(before, after)) / len(before) if len(before) else 0.0


def _shares(rows: np.ndarray) -> np.ndarray:
    return rows / rows.sum()  # type: ignore[no-any-return]
