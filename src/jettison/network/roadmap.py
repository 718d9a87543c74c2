"""The load shedding road map: a table of plans made ahead of time, each shedding more than the one before.

Two ways to fill it. `paper_road_map` is the paper's: sort the candidate locations once by loss over gain, one entry
for each piece of their utility graphs, and apply them in that order. `greedy_road_map` looks again after every row:
drops that are in place change what the next one gains and loses. Without sharing both are optimal (up to the step);
with sharing neither is, and `jettison.network.optimum` is the planner to use.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jettison.network.drop_model import DropModel, Vector

_TINY = 1e-9


@dataclass(slots=True, eq=False)
class RoadMap:
    """Plans in the order of the load that they leave, with a cursor on the one in use.

    Parameters
    ----------
    model
        The shedding problem.
    survivals
        A row of surviving shares for each plan; the first drops nothing.
    drop_cost
        Work of an active drop for each row that reaches it (the paper's D); it counts against what a plan saves.
    """

    model: DropModel
    survivals: NDArray[np.float64]
    drop_cost: float = 0.0
    cursor: int = 0
    loads: Vector = field(init=False)

    def __post_init__(self) -> None:
        self.loads = np.array([self._load(survival) for survival in self.survivals])

    def __len__(self) -> int:
        return len(self.survivals)

    def move(self, load: float) -> int:
        """Walk the cursor to the first plan that leaves at most `load`, forwards or back; its position.

        Past the last plan the cursor stays there: nothing more can be shed.
        """
        while self.cursor < len(self) - 1 and self.loads[self.cursor] > load:
            self.cursor += 1
        while self.cursor > 0 and self.loads[self.cursor - 1] <= load:
            self.cursor -= 1
        return self.cursor

    def at(self, load: float) -> Vector:
        """Surviving shares of the first plan that leaves at most `load`."""
        return np.asarray(self.survivals[self.move(load)])

    def utility_at(self, load: float) -> float:
        """Utility of that plan."""
        return self.model.utility(self.at(load))

    def _load(self, survival: Vector) -> float:
        reaching = self.model.reaching(survival)
        active = survival < reaching - _TINY
        drops = self.drop_cost * float((self.model.rate * reaching)[active].sum())
        return self.model.load_at(survival) + drops


def step_size(model: DropModel, *, drop_cost: float = 0.0, wanted: float = 0.01) -> float:
    """A step for which every drop gains more than it costs: above D / min(L), and at least `wanted`.

    Departure from the paper: the minimum is over the candidates where a drop can pay at all (L > D), not over all
    arcs. Arcs that lead nowhere have L = 0, for which the paper's rule asks for an infinite step.
    """
    coefficients = model.full_gain() / np.maximum(model.rate, _TINY)
    paying = coefficients[coefficients > max(drop_cost, _TINY)]
    if drop_cost <= 0 or not len(paying):
        return wanted
    return float(min(1.0, max(wanted, 1.001 * drop_cost / paying.min())))


def paper_road_map(model: DropModel, *, step: float = 0.01, drop_cost: float = 0.0) -> RoadMap:
    """The road map as the paper builds it: loss/gain ratios are taken once, with nothing dropped, and sorted.

    Literal where that teaches something: gains are those of the network without drops; a location's graph is the sum of
    the graphs of all outputs below it, even of those that it feeds only in part, through a union; a step does not stop
    at the corner of a graph. What a row is said to deliver and save is computed from the drops in place, though.
    """
    step = step_size(model, drop_cost=drop_cost, wanted=step)
    gain = model.full_gain()
    entries = [
        (slope / gain[unit], unit, high, low)
        for unit, slope, high, low in _summed_pieces(model)
        if gain[unit] > max(_TINY, drop_cost * model.rate[unit])
    ]
    target = np.ones(model.units)
    survival = model.feasible(target)
    rows = [survival]
    for _, unit, _, low in sorted(entries, key=lambda entry: (entry[0], entry[1], -entry[2])):
        while target[unit] > low + _TINY:
            target[unit] = max(0.0, target[unit] - step)
            after = model.feasible(target)
            if not np.array_equal(after, survival):
                survival = after
                rows.append(survival)
    return RoadMap(model, np.array(rows), drop_cost)


def greedy_road_map(model: DropModel, *, step: float = 1.0, drop_cost: float = 0.0) -> RoadMap:
    """The road map with loss/gain ratios re-evaluated after every row.

    The drop that loses least for what it gains *now* is deepened until something changes: a corner of a utility graph,
    a drop further down that becomes redundant, nothing left to drop, or `step`. Between such events all ratios are
    constant, so with the default step the rows are exact and few.
    """
    state = _Descent(model, drop_cost)
    rows = [state.survival.copy()]
    while state.advance(step):
        rows.append(state.survival.copy())
    return RoadMap(model, np.array(rows), drop_cost)


def _summed_pieces(model: DropModel) -> Iterator[tuple[int, float, float, float]]:
    """For each unit the pieces of the sum of all graphs below it: unit, slope, from, down to."""
    below = _deliveries_below(model)
    owned = {unit for location in model.locations for unit in location.units}
    for unit in sorted(owned):
        pieces = [piece for row in below[unit] for piece in model.deliveries[row].pieces]
        corners = sorted({0.0, 1.0, *(piece.low for piece in pieces)}, reverse=True)
        for high, low in itertools.pairwise(corners):
            yield unit, sum(p.slope for p in pieces if p.low <= low and high <= p.high), high, low


def _deliveries_below(model: DropModel) -> list[set[int]]:
    delivery, feeds = model.delivery.tocsc(), model.feeds.tocsc()
    below: list[set[int]] = [set() for _ in range(model.units)]
    for unit in range(model.units - 1, -1, -1):
        below[unit].update(delivery.indices[delivery.indptr[unit] : delivery.indptr[unit + 1]].tolist())
        for child in feeds.indices[feeds.indptr[unit] : feeds.indptr[unit + 1]]:
            below[unit] |= below[child]
    return below


class _Descent:
    """The state of the re-evaluated greedy: which shares survive, and what each further drop would gain and lose."""

    def __init__(self, model: DropModel, drop_cost: float) -> None:
        self._model = model
        self.survival = np.ones(model.units)
        feeds = model.feeds.tocsc()
        self._children = [
            list(
                zip(
                    *(part[feeds.indptr[u] : feeds.indptr[u + 1]].tolist() for part in (feeds.indices, feeds.data)),
                    strict=True,
                )
            )
            for u in range(model.units)
        ]
        worthwhile = model.full_gain() > np.maximum(_TINY, drop_cost * model.rate)
        self._candidates = [u for location in model.locations for u in location.units if worthwhile[u]]

    def advance(self, step: float) -> bool:
        """Deepen the best drop until something changes; false when nothing more can be gained."""
        model = self._model
        delivered = model.delivery @ self.survival
        slopes = np.array([_slope_below(model, row, share) for row, share in enumerate(delivered)])
        tight = self.survival >= model.reaching(self.survival) - _TINY
        loss, gain = self._margins(model.delivery.T @ slopes, tight), self._margins(model.load, tight)
        open_units = [u for u in self._candidates if self.survival[u] > _TINY and gain[u] > _TINY]
        if not open_units:
            return False
        best = min(open_units, key=lambda u: (loss[u] / gain[u], u))
        direction = self._direction(best, tight)
        length = min(step, self._room(best, direction, delivered, tight))
        self.survival = np.maximum(self.survival - length * direction, 0.0)
        return True

    def _margins(self, own: Vector, tight: NDArray[np.bool_]) -> list[float]:
        """Of what `own` counts for each unit, how much goes with a unit of survival here, drops below included."""
        result = own.tolist()
        for unit in range(len(result) - 1, -1, -1):
            result[unit] += sum(share * result[child] for child, share in self._children[unit] if tight[child])
        return [float(value) for value in result]

    def _direction(self, unit: int, tight: NDArray[np.bool_]) -> Vector:
        direction = np.zeros(self._model.units)
        direction[unit] = 1.0
        for above in range(unit, self._model.units):
            if direction[above]:
                for child, share in self._children[above]:
                    if tight[child]:
                        direction[child] += share * direction[above]
        return direction

    def _room(self, unit: int, direction: Vector, delivered: Vector, tight: NDArray[np.bool_]) -> float:
        model = self._model
        room = float(self.survival[unit])
        for row, fall in enumerate(model.delivery @ direction):
            if fall > _TINY:
                room = min(room, (delivered[row] - _corner_below(model, row, delivered[row])) / fall)
        loosening = np.where(tight, 0.0, model.feeds @ direction)
        slack = model.reaching(self.survival) - self.survival
        for child in np.flatnonzero(loosening > _TINY):
            room = min(room, float(slack[child] / loosening[child]))
        return max(room, 1e-7)  # an event that lies behind by rounding must not stop the walk


def _corner_below(model: DropModel, row: int, share: float) -> float:
    return max((p.low for p in model.deliveries[row].pieces if p.low < share - _TINY), default=-math.inf)


def _slope_below(model: DropModel, row: int, share: float) -> float:
    """Slope of a delivery's graph just below `share`."""
    pieces = model.deliveries[row].pieces
    return next((p.slope for p in reversed(pieces) if p.low < share - _TINY), pieces[0].slope if pieces else 0.0)
