"""Load coefficients: the work that one row brings into the network, equation 1 of the paper.

They depend on costs and selectivities only, so they are computed once; the load of the moment is their product with
the current rates.
"""

from __future__ import annotations

from collections.abc import Mapping

from jettison.network.graph import QueryGraph


def load_coefficients(graph: QueryGraph) -> dict[str, float]:
    """Work per row of each stream, from there to the outputs, by name of the input or box that emits it.

    For a flat query this is `sum(cost_i * product(selectivity_j for j < i))`. At a split the paths add up. A binary
    box charges a row of either side alike: its cost and selectivity are per row that enters.

    Examples
    --------
    >>> from jettison.network.graph import Box, Input, Output
    >>> graph = QueryGraph([Input("i")], [Box("a", ("i",), cost=2.0, selectivity=0.5), Box("b", ("a",), cost=4.0)],
    ...                    [Output("o", "b")])
    >>> load_coefficients(graph)["i"]
    4.0
    """
    below: dict[str, float] = {}
    for stream in (*reversed(list(graph.boxes)), *graph.inputs):
        coefficient = 0.0
        for arc in graph.readers(stream):
            if (box := graph.boxes.get(arc.target)) is not None:
                coefficient += box.cost + box.selectivity * below[box.name]
        below[stream] = coefficient
    return below


def total_load(graph: QueryGraph, rates: Mapping[str, float] | None = None) -> float:
    """Work per unit of time at `rates` (rows per unit of time by input), or at the inputs' own rates."""
    coefficients = load_coefficients(graph)
    given = {name: input.rate for name, input in graph.inputs.items()} if rates is None else rates
    return sum(coefficients[name] * rate for name, rate in given.items())


def excess_load(load: float, *, capacity: float, headroom: float) -> float:
    """Work per unit of time to get rid of: what exceeds `headroom * capacity`, both in the unit of `load`.

    The paper calls its load "a fraction of the total capacity" and then compares it with `H * C`; here both are
    work per unit of time.

    >>> excess_load(640.0, capacity=500.0, headroom=0.8)
    240.0
    """
    return max(0.0, load - headroom * capacity)
