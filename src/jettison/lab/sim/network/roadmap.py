"""The load shedding road map: a table of plans made ahead of time, each shedding more than the one before.

Two ways to fill it. `paper_road_map` is the paper's: sort the candidate locations once by loss over gain, one entry
for each piece of their utility graphs, and apply them in that order. `greedy_road_map` looks again after every row:
drops that are in place change what the next one gains and loses. Without sharing both are optimal (up to the step);
with sharing neither is, and `jettison.policies.network.optimum` is the planner to use.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from jettison.lab.sim.network.survival import feasible
from jettison.policies.network.drop_model import DropModel, Vector

_TINY = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class RoadMap:
    """Plans in the order of the load that they leave: a row of surviving shares each, the first of which drops nothing."""

    model: DropModel
    survivals: NDArray[np.float64]
    loads: Vector = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loads", np.array([load_at(self.model, survival) for survival in self.survivals]))

    def at(self, load: float) -> Vector:
        """Surviving shares of the first plan that leaves at most `load`; of the last one, where none does."""
        enough = np.flatnonzero(self.loads <= load)
        return np.asarray(self.survivals[enough[0] if len(enough) else -1])


def paper_road_map(model: DropModel, *, step: float = 0.01, literal: bool = False) -> RoadMap:
    """The road map as the paper builds it: loss/gain ratios are taken once, with nothing dropped, and sorted.

    Parameters
    ----------
    model
        The shedding problem.
    step
        Share by which a drop is deepened at a time. Drops cost nothing here, so any step pays: the paper's D is 0.
    literal
        Follow the text to the letter: a location's graph is the sum of the graphs of all outputs below it, even of those
        that it feeds only in part, through a union, and a step may run past a corner of a graph. If not, a location owns
        its share of each slope and steps stop at corners. Gains are fixed in either case.
    """
    gain, through = model.full_gain(), _through(model)
    owned = sorted(unit for location in model.locations for unit in location.units)
    paying = [unit for unit in owned if gain[unit] > _TINY]
    entries = []
    for unit in paying:
        rows = {row: 1.0 if literal else share for row, share in through[unit].items()}
        entries += [(loss / gain[unit], unit, loss, low) for loss, low in _summed_pieces(model, rows)]
    walk = _FixedOrder(model, through, step)
    for _, unit, loss, low in sorted(entries, key=lambda entry: (entry[0], entry[1], -entry[3])):
        walk.apply(unit, low=low) if literal else walk.apply(unit, loss=loss)
    return RoadMap(model, np.array(walk.rows))


class _FixedOrder:
    """Deepens drops one at a time and remembers every step."""

    def __init__(self, model: DropModel, through: list[dict[int, float]], step: float) -> None:
        self._model, self._through, self._step = model, through, step
        self._target = np.ones(model.units)
        self.rows = [feasible(model, self._target)]

    def apply(self, unit: int, *, low: float = 0.0, loss: float | None = None) -> None:
        """Drop more at `unit`, down to the share `low`, or while it loses no more than `loss` per unit of share."""
        model = self._model
        while self._target[unit] > low + _TINY:
            length = self._step
            if loss is not None:
                delivered = model.delivery @ self.rows[-1]
                slopes = {row: _slope_below(model, row, delivered[row]) for row in self._through[unit]}
                if sum(share * slopes[row] for row, share in self._through[unit].items()) > loss * (1 + 1e-6) + _TINY:
                    return
                for row, share in self._through[unit].items():
                    corner = _corner_below(model, row, delivered[row])
                    length = min(length, max(1e-6, (delivered[row] - corner) / share))
            self._target[unit] = max(0.0, self._target[unit] - length)
            after = feasible(model, self._target)
            if not np.array_equal(after, self.rows[-1]):
                self.rows.append(after)


def greedy_road_map(model: DropModel, *, step: float = 1.0) -> RoadMap:
    """The road map with loss/gain ratios re-evaluated after every row.

    The drop that loses least for what it gains *now* is deepened until something changes: a corner of a utility graph,
    a drop further down that becomes redundant, nothing left to drop, or `step`. Between such events all ratios are
    constant, so with the default step the rows are exact and few.
    """
    state = _Descent(model)
    rows = [state.survival.copy()]
    while state.advance(step):
        rows.append(state.survival.copy())
    return RoadMap(model, np.array(rows))


def _summed_pieces(model: DropModel, shares: dict[int, float]) -> list[tuple[float, float]]:
    """Pieces of the sum of the graphs below a location, from full delivery down: slope, and where the piece ends."""
    corners = {0.0, 1.0, *(piece.low for row in shares for piece in model.deliveries[row].pieces)}
    return [
        (sum(share * _slope_below(model, row, high) for row, share in shares.items()), low)
        for high, low in itertools.pairwise(sorted(corners, reverse=True))
    ]


def _through(model: DropModel) -> list[dict[int, float]]:
    """For each unit, the share of each delivery that comes through it when nothing is dropped."""
    children, found = _columns(model.feeds), [dict(column) for column in _columns(model.delivery)]
    for unit in range(model.units - 1, -1, -1):
        for child, share in children[unit]:
            for row, part in found[child].items():
                found[unit][row] = found[unit].get(row, 0.0) + share * part
    return found


def _columns(matrix: sparse.spmatrix) -> list[list[tuple[int, float]]]:
    """Rows and values of each column of a sparse matrix."""
    columns = matrix.tocsc()
    rows, values = (np.split(of, columns.indptr[1:-1]) for of in (columns.indices, columns.data))
    return [list(zip(*(part.tolist() for part in both), strict=True)) for both in zip(rows, values, strict=True)]


class _Descent:
    """The state of the re-evaluated greedy: which shares survive, and what each further drop would gain and lose."""

    def __init__(self, model: DropModel) -> None:
        self._model = model
        self.survival = np.ones(model.units)
        self._children = _columns(model.feeds)
        gain = model.full_gain()
        self._candidates = [u for location in model.locations for u in location.units if gain[u] > _TINY]

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


def load_at(model: DropModel, survival: Vector) -> float:
    """Work per unit of time with these shares surviving."""
    return model.fixed_load + float(model.load @ survival)
