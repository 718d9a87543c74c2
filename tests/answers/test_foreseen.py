"""What is foreseen of bounds is what they then are, over many draws."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.answers import estimate
from jettison.answers.foreseen import foresee, marked
from jettison.answers.ranks import percentile_estimate
from jettison.lab import sampled

ESTIMATORS = {
    "count": estimate.count_estimate,
    "sum": estimate.sum_estimate,
    "avg": estimate.mean_estimate,
    "stddev": estimate.stddev_estimate,
}
GROUPS = 300
Z = estimate.quantile(0.95)


def width(found):
    return (found.upper - found.lower) / 2.0


@pytest.mark.parametrize("name", [*ESTIMATORS, "median"])
@pytest.mark.parametrize("shares", [(0.3,), (0.5, 0.2, 0.1), (1.0, 0.2)])
def test_in_the_median_of_many_groups_bounds_are_foreseen_within_a_tenth(name, shares):
    """Of values with a tail, kept with one share, with several in turn, and with some that are never dropped."""
    random = np.random.default_rng(5)
    x = 2.5 + random.lognormal(0.9, 0.65, (GROUPS, 1500))
    share = np.asarray(shares)[np.arange(x.shape[1]) * len(shares) // x.shape[1]]
    kept = random.random(x.shape) < share
    values, weights, marks = np.where(kept, x, np.nan), np.broadcast_to(1.0 / share, x.shape), marked(1.0 / share)
    make = ESTIMATORS.get(name) or percentile_estimate(0.5)
    (given, of_given), (whole, of_whole) = sampled.describe(values, weights, kept), sampled.describe(x, marks)
    if name == "median":
        of_given, of_whole = (sampled.describe_ranks(*each, 0.5) for each in ((values, weights), (x, marks)))
    foreseen = foresee(sampled.NUMPY, make, whole, of_whole, Z)
    found = make(sampled.NUMPY, given, of_given, Z)
    assert np.median(width(foreseen)) == pytest.approx(np.median(width(found)), rel=0.1)
    assert np.mean(foreseen.enough) == pytest.approx(np.mean(found.enough), abs=0.1)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_where_nothing_would_be_dropped_bounds_are_of_no_width(name):
    foreseen = foresee(sampled.NUMPY, ESTIMATORS[name], *sampled.describe(np.arange(50.0), np.full(50, marked(1.0))), Z)
    assert width(foreseen) == 0.0 or not np.isfinite(width(foreseen))
    assert foreseen.exact


def test_marks_leave_sums_of_weights_alone():
    assert np.sum(marked(np.full(1000, 10.0))) == pytest.approx(1000.0, rel=1e-6)
