"""The default choice: QDPart, unless another partitioning's lead, as a fair judge sees it, is beyond chance."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from jettison.errors import InvalidSetting
from jettison.lab.reproduce.sifter.trial import CHOSEN, METHODS, Trial
from jettison.lab.reproduce.sifter.workload import Generated, Workload
from jettison.policies.regions.build import PARTITIONINGS, Sample
from jettison.policies.regions.choose import best, candidates
from jettison.policies.regions.queries import RangeQueries, completeness
from jettison.source.space import Attribute

# 100 rows whose differences have a standard deviation of 0.1, that is a standard error of 0.01.
NOISE = np.tile([-0.1, 0.1], 50)


def judged(partitioning, qos_by_row):
    def answer(throttler, fairness):
        assert (throttler, fairness) == (0.3, 0.5)
        return qos_by_row

    built = SimpleNamespace(partitioning=partitioning, partition=SimpleNamespace(regions=16))
    return SimpleNamespace(built=built, region_of=range(100), qos_by_row=answer)


@pytest.mark.parametrize(
    ("mean", "noise", "chosen"),
    [
        ({"grid": 0.5, "data": 0.6, "query": 0.55, "qdpart": 0.57}, NOISE, "data"),  # three standard errors
        ({"grid": 0.5, "data": 0.6, "query": 0.55, "qdpart": 0.58}, NOISE, "qdpart"),  # two: may be chance
        ({"grid": 0.5, "data": 0.6, "query": 0.55, "qdpart": 0.599}, 0.0 * NOISE, "data"),  # rows all say so
        ({"grid": 0.5, "data": 0.6, "query": 0.61, "qdpart": 0.7}, NOISE, "qdpart"),
        ({"grid": 0.5, "data": 0.5, "query": 0.5, "qdpart": 0.5}, 0.0 * NOISE, "qdpart"),
    ],
)
def test_another_one_than_qdpart_is_chosen_for_a_lead_of_more_than_two_and_a_half_standard_errors(mean, noise, chosen):
    known = [judged(name, qos + noise * (name != "qdpart")) for name, qos in mean.items()]
    assert best(known, 0.3, 0.5).built.partitioning == chosen


def test_of_two_leads_the_one_that_is_surer_wins():
    known = [judged("grid", 0.60 + NOISE), judged("data", 0.595 + 0.1 * NOISE), judged("qdpart", np.full(100, 0.55))]
    assert best(known, 0.3, 0.5).built.partitioning == "data"


def drawn(workload, seed, rows=1000):
    generated = Generated(workload, seed)
    return generated.queries, Sample.of(generated.queries, generated.rows(rows))


@pytest.mark.parametrize(("seed", "better"), [(0, "data"), (2, "data"), (4, "qdpart"), (5, "data")])
def test_where_queries_crowd_in_even_data_the_choice_is_what_is_truly_better(seed, better):
    workload = Workload(data="uniform", query="skewed", local_skew=10.0)
    true_qos = dict(zip(METHODS, Trial(workload, seed, rows=5000).qos_of_methods(0.5, 16, 0.5), strict=True))
    assert max(PARTITIONINGS, key=lambda name: true_qos[name]) == better
    assert true_qos[CHOSEN] == true_qos[better]


@pytest.mark.parametrize("seed", range(3))
def test_where_there_is_nothing_to_gain_qdpart_is_chosen(seed):
    alike = candidates(*drawn(Workload(data="uniform", query="uniform"), seed), regions=16)
    assert best(alike, 0.5, 0.5).built.partitioning == "qdpart"


def truth(one, made, rows):
    """QoS that a filter gives on rows that it was not built from."""
    query, row = one.built.queries.matches(rows)
    region = one.built.partition.region_of(one.built.queries.space.codes(rows))
    kept = 1.0 - np.append(made.drop, 0.0)[region]
    return one.built.queries.quality(completeness(query, kept[row], len(one.built.queries)))


@pytest.mark.parametrize("sides", [(0.005, 0.01), (0.1, 0.3)])
def test_the_judge_sees_leads_as_other_rows_show_them_where_the_models_do_not(sides):
    # Cuts part hot spots from empty space, and queries of either size lie across them.
    judges, models = [], []
    for seed in (3, 4, 5):
        generated = Generated(Workload(data="uniform", query="uniform", global_skew=10.0, sides=sides), seed)
        sample, rows = Sample.of(generated.queries, generated.rows(1000)), generated.rows(5000)
        known = candidates(generated.queries, sample, regions=16)
        true = np.array([truth(one, one.built.configured(0.5, 0.5), rows) for one in known])
        judge = np.array([one.qos_by_row(0.5, 0.5).mean() for one in known])
        model = np.array([one.built.statistics.overall(one.built.configured(0.5, 0.5).drop) for one in known])
        judges.append(np.abs((judge - judge[3]) - (true - true[3])).max())
        models.append(np.abs((model - model[3]) - (true - true[3])).max())
    assert max(judges) < 0.012
    assert min(models) > 0.015


def test_queries_where_no_rows_are_to_be_expected_do_not_judge():
    # Half of the queries lie where nothing ever comes; with them, what is dropped there would seem to matter.
    low = np.array([[0.1], [0.2], [0.7], [0.8]])
    queries = RangeQueries.from_boxes([Attribute.number("x", 0.0, 1.0)], low, low + 0.05)
    sample = Sample.of(queries, np.linspace(0.0, 0.49, 200)[:, None])
    for one in candidates(queries, sample, regions=4):
        np.testing.assert_allclose(one.unseen[2:], 0.0)
        assert one.at_stake.sum() == pytest.approx(0.5)


def test_what_is_at_stake_in_a_query_is_shared_by_its_sampled_rows_and_one_more():
    queries = RangeQueries.from_boxes(
        [Attribute.number("x", 0.0, 1.0)],
        [[0.0], [0.4], [0.8]],
        [[0.3], [0.6], [0.9]],
        weights=[2, 1, 1],
        slopes=[1, 0.5, 1],
    )
    sample = Sample.of(queries, [[0.1], [0.2], [0.5], [0.7]])
    np.testing.assert_allclose(sample.unseen, [0.5 / 3, 0.125 / 2, 0.25])
    np.testing.assert_allclose(sample.at_stake, [0.5 / 3, 0.5 / 3, 0.125 / 2, 0.0])
    assert sample.hits.tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_more_rows_judge_more_surely(partitioning):
    errors = []
    for rows in (200, 3200):
        (one,) = candidates(*drawn(Workload(), 3, rows), partitioning=partitioning, regions=9)
        by_row = one.qos_by_row(0.3, 0.5)
        assert len(by_row) == rows
        errors.append(by_row.std() / rows**0.5)
    assert errors[0] > 2.5 * errors[1] > 0.0  # four, if the price of a row stayed the same


def test_where_only_rows_go_that_nobody_wants_their_number_makes_no_error():
    generated = Generated(Workload(data="uniform", query="skewed", local_skew=10.0), 2)
    sample = Sample.of(generated.queries, generated.rows(1000))
    (one,) = candidates(generated.queries, sample, partitioning="data", regions=100)
    assert one.qos_by_row(0.95, 1.0).std() < 0.1 * one.qos_by_row(0.3, 1.0).std()


def test_the_error_is_about_how_much_a_lead_differs_from_sample_to_sample():
    leads, errors = [], []
    generated = Generated(Workload(data="uniform", query="uniform"), 5)
    for _ in range(40):
        sample = Sample.of(generated.queries, generated.rows(500))
        query, grid = (
            candidates(generated.queries, sample, partitioning=name, regions=16)[0].qos_by_row(0.5, 0.5)
            for name in ("query", "grid")
        )
        leads.append((query - grid).mean())
        errors.append((query - grid).std() / 500**0.5)
    assert np.std(leads) == pytest.approx(np.mean(errors), rel=0.5)


def test_a_candidate_rebuilt_with_fewer_regions_is_judged_alike():
    queries, sample = drawn(Workload(), 6)
    first = candidates(queries, sample, regions=16)[1]
    fewer = first.rebuilt(sample, 9)
    assert fewer.built.partitioning == first.built.partitioning
    assert fewer.built.partition.boxes == 9
    assert fewer.at_stake.sum() == pytest.approx(first.at_stake.sum())


@pytest.mark.parametrize("rows", [0, 1, 2, 17])
def test_a_sample_of_hardly_any_rows_gives_qdpart(rows):
    assert best(candidates(*drawn(Workload(), 4, rows), regions=9), 0.5, 0.5).built.partitioning == "qdpart"


def test_one_partitioning_can_be_asked_for_and_an_unknown_one_is_refused():
    queries, sample = drawn(Workload(queries=50), 8, 100)
    (only,) = candidates(queries, sample, regions=9, partitioning="grid")
    assert only.built.partitioning == "grid"
    assert best([only], 0.5, 0.5) is only
    with pytest.raises(InvalidSetting, match=r"auto, grid.*Hint"):
        candidates(queries, sample, regions=9, partitioning="hexagons")
