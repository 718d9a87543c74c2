"""Notices a trigger interval that a shedder was not told of: a writer shows its own to nobody."""

from __future__ import annotations

import time
from collections.abc import Callable

_WAITS = "Waiting for next trigger"  # Spark's words; without an interval it waits so for a moment only
_BEYOND_S = 1.0


class UntoldTrigger:
    """Tells `fault`, once, that a query waits longer for its trigger than it was said to.

    Parameters
    ----------
    told_s
        The interval that the shedder knows of; 0 where batches start as soon as there are rows.
    fault
        Told the kind and what is wrong, in words.
    """

    def __init__(self, told_s: float, fault: Callable[[str, str], None]) -> None:
        self._told_s, self._fault = told_s, fault
        self._since_s: float | None = None
        self._said = False

    def look(self, message: str, had_rows: bool, last_ended_s: Callable[[], float | None]) -> None:
        """Take in what the query says that it is doing, which is asked some times a second.

        `had_rows` says whether there were rows at the last trigger: one that finds none ends no wait, and shows nowhere
        else. A batch may be over between two looks, so the end of the last one is asked for before a wait is called long.
        """
        if self._said or not had_rows or not message.startswith(_WAITS):
            self._since_s = None
            return
        now_s = time.monotonic()
        self._since_s = now_s if self._since_s is None else self._since_s
        if now_s - self._since_s <= self._told_s + _BEYOND_S:
            return
        if (ended_s := last_ended_s()) is not None:
            self._since_s = max(self._since_s, now_s - max(time.time() - ended_s, 0.0))
        if now_s - self._since_s > self._told_s + _BEYOND_S:
            self._said = True
            known = f"of {self._told_s:g} s" if self._told_s else "of none"
            hint = "pass `trigger` as the writer has it, and shorter than `latency`"
            self._fault("trigger", f"the writer has a longer trigger interval than the shedder knows ({known}): {hint}")
