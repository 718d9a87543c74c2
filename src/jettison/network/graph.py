"""A network of continuous queries: inputs, boxes, outputs and the arcs between them, as checked values.

A stream is what an input or a box emits. A stream with more than one reader is a *split*: every reader gets all of
its rows, and the work before the split is shared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from jettison.errors import InvalidSetting, did_you_mean, explain
from jettison.network.qos import QoS

Kind = Literal["filter", "map", "union", "join", "aggregate"]
KINDS: tuple[Kind, ...] = ("filter", "map", "union", "join", "aggregate")
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
        For an aggregate: whether it uses the rows' weights, so that its answers stay right when rows are missing.
        If not, nothing is ever dropped above it.
    bounds
        For a weighted aggregate: whether it states bounds. Behind a join they would be too narrow, so nothing is
        dropped above that join if it does.
    monotone
        Whether fewer rows in give a subset of the rows out. False for outer, anti and semi joins, and for any
        function that looks for missing rows; then nothing is ever dropped above it.
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
        for box in given_boxes:
            _require_box(box)
        for input in given_inputs:
            if not (math.isfinite(input.rate) and input.rate >= 0):
                raise InvalidSetting(
                    explain(
                        "`rate` must not be negative",
                        repr(input.rate),
                        where=_of("input", input),
                        hint="rows a second, relative to the other inputs; begin with 1 where it is not known",
                    )
                )
        streams = {*self.inputs, *by_name}
        for box in given_boxes:
            for source in box.sources:
                _require_stream(source, streams, _of("box", box))
        for output in given_outputs:
            _require_stream(output.source, streams, _of("output", output))
        self.boxes: Mapping[str, Box] = {name: by_name[name] for name in _topological(by_name, set(self.inputs))}
        self._require_everything_used()

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
    def outputs_below(self) -> Mapping[str, frozenset[str]]:
        """Names of the outputs that each input, box and output leads to."""
        below: dict[str, frozenset[str]] = {name: frozenset([name]) for name in self.outputs}
        for stream in (*reversed(list(self.boxes)), *self.inputs):
            below[stream] = frozenset().union(*(below[arc.target] for arc in self.readers(stream)))
        return below

    def _require_everything_used(self) -> None:
        if not self.outputs:
            raise InvalidSetting(
                explain(
                    "a network needs an output",
                    "none",
                    hint="without one nobody loses anything: add an Output that reads the last box",
                )
            )
        idle = [name for name in (*self.inputs, *self.boxes) if not self.readers(name)]
        if idle:
            raise InvalidSetting(
                explain(
                    "every input and box must lead to an output",
                    ", ".join(map(repr, idle)),
                    hint="remove it, or add an output that reads it",
                )
            )


def arc_into(box: Box, port: int) -> Arc:
    """The arc that enters a box at a position among its sources."""
    source = box.sources[port]
    return Arc(source, box.name, box.sources[:port].count(source))


def _require_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not _NAME.fullmatch(name) or "__" in name:
            hint = (
                "two underscores in a row stand for an arc"
                if "__" in name
                else "put an underscore in place of the rest"
            )
            raise InvalidSetting(explain("a name must be letters, digits and underscores", repr(name), hint=hint))
        if name in seen:
            raise InvalidSetting(
                explain(
                    "inputs, boxes and outputs need names of their own",
                    f"{name!r} twice",
                    hint="rename one of them: drop plans address a stream by its name",
                )
            )
        seen.add(name)


def _require_box(box: Box) -> None:
    where = _of("box", box)
    if box.kind not in KINDS:
        raise InvalidSetting(
            explain(
                f"`kind` must be one of {', '.join(KINDS)}",
                repr(box.kind),
                where=where,
                hint=did_you_mean(box.kind, KINDS, otherwise="a box that changes each row by itself is a map"),
            )
        )
    wanted = {"union": "at least two sources", "join": "two sources"}.get(box.kind, "one source")
    count = len(box.sources)
    if not (count >= 2 if box.kind == "union" else count == 2 if box.kind == "join" else count == 1):
        raise InvalidSetting(
            explain(
                f"a {box.kind} needs {wanted}",
                str(count),
                where=where,
                hint="list in `sources` what the box reads, or change its `kind`",
            )
        )
    if not (math.isfinite(box.cost) and box.cost >= 0):
        raise InvalidSetting(
            explain(
                "`cost` must not be negative",
                repr(box.cost),
                where=where,
                hint="work a row in any unit that all boxes share; `calibrate` measures it",
            )
        )
    if not (math.isfinite(box.selectivity) and box.selectivity >= 0):
        raise InvalidSetting(
            explain(
                "`selectivity` must not be negative",
                repr(box.selectivity),
                where=where,
                hint="rows out for each row in; `calibrate` measures it",
            )
        )
    if box.kind in ("filter", "union") and box.selectivity > 1:
        hint = "rows out per row in; use a map for a box that multiplies rows"
        raise InvalidSetting(
            explain(
                f"a {box.kind} emits at most what enters", f"selectivity {box.selectivity:g}", where=where, hint=hint
            )
        )


def _require_stream(source: str, streams: set[str], where: str) -> None:
    if source not in streams:
        known = ", ".join(sorted(streams))
        raise InvalidSetting(
            explain(
                f"a source must be an input or a box ({known})",
                repr(source),
                where=where,
                hint=did_you_mean(source, streams, otherwise="add that input or box first"),
            )
        )


def _topological(boxes: Mapping[str, Box], ready: set[str]) -> list[str]:
    """Box names such that every box comes after its sources."""
    order: list[str] = []
    waiting = {name: len(set(box.sources) - ready) for name, box in boxes.items()}
    readers: dict[str, list[str]] = {}
    for name, box in boxes.items():
        for source in sorted(set(box.sources)):
            readers.setdefault(source, []).append(name)
    runnable = [name for name, count in waiting.items() if count == 0]
    while runnable:
        name = runnable.pop(0)
        order.append(name)
        for reader in readers.get(name, []):
            waiting[reader] -= 1
            if waiting[reader] == 0:
                runnable.append(reader)
    if len(order) < len(boxes):
        stuck = ", ".join(sorted(set(boxes) - set(order)))
        raise InvalidSetting(
            explain(
                "a network must have no cycle",
                f"one through {stuck}",
                hint="let one of these boxes read an input, or a box that does not depend on it",
            )
        )
    return order


def _of(what: str, item: Input | Box | Output) -> str:
    return f"{what} {item.name!r}"
