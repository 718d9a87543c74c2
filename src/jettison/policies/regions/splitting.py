"""Where a region may be cut: never between equal codes, and on whole values where the attribute has them."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from jettison.source.partition import Leaf
from jettison.source.space import CELLS, Codes, Space

Part = TypeVar("Part")


def middle(space: Space, leaf: Leaf, axis: int) -> int | None:
    """The cut nearest to the middle of `leaf`, or `None` where the region is too thin for one."""
    return snapped(space, axis, (leaf.low[axis] + leaf.high[axis]) / 2.0, leaf.low[axis], leaf.high[axis])


def snapped(space: Space, axis: int, place: float, low: int, high: int) -> int | None:
    """The admissible cut nearest to `place` and strictly between `low` and `high`."""
    step = space.attributes[axis].cells_per_value
    if step == 1.0:
        cut = min(max(round(place), low + 1), high - 1)
        return cut if low < cut < high else None
    # Cuts of whole values lie at the code of a value, the first one of its own interval.
    nearest = round((place - 1.0) / step)
    lowest = math.floor((low - 1.0) / step)
    options = [value_code(space, axis, value) for value in (nearest, nearest - 1, nearest + 1, lowest + 1, lowest + 2)]
    inside = [cut for cut in options if low < cut < high]
    return min(inside, key=lambda cut: abs(cut - place)) if inside else None


def value_code(space: Space, axis: int, value: int) -> int:
    """Code of the `value`-th whole value of an attribute."""
    attribute = space.attributes[axis]
    return min(int(value * attribute.scale + 1.0), CELLS + 1) if value > 0 else 1


def parting(space: Space, axis: int, before: int, after: int) -> int:
    """The cut between the neighbouring codes `before < after`."""
    # Whole values are parted right before the greater one: their intervals stay in one region.
    return after if space.attributes[axis].whole else before + (after - before + 1) // 2


def gaps(ordered: Codes) -> NDArray[np.bool_]:
    """For sorted codes, along the last axis: whether a cut fits between each and its successor."""
    fits: NDArray[np.bool_] = ordered[..., 1:] > ordered[..., :-1]
    return fits


def cut_largest(
    parts: Sequence[Part], size: Callable[[Part], float], halves: Callable[[Part], Sequence[Part]], cuts: int
) -> None:
    """Make `cuts` cuts, each through the largest part that can be cut; among equals the one that was there first."""
    number = itertools.count()
    queue = [(-size(part), next(number), part) for part in parts]
    heapq.heapify(queue)
    while queue and cuts > 0:
        made = halves(heapq.heappop(queue)[2])
        for half in made:
            heapq.heappush(queue, (-size(half), next(number), half))
        cuts -= bool(made)
