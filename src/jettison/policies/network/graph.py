"""A network of continuous queries: inputs, boxes, outputs and the arcs between them, as checked values.

A stream is what an input or a box emits. A stream with more than one reader is a *split*: every reader gets all of
its rows, and the work before the split is shared.
"""

from __future__ import annotations

import graphlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

from jettison.errors import did_you_mean, refuse
from jettison.policies.network.qos import QoS

Kind = Literal["filter", "map", "union", "join", "aggregate"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Input:
    """A source of rows.

    Parameters
    ----------
    name
        Unique in the network.
    rate
        Rows per unit of time. Planners only use the proportions between inputs and scale by the total load.
    values
        Share of the rows by range of the value column: triples of lowest value, highest value, share. Needed for
        semantic drops only.
    """

    name: str
    rate: float = 1.0
    values: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Box:
    """An operator.

    Parameters
    ----------
    name, sources
        Its own name, and the names of the inputs or boxes that it reads.
    kind
        `"union"` merges any number of streams, `"join"` takes two, the others one.
    cost
        Work per row that enters, in any unit that is the same for all boxes (cycles, microseconds).
    selectivity
        Rows out per row in. For a join that is per row of either side, as measured with nothing dropped.
    passes
        For a filter on the value column: the closed ranges of values that it lets through.
    keeps_value
        Whether a row's value is the same behind the box. Semantic drops cannot be placed above one that changes it.
    values
        Share of the rows that leave by range of the new value, where the box changes it.
    weighted
        Whether all that it aggregates uses the rows' weights, so that answers stay right when rows are missing. Nothing is
        ever dropped above an aggregate that does not. The Spark backend reads this and the next two from Spark's plan of
        the box.
    bounds
        For a weighted aggregate: whether it states bounds. Behind a join they would be too narrow, so nothing is
        dropped above that join if it does.
    monotone
        Whether fewer rows in give a subset of the rows out. False for outer, anti and semi joins, and for any
        function that looks for missing rows; then nothing is ever dropped above it.
    because
        Why the box needs all rows, in words, where it does.
    """

    name: str
    sources: tuple[str, ...]
    kind: Kind = "filter"
    cost: float = 1.0
    selectivity: float = 1.0
    passes: tuple[tuple[float, float], ...] | None = None
    keeps_value: bool = True
    values: tuple[tuple[float, float, float], ...] = ()
    weighted: bool = False
    bounds: bool = True
    monotone: bool = True
    because: str = ""

    def with_selectivity(self, measured: float) -> Box:
        """The same box with a measured selectivity. Filters and unions add no row, whatever noise says."""
        return replace(self, selectivity=min(measured, 1.0) if self.kind in ("filter", "union") else measured)


@dataclass(frozen=True, slots=True)
class Output:
    """Where a stream is delivered, and what its rows are worth."""

    name: str
    source: str
    qos: QoS = field(default_factory=QoS)


@dataclass(frozen=True, slots=True, order=True)
class Arc:
    """One reader of a stream; `port` tells apart the arcs of a reader that reads the same stream twice."""

    source: str
    target: str
    port: int = 0

    @property
    def name(self) -> str:
        """`source__target`, which is also the name of a drop point on the arc."""
        return f"{self.source}__{self.target}" + (f"_{self.port}" if self.port else "")


class QueryGraph:
    """A query network whose topology has been checked.

    Names are unique, every source exists, there is no cycle, and every input and box leads to an output.

    Parameters
    ----------
    inputs, boxes, outputs
        In any order.
    integral_values
        Whether the value column holds whole numbers only.

    Examples
    --------
    >>> graph = QueryGraph(
    ...     [Input("packets")],
    ...     [Box("parse", ("packets",), "map", cost=4.0), Box("alarms", ("parse",), selectivity=0.01)],
    ...     [Output("archive", "parse"), Output("pager", "alarms")],
    ... )
    >>> [arc.name for arc in graph.readers("parse")]
    ['parse__alarms', 'parse__archive']
    """

    def __init__(
        self,
        inputs: Iterable[Input],
        boxes: Iterable[Box],
        outputs: Iterable[Output],
        *,
        integral_values: bool = False,
    ) -> None:
        self.integral_values = integral_values
        given_inputs, given_boxes, given_outputs = list(inputs), list(boxes), list(outputs)
        self.inputs: Mapping[str, Input] = {item.name: item for item in given_inputs}
        self.outputs: Mapping[str, Output] = {item.name: item for item in given_outputs}
        everything: list[Input | Box | Output] = [*given_inputs, *given_boxes, *given_outputs]
        _require_names([item.name for item in everything])
        by_name = {box.name: box for box in given_boxes}
        streams = {*self.inputs, *by_name}
        for input in given_inputs:
            hint = "rows a second, relative to the other inputs; begin with 1 where it is not known"
            _require_amount("rate", input.rate, where=f"input {input.name!r}", hint=hint)
        for box in given_boxes:
            _require_box(box)
            for source in box.sources:
                _require_stream(source, streams, f"box {box.name!r}")
        for output in given_outputs:
            _require_stream(output.source, streams, f"output {output.name!r}")
        self.boxes: Mapping[str, Box] = {name: by_name[name] for name in _topological(by_name)}
        if not self.outputs:
            hint = "add an output that reads the last box"
            refuse("a network needs an output", "none", hint=hint)
        if idle := [name for name in (*self.inputs, *self.boxes) if not self.readers(name)]:
            hint = "remove it, or add an output that reads it"
            refuse("every input and box must lead to an output", ", ".join(map(repr, idle)), hint=hint)

    def readers(self, stream: str) -> tuple[Arc, ...]:
        """The arcs that leave a stream, boxes in topological order before outputs."""
        return self._readers.get(stream, ())

    def is_split(self, stream: str) -> bool:
        """Whether a stream has more than one reader."""
        return len(self.readers(stream)) > 1

    @cached_property
    def _readers(self) -> dict[str, tuple[Arc, ...]]:
        found: dict[str, list[Arc]] = {}
        for box in self.boxes.values():
            for port, source in enumerate(box.sources):
                found.setdefault(source, []).append(arc_into(box, port))
        for output in self.outputs.values():
            found.setdefault(output.source, []).append(Arc(output.source, output.name))
        return {stream: tuple(arcs) for stream, arcs in found.items()}

    @cached_property
    def above(self) -> Mapping[str, frozenset[str]]:
        """For each input and box itself and all streams that it is made from."""
        above = {name: frozenset([name]) for name in self.inputs}
        for box in self.boxes.values():
            above[box.name] = frozenset([box.name]).union(*(above[source] for source in box.sources))
        return above

    @cached_property
    def load_coefficients(self) -> Mapping[str, float]:
        """Work per row of each stream, from there to the outputs, by name of the input or box that emits it.

        For a flat query this is `sum(cost_i * product(selectivity_j for j < i))`, equation 1 of the paper. At a split the
        paths add up. A binary box charges a row of either side alike: its cost and selectivity are per row that enters.
        The load of the moment is their product with the current rates.
        """
        below: dict[str, float] = {}
        for stream in (*reversed(list(self.boxes)), *self.inputs):
            read_by = [self.boxes[arc.target] for arc in self.readers(stream) if arc.target in self.boxes]
            below[stream] = sum((box.cost + box.selectivity * below[box.name] for box in read_by), 0.0)
        return below

    def changed(self, *, inputs: Iterable[Input] | None = None, boxes: Iterable[Box] | None = None) -> QueryGraph:
        """The network with other inputs or boxes under the same names."""
        new_inputs = self.inputs.values() if inputs is None else inputs
        new_boxes = self.boxes.values() if boxes is None else boxes
        return QueryGraph(new_inputs, new_boxes, self.outputs.values(), integral_values=self.integral_values)


def arc_into(box: Box, port: int) -> Arc:
    """The arc that enters a box at a position among its sources."""
    source = box.sources[port]
    return Arc(source, box.name, box.sources[:port].count(source))


def _require_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not _NAME.fullmatch(name) or "__" in name:
            arcs, rest = "two underscores in a row stand for an arc", "put an underscore in place of the rest"
            hint = arcs if "__" in name else rest
            refuse("a name must be letters, digits and underscores", repr(name), hint=hint)
        if name in seen:
            hint = "rename one of them: drop plans address a stream by its name"
            refuse("inputs, boxes and outputs need names of their own", f"{name!r} twice", hint=hint)
        seen.add(name)


def _require_box(box: Box) -> None:
    where, count = f"box {box.name!r}", len(box.sources)
    if box.kind not in KINDS:
        hint = did_you_mean(box.kind, KINDS, otherwise="a box that changes each row by itself is a map")
        refuse(f"`kind` must be one of {', '.join(KINDS)}", repr(box.kind), where=where, hint=hint)
    wanted = {"union": "at least two sources", "join": "two sources"}.get(box.kind, "one source")
    if not (count >= 2 if box.kind == "union" else count == 2 if box.kind == "join" else count == 1):
        hint = "list in `sources` what the box reads, or change its `kind`"
        refuse(f"a {box.kind} needs {wanted}", str(count), where=where, hint=hint)
    hint = "work a row in any unit that all boxes share; `calibrate` measures it"
    _require_amount("cost", box.cost, where=where, hint=hint)
    hint = "rows out for each row in; `calibrate` measures it"
    _require_amount("selectivity", box.selectivity, where=where, hint=hint)
    if box.kind in ("filter", "union") and box.selectivity > 1:
        hint = "rows out per row in; use a map for a box that multiplies rows"
        refuse(f"a {box.kind} emits at most what enters", f"selectivity {box.selectivity:g}", where=where, hint=hint)


def _require_amount(name: str, amount: float, *, where: str, hint: str) -> None:
    if not (math.isfinite(amount) and amount >= 0):
        refuse(f"`{name}` must be finite and not negative", repr(amount), where=where, hint=hint)


def _require_stream(source: str, streams: set[str], where: str) -> None:
    if source not in streams:
        hint = did_you_mean(source, streams, otherwise="add that input or box first")
        expected = f"a source must be an input or a box ({', '.join(sorted(streams))})"
        refuse(expected, repr(source), where=where, hint=hint)


def _topological(boxes: Mapping[str, Box]) -> list[str]:
    """Box names such that every box comes after its sources."""
    sorter = graphlib.TopologicalSorter({name: () for name in boxes})
    for name, box in boxes.items():
        sorter.add(name, *(source for source in box.sources if source in boxes))
    try:
        return list(sorter.static_order())
    except graphlib.CycleError as error:
        hint = "let one of these boxes read an input, or a box that does not depend on it"
        got = f"one through {', '.join(sorted(set(error.args[1])))}"
        refuse("a network must have no cycle", got, hint=hint, cause=error)


def needs_all_rows(graph: QueryGraph) -> set[str]:
    """Names of the inputs and boxes that rows must not be dropped before, because of themselves or of boxes below.

    A drop upstream of a box is harmless where the box's answers stay right without the missing rows: a filter, a map or an
    inner join emits a subset of what it would have emitted, and each row's weight says how many it stands for. Not so:

    - **An aggregate that ignores weights**: its counts and sums come out too small.
    - **A box that is not monotone**, such as an outer or anti join: rows that lost their partner come out as unmatched.
    - **A join whose two sides have a drop above both**: a pair weighs the product of its rows' weights, which is right if
      their fates are independent. Where both rows of a pair are the same row of a common stream, they are not. So nothing
      is dropped above a split whose branches meet again in a join; drops on the branches are independent and allowed.
    - **Bounds over pairs**: an aggregate behind a join, fed with weights, has the right value, but all pairs of a row share
      its fate, and bounds that take rows as independent would be too narrow. Nothing is dropped above such a join, unless
      the aggregate states no bounds.
    """
    above, found = graph.above, set[str]()
    for box in graph.boxes.values():
        if not box.monotone or (box.kind == "aggregate" and not box.weighted):
            found.add(box.name)
        if box.kind == "join":
            found |= above[box.sources[0]] & above[box.sources[1]]
        if box.weighted and box.bounds:
            found |= {name for name in above[box.name] if name in graph.boxes and graph.boxes[name].kind == "join"}
    return set[str]().union(*(above[name] for name in found))


def below_aggregates(graph: QueryGraph) -> set[str]:
    """Aggregates, and the boxes behind them."""
    aggregates = {box.name for box in graph.boxes.values() if box.kind == "aggregate"}
    return {name for name, above in graph.above.items() if above & aggregates}


def above_value_change(graph: QueryGraph) -> set[str]:
    """Inputs and boxes through which, or below which, a row's value changes before it reaches some output.

    A join counts: which side's value its rows carry on, only its function knows.
    """
    changing = [box for box in graph.boxes.values() if not box.keeps_value or box.kind in ("aggregate", "join")]
    return set[str]().union(*(graph.above[box.name] for box in changing))
