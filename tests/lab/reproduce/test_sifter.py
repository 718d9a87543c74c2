"""The sifter study: workloads are what they say, comparisons are paired, and claims follow from figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.sifter.figures import FIGURES, measured
from jettison.lab.reproduce.sifter.trial import CHOSEN, METHODS, RANDOM, Outcome, Setting, Trial, measure
from jettison.lab.reproduce.sifter.workload import Generated, Workload
from jettison.policies.regions.build import PARTITIONINGS

SMALL = ((1, 2), 5_000)  # seeds and rows


@pytest.mark.parametrize("spread", ["uniform", "skewed"])
def test_rows_and_queries_lie_in_the_space_and_uniform_ones_in_their_hot_spots(spread):
    generated = Generated(Workload(data=spread, query=spread, local_skew=1.0), seed=3)
    rows = generated.rows(2000)
    assert rows.min() >= 0.0
    assert rows.max() <= 1.0
    spots = generated._data_spots
    inside = ((rows[:, None] >= spots.low) & (rows[:, None] <= spots.high)).all(axis=2).any(axis=1)
    assert inside.all() == (spread == "uniform")
    assert len(generated.queries) == 1000


def test_global_skew_shrinks_hot_spots_and_local_skew_narrows_normals():
    wide, narrow = (Generated(Workload(global_skew=g), seed=1)._data_spots for g in (1.0, 10.0))
    assert (narrow.high - narrow.low).max() <= 0.1
    assert (wide.high - wide.low).max() > 0.3
    blunt, sharp = (Generated(Workload(local_skew=skew), seed=1)._data_spots.deviation for skew in (1.0, 10.0))
    np.testing.assert_allclose(blunt, 10 * sharp)


def test_the_same_seed_draws_the_same_workload_and_another_one_another():
    first, again, other = (Generated(Workload(), seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.queries.low, again.queries.low)
    np.testing.assert_array_equal(first.rows(10), again.rows(10))
    assert not np.array_equal(first.queries.low, other.queries.low)


def test_random_dropping_keeps_its_share_of_every_query_that_has_rows():
    trial = Trial(Workload(), seed=1, rows=5_000)
    qos = dict(zip(METHODS, trial.qos_of_methods(0.3, 16, 0.5), strict=True))
    assert qos[RANDOM] == pytest.approx(0.3 + 0.7 * trial.empty_share)
    assert qos[CHOSEN] in [qos[name] for name in PARTITIONINGS]


@pytest.mark.parametrize("throttler", [0.2, 0.5])
def test_the_true_qos_is_counted_at_the_throttler_not_at_what_a_sample_lets_pass(throttler):
    workload = Workload(data="skewed", query="skewed", aligned=True, global_skew=1.0)
    trial, stream = Trial(workload, seed=1, rows=100_000), Generated(workload, seed=1)
    codes = trial.queries.space.codes(stream.rows(100_000))
    rates = []
    for one in trial._built_for(16):
        first, corrected = (built.filter(throttler, 0.5) for built in (one.candidate.built, one.corrected))
        region = first.partition.region_of(codes)
        rates.append([1.0 - made.drop[region].mean() for made in (first, corrected)])
    assert max(abs(rate - throttler) for rate, _ in rates) > 0.02 * throttler
    assert [rate for _, rate in rates] == pytest.approx([throttler] * 4, rel=0.015)


def test_without_fairness_margin_or_shedding_sifters_are_random_dropping():
    trial = Trial(Workload(data="uniform", query="uniform", global_skew=1.0), seed=1, rows=5_000)
    assert trial.qos_of_methods(1.0, 16, 0.5) == pytest.approx([1.0] * len(METHODS))
    # The grid has a few regions without queries, which may be dropped first whatever the fairness.
    by_method = dict(zip(METHODS, trial.qos_of_methods(0.5, 1, 0.0), strict=True))
    assert by_method["grid"] == pytest.approx(by_method[RANDOM], abs=1e-4)


def test_settings_measured_in_two_processes_come_out_as_in_one():
    settings = [Setting(Workload()), Setting(Workload(), throttler=0.3), Setting(replace(Workload(), query="skewed"))]
    alone, together = measure(settings, *SMALL, processes=1), measure(settings, *SMALL, processes=2)
    assert alone.keys() == together.keys() == set(settings)
    for setting in settings:
        np.testing.assert_array_equal(alone[setting].qos, together[setting].qos)


def outcome(**qos):
    return Outcome(np.array([[qos.get(method, 0.5) for method in METHODS]] * 3), empty_share=0.0)


def test_gain_and_loss_cut_compare_with_random_dropping():
    one = outcome(random=0.4, chosen=0.7, data=0.75)
    assert one.gain() == pytest.approx(0.75)
    assert one.loss_cut() == pytest.approx(0.5)
    assert one.best_single == "data"
    assert one.behind_best() == pytest.approx(0.05)


FLAT = {one: outcome() for figure in FIGURES for one in figure.settings}


def claims(known):
    return {one.id: one for one in judge("sifter", measured(known))}


def test_claims_fail_where_sifters_are_no_better_than_random_and_nothing_changes():
    found = claims(FLAT)
    broken = ["fig4-skewed-queries-global", "fig4-both-skewed", "fig4-no-single-best"]
    broken += ["fig5-heavy-16", "fig9-loose", "fig8-heavy-shedding"]
    assert not any(found[name].holds for name in broken)
    assert found["fig4-proportional"].holds
    assert found["choice-any-setting"].holds


def test_the_claim_on_the_choice_counts_every_setting_and_names_the_worst():
    behind = claims(FLAT | {Setting(Workload(), regions=81): outcome(data=0.52)})["choice-any-setting"]
    assert not behind.holds
    assert behind.ours == pytest.approx(0.02)
    assert behind.config["worst_setting"]["regions"] == 81
    assert behind.config["best_there"] == "data"


def test_every_figure_is_drawn_with_all_its_points():
    for figure in FIGURES:
        section = figure.section(FLAT)
        assert len(section.text.splitlines()) == 2 + len(figure.settings)
        assert section.plot is not None
