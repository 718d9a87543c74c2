"""Cold starts as they were recorded on Spark, told to the controller as they happened."""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from jettison.control.controller import Controller, ControlSettings
from jettison.core.stats import Budget, PointStats, Stats
from jettison.lab.sim.harm import COLD_COSTLY, COLD_FILES, COLD_KAFKA, dropped
from jettison.lab.sim.plant import Plant, PlantSettings

FOLDER = Path(__file__).parents[1] / "data" / "cold_starts"
TICK_S, LEAD_S, REPORT_S = 0.25, 0.1, 0.05


def recorded(name: str) -> tuple[dict[str, Any], list[Stats]]:
    case, *batches = (json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines())
    return case, [
        Stats(
            one["batch_id"],
            one["started_s"],
            one["duration_s"],
            {"rows": PointStats(one["rows"], one.get("kept", one["rows"]))},
            plan_version=0,
            oldest_arrival_s=one["oldest_arrival_s"],
            newest_arrival_s=one["newest_arrival_s"],
            work_s=one.get("work_s"),
        )
        for one in batches
    ]


@dataclass
class Seen:
    """What a controller would have had in force when a batch started, and the rate that it then knew."""

    stats: Stats
    budget: Budget
    rows_per_s: float | None


def told(controller: Controller, batches: list[Stats]) -> Iterator[Seen]:
    """Reports shortly after each commit and forecasts on a clock, as the pilot makes them."""
    plans: list[tuple[float, Budget]] = []

    def publish(budget: Budget, from_s: float) -> None:
        plans.append((from_s, budget))
        controller.planned(len(plans), from_s)

    publish(controller.initial(), 0.0)
    reports = list(batches)
    now_s = 0.0
    for stats in batches:
        while now_s < stats.started_s:
            due_s = reports[0].committed_s + REPORT_S if reports else float("inf")
            if due_s <= now_s:
                publish(controller.step(reports.pop(0)), due_s + LEAD_S)
            else:
                publish(controller.forecast(now_s), now_s + LEAD_S)
                now_s += TICK_S
        yield Seen(
            stats, [plan for from_s, plan in plans if from_s <= stats.started_s][-1], controller.arrivals.rows_per_s
        )


@pytest.mark.parametrize("bound_s", [3.0, 5.0])
@pytest.mark.parametrize(
    "name", ["files-fares-60k", "files-function-1ms-400", "kafka-fares-20k", "kafka-fares-60k", "files-slow-sink-100"]
)
def test_a_query_that_keeps_up_once_warm_is_left_alone(name: str, bound_s: float) -> None:
    case, batches = recorded(name)
    seen = list(told(Controller(ControlSettings(bound_s)), batches))
    assert [one.budget.share for one in seen] == [1.0] * len(batches)
    assert [one.budget.late_share for one in seen] == [1.0] * len(batches)
    rates = [one.rows_per_s for one in seen if one.rows_per_s is not None]
    assert max(rates) < 1.4 * case["rows_per_s"]


def test_what_0_1_saw_on_kafka_no_longer_leads_it_astray() -> None:
    """It concluded from the first batch that two million rows arrive a second, and kept one row in a hundred.

    Batches that keep so few say little of what rows cost. From the same batches, shed as they were, the rate is now seen
    as it was, nothing is concluded from the first one, and everything is kept soon after batches have kept half.
    """
    case, batches = recorded("kafka-ledger-60k")
    assert batches[0].seen / ((batches[0].newest_arrival_s or 0) - (batches[0].oldest_arrival_s or 0)) > 2e6
    seen = list(told(Controller(ControlSettings(5.0)), batches))
    rates = [one.rows_per_s for one in seen if one.rows_per_s is not None]
    assert 0.8 * case["rows_per_s"] < min(rates) <= max(rates) < 1.2 * case["rows_per_s"]
    assert all(one.budget.share == 1.0 for one in seen[:3])
    assert min(one.budget.share for one in seen[:8]) > 0.03
    half = next(n for n, one in enumerate(seen) if one.stats.kept > 0.5 * one.stats.seen and n > 0)
    assert all(one.budget.share == 1.0 for one in seen[half + 4 :])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["files-fares-60k", "kafka-fares-20k"])
def test_costs_that_fall_as_recorded_cost_no_rows(name: str, seed: int) -> None:
    """The loop closed: a plant whose costs fall over time as they did on Spark, at the recorded rate."""
    case, batches = recorded(name)
    fixed_s = 0.3
    costs = [(one.started_s, max((one.work_s or 0.0) - fixed_s, 0.01) / one.seen) for one in batches[1:]]
    final = statistics.median(cost for _, cost in costs[len(costs) // 2 :])

    def factor(now_s: float) -> float:
        return next((cost for at_s, cost in reversed(costs) if at_s <= now_s), costs[0][1]) / final

    plant = PlantSettings(
        fixed_s=fixed_s + 0.15,
        overhead_s=0.15,
        per_seen_row_s=0.05 * final,
        per_kept_row_s=0.95 * final,
        first_batch_s=batches[0].duration_s,
        warm_up_factor=1.0,
        cost_factor=factor,
        noise=0.05,
        seed=seed,
    )
    trace = Plant(plant, lambda _: case["rows_per_s"]).run(Controller(ControlSettings(5.0)), 120.0)
    assert dropped([batch for batch in trace if batch.stats.started_s < 60.0]) <= 0.02
    assert dropped([batch for batch in trace if batch.stats.started_s >= 60.0]) == 0.0


FITTED = {
    "files": (COLD_FILES, ["files-fares-60k"]),
    "kafka": (COLD_KAFKA, ["kafka-fares-20k", "kafka-fares-60k"]),
    "costly rows": (COLD_COSTLY, ["files-function-1ms-400"]),
}
"""Plants, and the starts that they are to be like. Other cold plants, such as the hot loop's, are like none on record."""
ONE, ALL = 2.0, 1.3  # times: how far a batch, and all batches together, may be from the record; set after a look


def follows(plant: PlantSettings, batches: list[Stats]) -> bool:
    """Whether batches of the recorded rows, at the recorded times, take about as long in the plant as they did."""
    warm_from_s = batches[0].committed_s
    ages_s = [None, *(one.started_s - warm_from_s for one in batches[1:])]
    took = [one.duration_s for one in batches]
    takes = [plant.duration_s(one.seen, one.kept, age_s) for one, age_s in zip(batches, ages_s, strict=True)]
    within = all(1 / ONE <= here / there <= ONE for here, there in zip(takes, took, strict=True))
    return within and 1 / ALL <= sum(takes) / sum(took) <= ALL


@pytest.mark.parametrize("name", FITTED)
def test_a_cold_plant_takes_as_long_as_the_starts_that_it_is_fitted_to(name: str) -> None:
    plant, starts = FITTED[name]
    assert [start for start in starts if not follows(plant, recorded(start)[1])] == []


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *itertools.product(FITTED, [{"first_batch_s": 0.0}, {"cold_factor": 0.0}]),
        *((name, {"cold_s": 60.0}) for name in ("files", "kafka")),  # four batches of costly rows do not tell that one
    ],
    ids=str,
)
def test_with_other_constants_it_does_not(name: str, wrong: dict[str, float]) -> None:
    plant, starts = FITTED[name]
    assert not all(follows(replace(plant, **wrong), recorded(start)[1]) for start in starts)
