from __future__ import annotations

import numpy as np
import pytest

from jettison.core.plan import DropPlan
from jettison.errors import InvalidSetting
from jettison.lab.sim.network.engine import offered
from jettison.lab.sim.network.rows import Rows
from jettison.policies.network import Box, Input, Output, QueryGraph
from jettison.policies.uniform.random_setting import RandomDrop
from network_operators import equal_values, window_totals

FUNCTIONS = {
    "pairs": lambda left, right: equal_values(left, right, within=20.0),
    "sums": lambda rows: window_totals(rows, length=100.0),
}


def network() -> QueryGraph:
    boxes = [Box("pairs", ("l", "r"), "join"), Box("sums", ("l",), "aggregate", keeps_value=False, weighted=True)]
    return QueryGraph([Input("l"), Input("r")], boxes, [Output("out_pairs", "pairs"), Output("out_sums", "sums")])


def arrivals(seed: int, count: int = 400) -> dict[str, Rows]:
    random = np.random.default_rng(seed)
    times = np.arange(count, dtype=float)
    return {
        name: Rows(np.arange(count) + (number << 40), random.integers(0, 10, count).astype(float), times)
        for number, name in enumerate(("l", "r"))
    }


def test_pairs_and_sums_under_drops_estimate_those_without() -> None:
    """Weights multiply along a path and across a join, so that their totals are right on average."""
    plan = DropPlan(1, {"l": RandomDrop(0.8), "r": RandomDrop(0.5), "l__pairs": RandomDrop(0.7)})
    errors = []
    for seed in range(60):
        rows = arrivals(seed)
        # Identities decide, so that other rows are kept for each seed.
        rows = {name: Rows(part.ids + (seed << 20), part.values, part.arrivals) for name, part in rows.items()}
        whole, shed = offered(network(), rows, functions=FUNCTIONS), offered(network(), rows, plan, FUNCTIONS)
        assert len(shed["out_pairs"]) < 0.5 * len(whole["out_pairs"])
        assert shed["out_pairs"].weighing == pytest.approx(1 / (0.8 * 0.5 * 0.7))
        errors.append(
            [
                shed["out_pairs"].weighing.sum() / len(whole["out_pairs"]) - 1.0,
                shed["out_sums"].values.sum() / whole["out_sums"].values.sum() - 1.0,
            ]
        )
    bias, spread = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(len(errors))
    assert np.all(np.abs(bias) < 3 * spread)
    assert np.all(spread < 0.02)


def test_a_drop_where_some_box_would_answer_wrongly_is_refused() -> None:
    boxes = [Box("sums", ("l",), "aggregate", keeps_value=False)]
    graph = QueryGraph([Input("l")], boxes, [Output("o", "sums")])
    with pytest.raises(InvalidSetting, match="drops at locations of the network"):
        offered(graph, arrivals(1), DropPlan(1, {"l": RandomDrop(0.5)}), FUNCTIONS)
