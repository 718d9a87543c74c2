"""The harness judges rightly, gives every method the same rows, and its methods keep their promises."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.lab.reproduce.concept.harness import judge, run, run_at
from jettison.lab.reproduce.concept.methods import AsShipped, LastWindow, PaperSetting, Reservoirs, Strict, Uniform
from jettison.lab.reproduce.concept.simulated import methods, shifts_of
from jettison.lab.reproduce.concept.streams import Stream, Window, cluster_like, packets, taxi_like, zipf


@pytest.fixture(scope="module")
def stream() -> Stream:
    return zipf(5, 3, rows=20_000, groups=100)


def test_errors_are_judged_by_hand():
    window = Window(np.array([0, 0, 1, 1, 2]), np.array([10.0, 20.0, 4.0, 4.0, 7.0]))
    keep = np.array([True, False, True, False, False])
    made = judge(window, (keep, np.array([2.0, 2.0, 2.0, 2.0, 5.0])))
    assert made.error == pytest.approx((5 / 15 + 0 + 1) / 3)
    assert (made.missing, made.groups, made.processed) == (1, 3, 2)
    assert made.count_error == pytest.approx(1 / 3)


def test_keeping_everything_has_no_error(stream):
    window = stream.windows[0]
    made = judge(window, (np.ones(window.rows, bool), np.ones(window.rows)))
    assert made.error == pytest.approx(0.0, abs=1e-12)
    assert (made.missing, made.count_error) == (0, 0.0)


def test_how_values_scatter_is_judged_by_hand():
    """One group of 100 rows of which one holds all there is, and one of a value that never changes."""
    lonely = Window(np.repeat([0, 1], 100), np.concatenate([np.eye(1, 100)[0] * 100.0, np.full(100, 7.0)]))
    deviation, furthest = Stream("lonely", [lonely], 2).scatter()
    assert deviation == pytest.approx((99**0.5 + 0.0) / 2)
    assert furthest == pytest.approx((99.0**2 + 1.0) / (99.0**2 + 99.0))


def test_all_methods_process_the_rows_that_they_are_asked_to(stream):
    for make in methods(stream):
        made = run_at(stream, make, 0.2, seed=1)
        assert made.processed_share == pytest.approx(0.2, rel=0.03), made.method


def test_runs_repeat_under_a_seed_and_differ_under_another(stream):
    first, again, other = (run(stream, Strict, 0.1, seed) for seed in (1, 1, 2))
    assert first.outcomes == again.outcomes
    assert first.outcomes != other.outcomes


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.08, 0.25])
def test_the_strict_rule_misses_no_group_under_drift_and_beats_uniform(seed, share):
    made = zipf(seed, 3, rows=20_000, groups=100)
    ours, uniform = run_at(made, Strict, share, seed), run_at(made, Uniform, share, seed)
    assert ours.missing_share == 0.0
    assert ours.error < 0.5 * uniform.error


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("share", [0.08, 0.25])
def test_the_policy_itself_keeps_its_budget_and_beats_uniform(share, strict):
    made = zipf(3, 3, rows=20_000, groups=100)
    ours, uniform = run(made, lambda: AsShipped(strict=strict), share, 1), run(made, Uniform, share, 1)
    assert 0.9 * share < ours.processed_share < 1.1 * share
    assert ours.missing_share <= 0.01
    assert ours.error < 0.5 * uniform.error


@pytest.mark.parametrize("share", [0.1, 0.25])
def test_by_default_small_groups_by_the_thousand_are_found_within_the_budget(share):
    made = taxi_like(2, 3)
    ours, uniform = run(made, AsShipped, share, 1), run(made, Uniform, share, 1)
    assert 0.9 * share < ours.processed_share < 1.05 * share
    assert ours.missing_share < 0.3 * uniform.missing_share
    assert ours.error < 0.5 * uniform.error


def test_a_window_whose_groups_are_all_new_loses_none():
    old, new = (np.random.default_rng(seed).zipf(1.5, 20_000).clip(max=300) for seed in (1, 2))
    windows = [Window(g.astype(np.int64), np.ones(20_000)) for g in (old, new + 1000)]
    ours = run(Stream("all new", windows, 2000), Strict, 0.15, seed=1)
    assert ours.missing_share == 0.0


def test_baselines_fail_where_they_must_when_all_groups_are_new():
    old, new = (np.random.default_rng(seed).zipf(1.5, 20_000).clip(max=300) for seed in (1, 2))
    windows = [Window(g.astype(np.int64), np.ones(20_000)) for g in (old, new + 1000)]
    stream = Stream("all new", windows, 2000)
    last, reservoirs = (run(stream, make, 0.15, seed=1) for make in (lambda: LastWindow(2000), Reservoirs))
    # Rates of the window before know none of them: they are thinned like all rows, and rare ones vanish.
    assert last.missing_share > 0.2
    assert last.processed_share == pytest.approx(0.15, abs=0.01)
    # Reservoirs see the whole window before they choose.
    assert reservoirs.missing_share == 0.0


def test_a_hundred_thousand_groups_cannot_break_the_budget():
    random = np.random.default_rng(3)
    windows = [Window(random.integers(0, 100_000, 60_000), np.ones(60_000)) for _ in range(2)]
    ours = run(Stream("many", windows, 100_000), Strict, 0.05, seed=1)
    assert ours.processed_share <= 0.05 * 1.05


def test_reservoirs_hold_equal_caps(stream):
    window = stream.windows[0]
    keep, weight = Reservoirs().keep(window, 0.1, np.random.default_rng(1))
    kept, rows = np.bincount(window.groups[keep], minlength=200), np.bincount(window.groups, minlength=200)
    cap = kept.max()
    assert (kept >= np.minimum(rows, cap - 1)).all()
    assert weight[keep].sum() == pytest.approx(window.rows)


def test_the_papers_setting_misses_no_group_and_processes_more_than_it_says():
    made = run(taxi_like(1, 2, rows=20_000), PaperSetting, 0.02, seed=1)
    assert made.missing_share == 0.0
    assert made.processed_share > 0.2


def test_streams_have_their_stated_shapes():
    taxi = taxi_like(1, 2)
    assert [window.rows for window in taxi.windows] == [100_000] * 2
    assert 7_500 < len(np.unique(taxi.windows[0].groups)) < 9_500
    assert cluster_like(1, 1).windows[0].rows == 320_000
    assert len(np.unique(cluster_like(1, 1).windows[0].groups)) <= 12
    assert packets(1, 1).windows[0].rows == 46_000
    assert 0.0 < shifts_of(taxi)[0].top_change < 0.8
