"""The experiments at a size that plain Python runs in seconds: what they measure, not what comes out."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.load import figures
from jettison.lab.reproduce.load.series import windows
from jettison.lab.reproduce.load.sweep import Figure, Measured, Runs, Sweep, measured
from jettison.lab.reproduce.load.tweets import tweet_like_stream, tweet_stream
from jettison.lab.sim.load.algorithms import BASE_LINE, FULL_KNOWLEDGE, LAS, OURS, STRAW_MAN, Outcome
from jettison.lab.sim.load.workload import SEVEN_PHASES, StreamSettings, phased_stream, streams

SMALL = StreamSettings(rows=1500, distinct=64, cost_levels=16)
RUNS = Runs(associations=2, orders=1, seed=5)


def small(figure: Figure) -> Sweep:
    points = [
        dataclasses.replace(
            point,
            stream=dataclasses.replace(
                SMALL,
                skew=point.stream.skew,
                under_provisioning=point.stream.under_provisioning,
                largest_cost_ms=point.stream.largest_cost_ms,
            ),
        )
        for point in figure.points
    ]
    return Sweep([one for point in points for one in measured(point, RUNS)], RUNS)


@pytest.mark.long
@pytest.mark.parametrize("figure", [figures.figure4, figures.figure5], ids=lambda one: one.label)
def test_a_figure_judges_its_claims_on_every_algorithm(figure: Figure) -> None:
    sweep = small(figure)
    (section,), claims = figure.judged(sweep)
    assert {one.algorithm for one in sweep.measured} == {LAS, OURS, STRAW_MAN, FULL_KNOWLEDGE, BASE_LINE}
    assert all(np.isfinite(claim.ours) for claim in claims)
    assert len({claim.id for claim in claims}) == len(claims)
    assert section.plot is not None
    # What must hold at any size: the paper's Full Knowledge never passes the bound.
    assert max(sweep.over_bounds(FULL_KNOWLEDGE)) <= 1.0 + 1e-9


def test_what_rows_are_worth_is_measured_where_it_is_asked_for() -> None:
    (section,), claims = figures.utility.judged(small(figures.utility))
    assert "utility lost" in section.text
    assert all(np.isfinite(claim.ours) for claim in claims)
    assert "utility lost" not in figures.figure6.judged(small(figures.figure6))[0][0].text


def test_the_same_seed_gives_the_same_figures_and_another_one_others() -> None:
    point = dataclasses.replace(figures.figure4.points[0], stream=SMALL)
    tables = [Sweep(list(measured(point, dataclasses.replace(RUNS, seed=seed))), RUNS).table("x") for seed in (1, 1, 2)]
    assert tables[0] == tables[1] != tables[2]


def test_a_fall_counts_only_if_it_is_more_than_chance() -> None:
    random = np.random.default_rng(1)
    noise = random.normal(0.3, 0.03, size=(2, 400))
    assert figures.ratio_at_most(noise[0], noise[1], associations=100) > 1.0
    assert figures.ratio_at_most(0.9 * noise[0], noise[1], associations=100) < 1.0
    # Orders of one association are not runs of their own: four times the same says no more than once.
    assert figures.ratio_at_most(np.repeat(noise[0][:100], 4), np.repeat(noise[1][:100], 4), 100) == pytest.approx(
        figures.ratio_at_most(noise[0][:100], noise[1][:100], 100)
    )


def test_streams_follow_their_settings() -> None:
    made = list(streams(dataclasses.replace(SMALL, under_provisioning=0.25), 2, 3, seed=1))
    assert len(made) == 6
    assert len({seed for seed, _ in made}) == 6
    for _, stream in made:
        assert np.diff(stream.arrivals_ms) == pytest.approx(0.75 * stream.mean_cost_ms)
        assert stream.costs_ms.min() >= 0.1
        assert stream.costs_ms.max() <= 6.4
    # Orders of one association hold the same rows; another association other ones.
    assert sorted(made[0][1].keys) == sorted(made[1][1].keys) != sorted(made[3][1].keys)
    costs = [{int(key): float(cost) for key, cost in zip(s.keys, s.costs_ms, strict=True)} for _, s in made]
    assert costs[0] == costs[1] != costs[3]


def test_phases_change_rate_frequencies_and_costs() -> None:
    stream = phased_stream(SMALL, SEVEN_PHASES, 2000, seed=3)
    spans = {phase.name: slice(2000 * n + 1, 2000 * (n + 1)) for n, phase in enumerate(SEVEN_PHASES)}
    steps = {
        name: float(np.diff(stream.arrivals_ms)[span.start : span.stop - 2].mean()) for name, span in spans.items()
    }
    assert steps["B"] == pytest.approx(0.5 * steps["A"])
    assert steps["E"] == pytest.approx(1.5 * steps["A"])
    assert steps["F"] == pytest.approx(steps["A"])
    means = {name: float(stream.costs_ms[span].mean()) for name, span in spans.items()}
    assert means["D"] > means["A"] * 1.1
    assert means["F"] == pytest.approx(2 * means["D"], rel=0.1)
    assert means["G"] == pytest.approx(means["A"], rel=0.1)


def test_windows_average_over_rows_kept() -> None:
    kept = np.array([True, False, True, True, False, False, True])
    waits = np.array([2.0, 0.0, 4.0, 6.0, 0.0, 0.0, 9.0])
    means, drops = windows(Outcome(kept, waits), rows=3)
    assert means.tolist() == [3.0, 6.0]
    assert drops.tolist() == pytest.approx([1 / 3, 2 / 3])


def test_tweets_are_mentions_of_one_second_and_cost_the_sum_of_their_classes(tmp_path: Path) -> None:
    mentions = pa.table(
        {
            "time": pa.array([1000, 1000, 2000, 3000, 3000], pa.timestamp("ms")),
            "entity": ["cnn", "senator", "someone", "senator", "cnn"],
            "entity_class": ["media", "politician", "other", "politician", "media"],
        }
    )
    pq.write_table(mentions, tmp_path / "mentions.parquet")
    stream = tweet_stream(tmp_path / "mentions.parquet")
    assert stream.costs_ms.tolist() == [30.0, 1.0, 30.0]
    assert stream.keys[0] == stream.keys[2] != stream.keys[1]


def test_a_tweet_like_stream_is_as_the_paper_describes_it() -> None:
    stream = tweet_like_stream(20_000, seed=2)
    assert 5.0 < stream.mean_cost_ms < 13.0
    assert 0.2 < (stream.costs_ms == 1.0).mean() < 0.5
    assert len(np.unique(stream.costs_ms)) > 60


@pytest.mark.parametrize(("share", "holds"), [(0.155, True), (0.2, False)])
def test_a_sketch_that_costs_many_rows_is_not_enough(share: float, holds: bool) -> None:
    shares = {OURS: share, figures.COSTS_KNOWN: 0.15}
    one = np.ones(1)
    names = figures.corrections.points[0].algorithms
    sweep = Sweep([Measured(0.25, name, 6.4, one, shares.get(name, 0.3) * one, np.nan * one) for name in names], RUNS)
    _, claims = figures.corrections.judged(sweep)
    assert next(claim for claim in claims if claim.id == "ours-sketch-enough").holds == holds


def test_what_was_settled_after_a_look_is_said_beside_the_number() -> None:
    first, second = judge("load", {"fig9-las": 1.0, "fig4-las": 1.0})
    assert "median" in first.config["after_a_look"]
    assert not second.config
