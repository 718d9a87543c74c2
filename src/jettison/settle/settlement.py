"""Settle: exact answers of all windows that rows were dropped from, from the source.

*What is settled is exact*: the answers of a settled window are those of the query in batch mode over all rows that the
live query's batches had taken when it was settled, dropped ones and ones that came too late included. A window is settled
once the watermark has passed its end, and then for good.

First the shed batches are read for the windows that their rows lie in: no other window can miss a row. Then the windows
are settled in parts. For each, the batches that hold its rows are read, the query runs over them, and the answers of just
these windows are written to a folder of their own, which is named on record before and confirmed after. So whatever ends
a run, the next one removes what is unconfirmed and goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jettison.core import storage
from jettison.core.storage import Folder
from jettison.errors import CheckpointInUse, InvalidInput, explain, refuse
from jettison.runtime.ledger import Ledger
from jettison.runtime.owner import Owner
from jettison.settle.answer_parts import AnswerParts
from jettison.settle.answer_shape import SETTLED_AT, Query, Shape, shape_of
from jettison.settle.delta_table import DeltaTable
from jettison.settle.history import History, Span, history, unrecorded
from jettison.settle.live_session import refuse_other
from jettison.settle.reading_speed import ReadingSpeed
from jettison.settle.settled_record import FOLDER, Part, Settled, absolute, load, save
from jettison.settle.stretch import Source, Stretches, raise_if_other, why_gone
from jettison.settle.touched_windows import (
    Held,
    Look,
    Lost,
    Window,
    closed,
    first_of,
    in_order,
    lost_between,
    merged,
    to_look_at,
)
from jettison.settle.working_hours import Hours, Manners

_T = TypeVar("_T")
LOOK_ROWS = 2_000_000
PART_ROWS = 20_000_000
SAMPLE_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a run has settled, and what is left.

    Parameters
    ----------
    settled
        Windows that this run has settled.
    before
        Windows that earlier runs had.
    ready
        Windows that could be settled now: none, unless this was a dry run or stopped early.
    waiting
        Windows that wait for the watermark to pass their ends.
    lost
        What cannot be settled, and why.
    lost_windows
        Windows of which it is known that they are among these.
    unrecorded
        The first and the last batch that have ended after the last one on record, if there are any: what rows were
        dropped of is known, and settled, once the live query has run again.
    rows_read
        Rows that the query ran over.
    rows_to_read, bytes_to_read
        What the windows that are ready need; in a dry run bytes of files, and of keys and values in topics, by a sample.
    seconds, seconds_to_go
        How long the run took; about how long the rest would.
    stopped
        Why it stopped early, if it did.
    """

    settled: int
    before: int
    ready: int
    waiting: int
    lost: tuple[Lost, ...]
    lost_windows: int
    rows_read: int
    rows_to_read: int
    bytes_to_read: int | None
    seconds: float
    seconds_to_go: float | None
    stopped: str = ""
    unrecorded: tuple[int, int] | None = None


Progress = Callable[[str, int, int], None]
"""Told what is done, how many rows have been read for it, and how many will have been in the end."""


def reconcile(
    spark: SparkSession,
    checkpoint: str | Path,
    query: Query,
    to: str | Path,
    *,
    sources: Source | Sequence[Source],
    merge: str | None = None,
    in_order: bool = False,
    dry_run: bool = False,
    rows_per_s: float | None = None,
    hours: Hours | None = None,
    beside_shedding: bool = False,
    part_rows: int = PART_ROWS,
    look_rows: int = LOOK_ROWS,
    progress: Progress = lambda doing, rows, of: None,
) -> Settlement:
    """Write the exact answers of all windows that rows were dropped from to `to`, as Parquet.

    Parameters
    ----------
    spark
        Where the query runs; it must have the live session's settings on which answers depend, such as the time zone.
    checkpoint
        Of the live query, which may still run.
    query
        Makes answers of rows, as it does of guarded ones in the live query.
    to
        A folder for the answers; the same one each time.
    sources
        Gives a reader the source's format, schema and options; several in the query's order, where it has several.
    merge
        Also put them in the place of the approximate ones in this Delta table, by its path or its name in the catalog.
    in_order
        Take it that no row comes later than the watermark allows. Then shed batches need not be read for their windows,
        and each row is read once. Rows that do come later may count or not, as in the live query.
    dry_run
        Find out what there is to do, and do not do it.
    rows_per_s
        Read no faster, on the average of a minute, or of a window that needs more.
    hours
        Work in these hours of the day only.
    beside_shedding
        Go on while the live query sheds.
    part_rows, look_rows
        About how many rows are read at once, to settle windows and to find them.
    progress
        Told how far it is.
    """
    manners = Manners(rows_per_s, hours, beside_shedding)
    home = storage.home(checkpoint)
    ledger = Ledger(home / "ledger")
    known = history(list(ledger.records()), ledger.pruned())
    if not known.spans:
        hint = "pass the `checkpoint` of a Shedder that was started, the folder in which `jettison/` lies"
        refuse(
            "`checkpoint` must be that of a query that has run under Jettison",
            str(checkpoint),
            hint=hint,
            error=InvalidInput,
        )
    refuse_other(spark, known.session)
    given = tuple(sources) if isinstance(sources, Sequence) else (sources,)
    stretches = Stretches(spark, Folder(checkpoint), given)
    took = max(len(span.sources) for span in known.spans)
    if took != len(given):
        hint = "name each of the query's sources, in its order; what an older release has recorded cannot be read again"
        refuse("there must be a source for each of the query's", f"{len(given)} for {took}", hint=hint)
    shape = shape_of(spark, query, stretches.schemas(known.spans))
    owner, lost = Owner(home / FOLDER), list[str]()
    try:
        owner.claim(lost.append)
    except CheckpointInUse as error:
        hint = "wait until it has ended"
        message = explain("nobody else may settle the same query", str(error).partition(". Hint")[0], hint=hint)
        raise CheckpointInUse(message) from error
    try:
        record = load(home).begun(absolute(str(to)), shape.fingerprint, in_order=in_order)
        record = record.saying(unrecorded=unrecorded(Folder(checkpoint), known))
        table = None if merge is None else DeltaTable(spark, merge, shape, home)
        run = _Run(home, known, stretches, shape, query, record, table, in_order, manners, progress, lost)
        return run.done(dry_run, manners.at_once(part_rows), manners.at_once(look_rows))
    finally:
        owner.release()


class _Run:
    """One run of `reconcile`."""

    def __init__(
        self,
        home: Folder,
        known: History,
        stretches: Stretches,
        shape: Shape,
        query: Query,
        record: Settled,
        table: DeltaTable | None,
        in_order: bool,
        manners: Manners,
        progress: Progress,
        taken_over: Sequence[str],
    ) -> None:
        self._home, self._known, self._stretches = home, known, stretches
        self._shape, self._query, self._table = shape, query, table
        # A file may have been put back, so all that was lost is tried again; until then it stays on record as lost.
        self._record, self._lost_before = record.saying(lost=()), record.lost
        self._folders = AnswerParts(record.to)
        self._grid = shape.grid if in_order else None
        self._manners, self._progress, self._taken_over = manners, progress, taken_over
        self._ranges_us = known.in_order_us(shape.delay_us) if self._grid else {}
        self._began_s = time.monotonic()
        self._speed = ReadingSpeed(record.rows_per_s, manners.rows_per_s)
        self._stopped = ""

    def done(self, dry_run: bool, part_rows: int, look_rows: int) -> Settlement:
        """Look, and settle."""
        before = self._record.settled
        runs = list(to_look_at(self._known, self._record.looks, look_rows))
        to_look = sum(span.rows for run in runs for span in run)
        for run in runs:
            if self._must_stop():
                break
            self._progress("looking for windows", self._speed.looked.rows, to_look)
            self._look(run)
        self._give_up_unfinished()
        self._lose_gone(self._ready())
        if not dry_run and not self._stopped:
            self._settle(part_rows)
        ready = self._ready()
        spans = self._held.spans(ready)
        rows = sum(span.rows for span in spans)
        if dry_run and rows and self._speed.seconds_for(rows) is None:
            self._sample(spans)
        if not dry_run and not self._stopped:
            self._lost_before = ()
        self._say(**{"rows_per_s": speed} if (speed := self._speed.settled.rows_per_s) else {})
        told = self._whole_record if self._stopped else self._record
        return Settlement(
            settled=len(self._record.settled - before),
            before=len(before),
            ready=len(ready),
            waiting=len(self._record.unsettled) - len(ready),
            lost=told.lost,
            lost_windows=len(told.lost_windows),
            rows_read=self._speed.settled.rows,
            rows_to_read=rows,
            bytes_to_read=self._stretches.bytes_of(spans) if dry_run else None,
            seconds=time.monotonic() - self._began_s,
            seconds_to_go=self._speed.seconds_for(rows),
            stopped=self._stopped,
            unrecorded=self._record.unrecorded,
        )

    def _sample(self, spans: Sequence[Span]) -> None:
        """Run the query over a few of these batches, where nothing else tells how long they take."""
        some, began_s = first_of(spans, SAMPLE_ROWS), time.monotonic()
        try:
            self._query(*self._stretches.rows(some).frames).write.format("noop").mode("overwrite").save()
        except Exception as error:
            raise_if_other(error)
            return
        self._speed.sampled.add(sum(span.rows for span in some), time.monotonic() - began_s)

    @property
    def _held(self) -> Held:
        return Held(self._known, self._record.looks)

    def _ready(self) -> list[Window]:
        return closed(self._record.unsettled, self._known)

    def _look(self, run: Sequence[Span]) -> None:
        """Find the windows of shed batches; whatever cannot be read, alone or with others, is lost."""
        if self._grid and (look := in_order(self._ranges_us, run, self._grid)):
            self._say(looks=(*self._record.looks, look))
            return
        began_s = time.monotonic()
        try:
            reading = self._stretches.rows(run)
            found = self._shape.windows(self._query(*reading.frames)).collect()
            rows = reading.check()
        except Exception as error:
            raise_if_other(error)
            for half in _halves(run):
                self._look(half)
            if len(run) == 1:
                lost = lost_between(self._known, run, self._shape.delay_us, why_gone(error))
                self._say(lost=(*self._record.lost, lost))
            return
        took_s = time.monotonic() - began_s
        self._speed.looked.add(rows, took_s)
        windows = tuple(sorted(Window(row["start_us"], row["end_us"]) for row in found if row["start_us"] is not None))
        self._say(looks=(*self._record.looks, Look(run[0].first, run[-1].last, windows)))
        self._manners.rest(sum(span.rows for span in run), took_s)

    def _give_up_unfinished(self) -> None:
        """Remove what a run that did not end was writing; its windows are settled like others."""
        for part in self._record.parts:
            if part.at_s is None:
                self._folders.remove(part.number)
        self._say(parts=tuple(part for part in self._record.parts if part.at_s is not None))

    def _lose_gone(self, windows: Sequence[Window]) -> None:
        """Give up windows whose rows were there when somebody looked for them, and are not any more."""
        held = self._held
        for span in held.spans(windows):
            if why := self._stretches.missing(span):
                theirs = [window for window in windows if span in held.spans([window])]
                stretches = [Lost(span.first, span.last, why, one.start_us, one.end_us - 1) for one in merged(theirs)]
                self._say(lost=(*self._record.lost, *stretches))

    def _settle(self, part_rows: int) -> None:
        """Settle all windows that are ready."""
        self._merge()
        held = self._held
        waiting = list(held.parts(self._ready(), part_rows))
        of = sum(span.rows for part in waiting for span in held.spans(part))
        for windows in waiting:
            if self._must_stop():
                return
            left_s = self._speed.seconds_for(of - self._speed.settled.rows)
            about = f", about {left_s:,.0f} s left" if left_s else ""  # a bar of one part does not move
            self._progress(f"settling windows{about}", self._speed.settled.rows, of)
            self._settle_part(windows)
            self._merge()
        self._progress("settling windows", of, of)

    def _settle_part(self, windows: Sequence[Window]) -> None:
        """Settle some windows together: what is to be written is on record before, and confirmed after."""
        number = max([self._record.numbered, *(part.number for part in self._record.parts)]) + 1
        part = Part(number=number, windows=tuple(windows), through=self._known.last)
        self._say(parts=(*self._record.parts, part), numbered=number)
        spans = self._held.spans(part.windows)
        began_s, at_s = time.monotonic(), time.time()
        others = tuple(other for other in self._record.parts if other.number != part.number)
        try:
            reading = self._stretches.rows(spans)
            answers = self._shape.only(self._query(*reading.frames), part.windows)
            exact = self._shape.exact(answers).withColumn(SETTLED_AT, F.timestamp_micros(F.lit(round(at_s * 1e6))))
            exact.write.mode("overwrite").parquet(self._folders.unproven(number))
            rows = reading.check()
            self._folders.show(number)
        except Exception as error:
            raise_if_other(error)
            self._apart(part, others, spans, error)
            return
        took_s = time.monotonic() - began_s
        self._speed.settled.add(rows, took_s)
        done = msgspec.structs.replace(part, rows_read=rows, at_s=at_s)
        self._say(parts=(*others, done))
        self._manners.rest(rows, took_s)

    def _apart(self, part: Part, others: tuple[Part, ...], spans: Sequence[Span], error: Exception) -> None:
        """What could not be read for many windows may be readable for some of them."""
        self._folders.remove(part.number)
        self._say(parts=others)
        for half in _halves(part.windows):
            self._settle_part(half)
        if len(part.windows) == 1:
            (window,) = part.windows
            lost = Lost(spans[0].first, spans[-1].last, why_gone(error), window.start_us, window.end_us - 1)
            self._say(lost=(*self._record.lost, lost))

    def _must_stop(self) -> bool:
        self._stopped = self._stopped or self._manners.reason_to_stop(self._home, self._progress)
        return bool(self._stopped)

    def _merge(self) -> None:
        """Put the answers of all parts that are written into the table, where that has not been done."""
        if (table := self._table) is None:
            return
        for part in self._record.parts:
            if part.at_s is not None and part.merged != table.name:
                table.replace(part.windows, self._folders.folder(part.number))
                merged = msgspec.structs.replace(part, merged=table.name)
                self._say(parts=tuple(merged if each is part else each for each in self._record.parts))

    def _say(self, **changes: object) -> None:
        if self._taken_over:  # this one was silent for too long, and must not write over what the other has done
            raise CheckpointInUse(self._taken_over[0])
        self._record = self._record.saying(**changes)
        save(self._home, self._whole_record)

    @property
    def _whole_record(self) -> Settled:
        return self._record.saying(lost=tuple(dict.fromkeys((*self._lost_before, *self._record.lost))))


def _halves(items: Sequence[_T]) -> list[Sequence[_T]]:
    """Two parts of what is more than one."""
    middle = len(items) // 2
    return [items[:middle], items[middle:]] if middle else []
