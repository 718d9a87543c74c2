"""Whose turn it is: workloads one after the other, round by round, so that all have as many runs when the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator


def turns(
    done: dict[str, int], rounds: int, minutes: float | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[str]:
    """Names in turn, those behind first, until each has had its rounds; given minutes, until another would take longer.

    A name that is taken out of `done` has no further turn.

    >>> list(turns({"a": 1, "b": 0}, rounds=2))
    ['b', 'a', 'b']
    """
    began_s, took_s = clock(), dict[str, float]()
    while done:
        name = min(done, key=lambda one: done[one])
        now_s = clock()
        if minutes is None:
            if done[name] >= rounds:
                return
        elif now_s - began_s + took_s.get(name, max(took_s.values(), default=0.0)) > 60.0 * minutes:
            return
        yield name
        took_s[name] = clock() - now_s
        if name in done:
            done[name] += 1
