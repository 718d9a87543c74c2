"""The stretch of its sources that some batches took, read again in batch mode."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, Observation, SparkSession
from pyspark.sql import functions as F

from jettison.core.redact import redacted
from jettison.core.storage import Folder
from jettison.core.taken import SourceStretch
from jettison.errors import Unsupported, refuse
from jettison.runtime.status import reason
from jettison.settle.file_log import FileLog
from jettison.settle.history import Span

Source = Callable[[Any], Any]
"""Gives a reader the format, schema and options of a source: `spark.readStream` in the live query, `spark.read` here."""
_ROWS = "rows"
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
            if not _is_of_files(stretch):
                continue
            after, through = _numbers(stretch)
            if not self._log(place).is_known(after, through):
                return "its files are not in Spark's log"
            gone = [path for path in self._files(place, [span]) if self._log(place).now(path) is None]
            if gone:
                return f"{gone[0]} is gone" + (f", and {len(gone) - 1} more" if len(gone) > 1 else "")
        return None

    def bytes_of(self, spans: Sequence[Span]) -> int | None:
        """Bytes of the files of some batches; `None` where a source is no folder of files."""
        if not all(map(_is_of_files, (stretch for span in spans for stretch in span.sources))):
            return None
        found = [
            self._log(place).now(path) for place in range(len(self._sources)) for path in self._files(place, spans)
        ]
        return sum(info.size or 0 for info in found if info is not None)

    def rows(self, spans: Sequence[Span]) -> Reading:
        """The rows that some batches took, each with the weight of one that was certainly kept.

        Raises `SourceGone` where it is known that they are not there any more.
        """
        for span in spans:
            if why := self.missing(span):
                raise SourceGone(why)
        frames = [self._frame(place, source, spans) for place, source in enumerate(self._sources)]
        observed: dict[int, Observation] = {}
        for place, frame in enumerate(frames):
            # To count rows takes longer than to treat them: only where they may not be those that the query took.
            if not self._is_as_it_was(place, spans):
                observed[place] = Observation(f"jettison_settle_{place}")
                frames[place] = frame.observe(observed[place], F.count(F.lit(1)).alias(_ROWS))
        return Reading(spans, [frame.withColumn("jt_weight", F.lit(1.0)) for frame in frames], observed)

    def _is_as_it_was(self, place: int, spans: Sequence[Span]) -> bool:
        """Whether what some batches took is in files that nobody has changed since."""
        if not all(_is_of_files(span.sources[place]) for span in spans):
            return False
        for path, changed_ms in self._files(place, spans).items():
            info = self._log(place).now(path)
            # Some filesystems tell the time in seconds.
            if info is None or info.mtime_ns is None or info.mtime_ns // 10**9 != changed_ms // 1000:
                return False
        return True

    def schemas(self, known: Sequence[Span]) -> list[Any]:
        """The columns of each source; nothing is read for them."""
        example = next(span for span in known if len(span.sources) == len(self._sources))
        return [
            self._frame(place, source, [] if _is_of_files(example.sources[place]) else [example]).schema
            for place, source in enumerate(self._sources)
        ]

    def _frame(self, place: int, source: Source, spans: Sequence[Span]) -> DataFrame:
        stretches = [span.sources[place] for span in spans]
        reader: object = source(self._spark.read)
        if not isinstance(reader, DataFrameReader):
            hint = "return the reader that it was given, before `load`: reader.format('json').schema(...)"
            refuse("a source must return a reader", repr(reader), hint=hint, error=Unsupported)
        if stretches and not _is_of_files(stretches[0]):
            return self._of_topics(place, source, stretches)
        return reader.load([_PATTERN.sub(r"\\\g<0>", path) for path in self._files(place, spans)])

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

    def _of_topics(self, place: int, source: Source, stretches: Sequence[SourceStretch]) -> DataFrame:
        frames: list[DataFrame] = []
        for start, end in _joined([(self._start(place, each), each.end) for each in stretches]):
            reader = source(self._spark.read).option("startingOffsets", json.dumps(start))
            frames.append(reader.option("endingOffsets", json.dumps(end)).load())
        return reduce(DataFrame.unionByName, frames)

    def _start(self, place: int, stretch: SourceStretch) -> Any:
        """Where a stretch begins; Spark has the very beginning in a file of the source's."""
        start = stretch.start
        if start is None:
            first = (self._checkpoint / "sources" / str(place)).read("0") or b"{}"
            start = json.loads(first[first.index(b"{") :])
        # A partition that was new then was read from its beginning.
        return {
            topic: {one: start.get(topic, {}).get(one, _EARLIEST) for one in partitions}
            for topic, partitions in stretch.end.items()
        }


_EARLIEST = -2  # Spark's word for it in offsets


class Reading:
    """The rows of some batches, and whether they were all there once they have been read."""

    def __init__(self, spans: Sequence[Span], frames: list[DataFrame], observed: Mapping[int, Observation]) -> None:
        self._spans, self.frames, self._observed = spans, frames, observed

    def check(self) -> int:
        """How many rows were read; raises `SourceGone` if they are not as many as the batches took."""
        for place, observed in self._observed.items():
            read, took = int(observed.get[_ROWS]), sum(span.sources[place].rows for span in self._spans)
            if read != took and all(span.counted for span in self._spans):
                raise SourceGone(f"the source gives {read:,} rows where the query took {took:,}")
        return sum(span.rows for span in self._spans)


def _is_of_files(stretch: SourceStretch) -> bool:
    if isinstance(stretch.end, dict) and stretch.end.keys() == {"logOffset"}:
        return True
    if isinstance(stretch.end, dict) and all(isinstance(each, dict) for each in stretch.end.values()):
        return False
    hint = "only files and Kafka topics can be read again by their offsets"
    refuse("a source must be of files or of Kafka topics", repr(stretch.end), hint=hint, error=Unsupported)


def _numbers(stretch: SourceStretch) -> tuple[int, int]:
    return -1 if stretch.start is None else int(stretch.start["logOffset"]), int(stretch.end["logOffset"])


def _joined(stretches: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Stretches of offsets, with those put together that follow each other.

    >>> _joined([(0, 5), (5, 9), (12, 15)])
    [(0, 9), (12, 15)]
    """
    joined: list[tuple[Any, Any]] = []
    for start, end in stretches:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def raise_if_other(error: Exception) -> None:
    """Only rows that are gone are lost; whatever else has failed may succeed another time."""
    if not isinstance(error, SourceGone) and not _GONE.search(str(error)):
        raise error


def why_gone(error: Exception) -> str:
    """The reason in brief, for the record."""
    return redacted(str(error) if isinstance(error, SourceGone) else reason(str(error)))
