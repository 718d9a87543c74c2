"""The demo's taxi stream in a Kafka topic: a process of its own that appends rides on schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jettison.bench.kafka_wire import Connection, record_batch
from jettison.demo.feed import RideFeed, serve
from jettison.demo.landing import Landing
from jettison.demo.rides import RideWriter
from jettison.demo.schedule import Phase

PARTITIONS = 2
# About as large as brokers take by default: 1 MB.
_RECORDS_PER_BATCH = 4096


class TopicFeed(RideFeed):
    """Appends taxi rides to a new topic on schedule, whatever becomes of them there.

    Row `i` of the schedule is record `i // 2` of partition `i % 2`, and its timestamp is its scheduled arrival.

    Parameters
    ----------
    address, topic
        The broker, and the topic to make.
    phases, interval_s
        As for `RideFeed`.
    """

    _child = "from jettison.bench.kafka_feed import main; main()"

    def __init__(self, address: str, topic: str, phases: Sequence[Phase], *, interval_s: float = 0.1) -> None:
        super().__init__("", phases, interval_s=interval_s)
        self._address, self._topic = address, topic

    def _prepare(self) -> dict[str, str]:
        with Connection(self._address) as connection:
            connection.make_topic(self._topic, PARTITIONS)
        return {"address": self._address, "topic": self._topic}


def rows_of(offsets: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """Numbers of the rows that stand at these offsets, by partition.

    >>> rows_of({"0": 5, "1": 4}).tolist()
    [10, 9]
    """
    return np.array([offset * PARTITIONS + int(partition) for partition, offset in offsets.items()], dtype=np.int64)


class TopicLander:
    """Appends the rides of one run to a topic; records of one file of the schedule become visible batch by batch."""

    def __init__(self, connection: Connection, topic: str, landing: Landing) -> None:
        schedule = landing.schedule
        self._connection, self._topic, self._landing = connection, topic, landing
        self._writer = RideWriter(landing.book, max(len(schedule.file_rows(file)) for file in range(schedule.files)))

    def land(self, file: int) -> int:
        """Append the rows of one file of the schedule and return how many."""
        schedule = self._landing.schedule
        rows, arrival_us = schedule.file_rows(file), schedule.file_arrival_us(file)
        text = self._writer.write(rows.start, schedule.event_s(arrival_us))
        arrival_ms = (self._landing.started_us + arrival_us) // 1000
        step = PARTITIONS * _RECORDS_PER_BATCH
        for first in range(0, len(rows), step):
            parts = {
                partition: slice(first + (partition - rows.start) % PARTITIONS, first + step, PARTITIONS)
                for partition in range(PARTITIONS)
            }
            batches = {p: record_batch(text[part], arrival_ms[part]) for p, part in parts.items() if len(text[part])}
            self._connection.produce(self._topic, batches)
        return len(rows)


def _lander(order: dict[str, Any], landing: Landing) -> TopicLander:
    return TopicLander(Connection(order["address"]), order["topic"], landing)


def main() -> None:
    """Feed a topic, in the process that `TopicFeed` starts."""
    serve(_lander)
