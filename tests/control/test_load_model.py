"""The load model against known costs."""

from __future__ import annotations

import json
import math
import random
from dataclasses import astuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.control.load_model import LoadModel, Running
from jettison.core.documents import plain, restored

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
    before = plain(model)
    model.observe(0, 0, 5.0)
    assert plain(model) == before
    assert not LoadModel().ready


def test_kept_within_inverts_predict() -> None:
    model = trained()
    kept = model.costs.kept_within(1.4, 200_000)
    assert model.predict(200_000, kept) == pytest.approx(1.4)
    assert model.costs.kept_within(0.1, 200_000) < 0
    capacity = model.costs.capacity_rows_per_s(1.3)
    assert model.predict(capacity * 1.3, capacity * 1.3) == pytest.approx(1.3)


def test_a_batch_that_runs_refutes_costs_under_which_it_had_ended() -> None:
    draw, model = random.Random(5), LoadModel()
    for seen in (60_000, 70_000, 80_000, 60_000):
        model.observe(seen, seen, cost(seen, seen) * math.exp(draw.gauss(0, 0.1)))
    rows = 250_000

    def cheapest_s(elapsed_s: float) -> float:
        return model.costs_in_doubt(rows, Running(rows, rows, elapsed_s)).predict(rows, rows)

    unasked_s = model.costs_in_doubt(rows).predict(rows, rows)
    assert cheapest_s(0.0) == unasked_s == pytest.approx(cheapest_s(unasked_s / 3), rel=0.05)
    assert unasked_s < cheapest_s(1.3 * unasked_s) <= model.predict(rows, rows) * 1.5
    # So slow a batch is an accident under all costs, and tells them apart no more.
    assert cheapest_s(100 * unasked_s) <= cheapest_s(1.3 * unasked_s)


def test_alike_batches_do_not_wear_the_model_out() -> None:
    """Ten thousand batches that keep all and differ only by noise must not let a cost vanish."""
    draw, model = random.Random(3), LoadModel()
    for _ in range(10_000):
        model.observe(60_000, 60_000, cost(60_000, 60_000) * math.exp(draw.gauss(0, 0.2)))
    assert 0.02 < model.costs.per_seen_row_s / model.costs.per_kept_row_s < 0.4
    assert 0.05 < model.costs.fixed_s < 0.8


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
            assert all(c > 0 and math.isfinite(c) for c in astuple(model.costs))
    document = json.loads(json.dumps(plain(model), allow_nan=False))
    assert plain(restored(document, LoadModel)) == document


def test_a_slow_batch_before_a_restart_is_not_confirmed_by_the_first_one_after_it() -> None:
    model = LoadModel()
    for seen in (20_000, 30_000, 25_000, 35_000) * 10:
        model.observe(seen, seen, 0.3 + 9e-6 * seen)
    model.observe(25_000, 25_000, 3 * (0.3 + 9e-6 * 25_000))
    before_s = model.predict(300_000, 300_000)
    model.expect_warm_up()
    model.observe(33_000, 33_000, 5.4)
    assert model.predict(300_000, 300_000) < 1.25 * before_s
