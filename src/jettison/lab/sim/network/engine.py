"""Executes a query network on one processor: queues on the arcs, boxes served round robin, a monitor now and then.

Time advances in slots. The rows that arrived during a slot are queued at its end; the processor then has a slot's
worth of work for the boxes, which take turns of at most `train` rows. What is not served waits. Within one slot the
order of rows on an arc is the order in which they were emitted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jettison.core.plan import DropPlan
from jettison.errors import refuse
from jettison.lab.sim.network.rows import Rows, passed_by, require_simulable, thinned
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.drop_model import DropModel, Vector
from jettison.policies.network.evaluate import drop_plan
from jettison.policies.network.graph import Arc, QueryGraph, arc_into

Plans = Callable[[Mapping[str, float]], DropPlan]
"""What to drop from now on, from the rates of the last period."""
_SLOT = 100.0
_PERIOD = 2  # slots between two looks at the load


class Planner(Protocol):
    """A road map or a frontier: the surviving shares for a load."""

    @property
    def model(self) -> DropModel: ...

    def at(self, load: float) -> Vector:
        """Surviving shares that need at most `load`."""
        ...


def monitor(planner: Planner, available: float, coefficients: Mapping[str, float]) -> Plans:
    """Compares the load of the moment with the work `available` in a unit of time, and asks a planner for a plan that fits.

    The planner was made at the inputs' relative rates, the coefficients are those of each input.
    """
    model = planner.model

    def plan(rates: Mapping[str, float]) -> DropPlan:
        load = sum(coefficients[name] * rate for name, rate in rates.items())
        if load <= available or load <= 0:
            return drop_plan(model, np.ones(model.units), cause="within capacity")
        # The table was made at the model's rates; only the ratio of load to capacity matters.
        survival = planner.at(model.full_load * available / load)
        return drop_plan(model, survival, cause=f"load {load:.3g} against {available:.3g}")

    return plan


@dataclass(slots=True)
class Trace:
    """What came out: by output, the rows delivered and when each was; at the end of each slot, the rows that waited and the
    share of the processor that was used.
    """

    delivered: dict[str, tuple[Rows, NDArray[np.float64]]] = field(default_factory=dict)
    queued: list[int] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)


class Engine:
    """One run of a network of filters, unions, and maps that keep values, over given arrivals.

    `capacity` is the processor's work in a unit of time; a box may process `train` rows in one turn.
    """

    def __init__(self, graph: QueryGraph, capacity: float, train: int = 500) -> None:
        require_simulable(graph)
        self._graph, self._capacity, self._train = graph, capacity, train
        self._queues: dict[Arc, deque[Rows]] = {
            arc_into(box, port): deque() for box in graph.boxes.values() for port in range(len(box.sources))
        }
        self._into = {
            box.name: [self._queues[arc_into(box, port)] for port in range(len(box.sources))]
            for box in graph.boxes.values()
        }
        self._turns = deque(graph.boxes)
        self._plan = DropPlan(0)
        self._out: dict[str, list[tuple[Rows, float]]] = {name: [] for name in graph.outputs}

    def run(self, arrivals: Mapping[str, Rows], until: float, plans: Plans | None = None) -> Trace:
        """Process all arrivals up to `until`, then what is still queued.

        Without plans nothing is dropped. The first one is made at the end of the first period.
        """
        trace, work = Trace(), self._capacity * _SLOT
        slots = int(np.ceil(until / _SLOT))
        edges = np.arange(1, slots + 1) * _SLOT
        bounds = {name: [0, *np.searchsorted(rows.arrivals, edges).tolist()] for name, rows in arrivals.items()}
        for slot in range(slots):
            now = float(edges[slot])
            for name, rows in arrivals.items():
                arrived = rows.where(slice(bounds[name][slot], bounds[name][slot + 1]))
                self._emit(name, thinned(self._plan.points.get(name), name, arrived), now)
            if plans is not None and (slot + 1) % _PERIOD == 0:
                first, period = slot + 1 - _PERIOD, _SLOT * _PERIOD
                self._plan = plans({name: (edge[slot + 1] - edge[first]) / period for name, edge in bounds.items()})
            trace.busy.append(self._serve(work, now + _SLOT) / work)
            trace.queued.append(sum(len(rows) for queue in self._queues.values() for rows in queue))
        now = float(edges[-1]) if slots else 0.0
        while any(self._queues.values()):
            now += _SLOT
            self._serve(work, now)
        trace.delivered = {name: _timed(parts) for name, parts in self._out.items()}
        return trace

    def _emit(self, stream: str, rows: Rows, now: float) -> None:
        if not len(rows):
            return
        for arc in self._graph.readers(stream):
            kept = thinned(self._plan.points.get(arc.name), arc.name, rows)
            if not len(kept):
                continue
            if arc.target in self._out:
                self._out[arc.target].append((kept, now))
            else:
                self._queues[arc].append(kept)

    def _serve(self, work: float, now: float) -> float:
        """Give boxes turns until the work is used up or nothing waits; the work used."""
        left, idle = work, 0
        while left > 0 and idle < len(self._turns):
            name = self._turns[0]
            self._turns.rotate(-1)
            box = self._graph.boxes[name]
            most = self._train if box.cost <= 0 else min(self._train, int(np.ceil(left / box.cost)))
            taken = self._take(name, most)
            if not len(taken):
                idle += 1
                continue
            idle = 0
            left -= box.cost * len(taken)
            self._emit(name, taken if box.kind == "union" else taken.where(passed_by(box, taken)), now)
        return work - max(left, 0.0)

    def _take(self, name: str, most: int) -> Rows:
        """Up to `most` rows from a box's queues, one queue after the other."""
        parts: list[Rows] = []
        for queue in self._into[name]:
            while queue and most > 0:
                rows = queue.popleft()
                if len(rows) > most:
                    queue.appendleft(rows.where(slice(most, None)))
                    rows = rows.where(slice(0, most))
                most -= len(rows)
                parts.append(rows)
        return Rows.joined(parts)


def offered(
    graph: QueryGraph,
    arrivals: Mapping[str, Rows],
    plan: DropPlan | None = None,
    functions: Mapping[str, Callable[..., Rows]] | None = None,
) -> dict[str, Rows]:
    """What each output gets of all arrivals under one plan, whatever the time it takes; by default with nothing shed.

    The plan drops at the network's own locations only: elsewhere some box could answer wrongly. `functions` say what
    joins, aggregates and maps that change values make of the rows on their arcs.
    """
    functions = {} if functions is None else functions
    require_simulable(graph, functions)
    points = {} if plan is None else plan.points
    if plan is not None:
        _require_locations(graph, plan)
    on_arc: dict[Arc, Rows] = {}

    def emit(stream: str, rows: Rows) -> None:
        for arc in graph.readers(stream):
            on_arc[arc] = thinned(points.get(arc.name), arc.name, rows)

    for name in graph.inputs:
        emit(name, thinned(points.get(name), name, arrivals.get(name, Rows.none())))
    for box in graph.boxes.values():
        entering = [on_arc[arc_into(box, port)] for port in range(len(box.sources))]
        if box.name in functions:
            emit(box.name, functions[box.name](*entering))
        else:
            rows = Rows.joined(entering)
            emit(box.name, rows if box.kind == "union" else rows.where(passed_by(box, rows)))
    return {name: on_arc[Arc(output.source, name)] for name, output in graph.outputs.items()}


def _require_locations(graph: QueryGraph, plan: DropPlan) -> None:
    known = {location.name for location in drop_model(graph).locations}
    if elsewhere := sorted(set(plan.points) - known):
        refuse(
            f"drops at locations of the network ({', '.join(sorted(known))})",
            ", ".join(elsewhere),
            hint="take the names from `drop_model(graph).locations`: rows are only dropped where streams part",
        )


def random_arrivals(graph: QueryGraph, seed: int, *, mean_gap: float, until: float) -> dict[str, Rows]:
    """Integer values evenly spread over each input's range, with exponential gaps of a constant mean."""
    result = {}
    for number, input in enumerate(graph.inputs.values()):
        random = np.random.default_rng([seed, 7, number])
        count = int(random.poisson(until / mean_gap))
        arrivals = np.sort(random.uniform(0.0, until, count))
        low, high = input.values[0][0], input.values[-1][1]
        values = random.integers(int(low), int(high) + 1, count).astype(float)
        result[input.name] = Rows(np.arange(count, dtype=np.int64) + (number << 40), values, arrivals)
    return result


def _timed(parts: list[tuple[Rows, float]]) -> tuple[Rows, NDArray[np.float64]]:
    times = np.concatenate([np.full(len(rows), now) for rows, now in parts]) if parts else np.empty(0)
    return Rows.joined([rows for rows, _ in parts]) if parts else Rows.none(), times
