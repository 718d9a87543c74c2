"""The experiments' own arithmetic, on made-up losses: a claim must be able to fail."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from jettison.lab.demo.rides import RideBook
from jettison.lab.intervals import mean
from jettison.lab.reproduce.aurora import figures, live, planners
from jettison.lab.reproduce.aurora.compare import (
    RANDOM,
    RANDOM_LP,
    SEMANTIC,
    SEMANTIC_LP,
    UNIFORM,
    compare,
    excess_percent,
    shedders,
)
from jettison.lab.reproduce.aurora.statistics import bootstrap
from jettison.lab.reproduce.workers import for_each
from jettison.lab.sim.network.generator import random_network

LOSSES, SKEW, SHARING = figures.FIGURES.values()
ADMISSIONS = ("Input-Random", "Input-Cost-Top", "Input-Uniform", "Input-Cost-Uniform")


def made_up(random: float, semantic: float, admission: float) -> dict[str, np.ndarray]:
    noise = np.random.default_rng(1).normal(0, 0.5, (20, 1, len(LOSSES.gaps)))
    grown = noise + 10.0 * np.arange(len(LOSSES.gaps))
    lost = {RANDOM: random, RANDOM_LP: random, SEMANTIC: semantic, SEMANTIC_LP: semantic}
    return {name: grown + more for name, more in (lost | dict.fromkeys(ADMISSIONS, admission)).items()}


def verdicts(by_tuple: dict[str, np.ndarray]) -> dict[str, bool]:
    return {claim.id: claim.holds for claim in figures.loss_claims(by_tuple, by_tuple, {})}


def test_orderings_hold_where_they_do_and_only_there() -> None:
    assert all(verdicts(made_up(10, 5, 30))[name] for name in ("tuple-loss-admission", "tuple-loss-semantic"))
    assert not verdicts(made_up(10, 5, 8))["tuple-loss-admission"]
    assert not verdicts(made_up(10, 12, 30))["tuple-loss-semantic"]
    assert not verdicts(made_up(10, 5, 4))["value-loss-semantic"]


def test_our_planner_can_fall_behind_the_papers() -> None:
    losses = made_up(10, 5, 30)
    assert verdicts(losses)["tuple-loss-default"]
    losses[SEMANTIC_LP] = losses[SEMANTIC_LP] + 1.0
    assert not verdicts(losses)["tuple-loss-default"]
    exact = np.zeros((20, 3))
    for splits, off, ahead, expected in (
        (8, 0.0, 1.0, [True, True]),
        (8, 3.0, 1.0, [False, True]),
        (8, 0.0, -0.1, [True, False]),
        (0, 0.0, -0.1, [True, True]),
        (0, 0.0, -1.0, [True, False]),
    ):
        found = planners.judged(splits, exact + off, exact + ahead, {})
        assert [claim.holds for claim in found] == expected


def test_the_planner_delivers_what_it_foresees_on_one_network() -> None:
    off, ahead = planners.on_networks(planners.delivered, 1, 8, 1)
    assert off.shape == ahead.shape == (1, len(planners.DELIVERED_LOADS))
    assert np.abs(off).max() < 3.0


def test_the_constant_amount_can_fail() -> None:
    losses = made_up(10, 5, 30)
    assert verdicts(losses)["tuple-loss-constant"]
    losses[RANDOM] = losses[RANDOM] + 5.0 * np.arange(len(LOSSES.gaps))
    assert not verdicts(losses)["tuple-loss-constant"]


def test_trends_of_ratios_can_fail() -> None:
    shape = (20, len(SKEW.skews), len(SKEW.gaps))
    semantic = np.full(shape, 10.0)
    rising = 10.0 * (3.0 + np.arange(shape[1])[:, None] - np.arange(shape[2])[None, :]) * np.ones(shape)
    for random, holds in ((rising, True), (rising[:, ::-1, ::-1], False)):
        found = figures.skew_claims(SKEW, {RANDOM: random, SEMANTIC: semantic}, 1, {})
        assert [claim.holds for claim in found] == [holds, holds]


def test_sharing_can_fail() -> None:
    losses = np.ones((20, len(SHARING.skews), len(SHARING.gaps)))
    found = figures.sharing_claims(SHARING, {UNIFORM: 0.9 * losses, RANDOM: losses}, 1, {})
    assert not any(claim.holds for claim in found if claim.id == "sharing-wins")


def test_a_report_has_a_table_and_a_plot_for_each_figure() -> None:
    random = np.random.default_rng(3)
    for figure, names in ((SKEW, (RANDOM, SEMANTIC, RANDOM_LP, SEMANTIC_LP)), (SHARING, (UNIFORM, RANDOM, RANDOM_LP))):
        losses = {name: random.uniform(1, 2, (3, len(figure.skews), len(figure.gaps))) for name in names}
        make = figures.skew_sections if figure is SKEW else partial(figures.sharing_sections, seeds=[1400, 1401])
        (section,) = make(figure, losses, 1)
        assert section.text.count("linear program") >= min(len(figure.skews), len(figure.gaps))
        assert len(section.plot.axes[0].containers) == min(len(figure.skews), len(figure.gaps))


def test_the_admission_controls_can_be_in_the_papers_order() -> None:
    losses = made_up(10, 5, 30)
    losses["Input-Random"] = losses["Input-Cost-Top"] = losses["Input-Random"] + 5.0
    assert all(verdicts(losses)[name] for name in ("tuple-loss-random", "tuple-loss-cost-top"))
    losses["Input-Cost-Uniform"] = losses["Input-Cost-Uniform"] + 10.0
    assert not any(verdicts(losses)[name] for name in ("tuple-loss-random", "tuple-loss-cost-top"))


def test_seeds_come_back_in_their_order() -> None:
    assert for_each(range(3), abs) == [0, 1, 2]


def test_intervals() -> None:
    samples = np.random.default_rng(0).normal(5.0, 1.0, 400)
    assert mean(samples).lower < 5.0 < mean(samples).upper
    drawn = bootstrap(lambda chosen: float(samples[chosen].mean()), len(samples), seed=1)
    assert drawn.lower == pytest.approx(mean(samples).lower, abs=0.05)


def test_excess_load_is_the_papers() -> None:
    assert excess_percent(10.0) == pytest.approx(22.0)
    assert excess_percent(3.0) == pytest.approx(307.0, abs=0.5)


def test_one_comparison_runs_every_shedder() -> None:
    graph = random_network(1)
    planners = shedders(graph, 1)
    assert set(planners) == {RANDOM, SEMANTIC, RANDOM_LP, SEMANTIC_LP, *ADMISSIONS}
    losses = compare(graph, planners, seed=1, mean_gap=5.0)
    assert losses.shape == (2, len(planners))
    assert np.all((losses >= 0.0) & (losses <= 100.0))


def test_the_live_claims_can_fail() -> None:
    dropped = live.LiveRun({"archive": 0.5, "fraud": 0.5, "alarms": 0.5}, [30.0, 20.0, 12.0, 4.0, 5.0, 6.0])
    chosen = live.LiveRun({"archive": 0.1, "fraud": 0.6, "alarms": 1.0}, [30.0, 20.0, 12.0, 4.0, 5.0, 6.0])
    assert chosen.utility == pytest.approx(0.9 + 0.8 + 1.0)
    late = live.LiveRun(chosen.delivered, [1.0, 1.0, 1.0, *[20.0] * 9])
    for road_map, expected in ((chosen, [True, True]), (late, [True, False])):
        found = live.claims({"road map": road_map, "Input-Uniform": dropped}, {})
        assert [claim.holds for claim in found] == expected
    assert not live.claims({"road map": dropped, "Input-Uniform": chosen}, {})[0].holds


def test_alarming_rides_are_counted_as_the_feed_lands_them() -> None:
    book = RideBook(7)
    fares = np.tile(book.fare_cents, 3)[:250_000]
    assert live._alarming_rides(book, 250_000) == int((fares > 3000).sum()) > 0
