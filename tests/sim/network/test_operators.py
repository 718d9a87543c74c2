from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from jettison.errors import InvalidSetting
from jettison.network import Box, Input, Output, QueryGraph
from jettison.plan import DropPlan
from jettison.settings import RandomDrop
from jettison.sim.network.engine import Engine, EngineSettings, offered
from jettison.sim.network.operators import EqualValuesInTime, WindowTotalsInTime, equal_values, window_totals
from jettison.sim.network.rows import Rows

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


@pytest.mark.parametrize("capacity", [1e6, 1.2])
def test_queues_and_turns_do_not_change_the_answers_of_joins_and_aggregates(capacity: float) -> None:
    """Fast or overloaded, each pair and each window comes out once, with the weights that the plan gives it."""
    graph, rows = network(), arrivals(3)
    plan = DropPlan(1, {"l": RandomDrop(0.8), "r": RandomDrop(0.5), "l__pairs": RandomDrop(0.7)})
    totals = WindowTotalsInTime(length=100.0, lateness=0.0)
    engine = Engine(
        graph,
        EngineSettings(capacity, slot=20.0, monitor_every=1, train=7),
        {"pairs": EqualValuesInTime(within=20.0), "sums": totals},
    )
    trace = engine.run(rows, 400.0, Always(plan))
    # The monitor first looks when the first slot has arrived.
    late_start = {name: part.where(part.arrivals >= 20.0) for name, part in rows.items()}
    dropped = offered(graph, late_start, plan, FUNCTIONS)
    pairs, _ = trace.delivered["out_pairs"]
    settled = pairs.where(pairs.arrivals >= 20.0)
    assert counted(settled) == counted(dropped["out_pairs"])
    sums, times = trace.delivered["out_sums"]
    assert sums.ids.tolist() == [0, 1, 2, 3]
    assert sums.values[1:] == pytest.approx(dropped["out_sums"].values[1:])
    assert totals.late == 0
    assert (max(trace.queued) > 100) == (capacity < 2.0)
    assert np.all(times[:-1] >= sums.arrivals[:-1])


def counted(rows: Rows) -> Counter[tuple[int, float]]:
    return Counter(zip(rows.ids.tolist(), rows.weighing.round(6).tolist(), strict=True))


class Always:
    """A monitor that gives one plan."""

    def __init__(self, plan: DropPlan) -> None:
        self._plan = plan

    def plan(self, rates: Mapping[str, float], queued_work: float) -> DropPlan:
        return self._plan
