"""No row is dropped that could have been kept, and none is dropped for nothing: the controller on plants like Spark.

One seed or a few of each claim: `jettison bench controller` runs twenty for most of them, not for all.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.control.controller import Controller, ControlSettings
from jettison.core.stats import PointStats, Stats
from jettison.lab.sim.harm import CASES, COLD_FILES, COLD_KAFKA, COSTLY_ROWS
from jettison.lab.sim.plant import Batch, Plant, PlantSettings, row_latency_s
from jettison.lab.sim.scenarios import FRESH_SEEDS

DOCS = Path(__file__).parents[2] / "docs"
MINUTE_S = 60.0
COLD = {"files": COLD_FILES, "kafka": COLD_KAFKA, "warm process": PlantSettings()}


def run(plant: PlantSettings, rate: float | Callable[[float], float], until_s: float, bound_s: float, **known: Any):
    rates = rate if callable(rate) else lambda _: rate
    return Plant(plant, rates).run(Controller(ControlSettings(bound_s, row_cap=plant.row_cap, **known)), until_s)


def dropped(batches: list[Batch]) -> float:
    return 1 - sum(batch.stats.kept for batch in batches) / max(sum(batch.stats.seen for batch in batches), 1)


def before(trace: list[Batch], at_s: float) -> list[Batch]:
    return [batch for batch in trace if batch.stats.started_s < at_s]


def after(trace: list[Batch], at_s: float) -> list[Batch]:
    return [batch for batch in trace if batch.stats.started_s >= at_s]


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("load", [0.3, 0.7])
@pytest.mark.parametrize("work", ["cheap rows", "costly rows"])
@pytest.mark.parametrize("name", COLD)
def test_a_cold_start_below_capacity_drops_next_to_nothing(name: str, work: str, load: float, seed: int) -> None:
    plant = replace(COLD[name], seed=seed, **(COSTLY_ROWS if work == "costly rows" else {}))
    bound_s = 6.0 if work == "costly rows" else 5.0
    trace = run(plant, load * plant.capacity_rows_per_s(0.4 * bound_s), 150.0, bound_s)
    assert dropped(before(trace, MINUTE_S)) <= 0.02
    assert dropped(after(trace, MINUTE_S)) == 0.0
    assert row_latency_s(after(trace, 90.0), 0.95) <= bound_s


@pytest.mark.parametrize("seed", [15_000, 15_011])
@pytest.mark.parametrize("load", [(0.1, 0.6, 10.0), (0.14, 0.7, 10.0), (0.01, 0.6, 8.0)])
def test_a_load_that_rises_while_the_process_is_cold_is_waited_for(load: tuple[float, ...], seed: int) -> None:
    """A few batches that scatter do not tell that the process gets no faster."""
    low, high, step_s = load
    plant = replace(COLD_FILES, seed=seed)
    capacity = plant.capacity_rows_per_s(2.0)
    trace = run(plant, lambda now_s: capacity * (high if int(now_s / step_s) % 2 else low), 90.0, 5.0)
    assert dropped(trace) == 0.0


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("load", [3.0, 10.0])
@pytest.mark.parametrize("work", ["cheap rows", "costly rows"])
def test_an_overload_from_the_start_is_held_by_a_process_that_is_warm(work: str, load: float, seed: int) -> None:
    plant = replace(PlantSettings(per_seen_row_s=0.2e-6, seed=seed), **(COSTLY_ROWS if work == "costly rows" else {}))
    bound_s = 6.0 if work == "costly rows" else 5.0
    rate = load * plant.capacity_rows_per_s(0.4 * bound_s)
    trace = run(plant, rate, 100.0, bound_s)
    held = after(trace, 40.0)
    assert row_latency_s(held, 0.95) <= bound_s
    assert 1 - dropped(held) >= 0.8 * plant.best_share(rate, 0.4 * bound_s)


@pytest.mark.parametrize("seed", [0, 1, 12_012, 12_015])
def test_a_ramp_of_costly_rows_is_met_before_the_bound_is_broken(seed: int) -> None:
    """Neither cheap rows and few of them at once, nor costs that the batch that runs has refuted, excuse keeping all."""
    plant = PlantSettings(**COSTLY_ROWS, seed=seed)
    rate = 3 * plant.capacity_rows_per_s(2.4)
    trace = run(plant, lambda t: rate * min(1.0, 0.2 + t / 30), 150.0, 6.0)
    assert row_latency_s(trace, 0.95) <= 6.0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("fixed_s", "bound_s"), [(1.25, 3.0), (1.4, 3.0), (2.5, 3.0), (5.0, 3.0)])
def test_where_the_fixed_cost_is_most_of_a_batch_everything_is_kept(fixed_s: float, bound_s: float, seed: int) -> None:
    """A sink that takes a second and 100 rows/s: dropping shortens nothing, whether the bound can be held or not."""
    plant = PlantSettings(
        fixed_s=fixed_s, overhead_s=0.2, per_seen_row_s=1e-5, per_kept_row_s=1e-4, noise=0.05, seed=seed
    )
    trace = run(plant, 100.0, 120.0, bound_s)
    assert dropped(trace) <= (0.005 if fixed_s < bound_s else 0.02)


@pytest.mark.parametrize("reports_work", [True, False])
@pytest.mark.parametrize("noise", [0.0, 0.12])
@pytest.mark.parametrize("load", [0.5, 3.0])
def test_costly_rows_are_told_from_a_fixed_cost(load: float, noise: float, reports_work: bool) -> None:
    """0.9 ms a row and 0.5 s fixed, bound 6 s: 0.1 believed in 17 s of fixed cost and settled at 39 s."""
    plant = PlantSettings(**COSTLY_ROWS, noise=noise, reports_work=reports_work, first_batch_s=4.0)
    rate = load * plant.capacity_rows_per_s(2.4)
    trace = run(plant, lambda t: rate * min(1.0, 0.2 + t / 30), 300.0, 6.0)
    late = after(trace, 100.0)
    assert row_latency_s(late, 0.95) <= 6.0
    assert 1 - dropped(late) >= 0.85 * plant.best_share(rate, 2.4)


@pytest.mark.parametrize("behind_s", [-3600.0, -2.0, 1.0, 2.0, 3600.0])
@pytest.mark.parametrize("load", [0.5, 3.0])
def test_a_clock_that_is_off_changes_nothing(load: float, behind_s: float) -> None:
    plant = PlantSettings(seed=1)
    rate = load * plant.capacity_rows_per_s(1.2)
    right = run(plant, rate, 90.0, 3.0)
    skewed = run(replace(plant, stamp=lambda arrival_s: arrival_s - behind_s), rate, 90.0, 3.0)
    if load < 1:
        assert dropped(skewed) == dropped(right) == 0.0
    else:
        assert row_latency_s(after(skewed, 30.0), 0.95) <= 3.0
        assert 1 - dropped(after(skewed, 30.0)) >= 0.8 * (1 - dropped(after(right, 30.0)))


@pytest.mark.parametrize(("waiting", "span_s"), [([3000, 2000, 1000, 0], 1.0), ([None] * 6, 60.0)])
def test_a_finite_run_over_stored_rows_says_nothing_about_the_clock(waiting: list[int | None], span_s: float) -> None:
    """It works off a backlog: an hour's age is the rows' own, whether the source tells what waits or not."""
    controller = Controller(ControlSettings(3.0))
    for number, left in enumerate(waiting):
        newest_s = 100.0 - 3600.0 + span_s * number
        points = {"rows": PointStats(1000, 1000)}
        arrivals = {"oldest_arrival_s": newest_s - span_s, "newest_arrival_s": newest_s, "waiting_rows": left}
        controller.step(Stats(number, 100.0 + number, 1.0, points, **arrivals))
        assert controller.said_of_arrivals == ""


def test_a_clock_that_is_off_is_said_in_words() -> None:
    controller = Controller(ControlSettings(3.0))
    plant = PlantSettings(stamp=lambda arrival_s: arrival_s - 3600.0)
    Plant(plant, lambda _: 30_000.0).run(controller, 20.0)
    assert "the arrival column is 3,600.0 s behind the clock, which is taken out" in controller.forecast(21.0).cause
    assert controller.arrivals.offset_s == pytest.approx(3600.0, abs=0.1)
    observed = Stats(99, 100.0, 1.0, oldest_arrival_s=99.0 - 3600.0, newest_arrival_s=100.0 - 3600.0)
    assert controller.latency_s(observed) == pytest.approx(2.0, abs=0.5), "a slow delivery may be part of it"


@pytest.mark.parametrize("load", [0.5, 3.0])
def test_one_row_in_thirty_thousand_from_1970_changes_nothing(load: float) -> None:
    plant = PlantSettings(seed=2, wild_share=1 / 30_000)
    trace = run(plant, load * plant.capacity_rows_per_s(1.2), 90.0, 3.0)
    if load < 1:
        assert dropped(trace) == 0.0
    assert row_latency_s(after(trace, 30.0), 0.95) <= 3.0


@pytest.mark.parametrize("load", [0.6, 3.0])
@pytest.mark.parametrize("name", ["constant", "jumping", "replayed history"])
def test_a_column_that_is_no_arrival_does_no_harm(name: str, load: float) -> None:
    draw = random.Random(4)
    stamps: dict[str, Callable[[float], float]] = {
        "constant": lambda _: 77.0,
        "jumping": lambda _: draw.uniform(-2e9, 2e9),
        "replayed history": lambda arrival_s: 86_400.0 * arrival_s,
    }
    plant = PlantSettings(seed=3, stamp=stamps[name], lump_s=0.1)
    rate = load * plant.capacity_rows_per_s(1.2)
    controller = Controller(ControlSettings(3.0))
    trace = Plant(plant, lambda _: rate).run(controller, 90.0)
    if load < 1:
        assert dropped(trace) == 0.0
    else:
        assert row_latency_s(after(trace, 40.0), 0.95) <= 3.0
    assert "the arrival column cannot be one of arrivals and is ignored" in controller.forecast(91.0).cause


@pytest.mark.parametrize("seed", range(2))
def test_slow_batches_below_capacity_cost_no_rows(seed: int) -> None:
    plant = PlantSettings(seed=seed, outlier_chance=0.03, outlier_factor=3.0)
    trace = run(plant, 0.5 * plant.capacity_rows_per_s(1.2), 300.0, 4.5)
    assert dropped(trace) <= 0.01, "two slow ones in a row do break the bound"


@pytest.mark.parametrize("pause_s", [2.0, 4.0, 9.0])
def test_a_source_that_pauses_is_not_taken_for_a_batch_that_never_ends(pause_s: float) -> None:
    plant = PlantSettings(noise=0.05)
    capacity = plant.capacity_rows_per_s(1.2)
    trace = run(plant, lambda t: 0.0 if t % 10 > 10 - pause_s else 0.6 * capacity, 120.0, 3.0)
    assert dropped(trace) <= 0.02, "the first pause may be mistaken"
    assert dropped(after(trace, 15.0)) == 0.0


@pytest.mark.parametrize("every_s", [2.0, 5.0])
def test_files_that_land_now_and_then_are_kept_whole(every_s: float) -> None:
    plant = PlantSettings(lump_s=every_s, noise=0.05)
    trace = run(plant, 0.3 * plant.capacity_rows_per_s(1.2), 120.0, 4.0)
    assert dropped(trace) == 0.0


@pytest.mark.parametrize("first", [1.0, 3.0])
@pytest.mark.parametrize("every_s", [3.0, 4.0, 4.9, 8.0])
def test_silence_after_the_first_batch_is_not_a_batch_that_never_ends(every_s: float, first: float) -> None:
    trace = run(PlantSettings(lump_s=every_s, warm_up_factor=first), 1_000.0, 60.0, 5.0)
    assert dropped(trace) == 0.0


@pytest.mark.parametrize("first", [1.0, 3.0])
@pytest.mark.parametrize("process", ["warm process", "files"])
@pytest.mark.parametrize(
    ("interval_s", "bound_s"), [(2.0, 5.0), (5.0, 12.0), (10.0, 25.0), (30.0, 90.0), (60.0, 150.0)]
)
def test_a_query_that_waits_for_its_trigger_is_not_slow(
    interval_s: float, bound_s: float, process: str, first: float
) -> None:
    plant = replace(COLD[process], trigger_interval_s=interval_s, warm_up_factor=first)
    trace = run(plant, 1_000.0, 6 * interval_s, bound_s, trigger_interval_s=interval_s)
    assert dropped(trace) == 0.0


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize(("load", "pause_s"), [(0.5, 4.0), (0.3, 6.0), (0.3, 9.0)])
def test_a_pause_once_a_minute_costs_no_row(load: float, pause_s: float, seed: int) -> None:
    plant = PlantSettings(seed=seed)
    rate = load * plant.capacity_rows_per_s(1.2)
    assert dropped(run(plant, lambda t: 0.0 if t % 60 < pause_s else rate, 300.0, 3.0)) == 0.0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("load", "bound_s", "slow_s"), [(0.5, 10.0, 4.0), (0.3, 5.0, 2.0)])
def test_a_single_slow_batch_of_less_than_half_the_bound_costs_no_row(
    load: float, bound_s: float, slow_s: float, seed: int
) -> None:
    plant = PlantSettings(seed=seed)
    rate = load * plant.capacity_rows_per_s(0.4 * bound_s)
    usual_s = plant.fixed_s / (1 - rate * (plant.per_seen_row_s + plant.per_kept_row_s))
    slow = iter([slow_s / usual_s])
    plant = replace(plant, cost_factor=lambda t: 1.0 if t < 60 else next(slow, 1.0))
    trace = run(plant, rate, 90.0, bound_s)
    assert max(batch.stats.duration_s for batch in after(trace, 60.0)) > 0.7 * slow_s
    assert dropped(trace) == 0.0


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("rate", [2_200.0, 2_260.0, 2_350.0])
def test_files_that_meet_batches_in_pairs_now_and_then_are_no_step_of_the_load(rate: float, noise: float) -> None:
    plant = PlantSettings(
        fixed_s=0.2, per_seen_row_s=5.3e-6, per_kept_row_s=2.66e-4, lump_s=0.5, warm_up_factor=1.0, noise=noise
    )
    assert dropped(run(plant, rate, 150.0, 2.0)) == 0.0


@pytest.mark.parametrize(("protected", "load"), [(0.98, 2.0), (0.95, 1.3)])
def test_nothing_is_dropped_beside_protected_rows_that_are_too_many_by_themselves(
    protected: float, load: float
) -> None:
    plant = PlantSettings(protected_share=protected)
    assert dropped(run(plant, load * plant.capacity_rows_per_s(1.2), 120.0, 3.0)) == 0.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cold_factor", [0.0, 3.0])
def test_a_cap_that_is_too_small_whatever_is_dropped_costs_no_rows_for_long(cold_factor: float, seed: int) -> None:
    """Batches of 16,000 rows would have to be done in 2 s, and take 2.9 s if next to nothing is kept, 3.4 s in full."""
    plant = PlantSettings(fixed_s=2.8, per_seen_row_s=6e-6, per_kept_row_s=32e-6, row_cap=16_000, noise=0.1, seed=seed)
    plant = replace(plant, lump_s=0.5, first_batch_s=10.0, cold_factor=cold_factor)
    controller = Controller(ControlSettings(5.0))
    trace = Plant(plant, lambda _: 8_000.0).run(controller, 120.0)
    assert dropped(trace) <= 0.1, "one batch or two that show what dropping saves"
    assert not controller.shedding
    assert "raise the source's cap" in controller.budget.cause


@pytest.mark.parametrize("peak", [1.5, 3.0])
def test_a_dry_run_that_would_shed_returns_to_keeping_all(peak: float) -> None:
    plant, controller = PlantSettings(dry_run=True), Controller(ControlSettings(3.0))
    controller.dry_run = True
    capacity = plant.capacity_rows_per_s(1.2)
    Plant(plant, lambda t: capacity * (peak if 30 <= t < 40 else 0.3)).run(controller, 120.0)
    assert not controller.shedding
    assert controller.forecast(120.0).share == 1.0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("rate", [3.0, 10.0])
def test_few_rows_and_a_large_fixed_cost_drop_nothing(rate: float, seed: int) -> None:
    plant = PlantSettings(fixed_s=1.4, noise=0.05, lump_s=0.1, first_batch_s=3.0, seed=seed)
    assert dropped(run(plant, rate, 150.0, 3.0)) == 0.0


def test_the_guide_counts_the_cases_below_capacity() -> None:
    """Those in which what is dropped is all that is judged."""
    told = [case for case in CASES if all(figure.name.startswith("dropped") for figure in case.figures)]
    unasked = [case for case in told if "source asked" not in case.name]
    (count,) = re.findall(r"In (\d+) of the (\d+) cases below capacity", (DOCS / "controller.md").read_text())
    assert count == (str(len(unasked) - 1), str(len(unasked))), "all but the one that the guide names"


def test_nine_in_ten_flash_crowds_are_over_soon_after_they_are_over() -> None:
    """The benchmark's own case and seeds, of which its worst does not meet these bars: docs/controller.md says why."""
    (case,) = (case for case in CASES if case.name == "flash crowd of 30x for 5 s")
    runs = [case.run(seed) for seed in FRESH_SEEDS]
    before_it, *rest = case.figures
    assert before_it.worst(case, runs) == 0.0
    over_soon = sum(all(figure.bar.met_by(figure.of(case, run)) for figure in rest) for run in runs)
    assert over_soon >= 0.9 * len(runs)


@pytest.mark.parametrize("seed", range(2))
def test_a_restart_repeats_a_batch_and_breaks_nothing(seed: int) -> None:
    """22,000 rows/s of a query that can keep them: the repeated batch tells no rate, the downtime is caught up with."""
    plant = Plant(PlantSettings(seed=seed, first_batch_s=4.0), lambda _: 40_000.0)
    controller = Controller(ControlSettings(7.0))
    trace = plant.run(controller, 60.0)
    plant.crash(trace[-1], downtime_s=5.0)
    restarted = Controller.from_dict(ControlSettings(7.0), controller.to_dict())
    trace = plant.run(restarted, 150.0)
    assert restarted.arrivals.rows_per_s == pytest.approx(40_000, rel=0.1)
    assert dropped(after(trace, 75.0)) == 0.0
    assert row_latency_s(after(trace, 100.0), 0.95) <= 7.0


@pytest.mark.parametrize(("hint", "sheds"), [(2.0, False), (0.2, True)])
def test_a_capacity_hint_decides_until_measurements_do(hint: float, sheds: bool) -> None:
    """At 0.7 of capacity the process is too slow at first; who knows its capacity knows whether it catches up."""
    plant = replace(COLD["files"], seed=1)
    capacity = plant.capacity_rows_per_s(2.0)
    trace = run(plant, 0.7 * capacity, 200.0, 5.0, capacity_rows_per_s=hint * capacity)
    assert (dropped(before(trace, MINUTE_S)) > 0.1) == sheds
    assert dropped(after(trace, 150.0)) == 0.0


plants = st.builds(
    PlantSettings,
    fixed_s=st.floats(0.1, 3.0),
    overhead_s=st.just(0.08),
    per_seen_row_s=st.floats(0.0, 1e-5),
    per_kept_row_s=st.sampled_from([2e-6, 1e-5, 1e-4, 1e-3]),
    noise=st.sampled_from([0.0, 0.05]),
    reports_work=st.booleans(),
    reports_waiting=st.booleans(),
    observes_arrivals=st.booleans(),
    first_batch_s=st.sampled_from([0.0, 5.0]),
    cold_factor=st.sampled_from([0.0, 2.0]),
    lump_s=st.sampled_from([0.02, 0.1, 0.5]),
).map(lambda plant: plant if plant.first_batch_s else replace(plant, cold_factor=0.0))


@settings(max_examples=12, deadline=None)
@given(plants, st.floats(0.05, 0.75), st.floats(1.0, 8.0))
def test_a_load_that_fits_is_kept(plant: PlantSettings, share: float, bound_s: float) -> None:
    """The invariant, one half: a load whose batches settle within the headroom by themselves loses no row."""
    per_row_s = plant.per_seen_row_s + plant.per_kept_row_s
    # The rate at which batches that keep everything settle at `share` of the bound.
    length_s = share * bound_s / 2
    if plant.lump_s > bound_s / 8:
        return  # files so large make batches of twice the usual rows
    # At more than 0.8 a cold process takes minutes to catch up, and is not waited for.
    if length_s <= 1.05 * plant.fixed_s or 1 - plant.fixed_s / length_s > 0.8:
        return
    rate = (1 - plant.fixed_s / length_s) / per_row_s
    trace = run(plant, rate, 150.0, bound_s)
    assert dropped(before(trace, MINUTE_S)) <= 0.02
    # Near the capacity a cold process catches up for longer, and noise adds up over batches: 5 % of it have taken
    # batches that settle at 0.75 of the bound to 0.93 of it.
    unshed = run(plant, rate, 150.0, 3600.0)
    for since_s in (MINUTE_S, 100.0):
        if max(batch.worst_latency_s for batch in after(unshed, since_s)) <= 0.85 * bound_s:
            assert dropped(after(trace, since_s)) == 0.0


def rate_that_settles_at(plant: PlantSettings, latency_s: float) -> float:
    """The rate at which batches that keep everything settle at this latency by themselves; 0 where none does."""
    return max(1 - 2 * plant.fixed_s / latency_s, 0.0) / (plant.per_seen_row_s + plant.per_kept_row_s)


def breaks_unless_shed(plant: PlantSettings, rate: float, bound_s: float, from_s: float) -> bool:
    """Whether some row would pass the bound, or 0.95 of it, were all rows kept."""
    unshed = run(plant, rate, 150.0, 3600.0)
    return max(batch.worst_latency_s for batch in after(unshed, from_s)) > 0.95 * bound_s


@settings(max_examples=12, deadline=None)
@given(plants, st.floats(0.1, 6.0), st.floats(1.0, 8.0))
def test_rows_are_dropped_only_where_that_helps(plant: PlantSettings, load: float, bound_s: float) -> None:
    """The invariant, other half: while rows are dropped, keeping them would break the bound and takes far longer."""
    rate = load / (plant.per_seen_row_s + plant.per_kept_row_s)
    trace = run(plant, rate, 150.0, bound_s)
    if dropped(after(trace, 90.0)) < 0.02:
        return
    keeps_all_s = 2 * plant.fixed_s / (1 - load) if load < 1 else math.inf
    floor = rate * (plant.per_seen_row_s + 0.01 * plant.per_kept_row_s)
    least_s = 2 * plant.fixed_s / (1 - floor) if floor < 1 else math.inf
    assert load >= 1 or breaks_unless_shed(plant, rate, bound_s, 90.0)
    assert keeps_all_s > 1.05 * least_s or math.isinf(keeps_all_s)


@settings(max_examples=20, deadline=None)
@given(plants, st.floats(0.8, 1.0), st.floats(1.0, 8.0))
def test_near_the_bound_rows_are_dropped_only_where_keeping_them_breaks_it(
    plant: PlantSettings, settles: float, bound_s: float
) -> None:
    rate = rate_that_settles_at(plant, settles * bound_s)
    if not rate or plant.lump_s > bound_s / 8:
        return
    trace = run(plant, rate, 150.0, bound_s)
    assert dropped(after(trace, 90.0)) < 0.02 or breaks_unless_shed(plant, rate, bound_s, 90.0)


@pytest.mark.parametrize("step", [1.0, 3.0], ids=["all along", "after an overload"])
@pytest.mark.parametrize(
    ("noise", "fixed_s", "settles"),
    [(0.0, 0.3, 0.92), (0.0, 1.5, 0.93), (0.05, 0.3, 0.8), (0.05, 1.0, 0.86), (0.05, 1.5, 0.92), (0.12, 1.5, 0.84)],
)
def test_a_load_that_settles_within_the_bound_is_kept(
    noise: float, fixed_s: float, settles: float, step: float
) -> None:
    """Of batches that settle at 0.93 of the bound 27 % were dropped once, for ever: to get from 4.5 s to 4 s of 5 s."""
    plant = PlantSettings(fixed_s=fixed_s, noise=noise, warm_up_factor=1.0)
    rate = rate_that_settles_at(plant, settles * 5.0)
    trace = run(plant, lambda now_s: rate * (step if 60.0 < now_s < 80.0 else 1.0), 260.0, 5.0)
    assert dropped(after(trace, 140.0)) <= 0.002
    assert row_latency_s(after(trace, 140.0), 0.95) <= 5.0


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_that_has_only_begun_is_no_reason_to_stop_shedding(seed: int) -> None:
    """A moment after a batch has started few rows wait: that dropping those saves nothing says nothing of the next one."""
    plant = replace(COLD_KAFKA, per_seen_row_s=0.2e-6, seed=seed)
    trace = run(plant, 1.5 * plant.capacity_rows_per_s(2.0), 150.0, 5.0)
    assert row_latency_s(after(trace, 90.0), 0.95) <= 5.0


@pytest.mark.parametrize("seed", range(100, 103))
def test_two_slow_batches_in_a_row_cost_few_rows(seed: int) -> None:
    plant = PlantSettings(seed=seed, outlier_chance=0.03)
    trace = run(plant, 0.5 * plant.capacity_rows_per_s(1.8), 150.0, 4.5)
    assert dropped(trace) <= 0.01


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("plant", "step_s"), [(COLD_FILES, 8.0), (COLD_KAFKA, 15.0)], ids=["files", "kafka"])
def test_small_batches_in_time_do_not_end_the_start_of_a_cold_process(
    plant: PlantSettings, step_s: float, seed: int
) -> None:
    """Next to nothing arrives at first, then 0.6 times the capacity: still below it, and still cold."""
    rate = 0.6 * plant.capacity_rows_per_s(2.0)
    trace = run(replace(plant, seed=seed), lambda t: rate if t >= step_s else rate / 60, 100.0, 5.0)
    assert dropped(trace) <= 0.02


@pytest.mark.parametrize("seed", [12_005, 12_009])
def test_what_comes_after_a_flash_crowd_is_not_thinned_as_the_crowd_was(seed: int) -> None:
    """The last batch reported was full of it, but a batch that soon ends shows that fewer rows have come since."""
    case = next(case for case in CASES if case.name == "flash crowd of 30x for 5 s")
    trace = after(case.run(seed), 60.0)
    assert dropped(trace) > 0.5
    small = [batch for batch in trace if case.plant.warm_s(batch.stats.seen, batch.stats.seen) <= case.bound_s / 2]
    assert all(batch.kept_share >= 0.5 * fits(batch, case.plant, case.bound_s) for batch in small)


def fits(batch: Batch, plant: PlantSettings, bound_s: float) -> float:
    """The share of a batch that can be kept within the bound."""
    seen, waited_s = batch.stats.seen, batch.stats.started_s - (batch.stats.oldest_arrival_s or 0.0)
    return min((bound_s - waited_s - plant.warm_s(seen, 0)) / (plant.per_kept_row_s * seen), 1.0)
