"""The default choice: QDPart, unless another partitioning's lead is beyond chance."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from jettison.errors import InvalidSetting
from jettison.reproduce.sifter.trial import CHOSEN, METHODS, Trial
from jettison.reproduce.sifter.workload import Generated, Workload
from jettison.sifter.build import PARTITIONINGS, Sample
from jettison.sifter.choose import best, candidate, candidates

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
        ({"grid": 0.5, "data": 0.6, "query": 0.55, "qdpart": 0.55}, NOISE, "data"),  # five standard errors
        ({"grid": 0.5, "data": 0.6, "query": 0.55, "qdpart": 0.57}, NOISE, "qdpart"),  # three: may be chance
        ({"grid": 0.5, "data": 0.6, "query": 0.55, "qdpart": 0.599}, 0.0 * NOISE, "data"),  # rows all say so
        ({"grid": 0.5, "data": 0.6, "query": 0.61, "qdpart": 0.7}, NOISE, "qdpart"),
        ({"grid": 0.5, "data": 0.5, "query": 0.5, "qdpart": 0.5}, 0.0 * NOISE, "qdpart"),
    ],
)
def test_another_one_than_qdpart_is_chosen_for_a_lead_of_more_than_four_standard_errors(mean, noise, chosen):
    known = [judged(name, qos + noise * (name != "qdpart")) for name, qos in mean.items()]
    assert best(known, 0.3, 0.5).built.partitioning == chosen


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


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_rows_judge_what_the_model_expects_and_more_rows_more_surely(partitioning):
    errors = []
    for rows in (200, 3200):
        one = candidate(*drawn(Workload(), 3, rows), partitioning=partitioning, regions=9)
        by_row = one.qos_by_row(0.3, 0.5)
        assert len(by_row) == rows
        assert by_row.mean() == pytest.approx(one.built.expected_qos(0.3, 0.5))
        errors.append(by_row.std() / rows**0.5)
    assert errors[0] > 3 * errors[1] > 0.0


def test_the_error_is_about_how_much_the_models_lead_differs_from_sample_to_sample():
    leads, errors = [], []
    generated = Generated(Workload(data="uniform", query="uniform"), 5)
    for _ in range(40):
        sample = Sample.of(generated.queries, generated.rows(500))
        data, grid = (
            candidate(generated.queries, sample, partitioning=name, regions=16).qos_by_row(0.5, 0.5)
            for name in ("query", "grid")
        )
        leads.append((data - grid).mean())
        errors.append((data - grid).std() / 500**0.5)
    assert np.std(leads) == pytest.approx(np.mean(errors), rel=0.5)


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
