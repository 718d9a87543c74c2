"""A source is asked on a thread of its own: nobody waits for it; one that fails is given up with a word until it answers."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from jettison.runtime import inquiry
from jettison.runtime.inquiry import Inquiry

PATIENCE_S = 120.0


def until(holds: Callable[[], object]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.005)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inquiry, "_TICK_S", 0.001)


@pytest.fixture
def said() -> list[str]:
    return []


def test_the_last_answer_is_told_with_its_time(soon: None, said: list[str]) -> None:
    answers = iter(range(5, 10**9))
    asking = Inquiry(lambda: float(next(answers)), said.append).start()
    until(lambda: asking() is not None and asking().rows > 20)
    told = asking()
    assert told is not None
    assert abs(told.at_s - time.time()) < PATIENCE_S
    asking.stop()
    assert said == []


def test_a_source_that_hangs_keeps_nobody_waiting_and_is_given_up(
    soon: None, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inquiry, "_HANGS_S", 0.05)
    ends = threading.Event()
    asking = Inquiry(lambda: float(ends.wait()), said.append).start()
    until(lambda: asking() is None and said)
    ends.set()
    until(asking)
    asking.stop()
    assert len(said) == 1
    assert "has not answered" in said[0]


def test_failures_are_tried_again_and_then_given_up_with_one_word(soon: None, said: list[str]) -> None:
    tries: list[int] = []

    def fails() -> float:
        tries.append(1)
        raise ConnectionError("no broker")

    asking = Inquiry(fails, said.append).start()
    until(lambda: said)
    assert len(tries) == 5
    assert said == ["the source is asked once a minute only how many rows have come: ConnectionError: no broker"]
    assert asking() is None
    asking.stop()


def test_a_source_that_comes_back_is_believed_again_and_its_fault_is_told_once(
    soon: None, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that is away for as long as six questions take, some answers later once more."""
    monkeypatch.setattr(inquiry, "_RETRY_S", 0.01)
    away, tries = threading.Event(), list[int]()

    def at_times() -> float:
        tries.append(1)
        if away.is_set():
            raise ConnectionError("no broker")
        return float(len(tries))

    asking = Inquiry(at_times, said.append).start()
    for _ in range(2):
        until(asking)
        away.set()
        until(lambda: asking() is None)
        before = len(tries)
        until(lambda before=before: len(tries) > before + 5)
        assert asking() is None
        away.clear()
        until(asking)
        told = asking()
        assert told is not None
        assert told.rows > before, "what it says now, and not what it said before"
    asking.stop()
    assert len(said) == 1


def test_a_source_that_was_given_up_is_asked_rarely(
    soon: None, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inquiry, "_RETRY_S", 2 * PATIENCE_S)
    tries: list[int] = []

    def fails() -> float:
        tries.append(1)
        raise ConnectionError

    asking = Inquiry(fails, said.append).start()
    until(lambda: said)
    time.sleep(0.05)
    assert len(tries) == 5
    asking.stop()
    asking._thread.join(PATIENCE_S)
    assert not asking._thread.is_alive(), "who stops does not wait for the next question"


@pytest.mark.parametrize("answer", ["lots", -1.0, math.nan, math.inf, True, [3]])
def test_what_is_no_number_of_rows_is_given_up_like_a_failure_and_reaches_nobody(
    answer: object, soon: None, said: list[str]
) -> None:
    asking = Inquiry(lambda: answer, said.append).start()  # type: ignore[arg-type, return-value]
    until(lambda: said or asking() is not None)
    assert asking() is None
    until(lambda: said)
    asking.stop()
    assert [f"`ask` must return how many rows the source has had, got {answer!r}" in word for word in said] == [True]


@pytest.mark.parametrize("answer", [0, 7, 2.5, np.int64(7), np.float32(2.5)])
def test_any_kind_of_number_is_one(answer: float, soon: None, said: list[str]) -> None:
    asking = Inquiry(lambda: answer, said.append).start()
    until(asking)
    told = asking()
    assert told is not None
    assert type(told.rows) is float
    assert told.rows == answer
    asking.stop()


def test_a_failure_now_and_then_is_forgiven(soon: None, said: list[str]) -> None:
    tries: list[int] = []

    def fails_at_times() -> float:
        tries.append(1)
        if len(tries) % 3:
            raise TimeoutError
        return float(len(tries))

    asking = Inquiry(fails_at_times, said.append).start()
    until(lambda: len(tries) > 30)
    assert asking() is not None
    assert said == []
    asking.stop()


def test_a_source_that_does_not_know_is_asked_on_and_told_once_it_does(
    soon: None, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inquiry, "_SLOWEST_S", 0.01)
    tries: list[int] = []

    def knows_later() -> float | None:
        tries.append(1)
        return float(len(tries)) if len(tries) > 20 else None

    asking = Inquiry(knows_later, said.append).start()
    until(lambda: asking() is not None)
    asking.stop()
    assert said == []


def test_a_source_that_does_not_know_is_asked_more_and_more_rarely(
    soon: None, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inquiry, "_SLOWEST_S", 0.2)
    tries: list[float] = []
    asking = Inquiry(lambda: tries.append(time.monotonic()), said.append).start()  # type: ignore[func-returns-value]
    until(lambda: len(tries) > 10)
    asking.stop()
    assert tries[10] - tries[9] >= 0.2
    assert asking() is None
    assert said == []


def test_where_no_plan_depends_on_it_a_source_is_asked_more_rarely(
    soon: None, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inquiry, "_LAG_S", 2 * PATIENCE_S)
    asked: dict[bool, list[float]] = {True: [], False: []}

    def source(for_plans: bool) -> float:
        asked[for_plans].append(1.0)
        return sum(asked[for_plans])

    asking = [Inquiry(partial(source, each), said.append, for_plans=each).start() for each in asked]
    until(lambda: len(asked[True]) > 30)
    assert len(asked[False]) <= 1
    for one in asking:
        one.stop()
    assert said == []


@pytest.mark.parametrize(("slow_ones", "given_up"), [(4, False), (5, True)])
def test_a_source_is_given_up_for_slow_answers_in_a_row_and_not_for_those_of_a_busy_moment(
    slow_ones: int, given_up: bool, soon: None, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inquiry, "_SLOWEST_S", 0.01)
    monkeypatch.setattr(inquiry, "_RARER", 0.5)
    now_s, tries = [0.0], list[int]()  # its own clock: a busy machine makes no answer slow
    monkeypatch.setattr(inquiry, "time", SimpleNamespace(monotonic=lambda: now_s[0], time=time.time))

    def slow_at_first() -> float:
        tries.append(1)
        now_s[0] += 0.05 if 1 < len(tries) <= 1 + slow_ones else 0.0
        return float(len(tries))

    asking = Inquiry(slow_at_first, said.append).start()
    until(lambda: said or len(tries) > 10)
    assert (len(tries) == 6) is given_up, "of one that was given up the next question is a minute away"
    assert (asking() is None) is given_up
    assert [("an answer takes" in word) for word in said] == [True] * given_up
    asking.stop()
