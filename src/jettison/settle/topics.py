"""Stretches of Kafka's topics, read in batch mode by the offsets that batches took."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader

from jettison.core.taken import SourceStretch

EARLIEST = -2  # Spark's word for it in offsets

# What says which partitions are read and from where. A topic may have got more partitions since, and a pattern may
# stand for more topics: of these Spark would want offsets too.
_GIVES_WAY = {"assign", "subscribe", "subscribepattern", "startingoffsets", "endingoffsets"} | {
    "startingtimestamp",
    "endingtimestamp",
    "startingoffsetsbytimestamp",
    "endingoffsetsbytimestamp",
}


class TopicReader(DataFrameReader):
    """Reads just the stretches that it is told to, whatever the source says of topics and offsets."""

    def option(self, key: str, value: Any) -> TopicReader:
        """Take in what else the source says."""
        if key.lower() not in _GIVES_WAY:
            super().option(key, value)
        return self

    def options(self, **options: Any) -> TopicReader:
        """The same for several."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def stretch(self, start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]) -> DataFrame:
        """Rows from the first offsets up to the others, which are no part of it."""
        partitions = {topic: sorted(map(int, offsets)) for topic, offsets in end.items()}
        for key, value in (("assign", partitions), ("startingOffsets", start), ("endingOffsets", end)):
            super().option(key, json.dumps(value))
        return self.load()


def width(start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]) -> int:
    """Offsets in a stretch: as many rows, but where Kafka has compacted the topic or keeps marks of transactions.

    >>> width({"rides": {"0": 5, "1": -2}}, {"rides": {"0": 7, "1": 3}})
    5
    """
    return sum(
        offset - max(start.get(topic, {}).get(one, 0), 0)
        for topic, offsets in end.items()
        for one, offset in offsets.items()
    )


def joined(stretches: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Stretches of offsets, with those put together that follow each other.

    >>> joined([(0, 5), (5, 9), (12, 15)])
    [(0, 9), (12, 15)]
    """
    found: list[tuple[Any, Any]] = []
    for start, end in stretches:
        if found and found[-1][1] == start:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found


def start_of(stretch: SourceStretch, beginning: bytes | None) -> Any:
    """Where a stretch begins; of the very beginning Spark has a file in the checkpoint."""
    start = stretch.start
    if start is None:
        text = beginning or b"{}"
        start = json.loads(text[text.index(b"{") :])
    # A partition that was new then was read from its beginning.
    return {
        topic: {one: start.get(topic, {}).get(one, EARLIEST) for one in partitions}
        for topic, partitions in stretch.end.items()
    }
