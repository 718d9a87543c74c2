"""A filter for sources: built from a sample of their rows, and corrected by what they have counted."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.lab.reproduce.sifter.trial import with_counts
from jettison.policies.regions.build import Sample
from jettison.policies.regions.choose import best, candidates
from jettison.policies.regions.queries import RangeQueries
from jettison.source import SifterFilter
from jettison.source.space import Attribute, Space

PLANE = Space([Attribute.number("x", 0, 1), Attribute.number("y", 0, 1)])


def workload(seed):
    random = np.random.default_rng(seed)
    centres = random.normal(random.random(2), 0.2, (300, 2))
    queries = RangeQueries.from_boxes(PLANE, centres, centres + 0.02)

    def rows(count):
        return np.abs(random.normal(0.5, 0.15, (count, 2))) % 1.0

    return queries, rows


def built_for(throttler, queries, sample, **settings):
    return best(candidates(queries, Sample.of(queries, sample), **settings), throttler, 0.5).built


@pytest.mark.parametrize("throttler", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("seed", range(3))
def test_counts_bring_the_pass_rate_within_one_percent(seed, throttler):
    queries, rows = workload(seed)
    built = built_for(throttler, queries, rows(300), regions=36)
    source = SifterFilter(built.filter(throttler, 0.5, sample_every=50))
    first = source.decide(list(rows(200_000).T)).keep.mean()
    for _ in range(3):
        source.install(with_counts(built, source.produced).filter(throttler, 0.5, sample_every=50))
        last = source.decide(list(rows(200_000).T)).keep.mean()
    assert last == pytest.approx(throttler, rel=0.01)
    # With so small a sample there was something to correct, at least at one throttler.
    assert abs(last - throttler) <= abs(first - throttler) + 0.002


def test_without_a_sample_a_filter_still_comes_out():
    queries, _ = workload(3)
    made = built_for(0.5, queries, np.empty((0, 2)), regions=16).filter(0.5, 0.5, sample_every=100)
    assert made.partition.boxes == 16
    # Of nothing that is known, nothing is better than anything else: all rows are thinned alike, not dropped.
    assert made.drop.tolist() == pytest.approx([1 - (0.5 - 0.01) / 0.99] * 17, abs=1e-4)


def test_where_the_sample_alone_is_more_than_the_throttler_everything_else_goes():
    queries, rows = workload(4)
    built = built_for(0.05, queries, rows(1000), regions=16)
    assert not built.configured(built.beside_sample(0.05, 0.1, "keep"), 0.5).feasible
    assert (built.filter(0.05, 0.5, sample_every=10).drop == 1.0).all()


@pytest.mark.parametrize("outside", ["keep", "drop"])
def test_rows_outside_the_domain_are_part_of_the_budget(outside):
    queries, rows = workload(5)

    def some_outside(count):
        made = rows(count)
        made[: count // 5] += 5.0
        return made

    sample = some_outside(20_000)[np.random.default_rng(0).permutation(20_000)]
    source = SifterFilter(built_for(0.4, queries, sample, regions=16).filter(0.4, 0.5, outside=outside))
    assert source.decide(list(some_outside(100_000).T)).keep.mean() == pytest.approx(0.4, rel=0.01)
