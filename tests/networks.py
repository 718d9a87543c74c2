"""Networks that several tests use."""

from __future__ import annotations

import numpy as np

from jettison.policies.network import Box, Input, LossTolerance, Output, QoS, QueryGraph, ValueUtility

UNIFORM = ((0.0, 100.0, 1.0),)


def figure_4() -> QueryGraph:
    """Two inputs, a fan-out and a binary box, with the paper's coefficients 26.5 and 18.75."""
    boxes = [
        Box("b1", ("i1",), cost=10, selectivity=0.5),
        Box("b2", ("b1",), cost=10, selectivity=0.8),
        Box("b3", ("b2",), cost=5),
        Box("b4", ("b1",), cost=10, selectivity=0.9),
        Box("b5", ("i2",), cost=10, selectivity=0.875),
        Box("b6", ("b4", "b5"), "union", cost=10),
    ]
    return QueryGraph([Input("i1", 10.0), Input("i2", 20.0)], boxes, [Output("o1", "b3"), Output("o2", "b6")])


def figure_6() -> QueryGraph:
    """One split before two queries, and a third that shares nothing."""
    boxes = [
        Box("one", ("a",), cost=4.0),
        Box("two", ("one",), cost=2.0),
        Box("three", ("one",), cost=3.0),
        Box("four", ("f",), cost=5.0),
    ]
    outputs = [
        Output("o1", "two", QoS(LossTolerance([(100, 1), (80, 0.9), (0, 0)]))),
        Output("o2", "three", QoS(LossTolerance([(100, 1), (30, 0.6), (0, 0)]))),
        Output("o3", "four", QoS(LossTolerance([(100, 1), (50, 0.7), (0, 0)]))),
    ]
    return QueryGraph([Input("a", 10.0), Input("f", 10.0)], boxes, outputs)


def random_network(seed: int, *, boxes: int = 20, outputs: int = 4, sharing: float = 0.25) -> QueryGraph:
    """Filters and unions over shared streams, with random concave graphs."""
    random = np.random.default_rng(seed)
    inputs = [Input(f"i{n}", float(random.uniform(1, 10)), UNIFORM) for n in range(int(random.integers(2, 6)))]
    streams, unread, made = [item.name for item in inputs], [item.name for item in inputs], []
    for number in range(boxes):
        pool = streams if random.random() < sharing or not unread else unread
        source = pool[int(random.integers(len(pool)))]
        others = [name for name in unread if name != source]
        if others and random.random() < 0.25:
            sources = (source, others[int(random.integers(len(others)))])
            made.append(Box(f"b{number}", sources, "union", cost=float(random.uniform(1, 3))))
        else:
            sources = (source,)
            low = float(random.integers(0, 60))
            cost, selectivity = float(random.uniform(1, 5)), (100 - low) / 100
            made.append(Box(f"b{number}", sources, cost=cost, selectivity=selectivity, passes=((low, 100.0),)))
        unread = [name for name in unread if name not in sources] + [f"b{number}"]
        streams.append(f"b{number}")
    while len(unread) > outputs:
        made.append(Box(f"m{len(made)}", (unread[0], unread[1]), "union"))
        unread = [*unread[2:], made[-1].name]
    ends = [Output(f"o{n}", stream, _random_qos(random)) for n, stream in enumerate(unread)]
    return QueryGraph(inputs, made, ends)


def _random_qos(random: np.random.Generator) -> QoS:
    middle = float(random.integers(50, 90))
    return QoS(value=ValueUtility([(0, middle, float(random.uniform(0.05, 1))), (middle, 100, 1.0)]))
