"""Under any plan of a sifter every row may be kept, so that weights add up: for each query and for the whole stream."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jettison as jt
from jettison.core.stats import Budget, PointStats, Stats
from jettison.policies.regions.build import PARTITIONINGS
from jettison.policies.regions.sifter import Sifter
from sifter_cases import drop_of, random_queries, random_rows, random_space

SEEN = Stats(0, 1e9, 1.0, {"rows": PointStats(1000, 1000)})


def probabilities(policy: Sifter, one, points: np.ndarray, *, late: bool = False) -> np.ndarray:
    """The chance of each row to be kept, by the raster of a plan as a backend reads it."""
    codes = policy.queries.space.codes(points)
    places = [np.searchsorted(cuts, codes[:, axis], side="right") for axis, cuts in enumerate(one.cuts)]
    cell = np.ravel_multi_index(places, [len(cuts) + 1 for cuts in one.cuts])
    missing = np.isnan(points) @ (1 << np.arange(points.shape[1]))
    region = np.where(missing > 0, np.array(one.missing)[missing], np.array(one.cells)[cell])
    return np.array(one.late_keep if late else one.keep)[region]


@given(
    seed=st.integers(0, 2**32 - 1),
    keep=st.floats(0.001, 0.999),
    late=st.floats(0.001, 0.999),
    regions=st.integers(1, 40),
    fairness=st.sampled_from([0.0, 0.3, 1.0]),
    outside=st.sampled_from(["keep", "drop"]),
    reserve=st.sampled_from([0.001, 0.05, 1.0]),
    sample_every=st.sampled_from([0, 7, 100]),
    partitioning=st.sampled_from(PARTITIONINGS),
)
@settings(max_examples=150, deadline=None)
def test_weights_add_up_within_their_standard_error(seed, keep, late, regions, fairness, outside, **more):
    random = np.random.default_rng(seed)
    space = random_space(random, most=3)
    queries = random_queries(random, space, 12)
    policy = Sifter(
        queries,
        random_rows(random, space, int(random.integers(1, 300))),
        regions=regions,
        fairness=fairness,
        outside=outside,
        **more,
    )
    one = policy.plan(SEEN, Budget(keep, late, 3.0, "load")).points["rows"]
    points = np.concatenate([random_rows(random, space, 300) for _ in range(3)])
    points[random.random(points.shape) < 0.05] = np.nan
    for is_late in (False, True):
        chance = probabilities(policy, one, points, late=is_late)
        # Every row may be kept: with the inverse of its chance as its weight, any total is right on average, exactly.
        assert chance.min() > 0.0
        assert chance.max() <= 1.0
        kept = random.random((400, len(points))) < chance
        query, row = queries.matches(points)
        for members in [np.arange(len(points)), *(row[query == number] for number in range(12))]:
            totals = (kept[:, members] / chance[members]).sum(axis=1)
            error = np.sqrt(((1.0 - chance[members]) / chance[members]).sum() / 400)
            # The heaviest row may not have come in 400 draws: it is allowed for beside six standard errors.
            most = (1.0 / chance[members]).max(initial=0.0)
            assert abs(totals.mean() - len(members)) <= 6.0 * error + 6.0 * most / 400 + 1e-9


def test_regions_that_no_query_wants_are_thinned_and_not_dropped_whole():
    """With most regions at 0 the weights came to 0.29 of the truth."""
    random = np.random.default_rng(1)
    points = random.random((50_000, 2))
    space = [jt.Attribute.number("x", 0, 1), jt.Attribute.number("y", 0, 1)]
    queries = jt.RangeQueries(space, ["x > 0.5", "x > 0.9 and y > 0.8"])
    policy = Sifter(queries, points[:2000], partitioning="grid", regions=17, fairness=1.0)
    one = policy.plan(SEEN, Budget(0.2, 0.2, 3.0, "load")).points["rows"]
    chance = probabilities(policy, one, points)
    assert (chance <= 0.0101).mean() > 0.5
    kept = random.random(len(points)) < chance
    assert kept.mean() == pytest.approx(0.2, rel=0.03)
    error = np.sqrt(((1.0 - chance) / chance).sum())
    assert (1.0 / chance[kept]).sum() == pytest.approx(len(points), abs=4.0 * error)
    assert error < 0.05 * len(points)


def test_where_nothing_is_left_beside_protected_rows_the_plan_says_so():
    policy = Sifter(jt.RangeQueries([jt.Attribute.number("x", 0, 1)], ["x > 0.5"]), {"x": np.linspace(0, 1, 100)})
    seen = Stats(0, 1e9, 1.0, {"rows": PointStats(1000, 1000, protected_share=0.5)})
    plan = policy.plan(seen, Budget(0.4, 0.4, 3.0, "load"))
    assert plan.cause == "load; protected rows alone exceed the budget at rows"


def test_the_reserve_costs_the_queries_no_more_than_its_share():
    random = np.random.default_rng(2)
    points = random.random((2000, 2))
    space = [jt.Attribute.number("x", 0, 1), jt.Attribute.number("y", 0, 1)]
    queries = jt.RangeQueries(space, ["x > 0.8 and y > 0.8", "x < 0.3 and y < 0.3"])
    mostly, reserved = (Sifter(queries, points, fairness=1.0, reserve=share).filter(0.1) for share in (1e-9, 0.05))
    inside = points[queries.hits(points) > 0]
    got = [(1.0 - drop_of(made, inside)).mean() for made in (mostly, reserved)]
    assert got[1] >= 0.94 * got[0]
