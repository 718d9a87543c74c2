"""The server's side: built from the sample, rebuilt on drift, corrected by counts."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.errors import InvalidSetting
from jettison.lab.reproduce.sifter.adaptive_sifter import AdaptiveSifter
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


def server(seed, **settings):
    """A server that has collected a thousand rows."""
    queries, rows = workload(seed)
    adaptive = AdaptiveSifter(queries, **settings)
    adaptive.collect(rows(1000))
    return adaptive


def run(adaptive, source, rows):
    decision = source.decide(list(rows.T))
    adaptive.collect(rows[decision.sampled])
    return decision.keep.mean()


@pytest.mark.parametrize("throttler", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("seed", range(3))
def test_feedback_brings_the_pass_rate_within_one_percent(seed, throttler):
    queries, rows = workload(seed)
    adaptive = AdaptiveSifter(queries, regions=36, sample_size=300, sample_every=50)
    adaptive.collect(rows(300))
    source = SifterFilter(adaptive.update(throttler).filter)
    first = run(adaptive, source, rows(200_000))
    for _ in range(3):
        adaptive.observe(source.produced)
        update = adaptive.update(throttler)
        if update is not None:
            assert "of the rows passed instead of" in update.cause
            source.install(update.filter)
        last = run(adaptive, source, rows(200_000))
    assert last == pytest.approx(throttler, rel=0.01)
    # With so small a sample there was something to correct, at least at one throttler.
    assert abs(last - throttler) <= abs(first - throttler) + 0.002


def test_a_filter_is_rebuilt_when_the_throttler_drifts_and_not_before():
    adaptive = server(1, drift=0.05)
    first = adaptive.update(0.5)
    assert "built for a throttler of 0.5000" in first.cause
    assert adaptive.update(0.54) is None
    assert "built for a throttler of 0.4000" in adaptive.update(0.4).cause


def test_a_rebuild_uses_the_newest_sample_only():
    queries, rows = workload(2)
    adaptive = AdaptiveSifter(queries, sample_size=100, partitioning="data", regions=4)
    adaptive.collect(rows(500) * 0.1)
    adaptive.collect(0.9 + rows(100) * 0.1)
    cuts = adaptive.update(0.5).filter.partition.cut / 2**24
    assert (cuts > 0.9).all()


def test_without_a_sample_a_filter_still_comes_out():
    adaptive = AdaptiveSifter(workload(3)[0])
    made = adaptive.update(0.5)
    assert made.filter.partition.boxes == 16
    # Of nothing that is known, nothing is better than anything else: all rows are thinned alike, not dropped.
    assert "no thresholds" not in made.cause
    assert made.filter.drop.tolist() == pytest.approx([1 - (0.5 - 0.01) / 0.99] * 17, abs=1e-4)


def test_a_throttler_below_the_sample_is_called_infeasible_and_everything_else_goes():
    update = server(4, sample_every=10).update(0.05)
    assert "no thresholds meet it" in update.cause
    assert (update.filter.drop == 1.0).all()


@pytest.mark.parametrize("outside", ["keep", "drop"])
def test_rows_outside_the_domain_are_part_of_the_budget(outside):
    queries, rows = workload(5)
    adaptive = AdaptiveSifter(queries, outside=outside, sample_every=0, sample_size=20_000)

    def some_outside(count):
        made = rows(count)
        made[: count // 5] += 5.0
        return made

    adaptive.collect(some_outside(20_000)[np.random.default_rng(0).permutation(20_000)])
    source = SifterFilter(adaptive.update(0.4).filter)
    assert source.decide(list(some_outside(100_000).T)).keep.mean() == pytest.approx(0.4, rel=0.01)


def test_counts_of_another_filter_are_refused():
    adaptive = server(6)
    adaptive.update(0.5)
    with pytest.raises(InvalidSetting, match="18 counts"):
        adaptive.observe(np.ones(3))
