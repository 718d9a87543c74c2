"""Random query networks and QoS graphs with the paper's parameters (section 5.2), from a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jettison.policies.network.graph import Box, Input, Output, QueryGraph
from jettison.policies.network.qos import QoS, ValueUtility

VALUES = (0.0, 100.0)
"""Range of the integers in every stream, evenly spread."""
_UTILITIES = np.arange(1, 101) / 100
# The paper leaves open what boxes cost for each row that enters, and which constants c filters `value > c` compare with.
_FILTER_COST, _UNION_COST = 1.0, 0.5
_CONSTANTS = (0, 50)
_BORDER = 50  # the last value of the first interval of the value graphs


@dataclass(frozen=True, slots=True)
class Shape:
    """What the random network consists of.

    The defaults are the paper's: 5 queries of 34 filters and 13 unions. A query of u unions is a tree with u + 1
    inputs, so these have the paper's 18 inputs without being told. Every query gets as many boxes of each kind as the
    others, give or take one.
    """

    queries: int = 5
    filters: int = 34
    unions: int = 13


def random_network(seed: int, *, skew: float = 0.0, splits: int = 0, shape: Shape | None = None) -> QueryGraph:
    """Queries that are trees of unions, with filters spread over their arcs.

    The same seed gives the same network and, for the same skew (see `zipf_utility`), the same utilities. So many inputs as
    `splits` says are replaced by a stream of an earlier query, which is thereby shared.
    """
    shape = Shape() if shape is None else shape
    random = np.random.default_rng([seed, 1])
    inputs: list[Input] = []
    boxes: list[Box] = []
    tops: list[str] = []
    for query, count in enumerate(_evenly(shape.unions, shape.queries, random)):
        shared = _evenly(splits, shape.queries - 1, random)[query - 1] if query and splits else 0
        earlier = [box.name for box in boxes] + [input.name for input in inputs]
        streams = [
            earlier[int(random.integers(len(earlier)))] if n < shared else _input(inputs) for n in range(count + 1)
        ]
        while len(streams) > 1:
            first, second = sorted(random.choice(len(streams), 2, replace=False), reverse=True)
            pair = (streams.pop(first), streams.pop(second))
            boxes.append(Box(f"union{len(boxes)}", pair, "union", cost=_UNION_COST))
            streams.append(boxes[-1].name)
        tops.append(streams[0])
    boxes, tops = _with_filters(boxes, tops, shape, random)
    draws = np.random.default_rng([seed, 2])  # apart, so that the network is the same at every skew
    outputs = [Output(f"out{n}", top, value_qos(_BORDER, zipf_utility(draws, skew))) for n, top in enumerate(tops)]
    return QueryGraph(inputs, boxes, outputs, integral_values=True)


def shared_network(seed: int, *, skew: float) -> QueryGraph:
    """Twenty identical queries behind one common box (section 6.4); they differ in their QoS graphs only."""
    draws = np.random.default_rng([seed, 3])
    boxes = [_filter("common", "in0", 10)]
    outputs = []
    for n in range(20):
        boxes += [_filter(f"first{n}", "common", 10), _filter(f"second{n}", f"first{n}", 10)]
        outputs.append(Output(f"out{n}", f"second{n}", value_qos(75, zipf_utility(draws, skew))))
    return QueryGraph([Input("in0", 1.0, ((*VALUES, 1.0),))], boxes, outputs, integral_values=True)


def zipf_utility(random: np.random.Generator, skew: float) -> float:
    """A utility of 0.01 to 1.00, the k-th of which has probability proportional to `k ** -skew`.

    At skew 0 all are equally likely; the higher the skew, the more likely are low utilities.
    """
    odds = np.arange(1, len(_UTILITIES) + 1, dtype=float) ** -skew
    # By inversion of one uniform draw: at a higher skew the same draw gives a lower utility.
    position = int(np.searchsorted(np.cumsum(odds) / odds.sum(), random.random()))
    return float(_UTILITIES[min(position, len(_UTILITIES) - 1)])


def value_qos(border: int, utility: float) -> QoS:
    """Two intervals of values: up to `border` with `utility`, above it with 1."""
    return QoS(value=ValueUtility([(VALUES[0], border, utility), (border + 1, VALUES[1], 1.0)]))


def _input(inputs: list[Input]) -> str:
    inputs.append(Input(f"in{len(inputs)}", 1.0, ((*VALUES, 1.0),)))
    return inputs[-1].name


def _filter(name: str, source: str, constant: int) -> Box:
    passes = ((constant + 1.0, VALUES[1]),)
    return Box(
        name, (source,), "filter", _FILTER_COST, selectivity=(VALUES[1] - constant) / (VALUES[1] + 1), passes=passes
    )


def _with_filters(
    unions: list[Box], tops: list[str], shape: Shape, random: np.random.Generator
) -> tuple[list[Box], list[str]]:
    """Spread each query's filters at random over the arcs of its tree."""
    by_name = {box.name: box for box in unions}
    sources: dict[tuple[str, int], str] = {(box.name, port): box.sources[port] for box in unions for port in range(2)}
    filters: list[Box] = []
    for query, count in enumerate(_evenly(shape.filters, shape.queries, random)):
        arcs = [(f"top{query}", 0)]
        sources[arcs[0]] = tops[query]
        below = [tops[query]]
        while below:
            if (box := by_name.get(below.pop())) is not None:
                arcs += [(box.name, 0), (box.name, 1)]
                below += box.sources
        for _ in range(count):
            arc = arcs[int(random.integers(len(arcs)))]
            constant = int(random.integers(_CONSTANTS[0], _CONSTANTS[1] + 1))
            filters.append(_filter(f"filter{len(filters)}", sources[arc], constant))
            sources[arc] = filters[-1].name
    joined = [Box(box.name, (sources[box.name, 0], sources[box.name, 1]), "union", cost=box.cost) for box in unions]
    return filters + joined, [sources[f"top{n}", 0] for n in range(len(tops))]


def _evenly(total: int, parts: int, random: np.random.Generator) -> list[int]:
    """`total` in parts that differ by at most one, the larger ones anywhere."""
    counts = np.full(parts, total // parts)
    counts[random.permutation(parts)[: total % parts]] += 1
    return [int(count) for count in counts]
