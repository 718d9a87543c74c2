"""No row of a window is in a batch that is not read for it, whatever was dropped when, and however late rows come."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.core.documents import plain
from jettison.core.taken import SourceStretch, Taken
from jettison.policies.window.window_grid import Grid
from jettison.settle.history import History, Span, history
from jettison.settle.settlement import LOOK_ROWS, PART_ROWS
from jettison.settle.touched_windows import Held, Look, Window, all_windows, closed, in_order, to_look_at

LENGTH, SLIDE, DELAY = 6, 3, 4


@dataclass(frozen=True)
class Batch:
    times: list[int]
    kept: list[int]
    recorded: bool


@st.composite
def streams(draw: st.DrawFn) -> list[Batch]:
    """Batches whose times move on, with rows as late as it pleases; some drop rows, some are not on record."""
    batches, now = [], 0
    for _ in range(draw(st.integers(1, 8))):
        now += draw(st.integers(0, 10))
        times = draw(st.lists(st.integers(max(now - 30, 0), now + 5), max_size=5))
        shed = draw(st.booleans())
        kept = [time for time in times if not shed or draw(st.booleans())]
        batches.append(Batch(times, kept, draw(st.integers(0, 9)) > 0))
    return batches


@st.composite
def ordered_streams(draw: st.DrawFn) -> list[Batch]:
    """As above, but no row comes so late that Spark, unshed, would drop it: by the watermark of the batch before.

    But for some that come so late that they move no watermark: their times are up to `DELAY`.
    """
    batches, before, newest = list[Batch](), 100, 100
    for batch in draw(streams()):
        times = draw(st.lists(st.integers(before - DELAY, newest + 10), max_size=5))
        before, newest = newest, max([newest, *times])
        times += draw(st.lists(st.integers(0, DELAY), max_size=1))
        kept = [time for time in times if batch.kept == batch.times or draw(st.booleans())]
        batches.append(Batch(times, kept, batch.recorded))
    return batches


def windows_of(time: int) -> set[Window]:
    first = (time // SLIDE) * SLIDE
    return {Window(start, start + LENGTH) for start in range(first - LENGTH + SLIDE, first + 1, SLIDE)}


def on_record(batches: list[Batch]) -> list[dict[str, Any]]:
    """As the ledger has it: event times of the rows that were kept, and the watermark that follows them."""
    records: list[dict[str, Any]] = [{"record": "start", "at_s": 0.0, "policy": "UniformDrop"}]
    newest = 0
    for number, batch in enumerate(batches):
        source = SourceStretch(rows=len(batch.times), start=number or None, end=number + 1)
        oldest, latest = (min(batch.kept), max(batch.kept)) if batch.kept else (None, None)
        taken = Taken(sources=(source,), oldest_us=oldest, newest_us=latest, watermark_us=max(newest - DELAY, 0))
        newest = max(newest, latest or 0)
        dropped = len(batch.times) - len(batch.kept)
        point = {"seen": len(batch.times), "kept": len(batch.kept), "dropped": dropped, "exact": True}
        if batch.recorded or number == len(batches) - 1:
            records.append({"record": "batch", "batch_id": number, "points": {"rows": point}, "taken": plain(taken)})
    return records


def looked_at(batches: list[Batch], known: History, most_rows: int) -> list[Look]:
    looks = []
    for run in to_look_at(known, [], most_rows):
        times = [time for span in run for batch in batches[span.first : span.last + 1] for time in batch.times]
        found = sorted(set().union(*map(windows_of, times)))
        looks.append(Look(run[0].first, run[-1].last, tuple(found)))
    return looks


@given(streams(), st.integers(1, 20), st.integers(1, 20))
def test_what_is_read_holds_all_rows_of_each_window(batches: list[Batch], look_rows: int, part_rows: int) -> None:
    known = history(on_record(batches))
    looks = looked_at(batches, known, look_rows)
    touched, held = all_windows(looks), Held(known, looks)
    done: list[Window] = []
    for part in held.parts(closed(touched, known), part_rows):
        read = [
            time for span in held.spans(part) for batch in batches[span.first : span.last + 1] for time in batch.times
        ]
        for window in part:
            theirs = [time for batch in batches for time in batch.times if window in windows_of(time)]
            assert sorted(time for time in read if window in windows_of(time)) == sorted(theirs)
        done += part
    assert sorted(done) == sorted(closed(touched, known)), "each once"


def simply_needed(windows: list[Window], known: History, looks: list[Look]) -> list[Span]:
    """What is needed, by trying each batch with each window."""

    def holds(span: Span, window: Window) -> bool:
        if not span.shed:
            return span.may_hold(window.start_us, window.end_us - 1)
        return any(window in look.windows and look.first <= span.last and span.first <= look.last for look in looks)

    return [span for span in known.spans if any(holds(span, window) for window in windows)]


@given(streams(), st.integers(1, 20), st.sets(st.integers(0, 7)), st.data())
def test_the_batches_of_a_window_are_found_without_trying_each(
    batches: list[Batch], most_rows: int, unknown: set[int], data: st.DataObject
) -> None:
    """Also where event times of some are not known."""
    records = on_record(batches)
    for record in records[1:]:
        if record["batch_id"] in unknown:
            record["taken"] |= {"oldest_us": None, "newest_us": None}
    known = history(records)
    looks = looked_at(batches, known, most_rows)
    windows = sorted(all_windows(looks))
    some = data.draw(st.lists(st.sampled_from(windows))) if windows else []
    assert Held(known, looks).spans(some) == simply_needed(some, known, looks)
    for part in (found := list(Held(known, looks).parts(windows, most_rows))):
        assert len(part) == 1 or sum(span.rows for span in simply_needed(part, known, looks)) <= most_rows
    for part, after in pairwise(found):
        assert sum(span.rows for span in simply_needed([*part, after[0]], known, looks)) > most_rows


@given(streams())
def test_a_window_that_is_not_touched_has_lost_no_row(batches: list[Batch]) -> None:
    known = history(on_record(batches))
    touched = all_windows(looked_at(batches, known, 5))
    for batch in batches:
        dropped = list(batch.times)
        for time in batch.kept:
            dropped.remove(time)
        assert set().union(*map(windows_of, dropped)) <= touched


@given(streams())
def test_no_batch_is_looked_at_twice(batches: list[Batch]) -> None:
    known = history(on_record(batches))
    assert list(to_look_at(known, looked_at(batches, known, 3), 3)) == []


@given(streams(), st.data())
def test_rows_of_a_lost_batch_lie_where_windows_are_lost(batches: list[Batch], data: st.DataObject) -> None:
    """As far as the stream keeps to its watermark, which decides on the rows of the batch after the next alone."""
    known = history(on_record(batches))
    places = [place for place, span in enumerate(known.spans) if span.shed]
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    span, newest = known.spans[place], [0, 0]
    low, high = known.doubtful_us(span, DELAY)
    for batch in batches:
        newest.append(max([newest[-1], *batch.kept]))
    for number in range(span.first, span.last + 1):
        later = [time for batch in batches[number + 2 :] for time in batch.times]
        for time in batches[number].times:
            in_order = time >= newest[number] - DELAY and all(time <= other + DELAY for other in later)
            assert not in_order or low <= time <= high


def test_rows_of_the_next_batch_may_be_older_than_the_watermark_says() -> None:
    """Spark drops what comes too late for a batch by the watermark of the one before."""
    batches = [Batch([10], [10], True), Batch([30], [], True), Batch([7], [7], True), Batch([40], [40], True)]
    known = history(on_record(batches))
    assert known.doubtful_us(known.spans[1], DELAY)[1] == 40 + DELAY
    assert known.in_order_us(DELAY) == {}, "at first the watermark is not known"


def assert_nobody_has_to_look(batches: list[Batch], most_rows: int) -> list[Look]:
    known, looks = history(on_record(batches)), list[Look]()
    for run in to_look_at(known, [], most_rows):
        look = in_order(known.in_order_us(DELAY), run, Grid(LENGTH, SLIDE))
        if look is not None:
            times = [time for span in run for batch in batches[span.first : span.last + 1] for time in batch.times]
            assert (look.first, look.last, look.assumed) == (run[0].first, run[-1].last, True)
            found = [windows_of(time) for time in times if time > DELAY]
            assert set().union(*found) <= set(look.windows)
            looks.append(look)
    return looks


@given(ordered_streams(), st.integers(1, 20))
def test_where_the_stream_keeps_to_its_watermark_nobody_has_to_look(batches: list[Batch], most_rows: int) -> None:
    assert_nobody_has_to_look(batches, most_rows)


@pytest.mark.parametrize("last", [[300], []])
def test_a_row_that_comes_too_late_after_a_gap_hides_no_window(last: list[int]) -> None:
    """Of the batches in the gap nobody knows where the watermark stood."""
    times = [[100], [110], [115, 200], [205], [1, 210], [215], last]
    kept = [[100], [110], [115], [205], [1, 210], [215], last]
    batches = [Batch(came, left, number != 3) for number, (came, left) in enumerate(zip(times, kept, strict=True))]
    assert assert_nobody_has_to_look(batches, 1)


def long_history(batches: int, rows: int, shed: range) -> History:
    """A batch a second, each with the rows of that second."""
    spans = []
    for n in range(batches):
        source = SourceStretch(rows=rows, start=n, end=n + 1)
        times = n * 10**6, (n + 1) * 10**6 - 1
        spans.append(Span(n, n, n in shed, (source,), *times, watermark_us=max(n - 2, 0) * 10**6))
    return History(tuple(spans))


@pytest.mark.long
@pytest.mark.parametrize("is_in_order", [False, True])
@pytest.mark.parametrize("minutes", [1, 60])
def test_rows_read_are_little_more_than_rows_needed(minutes: int, is_in_order: bool) -> None:
    """Of a stream in the order of time, shed for a while, by windows of five seconds: at most a fifth more."""
    second, rows, grid = 10**6, 20_000, Grid(5 * 10**6, 5 * 10**6)
    shed = range(602, 602 + 60 * minutes)
    known, looks = long_history(shed.stop + 600, rows, shed), list[Look]()
    for run in to_look_at(known, [], LOOK_ROWS):
        starts = range(run[0].first // 5 * 5, run[-1].last + 1, 5)
        found = Look(run[0].first, run[-1].last, tuple(Window(n * second, (n + 5) * second) for n in starts))
        looks.append((in_order(known.in_order_us(2 * second), run, grid) if is_in_order else None) or found)
    windows = closed(all_windows(looks), known)
    held = Held(known, looks)
    read = sum(span.rows for part in held.parts(windows, PART_ROWS) for span in held.spans(part))
    assert read <= 1.2 * 5 * rows * len(windows)


def test_a_batch_without_later_rows_and_one_after_a_long_gap_have_to_be_looked_at() -> None:
    known, grid = long_history(10, 5, range(4, 10)), Grid(5 * 10**6, 5 * 10**6)
    ranges = known.in_order_us(0)
    assert in_order(ranges, [known.spans[4]], grid) is not None
    assert in_order(ranges, [known.spans[9]], grid) is None
    assert in_order(ranges, [known.spans[4]], Grid(10, 10)) is None, "too many windows to name"


def test_a_dry_run_and_what_a_function_drops() -> None:
    point = {"rows": {"seen": 2, "kept": 1, "dropped": 1, "exact": True}}
    taken = plain(Taken(sources=(SourceStretch(rows=2, end=1),)))
    dry = [
        {"record": "start", "dry_run": True},
        {"record": "batch", "batch_id": 0, "points": point, "taken": taken},
    ]
    assert not history(dry).spans[0].shed
    kept = {"rows": {"seen": 2, "kept": 2, "dropped": 0, "exact": True}}
    with_function = [
        {"record": "start"},
        {"record": "batch", "batch_id": 0, "points": kept, "taken": taken},
        {"record": "function", "batch_id": 0, "points": point},
    ]
    assert not history(with_function[:2]).spans[0].shed
    assert history(with_function).spans[0].shed


def test_a_batch_whose_rows_were_not_counted_may_have_lost_some() -> None:
    point = {"rows": {"seen": 2, "kept": 2, "dropped": 0, "exact": False}}
    taken = plain(Taken(sources=(SourceStretch(rows=2, end=1),)))
    assert history([{"record": "batch", "batch_id": 0, "points": point, "taken": taken}]).spans[0].shed


def test_a_batch_that_does_not_say_what_it_took_is_looked_for_between_its_neighbours() -> None:
    point = {"rows": {"seen": 2, "kept": 2, "dropped": 0, "exact": True}}
    records = [
        {
            "record": "batch",
            "batch_id": n,
            "points": point,
            "taken": plain(Taken(sources=(SourceStretch(rows=2, start=n, end=n + 1),))),
        }
        for n in (0, 2)
    ]
    old = {"record": "batch", "batch_id": 1, "points": point}
    (first, between, last) = history([records[0], old, records[1]]).spans
    assert not first.shed
    assert not last.shed
    assert between.shed
    assert (between.sources[0].start, between.sources[0].end) == (1, 2)


@pytest.mark.parametrize("times", [(1, 2), (None, None), (100, 110)])
def test_rows_whose_times_are_not_known_may_lie_in_any_window(times: tuple[int | None, int | None]) -> None:
    sources = (SourceStretch(rows=2, end=1),)
    kept, shed = Span(0, 0, False, sources, *times), Span(1, 1, True, (SourceStretch(rows=1, end=2),))
    window = Window(100, 110)
    found = Held(History((kept, shed)), [Look(1, 1, (window,))]).spans([window])
    assert found == ([shed] if times == (1, 2) else [kept, shed])
    nothing = Span(0, 0, False, (SourceStretch(rows=0, end=1),))
    assert Held(History((nothing, shed)), [Look(1, 1, (window,))]).spans([window]) == [shed]
