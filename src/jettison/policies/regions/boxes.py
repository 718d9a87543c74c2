"""Sets of points as lists of disjoint half-open boxes, closed under and, or and not.

Every list that these functions return is disjoint, so that volumes and hits of a query can be added up.
"""

from __future__ import annotations

from collections.abc import Sequence

Interval = tuple[float, float]
Box = tuple[Interval, ...]
Boxes = list[Box]


def intersection(first: Boxes, second: Boxes) -> Boxes:
    """Points in both sets."""
    return [met for one in first for other in second if (met := _meet(one, other)) is not None]


def union(first: Boxes, second: Boxes) -> Boxes:
    """Points in either set; what both hold is counted once."""
    return first + difference(second, first)


def difference(whole: Boxes, removed: Boxes) -> Boxes:
    """Points of the first set that are not in the second."""
    rest = whole
    for hole in removed:
        rest = [piece for box in rest for piece in _cut_out(box, hole)]
    return rest


def disjoint(boxes: Sequence[Box]) -> Boxes:
    """The union of boxes that may overlap."""
    result: Boxes = []
    for box in boxes:
        if all(low < high for low, high in box):
            result = union(result, [box])
    return result


def _meet(one: Box, other: Box) -> Box | None:
    met = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return met if all(low < high for low, high in met) else None


def _cut_out(box: Box, hole: Box) -> Boxes:
    """`box` without `hole`: at most two slabs per dimension."""
    if _meet(box, hole) is None:
        return [box]
    pieces: Boxes = []
    core = list(box)
    for axis, (low, high) in enumerate(hole):
        start, stop = core[axis]
        if start < low:
            pieces.append((*core[:axis], (start, low), *core[axis + 1 :]))
        if high < stop:
            pieces.append((*core[:axis], (high, stop), *core[axis + 1 :]))
        core[axis] = (max(start, low), min(stop, high))
    return pieces
