from __future__ import annotations

import numpy as np
import pytest

from jettison.core.plan import DropPlan
from jettison.errors import Unsupported
from jettison.lab.sim.network import survival as survival_of
from jettison.lab.sim.network.admission import ADMISSIONS, AdmissionPlanner, input_loads
from jettison.lab.sim.network.engine import Engine, monitor, offered, random_arrivals
from jettison.lab.sim.network.generator import random_network, shared_network, zipf_utility
from jettison.policies.network import Box, Input, Output, QueryGraph
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.evaluate import drop_plan
from jettison.policies.network.optimum import frontier
from jettison.policies.uniform.random_setting import RandomDrop

UNTIL = 4000.0


def test_the_generator_has_the_papers_numbers() -> None:
    for seed in range(5):
        graph = random_network(seed)
        kinds = [box.kind for box in graph.boxes.values()]
        assert (len(graph.outputs), len(kinds), kinds.count("filter"), kinds.count("union")) == (5, 47, 34, 13)
        assert len(graph.inputs) == 18
        assert not any(graph.is_split(stream) for stream in (*graph.inputs, *graph.boxes))


def test_the_shared_network_has_one_split() -> None:
    graph = shared_network(1, skew=1.0)
    assert len(graph.outputs) == 20
    assert [stream for stream in (*graph.inputs, *graph.boxes) if graph.is_split(stream)] == ["common"]


def test_more_skew_makes_low_utilities_more_likely() -> None:
    draws = [[zipf_utility(np.random.default_rng(n), skew) for n in range(400)] for skew in (0.0, 1.0, 2.0)]
    means = [float(np.mean(utilities)) for utilities in draws]
    assert means[0] == pytest.approx(0.5, abs=0.05)
    assert means[0] > means[1] + 0.1 > means[2] + 0.2
    assert all(higher <= lower for lower, higher in zip(draws[0], draws[2], strict=True))


def test_nothing_shed_and_capacity_to_spare_delivers_everything_exactly_once() -> None:
    graph = random_network(3)
    arrivals = random_arrivals(graph, 3, mean_gap=20.0, until=UNTIL)
    trace = Engine(graph, capacity=1e6).run(arrivals, UNTIL)
    wanted = offered(graph, arrivals)
    for name, (rows, times) in trace.delivered.items():
        assert sorted(rows.ids) == sorted(wanted[name].ids)
        assert np.all(times >= rows.arrivals)
    assert trace.queued[-1] == 0


def test_a_processor_that_is_too_slow_queues_but_loses_nothing() -> None:
    graph = random_network(3)
    arrivals = random_arrivals(graph, 3, mean_gap=5.0, until=UNTIL)
    load = drop_model(graph).full_load / 5
    trace = Engine(graph, capacity=load / 2).run(arrivals, UNTIL)
    queued = trace.queued
    assert queued[-1] > 3 * queued[len(queued) // 4] > 0
    assert min(trace.busy[2:]) > 0.99
    assert {n: len(rows) for n, (rows, _) in trace.delivered.items()} == {
        n: len(rows) for n, rows in offered(graph, arrivals).items()
    }


@pytest.mark.parametrize("semantic", [False, True])
def test_shedding_holds_the_queue_and_delivers_what_was_planned(semantic: bool) -> None:
    graph = random_network(5, skew=1.0)
    model = drop_model(graph, semantic=semantic)
    planner, gap = frontier(model), 4.0
    capacity, headroom = 0.5 * model.full_load / gap, 0.95
    plans = monitor(planner, capacity * headroom, input_loads(model))
    arrivals = random_arrivals(graph, 5, mean_gap=gap, until=UNTIL)
    trace = Engine(graph, capacity).run(arrivals, UNTIL, plans)
    assert trace.queued[-1] < 2 * max(trace.queued[:8])
    planned = survival_of.delivered(model, planner.at(model.full_load * 0.5 * headroom))
    for name, wanted in offered(graph, arrivals).items():
        since = [rows.where(rows.arrivals >= 400.0) for rows in (trace.delivered[name][0], wanted)]
        assert len(since[0]) / len(since[1]) == pytest.approx(planned[name], abs=0.06)


@pytest.mark.parametrize("rule", ADMISSIONS)
def test_admission_control_sheds_at_inputs_only(rule: str) -> None:
    graph = shared_network(2, skew=1.0)
    planner = AdmissionPlanner(drop_model(graph), ADMISSIONS[rule], seed=1)
    plan = drop_plan(planner.model, planner.at(0.4 * planner.model.full_load))
    assert plan.points["in0"].keep_fraction == pytest.approx(0.4)
    assert all(setting.keeps_everything for name, setting in plan.points.items() if name != "in0")


def test_a_range_drop_keeps_the_values_that_matter() -> None:
    graph = random_network(7, skew=2.0)
    model = drop_model(graph, semantic=True)
    plan = drop_plan(model, frontier(model).at(0.6 * model.full_load))
    assert DropPlan.from_json(plan.to_json()) == plan
    arrivals = random_arrivals(graph, 7, mean_gap=2.0, until=UNTIL)
    before, after = offered(graph, arrivals), offered(graph, arrivals, plan)
    for name in graph.outputs:
        assert set(after[name].ids) <= set(before[name].ids)
        if len(after[name]):
            assert after[name].values.mean() >= before[name].values.mean() - 1e-9


def test_the_same_plan_keeps_the_same_rows_every_time() -> None:
    graph = random_network(1)
    arrivals = random_arrivals(graph, 1, mean_gap=5.0, until=500.0)
    plan = DropPlan(1, {"in0": RandomDrop(0.3), "in1": RandomDrop(0.6)})
    first, second = offered(graph, arrivals, plan), offered(graph, arrivals, plan)
    assert all(np.array_equal(first[name].ids, second[name].ids) for name in graph.outputs)


def test_boxes_that_are_not_simulated_are_refused() -> None:
    graph = QueryGraph([Input("l"), Input("r")], [Box("both", ("l", "r"), "join")], [Output("o", "both")])
    with pytest.raises(Unsupported, match="box 'both'"):
        Engine(graph, 1.0)
