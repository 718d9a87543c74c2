"""The load model against known costs, and the arrival estimate against known rates."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.load_model import Arrivals, LoadModel
from jettison.stats import PointStats, Stats

FIXED, PER_SEEN, PER_KEPT = 0.3, 0.8e-6, 9.2e-6


def cost(seen: float, kept: float) -> float:
    return FIXED + PER_SEEN * seen + PER_KEPT * kept


def trained(noise: float = 0.1, seed: int = 0, batches: int = 60) -> LoadModel:
    """A model that has seen both kept and shed batches of various sizes."""
    draw, model = random.Random(seed), LoadModel()
    for _ in range(batches):
        seen = draw.randint(20_000, 300_000)
        kept = round(seen * draw.choice([1.0, 0.6, 0.3]))
        model.observe(seen, kept, cost(seen, kept) * math.exp(draw.gauss(0, noise)))
    return model


@pytest.mark.parametrize("seed", range(10))
def test_costs_are_found_from_noisy_batches(seed: int) -> None:
    model = trained(seed=seed)
    for seen, share in ((50_000, 1.0), (150_000, 0.5), (300_000, 0.25)):
        assert model.predict(seen, seen * share) == pytest.approx(cost(seen, seen * share), rel=0.2)


def test_shedding_is_extrapolated_from_batches_that_kept_all() -> None:
    model = LoadModel()
    draw = random.Random(1)
    for _ in range(40):
        seen = draw.randint(20_000, 120_000)
        model.observe(seen, seen, cost(seen, seen))
    assert model.predict(300_000, 75_000) == pytest.approx(cost(300_000, 75_000), rel=0.15)


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_a_lasting_change_of_cost_is_followed_within_two_batches(factor: float) -> None:
    model = trained(noise=0.05)
    for _ in range(2):
        model.observe(100_000, 50_000, factor * cost(100_000, 50_000))
    assert model.predict(100_000, 50_000) == pytest.approx(factor * cost(100_000, 50_000), rel=0.15)
    assert model.predict(200_000, 40_000) == pytest.approx(factor * cost(200_000, 40_000), rel=0.25)


def test_one_slow_batch_hardly_moves_the_model() -> None:
    model = trained(noise=0.05)
    before = model.predict(100_000, 50_000)
    model.observe(100_000, 50_000, 3 * before)
    assert model.predict(100_000, 50_000) < 1.25 * before
    for _ in range(4):
        model.observe(100_000, 50_000, before)
    assert model.predict(100_000, 50_000) == pytest.approx(before, rel=0.1)


def test_a_slow_first_batch_is_forgotten_by_the_fourth() -> None:
    model = LoadModel()
    model.observe(80_000, 80_000, 4 * cost(80_000, 80_000))
    for _ in range(3):
        model.observe(80_000, 80_000, cost(80_000, 80_000))
    assert model.predict(80_000, 80_000) == pytest.approx(cost(80_000, 80_000), rel=0.1)


def test_a_restart_does_not_spoil_what_was_learned() -> None:
    model = trained(noise=0.05)
    before = model.predict(100_000, 100_000)
    model.expect_warm_up()
    model.observe(100_000, 100_000, 3 * before)
    assert model.predict(100_000, 100_000) == pytest.approx(before, rel=0.05)


def test_batches_without_rows_teach_nothing() -> None:
    model = trained()
    before = model.to_dict()
    model.observe(0, 0, 5.0)
    assert model.to_dict() == before
    assert not LoadModel().ready


def test_kept_within_inverts_predict() -> None:
    model = trained()
    kept = model.kept_within(1.4, 200_000)
    assert model.predict(200_000, kept) == pytest.approx(1.4)
    assert model.kept_within(0.1, 200_000) < 0
    capacity = model.capacity_rows_per_s(1.3)
    assert model.predict(capacity * 1.3, capacity * 1.3) == pytest.approx(1.3)


def test_alike_batches_do_not_wear_the_model_out() -> None:
    """Ten thousand batches that keep all and differ only by noise must not let a cost vanish."""
    draw, model = random.Random(3), LoadModel()
    for _ in range(10_000):
        model.observe(60_000, 60_000, cost(60_000, 60_000) * math.exp(draw.gauss(0, 0.2)))
    assert 0.02 < model.per_seen_row_s / model.per_kept_row_s < 0.4
    assert 0.05 < model.fixed_s < 0.8


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 10**8), st.floats(0, 1), st.floats(1e-4, 1e4)),
        min_size=1,
        max_size=40,
    )
)
def test_costs_stay_positive_and_finite_whatever_comes(batches: list[tuple[int, float, float]]) -> None:
    model = LoadModel()
    for seen, share, duration_s in batches:
        model.observe(seen, int(seen * share), duration_s)
        if model.ready:
            assert all(c > 0 and math.isfinite(c) for c in (model.fixed_s, model.per_seen_row_s, model.per_kept_row_s))
    document = json.loads(json.dumps(model.to_dict(), allow_nan=False))
    assert LoadModel.from_dict(document).to_dict() == model.to_dict()


def batch(number: int, started_s: float, seen: int, oldest: float | None = None, newest: float | None = None) -> Stats:
    points = {"p": PointStats(seen, seen)}
    return Stats(number, started_s, 1.0, points, oldest_arrival_s=oldest, newest_arrival_s=newest)


def test_a_jump_of_the_rate_is_followed_at_once_and_noise_is_smoothed() -> None:
    arrivals = Arrivals()
    for number, seen in enumerate((1000, 1000, 1000, 1100)):
        arrivals.observe(batch(number, float(number), seen))
    assert arrivals.rows_per_s is not None
    assert 1000 < arrivals.rows_per_s < 1060
    arrivals.observe(batch(4, 4.0, 10_000))
    assert arrivals.rows_per_s == 10_000
    arrivals.observe(batch(5, 5.0, 100))
    assert arrivals.rows_per_s == 100


def test_a_step_late_in_a_batch_shows_in_its_last_second() -> None:
    arrivals = Arrivals()
    for number in range(4):
        arrivals.observe(replace(batch(number, 4.0 * number, 4000), recent_rows_per_s=1000.0))
    # 3.2 s at 1,000 rows/s and 0.8 s at 6,000: the average says 2,000, the last second 5,000.
    arrivals.observe(replace(batch(4, 16.0, 8000), recent_rows_per_s=5000.0))
    assert arrivals.rows_per_s == 5000.0
    # And back down again: 3 s at 6,000 and 1 s at 1,000.
    arrivals.observe(replace(batch(5, 20.0, 24_000), recent_rows_per_s=6000.0))
    arrivals.observe(replace(batch(6, 24.0, 19_000), recent_rows_per_s=1000.0))
    assert arrivals.rows_per_s == 1000.0


@pytest.mark.parametrize("recent", [0.0, 200.0, 5000.0])
def test_bursts_within_batches_of_equal_size_are_no_step(recent: float) -> None:
    arrivals = Arrivals()
    for number in range(4):
        arrivals.observe(replace(batch(number, 4.0 * number, 4000), recent_rows_per_s=1000.0))
    arrivals.observe(replace(batch(4, 16.0, 4100), recent_rows_per_s=recent))
    assert arrivals.rows_per_s == pytest.approx(1000.0, rel=0.05)


def test_without_arrivals_the_first_batch_tells_no_rate() -> None:
    arrivals = Arrivals()
    arrivals.observe(batch(0, 100.0, 5_000_000))
    assert arrivals.rows_per_s is None


def test_rows_left_behind_by_an_unknown_cap_are_noticed() -> None:
    """The second batch takes a row that had been waiting at the first trigger."""
    arrivals = Arrivals()
    arrivals.observe(batch(0, 100.0, 1000, oldest=40.0, newest=50.0))
    assert (arrivals.rows_per_s, arrivals.served_until_s, arrivals.cap_for_next()) == (100.0, 50.0, 1000.0)
    arrivals.observe(batch(1, 101.0, 1000, oldest=50.0, newest=60.0))
    assert (arrivals.rows_per_s, arrivals.served_until_s) == (100.0, 60.0)


def test_a_source_that_paused_before_the_trigger_is_no_backlog() -> None:
    arrivals = Arrivals()
    arrivals.observe(batch(0, 100.0, 1000, oldest=99.5, newest=99.9))
    arrivals.observe(batch(1, 105.0, 1000, oldest=100.1, newest=101.0))
    assert arrivals.served_until_s == 105.0
    assert arrivals.cap_for_next() == math.inf


def test_delivery_time_is_learned_and_proves_no_cap() -> None:
    """Rows are offered 0.4 s after they have arrived."""
    arrivals = Arrivals()
    for n in range(40):
        arrivals.observe(batch(n, 100.0 + n, 1000, oldest=98.6 + n, newest=99.6 + n))
        assert arrivals.cap_for_next() == math.inf
    assert arrivals.delivery_s == pytest.approx(0.4, abs=0.02)
    arrivals.observe(batch(40, 144.0, 1000, oldest=138.6, newest=139.6))
    assert arrivals.cap_for_next() == math.inf  # nothing was passed over at the trigger before
    arrivals.observe(batch(41, 148.0, 1000, oldest=139.6, newest=140.6))
    assert arrivals.cap_for_next() == 1000.0


def test_a_backlog_that_grows_slowly_is_not_learned_as_delivery_time() -> None:
    arrivals = Arrivals()
    for n in range(12):  # 1.2 s between triggers, rows of 0.9 s taken at each
        arrivals.observe(batch(n, 100.0 + 1.2 * n, 1000, oldest=99.0 + 0.9 * n, newest=99.9 + 0.9 * n))
    assert arrivals.cap_for_next() == 1000.0
    assert arrivals.delivery_s < 0.6


def test_a_silent_second_before_a_capped_batch_is_not_taken_for_the_end_of_the_load() -> None:
    """A long batch before it: all rows of the next one are older than a second, because a cap leaves the rest behind."""
    arrivals = Arrivals()
    arrivals.observe(batch(0, 10.0, 50_000, oldest=9.0, newest=10.0))
    arrivals.observe(batch(1, 11.0, 50_000, oldest=10.0, newest=11.0))
    silent = replace(batch(2, 20.0, 150_000, oldest=11.0, newest=14.0), recent_rows_per_s=0.0)
    arrivals.observe(silent)
    assert arrivals.rows_per_s == pytest.approx(150_000 / 9.0)


def test_a_known_cap_is_noticed_in_the_first_full_batch() -> None:
    arrivals = Arrivals(row_cap=1000)
    arrivals.observe(batch(0, 10.0, 500, oldest=9.0, newest=10.0))
    arrivals.observe(batch(1, 11.0, 1000, oldest=10.0, newest=10.5))
    assert (arrivals.rows_per_s, arrivals.served_until_s) == (2000.0, 10.5)


def test_silence_ends_the_rate() -> None:
    arrivals = Arrivals()
    arrivals.observe(batch(0, 1.0, 1000))
    arrivals.observe(batch(1, 2.0, 1000))
    arrivals.idle(60.0)
    assert (arrivals.rows_per_s, arrivals.served_until_s) == (0.0, 60.0)
    assert Arrivals.from_dict(json.loads(json.dumps(arrivals.to_dict()))).to_dict() == arrivals.to_dict()
