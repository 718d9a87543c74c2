"""The experiments' own arithmetic, on made-up losses: a claim must be able to fail."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.reproduce.aurora import sharing, skew, utility_loss
from jettison.reproduce.aurora.compare import RANDOM, SEMANTIC, compare, excess_percent, shedders
from jettison.reproduce.aurora.statistics import bootstrap, mean
from jettison.sim.network.generator import random_network

ADMISSIONS = ("Input-Random", "Input-Cost-Top", "Input-Uniform", "Input-Cost-Uniform")


def made_up(random: float, semantic: float, admission: float) -> dict[str, np.ndarray]:
    noise = np.random.default_rng(1).normal(0, 0.5, (20, len(utility_loss.GAPS)))
    grown = noise + 10.0 * np.arange(len(utility_loss.GAPS))
    return {RANDOM: grown + random, SEMANTIC: grown + semantic} | {name: grown + admission for name in ADMISSIONS}


def verdicts(by_tuple: dict[str, np.ndarray]) -> dict[str, bool]:
    return {claim.id: claim.holds for claim in utility_loss.claims(by_tuple, by_tuple, {})}


def test_orderings_hold_where_they_do_and_only_there() -> None:
    assert all(verdicts(made_up(10, 5, 30))[name] for name in ("tuple-loss-admission", "tuple-loss-semantic"))
    assert not verdicts(made_up(10, 5, 8))["tuple-loss-admission"]
    assert not verdicts(made_up(10, 12, 30))["tuple-loss-semantic"]
    assert not verdicts(made_up(10, 5, 4))["value-loss-semantic"]


def test_the_constant_amount_can_fail() -> None:
    losses = made_up(10, 5, 30)
    assert verdicts(losses)["tuple-loss-constant"]
    losses[RANDOM] = losses[RANDOM] + 5.0 * np.arange(len(utility_loss.GAPS))
    assert not verdicts(losses)["tuple-loss-constant"]


def test_trends_of_ratios_can_fail() -> None:
    shape = (20, len(skew.GAPS), len(skew.SKEWS))
    semantic = np.full(shape, 10.0)
    rising = 10.0 * (3.0 - np.arange(shape[1])[:, None] + np.arange(shape[2])[None, :]) * np.ones(shape)
    assert [claim.holds for claim in skew.claims(rising, semantic, 1, {})] == [True, True]
    assert [claim.holds for claim in skew.claims(rising[:, ::-1, ::-1], semantic, 1, {})] == [False, False]


def test_sharing_can_fail() -> None:
    losses = np.ones((2, 20, len(sharing.SKEWS), len(sharing.GAPS)))
    losses[0] *= 0.9
    assert not any(claim.holds for claim in sharing.claims(losses, 1, {}) if claim.id == "sharing-wins")


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
    losses = compare(graph, shedders(graph, 1, random_runs=1), seed=1, mean_gap=5.0)
    assert set(losses.by_tuple) == {RANDOM, SEMANTIC, *ADMISSIONS}
    assert all(0.0 <= loss <= 100.0 for loss in losses.by_tuple.values())
