"""The rivals' own rules, without Spark: which share of which key each would keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, PointStats, Stats
from jettison.errors import InvalidSetting
from jettison.lab.prove.rivals import OURS, RIVALS, entrants
from jettison.lab.prove.rivals.by_key import KeySampler
from jettison.lab.prove.rivals.capped import files_of
from jettison.lab.prove.rivals.moving_average import MovingAverage, logarithmic_rates
from jettison.lab.prove.rivals.oasrs import Reservoirs
from jettison.lab.prove.rivals.pid import PidDrop
from jettison.lab.prove.vocabulary import Weighted
from jettison.lab.prove.workloads import all_workloads
from jettison.policies.base import Lesson
from jettison.policies.groups.group_keys import packed
from jettison.policies.groups.pane_book import IDLE_SAMPLE, KeptGroups

STATS = Stats(1, 0.0, 1.0, {"rides": PointStats(1000, 1000)})
BUDGET = Budget(0.2, 0.2, 3.0, "whatever the controller says")


def seen(counts: dict[int, int], at_s: float) -> KeptGroups:
    keys = packed(list(counts), [0] * len(counts))
    return KeptGroups(tuple(keys.tolist()), tuple(counts.values()), sum(counts.values()), int(at_s * 1e6))


def taught(policy: KeySampler, *batches: tuple[dict[int, int], float]) -> DropPlan:
    plan: DropPlan | None = None
    for counts, at_s in batches:
        policy.learn(Lesson(0, plan, {"rides": seen(counts, at_s)}))
        plan = policy.plan(STATS, BUDGET)
    assert plan is not None
    return plan


def shares(plan: DropPlan) -> dict[int, float]:
    setting = plan.points["rides"]
    return dict(zip(setting.groups[0], setting.keeps[0], strict=True))


def test_reservoirs_are_equal_and_small_strata_are_kept_whole() -> None:
    """While everything is kept a sixteenth of the rows is looked at: 1,000 looked at are 16,000."""
    plan = taught(Reservoirs("key", 1_600), ({1: 1_000, 2: 10}, 1.0), ({1: 1_000, 2: 10}, 2.0))
    assert shares(plan) == {1: pytest.approx(800 / 16_000), 2: 1.0}


def test_counts_are_those_of_all_rows_whatever_was_kept() -> None:
    policy = Reservoirs("key", 1_600)
    first = taught(policy, ({1: 1_000, 2: 10}, 1.0), ({1: 1_000, 2: 10}, 2.0))
    # Of 16,000 and 160 rows a second, the plan keeps 800 and all.
    policy.learn(Lesson(2, first, {"rides": seen({1: 800, 2: 160}, 3.0)}))
    again = policy.plan(STATS, BUDGET)
    assert shares(again) == pytest.approx(shares(first), rel=1e-3)
    assert IDLE_SAMPLE == 1 / 16


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=30), st.floats(1.0, 1e6))
def test_logarithmic_rates_are_shares_and_small_keys_keep_more(counts: list[float], goal: float) -> None:
    found = logarithmic_rates(np.array(counts), goal)
    assert ((found > 0.0) & (found <= 1.0)).all()


@given(st.lists(st.floats(100.0, 1e6), min_size=2, max_size=30), st.floats(0.01, 0.5))
def test_logarithmic_rates_keep_about_the_goal(counts: list[float], share: float) -> None:
    rows = np.array(counts)
    kept = float((logarithmic_rates(rows, share * rows.sum()) * rows).sum())
    assert kept <= share * rows.sum() * (1.0 + 1e-9) + len(rows)


def test_a_moving_average_changes_rates_once_an_interval_and_keeps_new_keys_whole() -> None:
    policy = MovingAverage("key", 1_000.0)
    early = taught(policy, ({1: 1_000, 2: 10}, 1.0), ({1: 1_000, 2: 10}, 2.0))
    assert early.points["rides"].new_keep_fraction == pytest.approx(0.1)
    later = taught(policy, ({1: 1_000, 2: 10}, 4.0))
    assert later.points["rides"].others == (1.0,)
    assert shares(later)[1] < shares(later)[2] == 1.0


def test_the_pid_keeps_the_share_that_its_rate_is_of_the_arrivals() -> None:
    policy = PidDrop(2.0)
    batch = Stats(1, 0.0, 4.0, {"rides": PointStats(8_000, 8_000)}, recent_rows_per_s=4_000.0)
    plan = policy.plan(batch, BUDGET)
    assert plan.points["rides"].keep_fraction == pytest.approx(0.5)
    assert policy.plan(batch, BUDGET) == plan, "plans on the clock, of the same batch, are the same"


def test_every_rival_is_there_once_and_jettison_comes_first() -> None:
    workloads = all_workloads()
    assert {"taxi", "taxi-below", "taxi-mean", "nexmark-q5", "nexmark-q17"} <= set(workloads)
    names = [one.name for one in entrants(workloads["taxi"])]
    others = [f"{OURS} ({name})" for name in ("UniformDrop", "PriorityDrop")]
    assert names == [f"{OURS} (ConceptDrop)", f"{OURS} (ConceptDrop, told its capacity)", *others, *RIVALS]
    below = [one.name for one in entrants(workloads["taxi-below"])]
    assert below == [one for one in names if one not in others], "policies are compared on one stream"
    of_policies = [one.name for one in entrants(workloads["taxi"], ["policies"])]
    assert of_policies == [f"{OURS} ({name})" for name in workloads["taxi"].policies]


def test_rivals_that_need_a_key_or_a_value_stay_away_where_there_is_none() -> None:
    names = {one.name for one in entrants(all_workloads()["taxi-mean"])}
    assert not names & {"oasrs", "ema"}


def test_an_unknown_rival_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"--rivals must be of .*got 'plane'.*did you mean 'plain'"):
        entrants(all_workloads()["taxi"], ["plane"])


def test_another_s_policy_answers_without_jettisons_bounds() -> None:
    """What only Jettison gives, no rival pays for."""
    said: list[object] = []

    class Recorded:
        bound_s, tuned, workload = 5.0, 1_000.0, all_workloads()["taxi"]

        def under(self, policy: object, say: object = None, **told: object) -> None:
            said.append(say)

    for name in ("oasrs", "ema", "pid"):
        RIVALS[name].enter(Recorded())  # type: ignore[arg-type]
    assert [type(say) for say in said] == [Weighted] * 3


def test_a_cap_is_one_on_what_the_query_processes_and_not_on_time() -> None:
    assert files_of(1.0, 100_000, 300_000) == round(files_of(3.0, 100_000, 300_000) / 3)
    assert len(RIVALS["capped"].sizes) > 3
