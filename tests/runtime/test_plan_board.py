"""The board publishes plans so that a batch, whenever and however often it is tried, has one plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jettison.core.batch_report import BatchReport
from jettison.core.plan import DropPlan
from jettison.errors import PlanTooLarge
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.policies.window.window_marks import WindowMarks
from jettison.runtime import plan_file
from jettison.runtime.plan_board import PlanBoard
from jettison.runtime.schedule import NOWHERE, Doubts, Entry, Schedule

LEASE_S = 3.0
WRITE_S = 0.04
START_S = 1_000.0


class File:
    """A plan file under a clock that the test sets; writing takes a moment, in which the old content is still read."""

    lease_s = LEASE_S

    def __init__(self, schedule, size=64 * 1024):
        self.now_s = START_S
        self.schedule, self.ends_us = schedule, 0
        self.size = size
        self.write_s = WRITE_S
        self.while_writing = lambda: None

    def clock(self):
        return self.now_s

    def publish(self, schedule, valid_until_us):
        plan_file.encode(schedule, valid_until_us=0, size=self.size)
        self.now_s += self.write_s
        self.while_writing()
        self.schedule, self.ends_us = schedule, valid_until_us

    def fits(self, schedule):
        try:
            plan_file.encode(schedule, valid_until_us=0, size=self.size - self.size // 16)
        except PlanTooLarge:
            return False
        return True

    def published(self):
        return self.schedule

    def lease_ends_us(self):
        return self.ends_us

    def share_kept(self, time_us):
        """What the query reads for a batch of this time, as the channel does."""
        plan = self.schedule.at(time_us) if time_us < self.ends_us else None
        return plan.points["rows"].keep_fraction if plan and plan.points else 1.0


def drop(version, share=0.5):
    return DropPlan(version, {"rows": RandomDrop(share)})


def keep(version):
    return DropPlan(version, {"rows": RandomDrop(1.0)})


def board_of(schedule=None, ends_s=START_S + LEASE_S, **options):
    file = File(schedule or Schedule.of(DropPlan(0)), **options)
    file.ends_us = int(ends_s * 1e6)
    return file, PlanBoard(file, file.schedule, file.clock)


def starts(board):
    return [entry.from_us / 1e6 - START_S for entry in board.schedule.entries[1:]]


actions = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sampled_from([0.01, 0.09, 0.11, 1.0, 2.99, 3.5])),
        st.tuples(st.just("post"), st.sampled_from([0.25, 0.5, 0.75, 1.0])),
        st.tuples(st.sampled_from(["renew", "restate", "batch", "batch while writing"]), st.just(0.0)),
    ),
    max_size=25,
)


@settings(max_examples=500)
@given(actions)
def test_a_batch_has_the_same_plan_at_every_attempt(actions):
    """Whatever was published, renewed or has run out in between."""
    file, board = board_of()
    running = None

    def start():
        nonlocal running
        if running is not None:
            board.batch_done(running[0] / 1e6)
        time_us = int(file.now_s * 1e6)
        running = (time_us, file.share_kept(time_us))
        file.while_writing = lambda: None

    for version, (action, number) in enumerate(actions, start=1):
        if action == "wait":
            file.now_s += number
        elif action == "post":
            board.post(drop(version, number), NOWHERE)
        elif action == "renew":
            board.renew()
        elif action == "restate":
            board.restate(Doubts(version))
        elif action == "batch":
            start()
        else:
            file.while_writing = start
            board.renew()
        if running is not None:
            assert file.share_kept(running[0]) == running[1], "the batch would be repeated otherwise"


def test_a_plan_counts_once_its_file_is_sure_to_be_there():
    file, board = board_of()
    assert board.post(drop(1), NOWHERE) == pytest.approx(START_S + 0.1)
    file.write_s = 0.5
    board.post(drop(2), NOWHERE)
    file.now_s = START_S + 10.0
    assert board.post(drop(3), NOWHERE) == pytest.approx(START_S + 11.0), "twice the slowest of the last writes"
    file.write_s = 0.0
    for version in range(4, 13):
        file.now_s += 5.0
        board.post(drop(version), NOWHERE)
    assert starts(board)[-1] == pytest.approx(file.now_s - START_S + 0.1), "which is forgotten in time"


def test_a_plan_may_count_at_once():
    _, board = board_of()
    assert board.post(drop(1), NOWHERE, at_once=True) == START_S


@pytest.mark.parametrize("what", ["post", "renew", "restate"])
def test_batches_since_the_lease_ended_keep_everything_when_they_are_repeated(what):
    file, board = board_of(Schedule((Entry(0, drop(1)),)))
    ended_us = file.ends_us
    file.now_s += 60.0
    {
        "post": lambda: board.post(drop(2, 0.25), NOWHERE),
        "renew": board.renew,
        "restate": lambda: board.restate(Doubts(5)),
    }[what]()
    newest = 0.25 if what == "post" else 0.5
    found = {time_us: file.share_kept(time_us) for time_us in (ended_us - 1, ended_us, int((START_S + 60.05) * 1e6))}
    assert list(found.values()) == [0.5, 1.0, 1.0]
    assert file.share_kept(int((START_S + 60.2) * 1e6)) == newest
    assert [entry.plan.version for entry in file.schedule.entries] == [1, 0, 2 if what == "post" else 1]


def test_a_lease_that_ends_while_its_renewal_is_written_has_ended():
    file, board = board_of(Schedule.of(drop(1)))
    file.now_s = file.ends_us / 1e6 - 0.01
    found = []
    file.while_writing = lambda: found.append((int(file.now_s * 1e6), file.share_kept(int(file.now_s * 1e6))))
    board.renew()
    ((time_us, share),) = found
    assert share == file.share_kept(time_us) == 1.0


def test_leases_that_end_again_and_again_do_not_fill_the_file():
    """As where one is shorter than it takes to write the next."""
    file, board = board_of(Schedule.of(drop(1)), ends_s=START_S + 0.01)
    file.lease_s = 0.01
    for _ in range(50):
        board.renew()
    assert len(file.schedule.entries) <= 3


def test_a_lease_that_runs_leaves_the_schedule_alone():
    file, board = board_of(Schedule.of(drop(1)))
    file.now_s += LEASE_S - 0.5
    board.renew()
    assert file.schedule == Schedule.of(drop(1))
    assert file.ends_us == int((START_S + 2 * LEASE_S - 0.5) * 1e6)


@pytest.mark.parametrize(
    "plan", [keep(1), DropPlan(1, {"rows": WindowMarks((7,), ("kd",), ((None, 90),))})], ids=["all", "windows"]
)
def test_what_does_not_end_with_the_lease_needs_no_stretch_of_its_own(plan):
    """Everything was kept before, or what was decided holds after its lease too."""
    file, board = board_of(Schedule.of(plan))
    file.now_s += 60.0
    board.renew()
    assert file.schedule == Schedule.of(plan)


def test_restating_what_is_known_writes_nothing():
    file, board = board_of()
    ends_us = file.ends_us
    board.restate(board.schedule.doubts)
    assert file.ends_us == ends_us


def test_plans_that_no_batch_can_have_any_more_are_forgotten():
    file, board = board_of()
    for version in (1, 2, 3):
        board.post(drop(version), NOWHERE)
        file.now_s += 1.0
    board.batch_done(START_S + 1.5)
    board.renew()
    assert [entry.plan.version for entry in file.schedule.entries] == [2, 3]


def large(version, bytes_):
    return DropPlan(version, {"rows" * (bytes_ // 4): RandomDrop(0.5)})


def test_plans_find_room_by_their_real_size():
    _, board = board_of(size=64 * 1024)
    for version in range(1, 40):
        assert board.has_room(drop(version)), version
        board.post(drop(version), NOWHERE)


def test_in_a_full_file_there_is_room_for_a_plan_that_keeps_everything():
    file, board = board_of(size=16 * 1024)
    version = 0
    while board.has_room(large(version + 1, 4000)):
        version += 1
        board.post(large(version, 4000), NOWHERE)
    assert version == 3
    assert board.has_room(keep(4))
    board.post(keep(4), NOWHERE)
    assert not board.has_room(large(5, 4000)), "until a batch is reported"
    board.batch_done(file.now_s + 1.0)
    assert board.has_room(large(5, 4000))


def test_there_are_never_too_many_plans_and_always_room_to_end_the_last_one():
    _, board = board_of(size=10**6)
    version = 0
    while board.has_room(drop(version + 1, 1 / (version + 2))):
        version += 1
        board.post(drop(version, 1 / (version + 1)), NOWHERE)
    assert 40 < version < 60
    board.post(keep(99), NOWHERE)
    assert not board.has_room(keep(100)), "there was one already"


def test_a_plan_too_large_by_itself_is_not_ignored_but_refused():
    _, board = board_of(size=4096)
    for version in (1, 2):
        board.post(drop(version), NOWHERE)
    assert board.has_room(large(3, 8000))
    with pytest.raises(PlanTooLarge):
        board.post(large(3, 8000), NOWHERE)
    assert board.schedule.newest.version == 2


def test_a_write_that_fails_changes_nothing():
    file, board = board_of()
    board.post(drop(1), Doubts(7))
    file.while_writing = lambda: (_ for _ in ()).throw(OSError("disk full"))
    for attempt in (lambda: board.post(drop(2), Doubts(8)), lambda: board.restate(Doubts(9))):
        with pytest.raises(OSError, match="disk full"):
            attempt()
    assert (board.schedule, board.schedule.doubts) == (file.schedule, Doubts(7))


class TestAClockThatIsBehind:
    """It was set back, or a restart found another host: plans on file would count only after an hour."""

    def behind(self):
        before = Schedule(
            (Entry(int((START_S + 3590) * 1e6), drop(1, 0.25)), Entry(int((START_S + 3600) * 1e6), drop(2)))
        )
        return board_of(before, ends_s=START_S + 3630.0)

    def test_a_batch_that_is_repeated_has_its_plan(self):
        file, board = self.behind()
        board.post(drop(3, 0.75), NOWHERE, at_once=True)
        board.renew()
        assert file.share_kept(int((START_S + 3595) * 1e6)) == 0.25

    def test_a_batch_that_began_under_the_newest_plan_has_it_when_it_is_repeated(self):
        file, _ = self.behind()
        begun_us = int((START_S + 3605) * 1e6)
        board = PlanBoard(file, file.schedule, file.clock, begun_us=begun_us)
        board.post(drop(3, 0.75), NOWHERE, at_once=True)
        board.post(drop(4, 0.9), NOWHERE)
        board.renew()
        assert file.share_kept(begun_us) == 0.5
        board.batch_done(begun_us / 1e6)
        board.post(drop(5, 0.8), NOWHERE)
        assert file.share_kept(int((file.now_s + 0.2) * 1e6)) == 0.8, "of the present clock"

    def test_a_small_step_is_not_seen_in_the_file_but_the_batch_has_its_plan(self):
        """The plan is old, the batch is new, and the clock was set back by less than the plan is old."""
        file, _ = board_of(Schedule.of(drop(1, 0.25)), ends_s=START_S + LEASE_S - 1.0)
        begun_us = int((START_S + 0.5) * 1e6)
        board = PlanBoard(file, file.schedule, file.clock, begun_us=begun_us)
        board.post(drop(2, 0.75), NOWHERE, at_once=True)
        file.now_s += 0.3
        assert file.share_kept(begun_us) == 0.25

    @pytest.mark.parametrize("what", ["post", "renew"])
    def test_after_a_report_plans_count_again(self, what):
        file, board = self.behind()
        board.post(drop(3, 0.75), NOWHERE, at_once=True)
        assert file.share_kept(int(file.now_s * 1e6)) == 1.0, "older than all plans: nothing is dropped"
        file.now_s += 1.0
        board.batch_done(START_S + 0.5)
        board.post(drop(4, 0.75), NOWHERE) if what == "post" else board.renew()
        assert file.share_kept(int((START_S + 1.05) * 1e6)) == 1.0
        assert file.share_kept(int((START_S + 1.2) * 1e6)) == 0.75
        assert file.ends_us == int((START_S + 1.04 + LEASE_S) * 1e6), "and the lease is as long as it is to be"

    def test_a_lease_of_a_clock_that_was_ahead_does_not_last(self):
        file, board = board_of(Schedule.of(drop(1)), ends_s=START_S + 3630.0)
        board.renew()
        assert file.ends_us == int((START_S + 3630.0) * 1e6), "a batch from before may be repeated"
        board.batch_done(START_S)
        board.renew()
        assert file.ends_us == int((START_S + WRITE_S + LEASE_S) * 1e6)
        assert file.schedule == Schedule.of(drop(1))

    def test_a_small_step_drops_what_no_batch_had_and_keeps_the_rest(self):
        file, board = board_of()
        board.post(drop(1, 0.25), NOWHERE)
        file.now_s += 2.0
        board.post(drop(2, 0.75), NOWHERE)
        file.now_s -= 1.5
        board.batch_done(file.now_s)
        time_us = int(file.now_s * 1e6)
        assert file.share_kept(time_us) == 0.25
        board.renew()
        assert file.share_kept(time_us) == 0.25
        assert file.share_kept(time_us + 200_000) == 0.75


def test_a_batch_under_an_older_plan_than_counted_is_noticed_but_not_one_that_may_be_repeated():
    """As where the newer of two files is damaged, and Spark reads the older one."""
    file, board = board_of()
    from_s = [board.post(drop(version), NOWHERE) for version in (1, 2)]

    def wrong(version, started_s, *, repeated=False):
        return board.wrong_plan(BatchReport("run", 7, started_s, 0.5, 10, version), repeated=repeated)

    assert wrong(1, from_s[1] + 0.001) == "", "it has come on file, but late"
    file.schedule = Schedule.of(drop(1))
    assert wrong(1, from_s[1] + 0.001).startswith("batch 7 ran under plan 1 where plan 2 counted")
    assert wrong(None, from_s[1]) == "batch 7 found no valid plan and kept every row"
    assert wrong(1, from_s[1] + 0.001, repeated=True) == ""
    assert [wrong(1, from_s[1] - 0.001), wrong(2, from_s[1] - 0.001), wrong(2, from_s[1])] == ["", "", ""]


def test_what_is_published_says_up_to_when_answers_are_in_doubt():
    file, board = board_of()
    board.post(drop(1), Doubts(11))
    assert file.schedule.doubts == Doubts(11)
    board.restate(Doubts(22))
    assert file.schedule == replace(board.schedule, doubts=Doubts(22))


def test_a_batch_that_finds_a_plan_finds_its_doubts_however_long_writing_takes():
    file, board = board_of()
    found = []

    def ever_slower():
        found.append((file.now_s, file.schedule.doubts))
        file.write_s *= 100

    file.write_s, file.while_writing = 0.2, ever_slower
    from_s = board.post(drop(1), Doubts(11))
    *_, (late_s, doubts) = found
    assert late_s > from_s, "a batch may start here, read the doubts, and the plan only once it is written"
    assert doubts == Doubts(11)
