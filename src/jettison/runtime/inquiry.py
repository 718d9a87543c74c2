"""Asks a source how many rows it has had, on a thread of its own: however long that takes, nobody waits for it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from numbers import Real
from typing import NamedTuple

from jettison.errors import JettisonError, refuse

_TICK_S = 0.25  # between two questions where plans are made by the answers
_LAG_S = 1.0  # between two questions where they only tell the lag
_RARER = 20.0  # times what an answer takes, from which on questions are rarer
_SLOWEST_S = 5.0  # between two questions: an answer for which this is too short a pause is a slow one
_HANGS_S = 30.0  # without an answer, after which none is waited for
_MOST = 2.0**53  # rows, beyond which one more makes no difference to a float
_LONGEST = 80  # of an answer that is quoted, in characters
_TRIES = 5  # failures in a row, each with twice the pause before it; or slow answers: a machine is busy at times
_RETRY_S = 60.0  # between two questions to a source that was given up: a broker may come back


class Told(NamedTuple):
    """How many rows a source has had at a time, counted from any beginning."""

    at_s: float
    rows: float


Asked = Callable[[], float | None]
"""Says how many rows a source has had, or `None` where that is not known. It may block, and it may raise an error."""


class Inquiry:
    """Asks `source` four times a second, or once where no plan depends on it; a slow or failing one more rarely, and in
    the end once a minute.

    `given_up` is then told why in words, and no second time. An answer in time is believed again. What is no number of rows
    is a failure too. `None` is none: a source that does not know yet is asked again, more and more rarely. The first answer
    may take its time: connections are made for it.
    """

    def __init__(self, source: Asked, given_up: Callable[[str], None], *, for_plans: bool = True) -> None:
        self._source, self._given_up, self._for_plans = source, given_up, for_plans
        self._told: Told | None = None
        self._asked_s: float | None = None
        self._is_given_up = False
        self._said = threading.Lock()  # for good
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="jettison-source", daemon=True)

    def start(self) -> Inquiry:
        """Begin to ask."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ask no more."""
        self._stopped.set()

    def __call__(self) -> Told | None:
        """The last answer, if there is one and its source is not given up; never blocks."""
        asked_s = self._asked_s
        if asked_s is not None and time.monotonic() - asked_s > _HANGS_S:
            self._give_up(f"it has not answered for {_HANGS_S:.0f} s")
        return None if self._is_given_up or self._stopped.is_set() else self._told

    def _ask(self) -> None:
        failures, slow, pause_s = 0, 0, 0.0
        while not self._stopped.wait(pause_s):
            self._asked_s = asked_s = time.monotonic()
            rows, why = None, ""
            try:
                rows = _rows(self._source())
            except JettisonError as error:
                why = str(error)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
            took_s, self._asked_s = time.monotonic() - asked_s, None
            if rows is None:
                failures = failures + 1 if why else 0
                pause_s = min(max(_TICK_S, 2 * pause_s), _SLOWEST_S)
                if failures >= _TRIES:
                    self._give_up(why)
            else:
                first, self._told = self._told is None, Told(time.time(), rows)
                usual_s = _TICK_S if self._for_plans else _LAG_S
                wanted_s = usual_s if first else max(usual_s, _RARER * took_s)
                failures, slow, pause_s = 0, slow + 1 if wanted_s > _SLOWEST_S else 0, min(wanted_s, _SLOWEST_S)
                if slow >= _TRIES:
                    self._give_up(f"an answer takes {took_s:.1f} s")
                elif not slow:
                    self._is_given_up = False
            if self._is_given_up:
                pause_s = _RETRY_S

    def _give_up(self, why: str) -> None:
        self._is_given_up = True
        if not self._stopped.is_set() and self._said.acquire(blocking=False):
            self._given_up(f"the source is asked once a minute only how many rows have come: {why}")


def _rows(answer: object) -> float | None:
    """What a user's function returned, if it is a number of rows: the controller calculates with it."""
    if answer is None:
        return None
    rows = float(answer) if isinstance(answer, Real) and not isinstance(answer, bool) else math.nan
    if not 0 <= rows < _MOST:
        hint = "count rows from any beginning, and return None where the count is not known"
        refuse("`ask` must return how many rows the source has had", repr(answer)[:_LONGEST], hint=hint)
    return rows
