"""Which boxes would answer wrongly if rows were missing: nothing is dropped above those.

A drop upstream of a box is harmless where the box's answers stay right without the missing rows: a filter, a map or an
inner join emits a subset of what it would have emitted, and each row's weight says how many it stands for. Not so:

- **An aggregate that ignores weights**: its counts and sums come out too small.
- **A box that is not monotone**, such as an outer or anti join: rows that lost their partner come out as unmatched.
- **A join whose two sides have a drop above both**: a pair weighs the product of its rows' weights, which is right if
  their fates are independent. Where both rows of a pair are the same row of a common stream, they are not. So nothing
  is dropped above a split whose branches meet again in a join; drops on the branches are independent and allowed.
- **Bounds over pairs**: an aggregate behind a join, fed with weights, has the right value, but all pairs of a row share its
  fate, and bounds that take rows as independent would be too narrow. Nothing is dropped above such a join, unless the
  aggregate states no bounds.
"""

from __future__ import annotations

from jettison.policies.network.graph import QueryGraph


def needs_all_rows(graph: QueryGraph) -> set[str]:
    """Names of the inputs and boxes that rows must not be dropped before, because of themselves or of boxes below."""
    above = _streams_above(graph)
    found: set[str] = set()
    for box in graph.boxes.values():
        if not box.monotone or (box.kind == "aggregate" and not box.weighted):
            found.add(box.name)
        if box.kind == "join":
            found |= above[box.sources[0]] & above[box.sources[1]]
        if box.weighted and box.bounds:
            found |= {name for name in above[box.name] if name in graph.boxes and graph.boxes[name].kind == "join"}
    return _with_streams_above(graph, found)


def below_aggregates(graph: QueryGraph) -> set[str]:
    """Aggregates, and the boxes behind them."""
    found: set[str] = set()
    for box in graph.boxes.values():
        if box.kind == "aggregate" or any(source in found for source in box.sources):
            found.add(box.name)
    return found


def above_value_change(graph: QueryGraph) -> set[str]:
    """Inputs and boxes through which, or below which, a row's value changes before it reaches some output.

    A join counts: which side's value its rows carry on, only its function knows.
    """
    found = {box.name for box in graph.boxes.values() if not box.keeps_value or box.kind in ("aggregate", "join")}
    return _with_streams_above(graph, found)


def _with_streams_above(graph: QueryGraph, found: set[str]) -> set[str]:
    for stream in (*reversed(list(graph.boxes)), *graph.inputs):
        if any(arc.target in found for arc in graph.readers(stream)):
            found.add(stream)
    return found


def _streams_above(graph: QueryGraph) -> dict[str, frozenset[str]]:
    """For each stream itself and all streams that it is made from."""
    above = {name: frozenset([name]) for name in graph.inputs}
    for box in graph.boxes.values():
        above[box.name] = frozenset([box.name]).union(*(above[source] for source in box.sources))
    return above
