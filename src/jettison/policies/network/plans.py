"""From surviving shares to a drop plan: one setting for each candidate location."""

from __future__ import annotations

import numpy as np

from jettison.core.plan import DropPlan
from jettison.core.setting import Setting
from jettison.policies.network.drop_model import DropModel, Location, Vector
from jettison.policies.network.evaluate import keep_shares
from jettison.policies.network.range_setting import RangeDrop, few_ranges
from jettison.policies.uniform.random_setting import RandomDrop

_NOTHING = 1e-6  # a smaller drop is not worth its work


def drop_plan(model: DropModel, survival: Vector, *, column: str = "value", cause: str = "") -> DropPlan:
    """The plan under which `survival` comes out; a setting for every location, most of them keeping everything."""
    shares = keep_shares(model, survival)
    reaching = model.reaching(survival)
    points: dict[str, Setting] = {}
    for location in model.locations:
        keep = shares[location.name]
        if isinstance(keep, np.ndarray):
            points[location.name] = _range_drop(model, location, survival, reaching, column)
        else:
            points[location.name] = RandomDrop(keep if keep < 1.0 - _NOTHING else 1.0)
    return DropPlan(0, points, cause)


def _range_drop(model: DropModel, location: Location, survival: Vector, reaching: Vector, column: str) -> RangeDrop:
    """Give up each cell's lowest values first, wherever it is dropped: then drops along a path nest."""
    assert model.cells is not None
    ranges, rows = [], float((model.rate * reaching)[list(location.units)].sum())
    for unit, cell in zip(location.units, location.cells, strict=True):
        if survival[unit] >= reaching[unit] - _NOTHING or rows <= 0:
            continue
        lost = float(model.rate[unit] * (reaching[unit] - survival[unit])) / rows
        level = _level(model, unit, survival)
        ranges.append((model.cells.edges[cell], model.cells.cut(cell, 1.0 - level), lost))
    chosen = few_ranges([item for item in ranges if item[1] > item[0]])
    kept = max(0.0, 1.0 - sum(share for _, _, share in chosen))
    return RangeDrop(column, tuple((low, end) for low, end, _ in chosen), kept)


def _level(model: DropModel, unit: int, survival: Vector) -> float:
    """Down to which share of the cell to cut, so that `survival` remains although the streams above are cut already.

    Of a stream that is cut to the share p above, a cut to the level t leaves the smaller of both.
    """
    start, end = model.feeds.indptr[unit], model.feeds.indptr[unit + 1]
    if end == start:
        return float(survival[unit])
    above, shares = survival[model.feeds.indices[start:end]], model.feeds.data[start:end]
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if float(shares @ np.minimum(above, middle)) < survival[unit] else (low, middle)
    return high
