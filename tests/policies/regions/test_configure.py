"""The closed form equals the linear program of the paper, solved by HiGHS."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from jettison.errors import InvalidSetting
from jettison.policies.regions.configure import configure


def linear_program(qos, rows, wanted, throttler, fairness):
    """Least QoS lost, by an LP with O(l) fairness constraints: m <= d <= m + fairness."""
    regions = len(qos)
    mine = np.flatnonzero(wanted)
    above = np.zeros((2 * len(mine), regions + 1))
    for row, region in enumerate(mine):
        above[2 * row, [region, regions]] = -1.0, 1.0
        above[2 * row + 1, [region, regions]] = 1.0, -1.0
    limit = np.tile([0.0, fairness], len(mine))
    solved = linprog(
        np.append(qos, 0.0),
        A_ub=above if len(mine) else None,
        b_ub=limit if len(mine) else None,
        A_eq=[np.append(rows, 0.0)],
        b_eq=[min(1.0 - throttler, rows.sum())],  # the sum of shares may miss 1 by rounding
        bounds=[(0.0, 1.0)] * (regions + 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solved.status == 0, solved.message
    return solved.fun


def random_problem(random):
    regions = int(random.integers(1, 40))
    rows = random.dirichlet(np.full(regions, random.choice([0.05, 0.5, 5.0])))
    rows[random.random(regions) < random.choice([0.0, 0.3])] = 0.0
    rows[rows < 1e-6] = 0.0  # HiGHS drops coefficients below 1e-9, and its problem is then another one
    rows = rows / rows.sum() if rows.sum() > 0 else np.full(regions, 1.0 / regions)
    wanted = random.random(regions) < random.choice([0.0, 0.5, 0.9, 1.0])
    qos = random.random(regions) ** random.choice([0.0, 1.0, 4.0]) * wanted
    qos[random.random(regions) < random.choice([0.0, 0.3])] = 0.0
    qos = qos / max(qos.sum(), 1.0)  # the weights of all queries sum to 1
    throttler = float(random.choice([0.0, 1.0, random.random(), random.random()]))
    fairness = float(random.choice([0.0, 1.0, random.random(), random.random()]))
    return qos, rows, wanted, throttler, fairness


@pytest.mark.parametrize("block", range(20))
def test_it_equals_the_linear_program_on_thousands_of_problems(block):
    random = np.random.default_rng(block)
    for _ in range(100):
        qos, rows, wanted, throttler, fairness = random_problem(random)
        ours = configure(qos, rows, wanted, throttler=throttler, fairness=fairness)
        assert ours.feasible
        assert qos @ ours.drop == pytest.approx(linear_program(qos, rows, wanted, throttler, fairness), abs=1e-9)
        assert rows @ ours.drop == pytest.approx(1.0 - throttler, abs=1e-9)
        assert np.ptp(ours.drop[wanted]) <= fairness + 1e-9 if wanted.any() else True


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_thresholds_are_shares_meet_the_throttler_and_are_fair(seed):
    qos, rows, wanted, throttler, fairness = random_problem(np.random.default_rng(seed))
    made = configure(qos, rows, wanted, throttler=throttler, fairness=fairness)
    assert np.all((made.drop >= 0.0) & (made.drop <= 1.0))
    assert made.pass_rate == pytest.approx(throttler, abs=1e-9)
    assert np.ptp(made.drop[wanted]) <= fairness + 1e-9 if wanted.any() else True


def test_without_fairness_the_order_is_by_qos_per_row_not_by_qos():
    # The first region loses more in all, but less per row.
    drop = configure([0.5, 0.4], [0.8, 0.2], [True, True], throttler=0.2, fairness=1.0).drop
    assert drop == pytest.approx([1.0, 0.0])


def test_no_fairness_margin_is_random_dropping():
    assert configure([0.9, 0.1], [0.3, 0.7], [True, True], throttler=0.4, fairness=0.0).drop == pytest.approx(
        [0.6, 0.6]
    )


def test_regions_without_queries_go_first_and_alone_while_they_suffice():
    qos, rows, wanted = [0.4, 0.0, 0.6], [0.3, 0.4, 0.3], [True, False, True]
    assert configure(qos, rows, wanted, throttler=0.8, fairness=0.1).drop == pytest.approx([0.0, 0.5, 0.0])
    assert configure(qos, rows, wanted, throttler=0.5, fairness=0.0).drop == pytest.approx([1 / 6, 1.0, 1 / 6])


def test_a_region_without_rows_takes_the_lower_level():
    drop = configure([0.0, 0.2, 0.8], [0.0, 0.5, 0.5], [True] * 3, throttler=0.5, fairness=0.5).drop
    assert drop == pytest.approx([0.25, 0.75, 0.25])


@pytest.mark.parametrize(
    ("throttler", "drop"),
    [(-0.1, [1.0, 1.0]), (0.05, [1.0, 1.0]), (1.2, [0.0, 0.0])],
    ids=["less than nothing", "less than what lies outside the domain", "more than everything"],
)
def test_an_infeasible_throttler_gives_the_nearest_plan_and_says_so(throttler, drop):
    made = configure([0.5, 0.5], [0.5, 0.4], [True, True], throttler=throttler, fairness=0.5)
    assert not made.feasible
    assert made.drop == pytest.approx(drop)


def test_a_fairness_that_is_no_difference_of_shares_is_refused():
    with pytest.raises(InvalidSetting, match="`fairness`"):
        configure([1.0], [1.0], [True], throttler=0.5, fairness=1.5)
