"""The stretch of its sources that some batches took, read again in batch mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, Observation, SparkSession
from pyspark.sql import functions as F

from jettison.core.redact import redacted
from jettison.core.storage import Folder
from jettison.core.taken import SourceStretch
from jettison.errors import Unsupported, refuse
from jettison.runtime.status import reason
from jettison.settle.file_log import FileLog, base_path
from jettison.settle.history import Span
from jettison.settle.topics import TopicReader, joined, start_of, width
from jettison.settle.touched_windows import first_of

Source = Callable[[Any], Any]
"""Gives a reader the format, schema and options of a source: `spark.readStream` in the live query, `spark.read` here."""
_ROWS = "rows"
_SAMPLE_ROWS = 10_000
_PATTERN = re.compile(r"[\[\]{}*?\\]")

# In what Spark says of rows that it does not find.
_GONE = re.compile(
    r"FileNotFound|FILE_NOT_EXIST|PATH_NOT_FOUND|DATA_LOSS|data loss|data may have been lost"
    r"|OffsetOutOfRange|offsets? .*out of range",
    re.I,
)


class SourceGone(Exception):
    """Rows that a batch took cannot be read any more, or others are there in their place."""


class Stretches:
    """Reads the rows of batches again.

    Parameters
    ----------
    spark
        Where they are read.
    checkpoint
        Of the query that took them.
    sources
        The query's sources in its own order.
    """

    def __init__(self, spark: SparkSession, checkpoint: Folder, sources: Sequence[Source]) -> None:
        self._spark, self._checkpoint, self._sources = spark, checkpoint, sources
        self._logs: dict[int, FileLog] = {}

    def missing(self, span: Span) -> str | None:
        """Why a batch cannot be read again, as far as that can be known before it is tried."""
        if len(span.sources) != len(self._sources):
            return "what it took is not on record"
        for place, stretch in enumerate(span.sources):
            if stretch.end is None or not _is_of_files(stretch):
                continue
            log = self._log(place)
            if not log.is_known(*_numbers(stretch)):
                return "its files are not in Spark's log"
            files = self._files(place, [span])
            for what, found in (
                ("is gone", [path for path in files if log.now(path) is None]),
                ("was changed since", [path for path, found_ms in files.items() if log.is_changed(path, found_ms)]),
            ):
                if found:
                    return f"{found[0]} {what}" + (f", and {len(found) - 1} more" if len(found) > 1 else "")
        return None

    def bytes_of(self, spans: Sequence[Span]) -> int | None:
        """Bytes that some batches took: of files; of keys and values in topics, by the first of them. `None`: not known."""
        found = 0
        for place in self._places if spans else ():
            if all(_is_of_files(span.sources[place]) for span in spans):
                infos = map(self._log(place).now, self._files(place, spans))
                found += sum(info.size or 0 for info in infos if info is not None)
                continue
            each = " + ".join(f"coalesce(length({column}), 0)" for column in ("key", "value"))
            some = first_of([span for span in spans if span.sources[place].end is not None], 1)
            try:
                mean = self._frame(place, some).limit(_SAMPLE_ROWS).agg(F.avg(F.expr(each))).first()
            except Exception:  # whatever it is, this is only said of a run
                return None
            found += round(((mean and mean[0]) or 0.0) * sum(span.sources[place].rows for span in spans))
        return found

    def rows(self, spans: Sequence[Span]) -> Reading:
        """The rows that some batches took, each with the weight of one that was certainly kept.

        Raises `SourceGone` where it is known that they are not there any more.
        """
        self.check(spans)
        counts: list[Count] = []
        frames = [self._proven(place, spans, counts) for place in range(len(self._sources))]
        weighted = [frame.withColumn("jt_weight", F.lit(1.0)) for frame in frames]
        return Reading(spans, weighted, counts, lambda: self.check(spans))

    def check(self, spans: Sequence[Span]) -> None:
        """Raise `SourceGone` if it is known that some of the rows are not there any more: files are looked at again."""
        for log in self._logs.values():
            log.look_again()
        for span in spans:
            if why := self.missing(span):
                raise SourceGone(why)

    def _proven(self, place: int, spans: Sequence[Span], counts: list[Count]) -> DataFrame:
        """What some batches took of a source. Rows are counted where files do not tell that they are the same.

        Those of batches that were counted and of others are counted apart: only of the first it is known how many they were.
        """
        if self._is_of_known_files(place, spans):  # to count rows takes longer than to treat them
            return self._frame(place, spans)
        frames: list[DataFrame] = []
        for counted in (True, False):
            if some := [span for span in spans if span.counted is counted]:
                known = {sum(span.sources[place].rows for span in some)} if counted else set()
                count = Count(Observation(f"jettison_settle_{place}_{counted}"), known | self._width(place, some))
                frames.append(self._frame(place, some).observe(count.observed, F.count(F.lit(1)).alias(_ROWS)))
                counts.append(count)
        return reduce(DataFrame.unionByName, frames)

    def _is_of_known_files(self, place: int, spans: Sequence[Span]) -> bool:
        """Whether what some batches took is in files of which it is known that nobody has changed them."""
        if not all(_is_of_files(span.sources[place]) for span in spans):
            return False
        infos = [self._log(place).now(path) for path in self._files(place, spans)]
        return all(info is not None and info.mtime_ns is not None for info in infos)

    def _width(self, place: int, spans: Sequence[Span]) -> set[int]:
        """How many rows there are in topics between the offsets, if none is missing; nothing for files."""
        if all(_is_of_files(span.sources[place]) for span in spans):
            return set()
        return {sum(width(start, end) for start, end in self._offsets(place, spans))}

    def schemas(self, known: Sequence[Span]) -> list[Any]:
        """The columns of each source; nothing is read for them."""
        told = [span for span in known if len(span.sources) == len(self._sources)]
        of_topics = [[span for span in told if not _is_of_files(span.sources[place])][:1] for place in self._places]
        return [self._frame(place, of_topics[place]).schema for place in self._places]

    @property
    def _places(self) -> range:
        return range(len(self._sources))

    def _frame(self, place: int, spans: Sequence[Span]) -> DataFrame:
        if not all(_is_of_files(span.sources[place]) for span in spans):
            stretches = joined(self._offsets(place, spans))
            return reduce(DataFrame.unionByName, [self._topics(place).stretch(*each) for each in stretches])
        files, reader = self._files(place, spans), self._sources[place](self._spark.read)
        if not isinstance(reader, DataFrameReader):
            hint = "return the reader that it was given, before `load`: reader.format('json').schema(...)"
            refuse("a source must return a reader", repr(reader), hint=hint, error=Unsupported)
        if (base := base_path(files, reader.load([]).columns)) is not None:
            reader = reader.option("basePath", base)
        return reader.load([_PATTERN.sub(r"\\\g<0>", path) for path in files])

    def _topics(self, place: int) -> TopicReader:
        reader = self._sources[place](TopicReader(self._spark))
        if not isinstance(reader, TopicReader):
            hint = "return the reader that it was given, before `load`: reader.format('kafka').options(...)"
            refuse("a source must return its reader", repr(reader), hint=hint, error=Unsupported)
        return reader

    def _log(self, place: int) -> FileLog:
        """Read when it is needed: other sources keep something else there."""
        if place not in self._logs:
            self._logs[place] = FileLog(self._checkpoint, place)
        return self._logs[place]

    def _files(self, place: int, spans: Sequence[Span]) -> dict[str, int]:
        found: dict[str, int] = {}
        for span in spans:
            found |= self._log(place).files(*_numbers(span.sources[place]))
        return found

    def _offsets(self, place: int, spans: Sequence[Span]) -> list[tuple[Any, Any]]:
        """Where stretches of topics begin and end."""
        beginning = (self._checkpoint / "sources" / str(place)).read("0")
        stretches = [span.sources[place] for span in spans if span.sources[place].end is not None]
        return [(start_of(each, beginning), each.end) for each in stretches]


@dataclass(frozen=True, slots=True)
class Count:
    """Rows that are counted while they are read, and how many they may be: one of these numbers."""

    observed: Observation
    known: set[int]

    def check(self) -> None:
        """Raise `SourceGone` if they are not as many."""
        read = int(self.observed.get[_ROWS])
        if read not in self.known:
            took = " or ".join(f"{rows:,}" for rows in sorted(self.known)) or "a number that is not known"
            raise SourceGone(f"the source gives {read:,} rows where the query took {took}")


class Reading:
    """The rows of some batches, and whether they were all there once they have been read."""

    def __init__(
        self, spans: Sequence[Span], frames: list[DataFrame], counts: Sequence[Count], look_again: Callable[[], None]
    ) -> None:
        self._spans, self.frames, self._counts, self._look_again = spans, frames, counts, look_again

    def check(self) -> int:
        """How many rows the batches took, after a query has run over them; raises `SourceGone` if it ran over others."""
        for count in self._counts:
            count.check()
        self._look_again()
        return sum(span.rows for span in self._spans)


def _is_of_files(stretch: SourceStretch) -> bool:
    """Whether it is of files; so is nothing at all, which a folder gives before there is a file in it."""
    if stretch.end is None:
        return True
    if isinstance(stretch.end, dict) and stretch.end.keys() == {"logOffset"}:
        return True
    if isinstance(stretch.end, dict) and all(isinstance(each, dict) for each in stretch.end.values()):
        return False
    hint = "only files and Kafka topics can be read again by their offsets"
    refuse("a source must be of files or of Kafka topics", repr(stretch.end), hint=hint, error=Unsupported)


def _numbers(stretch: SourceStretch) -> tuple[int, int]:
    start, end = (-1 if offset is None else int(offset["logOffset"]) for offset in (stretch.start, stretch.end))
    return start, end


def raise_if_other(error: Exception) -> None:
    """Only rows that are gone are lost; whatever else has failed may succeed another time."""
    if not isinstance(error, SourceGone) and not _GONE.search(str(error)):
        raise error


def why_gone(error: Exception) -> str:
    """The reason in brief, for the record."""
    return redacted(str(error) if isinstance(error, SourceGone) else reason(str(error)))
