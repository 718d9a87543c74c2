"""Which windows rows were dropped from, and which batches hold the rows of a window."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from msgspec import Struct

from jettison.core.documents import Natural
from jettison.policies.window.window_grid import Grid
from jettison.runtime.ledger_summary import Ranges
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
    """Neighbouring batches that rows may have been dropped from, and all windows that their rows lie in.

    `assumed` says that nobody has looked: the windows follow from the watermark, in a stream that keeps to it.
    """

    first: Natural
    last: Natural
    windows: tuple[Window, ...]
    assumed: bool = False


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
    known = Ranges()
    known.update((each.first, each.last) for each in seen)
    run: list[Span] = []
    rows = 0
    for span in history.spans:
        is_new = span.shed and not known.cover(span.first, span.last)
        if run and (not is_new or rows >= most_rows):
            yield run
            run, rows = [], 0
        if is_new:
            run.append(span)
            rows += span.rows
    if run:
        yield run


def in_order(ranges_us: Mapping[int, tuple[int, int]], run: Sequence[Span], grid: Grid) -> Look | None:
    """What a look at these shed batches would find, and more windows at most: in a stream that keeps to its watermark.

    By `History.in_order_us`. `None` where the record does not tell, and somebody has to look.
    """
    if not all(span.first in ranges_us for span in run):
        return None
    ranges = [ranges_us[span.first] for span in run]
    from_us, until_us = min(each[0] for each in ranges), max(each[1] for each in ranges)
    held = range(grid.first_ending_after(from_us), grid.last_starting_by(until_us) + 1)
    if len(held) > _MOST_WINDOWS:
        return None
    windows = tuple(Window(grid.start(n), grid.end(n)) for n in held)
    return Look(run[0].first, run[-1].last, windows, assumed=True)


class Held:
    """Which batches hold the rows of windows: found by their times, without trying each batch with each window.

    Parameters
    ----------
    history
        All batches.
    looks
        In which windows the rows of those lie that rows may have been dropped from.
    """

    def __init__(self, history: History, looks: Iterable[Look]) -> None:
        self._all = history.spans
        timed: list[tuple[int, int, int]] = []
        self.anywhere: set[int] = set()
        """Places of the batches that may hold rows of any window."""
        for place, span in enumerate(self._all):
            if not span.shed and span.oldest_us is not None and span.newest_us is not None:
                timed.append((span.oldest_us, span.newest_us, place))
            elif not span.shed and span.rows:
                self.anywhere.add(place)
        self._timed = sorted(timed)
        self._newest_us = list(accumulate((newest_us for _, newest_us, _ in self._timed), max))
        """The newest time up to each of them."""
        self._shed: dict[Window, set[int]] = {}
        for look in looks:
            first = bisect_left(self._all, look.first, key=lambda span: span.last)
            end = bisect_right(self._all, look.last, key=lambda span: span.first)
            theirs = [place for place in range(first, end) if self._all[place].shed]
            for window in look.windows:
                self._shed.setdefault(window, set()).update(theirs)

    def places(self, window: Window) -> set[int]:
        """Places of the batches that hold rows of a window, but for those that may hold rows of any."""
        found = set(self._shed.get(window, ()))
        end = bisect_left(self._timed, window.end_us, key=lambda each: each[0])
        # Before this one, all are older than the window.
        for place in range(bisect_left(self._newest_us, window.start_us, hi=end), end):
            if self._timed[place][1] >= window.start_us:
                found.add(self._timed[place][2])
        return found

    def rows(self, places: Iterable[int]) -> int:
        """Rows of these batches."""
        return sum(self._all[place].rows for place in places)

    def spans(self, windows: Collection[Window]) -> list[Span]:
        """The batches that hold the rows of these windows: no row of theirs is in any other."""
        places = self.anywhere.union(*map(self.places, windows)) if windows else ()
        return [self._all[place] for place in sorted(places)]

    def parts(self, windows: Collection[Window], most_rows: int) -> Iterator[list[Window]]:
        """Windows in the order of time, in parts that need about as many rows; a single window may need more."""
        part: list[Window] = []
        held: set[int] = set()
        rows = always = self.rows(self.anywhere)
        for window in sorted(windows):
            own = self.places(window)
            if part and rows + self.rows(own - held) > most_rows:
                yield part
                part, held, rows = [], set(), always
            rows += self.rows(own - held)
            held |= own
            part.append(window)
        if part:
            yield part


def first_of(spans: Sequence[Span], rows: int) -> list[Span]:
    """The first of some batches, until they have so many rows.

    >>> from jettison.core.taken import SourceStretch
    >>> spans = [Span(n, n, False, (SourceStretch(rows=10),)) for n in range(5)]
    >>> [span.first for span in first_of(spans, 15)]
    [0, 1]
    """
    before = accumulate((span.rows for span in spans), initial=0)
    return [span for span, had in zip(spans, before, strict=False) if had < rows]


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
