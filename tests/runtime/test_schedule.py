"""A schedule: which plan a batch has depends on its time alone, whatever is added, forgotten or lapses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jettison.core.plan import DropPlan
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.policies.window.window_marks import WindowMarks
from jettison.runtime.schedule import Doubts, Entry, Schedule

times = st.integers(min_value=0, max_value=50)


def plan(version, share=0.5):
    return DropPlan(version, {"rows": RandomDrop(share)})


def schedule(*from_us):
    return Schedule(tuple(Entry(time_us, plan(version)) for version, time_us in enumerate(sorted(from_us), start=1)))


schedules = st.lists(times, min_size=1, max_size=6).map(lambda starts: schedule(*starts))


def versions(found, until_us=60):
    """Version by batch time; `None` where there is no plan."""
    return [made.version if (made := found.at(time_us)) else None for time_us in range(until_us)]


@given(schedules, times)
def test_what_is_forgotten_no_later_batch_can_have(found, before_us):
    left = found.forgetting(before_us)
    assert versions(left)[before_us:] == versions(found)[before_us:]
    assert len(left.entries) >= 1
    assert sum(entry.from_us <= before_us for entry in left.entries) <= 1


@given(schedules, times)
def test_batches_without_a_plan_never_get_one_by_forgetting(found, before_us):
    """What is older than all plans keeps everything, at the first attempt and at all others."""
    without = [time_us for time_us in range(60) if found.at(time_us) is None]
    assert all(found.forgetting(before_us).at(time_us) is None for time_us in without)


@given(schedules, times)
def test_one_more_plan_leaves_earlier_batches_alone(found, from_us):
    more = found.followed_by(plan(99), from_us)
    counts_from = max(from_us, found.entries[-1].from_us)
    assert versions(more) == versions(found)[:counts_from] + [99] * (60 - counts_from)


@given(schedules, times)
def test_once_the_lease_has_ended_everything_is_kept(found, ended_us):
    lapsed = found.lapsed(ended_us)
    assert versions(lapsed)[:ended_us] == versions(found)[:ended_us]
    assert versions(lapsed)[ended_us:] == [0] * (60 - ended_us)
    assert lapsed.newest.keeps_everything


def test_windows_that_have_lost_rows_stay_dropped_when_the_lease_ends():
    marks = WindowMarks((7,), ("kd",), ((None, 90),))
    lapsed = Schedule.of(DropPlan(3, {"rows": marks, "more": RandomDrop(0.5)})).lapsed(10)
    assert dict(lapsed.newest.points) == {"rows": marks.when_released}


@given(schedules, times)
def test_plans_that_count_only_later_can_be_left_out(found, time_us):
    known = found.known_by(time_us)
    assert versions(known)[:time_us] == versions(found)[:time_us]
    assert known.at(time_us) is not None
    assert all(entry.from_us <= time_us for entry in known.entries)


def test_the_newest_plan_is_the_one_that_was_added_last():
    found = schedule(1, 5).followed_by(plan(9), 3)
    assert (found.newest.version, found.entries[-1].from_us) == (9, 5)


def test_the_time_up_to_which_answers_are_in_doubt_stays():
    found = Schedule((Entry(5, plan(1)), Entry(9, plan(2))), Doubts(77))
    changed = [found.followed_by(plan(3), 9), found.forgetting(9), found.lapsed(7), found.known_by(1)]
    assert [one.doubts for one in changed] == [Doubts(77)] * 4
