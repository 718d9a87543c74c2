from __future__ import annotations

import numpy as np
import pytest

from jettison.costs.check import AverageCheck, RowCheck
from jettison.costs.hashing import SharedHashes, fingerprints
from jettison.costs.shedder import Decision, LatencyShedder, Reply, ShedderState, SyncForm
from jettison.costs.sketch import CostSketch

HASHES = SharedHashes(3, 400, seed=2)
CELLS = HASHES.cells(fingerprints(np.arange(10)))
KEPT, ASKED, DROPPED = Decision(keep=True), Decision(keep=True, request=True), Decision(keep=False)


def costs(factor: float = 1.0) -> CostSketch:
    """Key k costs k seconds."""
    sketch = CostSketch(HASHES)
    sketch.learn(fingerprints(np.arange(10)), factor * np.arange(10.0))
    return sketch


def shedder(sync: SyncForm = SyncForm.IN_TURN, *, margin: float = 0.0, clamp: bool = True) -> LatencyShedder:
    return LatencyShedder(RowCheck(5.0), margin, sync, clamp_to_now=clamp)


def test_everything_is_kept_until_costs_are_known() -> None:
    subject = shedder()
    assert [subject.shed(CELLS[:, 9], 0.0) for _ in range(20)] == [KEPT] * 20
    assert subject.state is ShedderState.NOP


def test_the_first_row_kept_after_new_costs_carries_the_request() -> None:
    subject = shedder()
    subject.receive_costs(costs())
    assert subject.state is ShedderState.SEND
    assert [subject.shed(CELLS[:, 4], 0.0) for _ in range(4)] == [ASKED, KEPT, DROPPED, DROPPED]
    assert subject.state is ShedderState.RUN
    subject.receive_costs(costs())
    assert subject.state is ShedderState.SEND
    assert [subject.shed(CELLS[:, 4], now) for now in (0.0, 3.5, 4.0)] == [DROPPED, ASKED, DROPPED]


def test_the_row_dropped_is_judged_by_the_queue_and_not_by_its_own_cost() -> None:
    """What theorem 4.1 overlooks: a free row is dropped where a dear one was kept before it."""
    subject = shedder()
    subject.receive_costs(costs())
    assert [subject.shed(CELLS[:, key], 0.0).keep for key in (9, 0)] == [True, False]


def test_the_margin_raises_every_estimate() -> None:
    subject = shedder(margin=0.5)
    subject.receive_costs(costs())
    subject.shed(CELLS[:, 2], 0.0)
    assert subject.clock_s == 3.0


@pytest.mark.parametrize(("clamp", "wait"), [(True, 3.0), (False, -94.0)])
def test_an_idle_operators_clock_moves_on(clamp: bool, wait: float) -> None:
    subject = shedder(clamp=clamp)
    subject.receive_costs(costs())
    subject.shed(CELLS[:, 3], 0.0)
    subject.shed(CELLS[:, 3], 100.0)
    assert subject.clock_s - 100.0 == wait


def test_a_reply_in_turn_sets_the_clock_and_keeps_what_came_after() -> None:
    subject = shedder()
    subject.receive_costs(costs())
    for key in (2, 1, 1):
        subject.shed(CELLS[:, key], 0.0)
    subject.receive_reply(Reply(clock_s=7.0, finished=1))  # the first row took 7 instead of 2
    assert subject.clock_s == 9.0


def test_overlapping_requests_count_a_correction_twice_in_the_literal_form_only() -> None:
    clocks = {}
    for sync in (SyncForm.LITERAL, SyncForm.IN_TURN):
        subject = shedder(sync)
        for _ in range(2):
            subject.receive_costs(costs())
            subject.shed(CELLS[:, 1], 0.0)
        subject.receive_reply(Reply(clock_s=3.0, finished=1))  # 1 was expected
        subject.receive_reply(Reply(clock_s=4.0, finished=2))  # so 2 was expected here
        clocks[sync] = subject.clock_s
    assert clocks == {SyncForm.LITERAL: 6.0, SyncForm.IN_TURN: 4.0}


def test_an_immediate_reply_estimates_what_waits_by_the_new_costs() -> None:
    subject = shedder(SyncForm.IMMEDIATE)
    for key in (1, 2, 2):  # let in blindly
        subject.shed(CELLS[:, key], 0.0)
    subject.receive_costs(costs(factor=2.0))
    subject.receive_reply(Reply(clock_s=10.0, finished=1))
    assert subject.clock_s == 18.0


def test_the_mean_over_estimates_holds_whatever_comes() -> None:
    subject = LatencyShedder(AverageCheck(2.0))
    subject.receive_costs(costs())
    waits = []
    for number in range(300):
        now = 0.7 * number
        wait = max(subject.clock_s, now) - now
        if subject.shed(CELLS[:, number % 10], now).keep:
            waits.append(wait)
    assert 1.5 < np.mean(waits) <= 2.0
