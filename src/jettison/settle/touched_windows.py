"""Which windows rows were dropped from, and which batches hold the rows of a window."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from jettison.core.documents import Natural
from jettison.policies.window.window_grid import Grid
from jettison.settle.history import END_US, History, Span

_MOST_WINDOWS = 2_000  # named for a run of batches, whether they hold rows or not


class Window(NamedTuple):
    """A window of event time, in microseconds since the epoch; its end is no part of it."""

    start_us: int
    end_us: int

    def meets(self, oldest_us: int, newest_us: int) -> bool:
        """Whether a time between the two, both included, lies in the window."""
        return oldest_us < self.end_us and newest_us >= self.start_us


class Look(Struct, frozen=True):
    """Neighbouring batches that rows may have been dropped from, and all windows that their rows lie in."""

    first: Natural
    last: Natural
    windows: tuple[Window, ...]


class Lost(Struct, frozen=True):
    """Event times, both included, whose windows cannot be settled, because rows of these batches cannot be read any more."""

    first: Natural
    last: Natural
    reason: str
    from_us: int
    until_us: int

    def takes(self, window: Window) -> bool:
        """Whether rows of the window may be among those that are lost."""
        return window.meets(self.from_us, self.until_us)


def to_look_at(history: History, seen: Iterable[Look], most_rows: int) -> Iterator[list[Span]]:
    """Shed batches that nobody has looked at, in runs of neighbours of about as many rows.

    >>> spans = tuple(Span(n, n, shed=n != 1) for n in range(4))
    >>> [[span.first for span in run] for run in to_look_at(History(spans), [Look(2, 2, ())], 100)]
    [[0], [3]]
    """
    known = [(each.first, each.last) for each in seen]
    run: list[Span] = []
    for span in history.spans:
        is_new = span.shed and not any(first <= span.first and span.last <= last for first, last in known)
        if run and (not is_new or sum(each.rows for each in run) >= most_rows):
            yield run
            run = []
        if is_new:
            run.append(span)
    if run:
        yield run


def in_order(history: History, run: Sequence[Span], grid: Grid, delay_us: int) -> Look | None:
    """What a look at these shed batches would find, and more windows at most: in a stream that keeps to its watermark.

    `None` where the record does not tell, and somebody has to look.
    """
    known = history.in_order_us(delay_us)
    if not all(span.first in known for span in run):
        return None
    ranges = [known[span.first] for span in run]
    from_us, until_us = min(each[0] for each in ranges), max(each[1] for each in ranges)
    held = range(grid.first_ending_after(from_us), grid.last_starting_by(until_us) + 1)
    if len(held) > _MOST_WINDOWS:
        return None
    return Look(run[0].first, run[-1].last, tuple(Window(grid.start(n), grid.end(n)) for n in held))


def needed(windows: Collection[Window], history: History, looks: Iterable[Look]) -> list[Span]:
    """The batches that hold the rows of these windows: no row of theirs is in any other."""
    stretches = merged(windows)
    wanted = set(windows)
    looked = [look for look in looks if not wanted.isdisjoint(look.windows)]
    return [span for span in history.spans if _holds(span, stretches, looked)]


def _holds(span: Span, stretches: Sequence[Window], looked: Sequence[Look]) -> bool:
    if span.shed:
        return any(look.first <= span.last and span.first <= look.last for look in looked)
    return any(span.may_hold(window.start_us, window.end_us - 1) for window in stretches)


def parts(
    windows: Collection[Window], history: History, looks: Sequence[Look], most_rows: int
) -> Iterator[list[Window]]:
    """Windows in the order of time, in parts that need about as many rows; a single window may need more."""
    part: list[Window] = []
    rows: dict[int, int] = {}
    for window in sorted(windows):
        own = {span.first: span.rows for span in needed([window], history, looks)}
        if part and sum((rows | own).values()) > most_rows:
            yield part
            part, rows = [], {}
        part, rows = [*part, window], rows | own
    if part:
        yield part


def closed(windows: Iterable[Window], history: History) -> list[Window]:
    """Those that get no more rows: the watermark has passed their ends."""
    watermark_us = history.watermark_us
    return [] if watermark_us is None else [window for window in windows if window.end_us <= watermark_us]


def all_windows(looks: Iterable[Look]) -> set[Window]:
    """All windows that rows may have been dropped from."""
    return set(chain.from_iterable(look.windows for look in looks))


def lost_between(history: History, spans: Sequence[Span], delay_us: int, reason: str) -> Lost:
    """What becomes of windows when these batches cannot be read, in a stream whose watermark has this delay."""
    ranges = [history.doubtful_us(span, delay_us) if span.shed else _of(span) for span in spans]
    from_us, until_us = min(each[0] for each in ranges), max(each[1] for each in ranges)
    return Lost(spans[0].first, spans[-1].last, reason, from_us, until_us)


def _of(span: Span) -> tuple[int, int]:
    return (END_US, END_US) if span.oldest_us is None or span.newest_us is None else (span.oldest_us, span.newest_us)


def merged(windows: Iterable[Window]) -> list[Window]:
    """The times that windows cover, as few stretches.

    >>> merged([Window(5, 10), Window(0, 6), Window(20, 30)])
    [Window(start_us=0, end_us=10), Window(start_us=20, end_us=30)]
    """
    found: list[Window] = []
    for window in sorted(windows):
        if found and window.start_us <= found[-1].end_us:
            found[-1] = Window(found[-1].start_us, max(found[-1].end_us, window.end_us))
        else:
            found.append(window)
    return found
