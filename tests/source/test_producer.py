"""Decisions at the source: the paper's counter pairs, in blocks, with a sample beside them."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.errors import InvalidInput, InvalidSetting
from jettison.policies.regions.even_regions import uniform_grid
from jettison.source import SifterFilter
from jettison.source.partition import MOST_REGIONS, Leaf, grown
from jettison.source.region_filter import UNIT, RegionFilter
from jettison.source.space import Attribute, Space

LINE = Space([Attribute.number("x", 0, 1)])


def sifter(drop, **settings):
    return SifterFilter(RegionFilter.of(LINE, uniform_grid(LINE, len(drop)), drop, **settings))


def one_by_one(regions, thresholds):
    """The paper's rule, row by row: drop if sending would take dropped / produced below the threshold."""
    produced, dropped, keep = {}, {}, []
    for region in regions:
        produced[region] = produced.get(region, 0) + 1
        below = Fraction(dropped.get(region, 0), produced[region]) < Fraction(int(thresholds[region]), UNIT)
        dropped[region] = dropped.get(region, 0) + below
        keep.append(not below)
    return keep


@given(
    thresholds=st.lists(st.sampled_from([0, 1, 7, UNIT // 3, UNIT // 2, UNIT - 1, UNIT]), min_size=1, max_size=5),
    blocks=st.lists(st.lists(st.floats(0, 1), max_size=60), max_size=5),
)
@settings(max_examples=200, deadline=None)
def test_whole_batches_are_decided_as_the_papers_rule_decides_row_by_row(thresholds, blocks):
    one = RegionFilter(LINE, uniform_grid(LINE, len(thresholds)), np.array(thresholds, dtype=np.int32))
    subject = SifterFilter(one)
    keep = [mark for block in blocks for mark in subject.decide([block]).keep.tolist()]
    regions = subject.regions([[x for block in blocks for x in block]]).tolist()
    assert keep == one_by_one(regions, one.thresholds)
    assert subject.produced.sum() - subject.dropped.sum() == sum(keep)


def test_counters_go_on_beyond_the_unit_of_the_thresholds():
    subject = sifter([0.3, 0.9])
    x = np.random.default_rng(0).random(3 * UNIT)
    keep = subject.decide({"x": x}).keep
    expected = one_by_one(subject.regions([x]).tolist(), subject.filter.thresholds)
    assert keep.tolist() == expected


@pytest.mark.parametrize("share", [0.0, 0.001, 0.25, 0.5, 0.77, 1.0])
def test_each_region_meets_its_threshold_at_every_moment(share):
    subject = sifter([share, 1.0 - share])
    keep = subject.decide([np.full(2000, 0.25)]).keep
    dropped = np.cumsum(~keep)
    assert np.abs(dropped - share * np.arange(1, 2001)).max() <= 1.0 + 2000 / UNIT


def test_sampled_rows_are_marked_kept_and_not_counted_across_batches():
    subject = sifter([1.0, 1.0], sample_every=7)
    x = np.random.default_rng(1).random(1000)
    decisions = [subject.decide([part]) for part in np.split(x, [1, 10, 11, 500])]
    sampled = np.concatenate([one.sampled for one in decisions])
    keep = np.concatenate([one.keep for one in decisions])
    assert np.flatnonzero(sampled).tolist() == list(range(0, 1000, 7))
    assert (keep == sampled).all()
    assert subject.produced.sum() == 1000 - sampled.sum()


def test_a_batch_larger_than_a_block_samples_evenly_too():
    subject = sifter([0.5, 0.5], sample_every=10)
    decision = subject.decide([np.random.default_rng(2).random(100_003)])
    assert decision.sampled.sum() == 10_001
    assert decision.keep[decision.sampled].all()
    assert decision.keep.mean() == pytest.approx(0.1 + 0.9 * 0.5, abs=1e-3)


@pytest.mark.parametrize(("outside", "kept"), [("keep", True), ("drop", False)])
def test_rows_outside_the_domain_are_kept_or_dropped_on_purpose(outside, kept):
    subject = sifter([0.0, 0.0], outside=outside)
    keep = subject.decide([[-1.0, 0.5, 2.0, np.nan]]).keep
    assert keep.tolist() == [kept, True, kept, kept]


def test_a_new_filter_starts_new_counters_and_sampling_goes_on():
    subject = sifter([0.5, 0.5], sample_every=4)
    subject.decide([np.full(6, 0.1)])
    subject.install(RegionFilter.of(LINE, uniform_grid(LINE, 4), [0.0] * 4, sample_every=4))
    assert subject.produced.tolist() == [0] * 5
    assert np.flatnonzero(subject.decide([np.full(8, 0.1)]).sampled).tolist() == [2, 6]


def test_many_regions_and_many_attributes():
    root = Leaf.domain(1)
    root.split_at(0, list(range(1000, 1_000_000, 1000)))
    one = RegionFilter.of(LINE, grown(root), np.linspace(0, 1, 1000))
    x = np.random.default_rng(3).random(5000) * 0.06
    subject = SifterFilter(one)
    assert subject.decide([x]).keep.tolist() == one_by_one(subject.regions([x]).tolist(), one.thresholds)
    # Eight attributes cut in many places have no raster; the tree is walked instead.
    space = Space([Attribute.number(f"x{i}", 0, 1) for i in range(8)])
    leaf = deep = Leaf.domain(8)
    for cut in range(1, 80):
        leaf = leaf.split(cut % 8, 16_000_000 - cut * 100_000)[0]
    partition = grown(deep)
    walked = SifterFilter(RegionFilter.of(space, partition, np.linspace(0, 1, 80)))
    rows = np.random.default_rng(4).random((2000, 8)) ** 0.1
    assert walked._raster is None
    assert walked.regions(list(rows.T)).tolist() == partition.region_of(space.codes(rows)).tolist()


@pytest.mark.long
def test_as_many_regions_as_there_may_be_are_told_apart_and_more_are_refused():
    """Region 65,536 and its neighbours had the thresholds of the first ones."""
    for count in (MOST_REGIONS, MOST_REGIONS + 1):
        root = Leaf.domain(1)
        root.split_at(0, list(range(100, 100 + (count - 1) * 256, 256)))
        if count > MOST_REGIONS:
            with pytest.raises(InvalidSetting, match="at most 65,535 regions"):
                grown(root)
            return
        partition = grown(root)
        thresholds = np.zeros(count, dtype=np.int32)
        thresholds[-1] = UNIT
        subject = SifterFilter(RegionFilter(LINE, partition, thresholds))
        x = (np.array([50.0, 300.0, partition.cut.max() + 5.0]) - 1.0) / LINE.scale[0]
        assert subject.regions([x]).tolist() == [0, 1, count - 1]
        assert subject.decide([np.append(x, 2.0)]).keep.tolist() == [True, True, False, True]


def test_wrong_columns_are_refused():
    with pytest.raises(InvalidInput, match="column for each of x"):
        sifter([0.5]).decide({"y": [1.0]})
    space = Space([Attribute.number("x", 0, 1), Attribute.number("y", 0, 1)])
    both = SifterFilter(RegionFilter.of(space, uniform_grid(space, 4), [0.0] * 4))
    with pytest.raises(InvalidInput, match="same length"):
        both.decide([[0.1], [0.1, 0.2]])


def test_the_source_module_needs_nothing_but_numpy():
    script = (
        "import sys, jettison.source as s\n"
        "known = set(sys.stdlib_module_names) | {'numpy', 'jettison'}\n"
        "print(','.join(sorted({n.split('.')[0] for n in sys.modules} - known)))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", _with_path(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [name for name in done.stdout.strip().split(",") if not name.startswith("__")] == []


def _with_path(script: str) -> str:
    # Without site (-S): packages that are installed but not asked for, such as editable hooks, stay out of the count.
    return f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}\n{script}"
