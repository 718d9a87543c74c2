"""From a network to its shedding problem: candidate drop locations, and the linear model over them.

Candidates are the inputs and the arcs behind a split (section 4.3.1). Anywhere else a drop can be moved upstream,
through boxes that serve nobody else, to the next candidate; there it drops the same answers and saves more work.

Choices where the paper is silent, each safe rather than clever:

- **Joins** are planned as linear, rows of either side alike. With shares a and b of the two sides surviving, a join
  really emits a * b of its rows, which is less than the linear a/2 + b/2, so real load is at most the planned one. Real
  delivery is lower as well: `jettison.policies.network.evaluate` gives it, and tables show it.
- **Aggregates**: missing rows make answers approximate, they do not make them fewer. Delivery of an output behind an
  aggregate is the share of the rows that its answers stand for; the work behind an aggregate counts as fixed; nothing
  is dropped behind it.
- **Boxes that need all rows** have no candidates above them; `graph.needs_all_rows` says which these are.
- **Semantic drops** need the value that an output's owner speaks of. A location is semantic if every box from it to
  every output keeps the value, and random otherwise.
- **Histograms** at inner arcs follow from those of the inputs: filters on the value pass whole cells, other boxes thin
  all cells alike. Random drops behind a union of streams with unlike values are planned with the mixture of values that
  the union has when nothing is dropped; the real one shifts a little (semantic drops are planned per cell, exactly).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from jettison.policies.network.cells import ValueCells, cells_of, through
from jettison.policies.network.drop_model import Delivery, DropModel, Location, Vector
from jettison.policies.network.graph import Arc, Box, Output, QueryGraph, above_value_change, arc_into, needs_all_rows
from jettison.policies.network.qos import LossTolerance, Piece, ValueUtility

Mix = dict[int, Vector]
"""Rows per unit of time by cell, by the unit that they last passed."""


@dataclass(frozen=True, slots=True)
class _Stream:
    mix: Mix
    frozen: bool = False  # behind an aggregate, where drops above save nothing

    @property
    def by_cell(self) -> Vector:
        return np.asarray(sum(self.mix.values()))


def drop_model(graph: QueryGraph, *, semantic: bool = False) -> DropModel:
    """The shedding problem of a network, for random drops or for semantic ones where they are possible.

    Examples
    --------
    >>> from jettison.policies.network.graph import Box, Input, Output
    >>> graph = QueryGraph(
    ...     [Input("a", rate=10.0), Input("f", rate=20.0)],
    ...     [Box("one", ("a",), cost=2.0), Box("two", ("one",)), Box("three", ("one",)), Box("four", ("f",))],
    ...     [Output("o1", "two"), Output("o2", "three"), Output("o3", "four")],
    ... )
    >>> [location.name for location in drop_model(graph).locations]
    ['a', 'f', 'one__two', 'one__three']
    """
    return _Builder(graph, semantic).build()


class _Builder:
    """Walks the network once, in topological order, and remembers which units each stream last passed."""

    def __init__(self, graph: QueryGraph, semantic: bool) -> None:
        self._graph = graph
        self._cells: ValueCells | None = cells_of(graph)
        self._width = len(self._cells) if self._cells is not None else 1
        self._semantic = semantic and self._cells is not None
        self._needs_all = needs_all_rows(graph)
        self._value_lost = above_value_change(graph)
        self._arcs: dict[Arc, _Stream] = {}
        # What is known of each unit so far.
        self._rate: list[float] = []
        self._at_inputs: list[bool] = []
        self._load: list[float] = []
        self._feeds: list[dict[int, float]] = []
        self._locations: list[Location] = []
        self._fixed_load = 0.0

    def build(self) -> DropModel:
        graph = self._graph
        for input in graph.inputs.values():
            rates = input.rate * (self._cells.histogram(input.values) if self._cells is not None else np.ones(1))
            self._spread(input.name, self._at_input(input.name, rates))
        for box in graph.boxes.values():
            self._spread(box.name, self._through(box))
        outputs = {name: self._arcs[Arc(output.source, name)] for name, output in graph.outputs.items()}
        graphs = {name: self._loss_tolerance(graph.outputs[name], stream) for name, stream in outputs.items()}
        deliveries, rows, floor = [], [], 0.0
        for name, stream in outputs.items():
            weight = graph.outputs[name].qos.weight
            floor += weight * graphs[name].points[0][1]
            if stream.by_cell.sum() <= 0:  # nothing to deliver, so nothing to lose
                floor += weight * (graphs[name].points[-1][1] - graphs[name].points[0][1])
                continue
            for delivery, row in self._deliveries(graph.outputs[name], stream, graphs[name]):
                deliveries.append(delivery)
                rows.append(row)
        count = len(self._rate)
        return DropModel(
            locations=tuple(self._locations),
            rate=np.array(self._rate),
            feeds=_matrix(self._feeds, count),
            at_input=np.array(self._at_inputs, dtype=bool),
            load=np.array(self._load),
            fixed_load=self._fixed_load,
            delivery=_matrix(rows, count),
            deliveries=tuple(deliveries),
            floor=floor,
            cells=self._cells,
            loss_tolerance=graphs,
        )

    def _unit(self, rate: float, feeds: dict[int, float] | None) -> int:
        self._rate.append(rate)
        self._at_inputs.append(feeds is None)
        self._feeds.append(feeds or {})
        self._load.append(0.0)
        return len(self._rate) - 1

    def _at_input(self, name: str, rates: Vector) -> _Stream:
        if name in self._needs_all:
            # Nobody may drop here: a unit that no location owns, which planners leave at 1.
            return _Stream({self._unit(float(rates.sum()), None): rates})
        return _Stream(self._place(name, name, None, _Stream({-1: rates})))

    def _spread(self, stream: str, state: _Stream) -> None:
        """Hand a stream to its readers, through a candidate location for each if it is a split."""
        readers = self._graph.readers(stream)
        for arc in readers:
            droppable = len(readers) > 1 and not state.frozen and arc.target not in self._needs_all
            if droppable and state.by_cell.sum() > 0:
                self._arcs[arc] = _Stream(self._place(arc.name, stream, arc.target, state))
            else:
                self._arcs[arc] = state

    def _place(self, name: str, stream: str, target: str | None, state: _Stream) -> Mix:
        """Make the units of a location on a stream; the mix that leaves it."""
        rates, at_input = state.by_cell, -1 in state.mix
        semantic = self._semantic and (stream if target is None else target) not in self._value_lost
        cells = tuple(int(cell) for cell in np.flatnonzero(rates > 0)) if semantic else ()
        mix: Mix = {}
        for part in [[cell] for cell in cells] if semantic else [slice(None)]:
            total, only = float(rates[part].sum()), np.zeros(self._width)
            shares = {unit: float(r[part].sum()) / total for unit, r in state.mix.items() if r[part].sum() > 0}
            only[part] = rates[part]
            mix[self._unit(total, None if at_input else shares)] = only
        self._locations.append(Location(name, stream, target, float(rates.sum()), tuple(mix), cells))
        return mix

    def _through(self, box: Box) -> _Stream:
        """Charge a box's work to the units whose rows enter it; the stream that leaves it."""
        entering = [self._arcs[arc_into(box, port)] for port in range(len(box.sources))]
        mix: Mix = {}
        for stream in entering:
            for unit, rates in stream.mix.items():
                mix[unit] = mix[unit] + rates if unit in mix else rates
        frozen = any(stream.frozen for stream in entering)
        for unit, rates in mix.items():
            work = box.cost * float(rates.sum())
            if frozen:
                self._fixed_load += work
            else:
                self._load[unit] += work
        leaving = through(box, self._cells)
        return _Stream({unit: leaving(rates) for unit, rates in mix.items()}, frozen or box.kind == "aggregate")

    def _loss_tolerance(self, output: Output, stream: _Stream) -> LossTolerance:
        qos = output.qos
        if qos.loss_tolerance is not None:
            return qos.loss_tolerance
        if qos.value is not None and self._cells is not None and (total := stream.by_cell.sum()) > 0:
            return _derived(qos.value, self._cells, stream.by_cell / total, output.name)
        return LossTolerance([(0, 0), (100, 1)], output.name)

    def _deliveries(
        self, output: Output, stream: _Stream, graph: LossTolerance
    ) -> list[tuple[Delivery, dict[int, float]]]:
        """What an output's units are worth: one graph over all rows, or a constant worth for each cell of values."""
        rates, total, weight = stream.by_cell, float(stream.by_cell.sum()), output.qos.weight
        value = output.qos.value
        if not (self._semantic and self._cells is not None and value is not None):
            pieces = tuple(Piece(piece.low, piece.high, weight * piece.slope) for piece in graph.pieces)
            row = {unit: float(r.sum()) / total for unit, r in stream.mix.items() if r.sum() > 0}
            return [(Delivery(output.name, 1.0, pieces), row)]
        # A cell lies inside one interval or outside all of them, so its lowest value tells.
        utility = np.array([value.at(low) for low in self._cells.edges[:-1]])
        whole = float(utility @ rates)
        result = []
        for cell in np.flatnonzero(rates > 0):
            slope = weight * float(utility[cell] * rates[cell]) / whole if whole > 0 else 0.0
            row = {unit: float(r[cell] / rates[cell]) for unit, r in stream.mix.items() if r[cell] > 0}
            result.append((Delivery(output.name, float(rates[cell]) / total, (Piece(0.0, 1.0, slope),)), row))
        return result


def _derived(value: ValueUtility, cells: ValueCells, shares: Vector, output: str) -> LossTolerance:
    """Utility by percentage delivered when the least useful values are dropped first (section 4.3.4 of the paper).

    Each interval of values becomes a piece, in ascending order of utility, which makes the graph concave. Rows outside all
    intervals are worth nothing and form an interval of their own.
    """
    rows = [(utility, low, float(shares @ cells.share_in([(low, high)]))) for low, high, utility in value.intervals]
    inside = sum(frequency for _, _, frequency in rows)
    if 1.0 - inside > 1e-9:
        rows.append((0.0, math.inf, 1.0 - inside))
    else:
        rows = [(utility, low, frequency / inside) for utility, low, frequency in rows]
    whole = sum(utility * frequency for utility, _, frequency in rows)
    delivered, left = 100.0, 1.0
    points = [(delivered, left)]
    for utility, _, frequency in sorted(rows):
        delivered = max(0.0, delivered - 100.0 * frequency)
        left = max(0.0, left - (utility * frequency / whole if whole > 0 else 0.0))
        if frequency > 0:
            points.append((delivered, left))
    return LossTolerance([*points[:-1], (0.0, 0.0)], output)


def _matrix(rows: list[dict[int, float]], width: int) -> sparse.csr_matrix:
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    indices = np.array([unit for row in rows for unit in row], dtype=np.int64)
    data = np.array([share for row in rows for share in row.values()], dtype=float)
    return sparse.csr_matrix((data, indices, indptr), shape=(len(rows), width))
