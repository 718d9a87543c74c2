"""The simulated engine: conservation of rows, timing, lag and determinism."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from jettison.sim.plant import Batch, Plant, PlantSettings, RateLimit, row_latency_s
from jettison.stats import Budget, Stats

QUIET = PlantSettings(noise=0.0, warm_up_factor=1.0)


class Fixed:
    """A regulator that says what it is told, and remembers what it was asked."""

    def __init__(self, *keep: float) -> None:
        self.keep = list(keep)
        self.versions: list[int] = []
        self.idle_at: list[float] = []

    def _next(self) -> Budget:
        keep = self.keep.pop(0) if len(self.keep) > 1 else self.keep[0]
        return Budget(keep, keep / 2, 3.0, "")

    def initial(self) -> Budget:
        return self._next()

    def step(self, stats: Stats) -> Budget:
        return self._next()

    def planned(self, version: int) -> None:
        self.versions.append(version)

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


@pytest.mark.parametrize("lag", [1, 2])
def test_plans_take_effect_after_the_lag(lag: int) -> None:
    trace = run(replace(QUIET, lag_batches=(lag,)), 50_000.0, 20.0, 1.0, 0.5, 0.5, 0.5, 0.25)
    assert [round(batch.keep_fraction, 2) for batch in trace[:8]] == (
        [1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25] if lag == 1 else [1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25]
    )


def test_versions_grow_only_with_changes() -> None:
    regulator = Fixed(1.0, 1.0, 0.5, 0.5, 1.0)
    trace = Plant(QUIET, lambda _: 50_000.0).run(regulator, 20.0)
    assert regulator.versions[:6] == [0, 0, 1, 1, 2, 2]
    assert trace[-1].stats.plan_version == 2


def test_late_rows_get_their_own_share() -> None:
    trace = Plant(replace(QUIET, row_cap=100_000), lambda _: 10_000.0, backlog=1e6).run(Fixed(0.8), 20.0)
    assert trace[0].keep_fraction == pytest.approx(0.4)
    assert trace[-1].keep_fraction == pytest.approx(0.8)


def test_a_rate_limit_keeps_rows_per_second() -> None:
    class Limited:
        def initial(self) -> RateLimit:
            return RateLimit(10_000.0)

        def step(self, stats: Stats) -> RateLimit:
            return RateLimit(10_000.0)

        def planned(self, version: int) -> None:
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
    assert QUIET.best_keep_fraction(capacity, 1.3) == pytest.approx(1.0)
    assert QUIET.best_keep_fraction(3 * capacity, 1.3) < 1 / 3
