"""The simulated engine: conservation of rows, timing, plans, warm-up and determinism."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from jettison.core.stats import Budget, Stats
from jettison.lab.sim.plant import Batch, Plant, PlantSettings, row_latency_s
from jettison.lab.sim.regulation import RateLimit

QUIET = PlantSettings(noise=0.0, warm_up_factor=1.0, gap_s=0.0)


class Fixed:
    """A regulator that says what it is told, and remembers what it was asked."""

    def __init__(self, *keep: float) -> None:
        self.keep = list(keep)
        self.versions: list[tuple[int, float]] = []
        self.forecasts: list[float] = []
        self.last = Budget(1.0, 1.0, 3.0, "")
        self.idle_at: list[float] = []

    def _next(self) -> Budget:
        keep = self.keep.pop(0) if len(self.keep) > 1 else self.keep[0]
        self.last = Budget(keep, keep / 2, 3.0, "")
        return self.last

    def initial(self) -> Budget:
        return self._next()

    def step(self, stats: Stats) -> Budget:
        return self._next()

    def forecast(self, now_s: float, *, running: bool = True, produced: object = None) -> Budget:
        self.forecasts.append(now_s)
        return self.last

    def planned(self, version: int, from_s: float) -> None:
        self.versions.append((version, from_s))

    def idle(self, now_s: float) -> Budget:
        self.idle_at.append(now_s)
        return self._next()


def run(settings: PlantSettings, rate: float = 50_000.0, until_s: float = 30.0, *keep: float) -> list[Batch]:
    return Plant(settings, lambda _: rate).run(Fixed(*(keep or (1.0,))), until_s)


@pytest.mark.parametrize("cap", [None, 30_000])
def test_every_row_is_seen_once_and_in_order(cap: int | None) -> None:
    trace = run(replace(QUIET, row_cap=cap))
    lumps = [pair for batch in trace for pair in batch.ages]
    assert [arrival for arrival, _ in lumps] == sorted(arrival for arrival, _ in lumps)
    last = trace[-1]
    arrived = 50_000 * (last.stats.newest_arrival_s or 0)
    assert sum(batch.stats.seen for batch in trace) == pytest.approx(arrived, rel=0.01)


def test_batches_run_back_to_back_and_last_what_they_cost() -> None:
    trace = run(QUIET)
    for before, batch in itertools.pairwise(trace):
        assert batch.stats.started_s == before.stats.committed_s
        assert batch.wait_s == pytest.approx(before.stats.duration_s)
        cost = QUIET.fixed_s + (QUIET.per_seen_row_s + QUIET.per_kept_row_s) * batch.stats.seen
        assert batch.stats.duration_s == pytest.approx(cost, rel=1e-3)
        assert batch.worst_latency_s == pytest.approx(batch.wait_s + batch.stats.duration_s, abs=0.03)


def test_a_trigger_interval_spaces_short_batches_and_gives_way_to_long_ones() -> None:
    short = run(replace(QUIET, trigger_interval_s=2.0), 10_000.0)
    assert [b.stats.started_s for b in short] == pytest.approx([2.0 * n for n in range(1, 1 + len(short))])
    long = run(replace(QUIET, trigger_interval_s=2.0), 200_000.0)
    assert long[2].stats.started_s == long[1].stats.committed_s


def test_without_shedding_an_overload_grows_without_end() -> None:
    durations = [batch.stats.duration_s for batch in run(QUIET, 200_000.0, 200.0)]
    assert durations == sorted(durations)
    assert durations[-1] > 20


def test_a_plan_made_from_a_report_reaches_the_batch_after_the_next() -> None:
    trace = run(QUIET, 50_000.0, 20.0, 1.0, 0.5, 0.5, 0.5, 0.25)
    assert [round(batch.kept_share, 2) for batch in trace[:8]] == [1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25]


def test_a_plan_made_on_the_clock_reaches_the_next_batch() -> None:
    class Late(Fixed):
        def forecast(self, now_s: float, *, running: bool = True, produced: object = None) -> Budget:
            return Budget(0.5, 0.5, 3.0, "") if now_s > 10.0 else Budget(1.0, 1.0, 3.0, "")

    trace = Plant(QUIET, lambda _: 50_000.0).run(Late(1.0), 12.0)
    first = next(batch for batch in trace if batch.kept_share < 1)
    before = trace[first.stats.batch_id - 1]
    assert before.stats.started_s < 10.35 <= first.stats.started_s


def test_versions_grow_only_with_changes_and_tell_from_when_they_count() -> None:
    regulator = Fixed(1.0, 1.0, 0.5, 0.5, 1.0)
    trace = Plant(QUIET, lambda _: 50_000.0).run(regulator, 20.0)
    assert [version for version, _ in regulator.versions] == [0, 1, 2]
    assert regulator.versions[1][1] == pytest.approx(trace[1].stats.committed_s + 0.15)
    assert trace[-1].stats.plan_version == 2
    assert [round(now_s / 0.25) for now_s in regulator.forecasts[:8]] == list(range(1, 9))


def test_a_young_process_is_slow_and_gets_faster() -> None:
    cold = replace(QUIET, first_batch_s=5.0, cold_factor=2.0, cold_s=8.0)
    trace = run(cold, 50_000.0, 90.0)
    assert trace[0].stats.duration_s > 5.0
    costs = [QUIET.fixed_s + (QUIET.per_seen_row_s + QUIET.per_kept_row_s) * batch.stats.seen for batch in trace]
    slowness = [batch.stats.duration_s / cost for batch, cost in zip(trace[1:], costs[1:], strict=True)]
    assert 1.9 < slowness[0] < 3.0
    assert all(later < earlier + 0.05 for earlier, later in itertools.pairwise(slowness))
    assert slowness[-1] == pytest.approx(1.0, abs=0.01)


def test_work_is_reported_apart_from_what_rows_have_no_part_in() -> None:
    for batch in run(QUIET):
        assert batch.stats.work_s == pytest.approx(batch.stats.duration_s - QUIET.overhead_s)
    assert all(batch.stats.work_s is None for batch in run(replace(QUIET, reports_work=False)))


def test_what_a_cap_leaves_behind_is_reported() -> None:
    settings = replace(QUIET, row_cap=10_000, reports_waiting=True)
    trace = run(settings, 50_000.0)
    assert all(batch.stats.waiting_rows == 0 for batch in trace if batch.stats.seen < 10_000)
    assert (trace[-1].stats.waiting_rows or 0) > 100_000


def test_stamps_may_be_wrong_without_touching_the_truth() -> None:
    skewed = replace(QUIET, stamp=lambda arrival_s: arrival_s + 3600.0)
    right, wrong = run(QUIET, 50_000.0, 30.0, 1.0), run(skewed, 50_000.0, 30.0, 1.0)
    assert [batch.stats.seen for batch in right] == [batch.stats.seen for batch in wrong]
    for one, other in zip(right, wrong, strict=True):
        assert other.stats.newest_arrival_s == pytest.approx((one.stats.newest_arrival_s or 0.0) + 3600.0)


def test_single_wild_stamps_do_not_reach_the_statistics() -> None:
    for batch in run(replace(QUIET, wild_share=1e-3), 50_000.0)[5:]:
        assert batch.stats.started_s - (batch.stats.oldest_arrival_s or 0.0) < 2.0


def test_a_batch_that_was_not_committed_is_repeated_with_its_rows() -> None:
    plant = Plant(QUIET, lambda _: 50_000.0)
    first = plant.run(Fixed(1.0), 20.0)
    plant.crash(first[-1], downtime_s=7.0)
    second = plant.run(Fixed(1.0), 40.0)
    assert [arrival_s for arrival_s, _ in second[0].ages] == [arrival_s for arrival_s, _ in first[-1].ages]
    assert second[0].stats.batch_id == first[-1].stats.batch_id
    assert second[0].stats.started_s >= first[-1].stats.committed_s + 7.0
    assert second[1].stats.seen > 7 * 50_000


def test_late_rows_get_their_own_share() -> None:
    trace = Plant(replace(QUIET, row_cap=100_000), lambda _: 10_000.0, backlog=1e6).run(Fixed(0.8), 20.0)
    assert trace[0].kept_share == pytest.approx(0.4)
    assert trace[-1].kept_share == pytest.approx(0.8)


def test_a_rate_limit_keeps_rows_per_second() -> None:
    class Limited:
        def initial(self) -> RateLimit:
            return RateLimit(10_000.0)

        def step(self, stats: Stats) -> RateLimit:
            return RateLimit(10_000.0)

        def forecast(self, now_s: float, *, running: bool = True, produced: object = None) -> RateLimit:
            return RateLimit(10_000.0)

        def planned(self, version: int, from_s: float) -> None:
            assert version == 0

        def idle(self, now_s: float) -> RateLimit:
            return RateLimit(10_000.0)

    trace = Plant(QUIET, lambda _: 50_000.0).run(Limited(), 20.0)
    for batch in trace[1:]:
        assert batch.stats.kept == pytest.approx(10_000 * batch.wait_s, rel=0.01)


def test_silence_is_reported_once_and_no_empty_batch_runs() -> None:
    regulator = Fixed(1.0)
    trace = Plant(QUIET, lambda now_s: 0.0 if 5 < now_s < 20 else 10_000.0).run(regulator, 30.0)
    assert len(regulator.idle_at) == 1
    assert 5 < regulator.idle_at[0] < 20.1
    assert all(batch.stats.seen > 0 for batch in trace)


def test_the_seed_decides_and_noise_has_the_size_asked_for() -> None:
    noisy = PlantSettings(noise=0.15, seed=5)
    assert run(noisy) == run(noisy)
    assert run(noisy) != run(replace(noisy, seed=6))
    logs = [
        math.log(b.stats.duration_s / (0.3 + 0.5e-6 * b.stats.seen + 9.5e-6 * b.stats.kept))
        for b in run(noisy, 50_000.0, 600.0)[1:]
    ]
    spread = math.sqrt(sum(x * x for x in logs) / len(logs))
    assert spread == pytest.approx(0.15, rel=0.1)


def test_arrivals_can_be_hidden() -> None:
    assert all(b.stats.oldest_arrival_s is None for b in run(replace(QUIET, observes_arrivals=False)))


def test_latency_quantiles_are_weighted_by_rows() -> None:
    stats = Stats(0, 10.0, 2.0)
    batch = Batch(stats, 1.0, 1.0, ((9.0, 99.0), (2.0, 1.0)))
    assert row_latency_s([batch], 0.95) == 3.0
    assert row_latency_s([batch], 1.0) == 10.0
    assert math.isnan(row_latency_s([], 0.95))


def test_capacity_and_the_best_share_agree_with_the_costs() -> None:
    capacity = QUIET.capacity_rows_per_s(1.3)
    assert QUIET.best_share(capacity, 1.3) == pytest.approx(1.0)
    assert QUIET.best_share(3 * capacity, 1.3) < 1 / 3
