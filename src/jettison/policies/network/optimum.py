"""The best plan for every load, as a linear program solved once per corner.

How much utility can be had at a load is a concave, piecewise linear function of that load, and between two corners
the best survival shares are mixtures of those at the corners. So the whole function is found ahead of time from few
programs, and a lookup is an interpolation.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from jettison.errors import JettisonError, refuse
from jettison.policies.network.drop_model import DropModel, Vector


class PlannerFailed(JettisonError, RuntimeError):
    """The solver did not find the optimum of a problem that has one."""


@dataclass(frozen=True, slots=True, eq=False)
class Corner:
    """A solved load: the utility that can be had at `load`, its slope there, and the survival shares."""

    load: float
    utility: float
    slope: float
    survival: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """The most utility that can be had at each load.

    Parameters
    ----------
    corners
        In order of load.
    gap
        Certified: nowhere does the utility of a plan lie further than this below the optimum, as a share of full utility.
    """

    model: DropModel
    corners: tuple[Corner, ...]
    gap: float

    def at(self, load: float) -> Vector:
        """Survival shares that need at most `load`; everything droppable is dropped if even that is too much."""
        position = bisect.bisect_right(self.corners, load, key=lambda corner: corner.load)
        if position == 0:
            return self.corners[0].survival
        if position == len(self.corners):
            return self.corners[-1].survival
        below, above = self.corners[position - 1], self.corners[position]
        part = (load - below.load) / (above.load - below.load)
        return below.survival + part * (above.survival - below.survival)


class Program:
    """The linear program of a model; only the bound on the load changes between solutions."""

    def __init__(self, model: DropModel) -> None:
        self.model = model
        pieces = [(row, piece) for row, delivery in enumerate(model.deliveries) for piece in delivery.pieces]
        units, fills = model.units, len(pieces)
        # Unknowns: survival of each unit, then how far each piece of each utility graph is filled. Slopes fall from
        # piece to piece, so the solver fills them in order by itself.
        self._objective = np.concatenate([np.zeros(units), [-piece.slope for _, piece in pieces]])
        inner = np.flatnonzero(~model.at_input)
        keeps = sparse.identity(units, format="csr")[inner] - model.feeds[inner]
        filled = sparse.csr_matrix(
            (np.ones(fills), ([row for row, _ in pieces], np.arange(fills))), shape=(len(model.deliveries), fills)
        )
        budget = sparse.csr_matrix(np.concatenate([model.load, np.zeros(fills)])[None, :])
        self._rows = sparse.vstack(
            [
                budget,
                sparse.hstack([keeps, sparse.csr_matrix((len(inner), fills))]),
                sparse.hstack([-model.delivery, filled]),
            ],
            format="csr",
        )
        self._right = np.zeros(self._rows.shape[0])
        owned = {unit for location in model.locations for unit in location.units}
        lowest = np.array([0.0 if unit in owned else 1.0 for unit in range(units)])
        self._bounds = np.concatenate(
            [
                np.column_stack([lowest, np.ones(units)]),
                np.column_stack([np.zeros(fills), [piece.length for _, piece in pieces]]).reshape(fills, 2),
            ]
        )
        self.least_load = model.fixed_load + float(model.load @ lowest)

    def solve(self, load: float) -> Corner:
        """The most utility at `load`, which must be at least `least_load`."""
        model = self.model
        right = self._right.copy()
        right[0] = max(load, self.least_load) - model.fixed_load
        result = linprog(self._objective, A_ub=self._rows, b_ub=right, bounds=self._bounds, method="highs-ds")
        if result.status != 0:
            refuse(
                "an optimal plan",
                f"{result.message!r}",
                where=f"load {load:g}",
                hint="look for costs, rates or utilities many orders of magnitude apart",
                error=PlannerFailed,
            )
        # Rounding may leave a unit with a little more than reaches it.
        survival = np.clip(result.x[: model.units], 0.0, 1.0)
        slope = max(0.0, -float(result.ineqlin.marginals[0]))
        return Corner(load, model.floor - float(result.fun), slope, survival)


def frontier(model: DropModel, *, tolerance: float = 2.5e-3, effort: int | None = None) -> Frontier:
    """All best plans, from dropping everything to dropping nothing.

    Parameters
    ----------
    model
        The shedding problem.
    tolerance
        Corners are added until the certified gap is at most this share of full utility. 0 finds every corner.
    effort
        Programs that are spent in any case to narrow the gap further, unless every corner is found before. If not
        given, as many as take some tenths of a second: from 60 for a small network down to 30.

    Notes
    -----
    A dual solution is a tangent of the concave function, and two tangents bound it from above between their corners.
    The pair with the widest room between tangents and chord is solved next, where its tangents cross. A crossing on
    the function itself proves the chord exact.
    """
    if effort is None:
        effort = min(60, max(30, 20_000 // max(model.units, 1)))
    program = Program(model)
    full = model.full_load
    first, last = program.solve(program.least_load), program.solve(full)
    scale = max(model.full_utility, 1e-12)
    done: list[Corner] = [first, last]
    waiting: list[tuple[float, int, float, Corner, Corner]] = []
    ties = itertools.count()

    def consider(below: Corner, above: Corner) -> None:
        crossing, room = _crossing(below, above)
        heapq.heappush(waiting, (-room, next(ties), crossing, below, above))

    if full - program.least_load > 1e-12 * max(full, 1.0):
        consider(first, last)
    while waiting and -waiting[0][0] > (1e-9 if len(done) < effort else max(tolerance, 1e-9)) * scale:
        _, _, crossing, below, above = heapq.heappop(waiting)
        corner = program.solve(crossing)
        done.append(corner)
        consider(below, corner)
        consider(corner, above)
    gap = max((-item[0] for item in waiting), default=0.0) / scale
    corners = tuple(sorted(done, key=lambda corner: corner.load))
    return Frontier(model, corners, max(gap, 0.0))


def _crossing(below: Corner, above: Corner) -> tuple[float, float]:
    """Where the tangents of two corners cross, and how far that is above their chord."""
    width = above.load - below.load
    rise = above.utility - below.utility
    chord = rise / width
    bend = below.slope - above.slope
    if bend <= 1e-15 or width <= 1e-12 * max(1.0, above.load):
        return below.load, 0.0
    offset = min(max((rise - above.slope * width) / bend, 0.0), width)
    room = (below.slope - chord) * offset
    if offset <= 1e-9 * width or offset >= (1 - 1e-9) * width:
        return below.load + offset, 0.0
    return below.load + offset, max(room, 0.0)
