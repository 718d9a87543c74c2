"""No row of a window is in a batch that is not read for it, whatever was dropped when, and however late rows come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jettison.core.documents import plain
from jettison.core.taken import SourceStretch, Taken
from jettison.settle.history import History, history
from jettison.settle.touched_windows import Look, Window, all_windows, closed, needed, parts, to_look_at

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
    touched = all_windows(looks)
    done: list[Window] = []
    for part in parts(closed(touched, known), known, looks, part_rows):
        read = [
            time
            for span in needed(part, known, looks)
            for batch in batches[span.first : span.last + 1]
            for time in batch.times
        ]
        for window in part:
            theirs = [time for batch in batches for time in batch.times if window in windows_of(time)]
            assert sorted(time for time in read if window in windows_of(time)) == sorted(theirs)
        done += part
    assert sorted(done) == sorted(closed(touched, known)), "each once"


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
    """As far as the stream keeps to its watermark: no row older than it, none newer than a later one by its delay."""
    known = history(on_record(batches))
    shed = [span for span in known.spans if span.shed]
    if not shed:
        return
    span = data.draw(st.sampled_from(shed))
    low, high = known.doubtful_us(span, DELAY)
    later = [time for batch in batches[span.last + 1 :] for time in batch.times]
    for time in (time for batch in batches[span.first : span.last + 1] for time in batch.times):
        in_order = time >= (span.watermark_us or 0) and all(time <= other + DELAY for other in later)
        assert not in_order or low <= time <= high


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
