"""The demo's taxi stream in a Kafka topic: a process of its own that appends rides on schedule, and what Spark reads."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jettison.errors import JettisonError, refuse
from jettison.lab.bench.maven_jars import CONNECTOR, jars
from jettison.lab.demo.feed import Lands, RideFeed
from jettison.lab.demo.landing import Landing
from jettison.lab.demo.rides import RideWriter
from jettison.lab.demo.schedule import Phase

PARTITIONS = 2
_PATIENCE_S = 30.0


def with_connector() -> None:
    """Let the sessions that are made from now on read Kafka."""
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {shlex.quote(','.join(map(str, jars(CONNECTOR))))} pyspark-shell"


def topic_options(address: str, topic: str) -> dict[str, str]:
    """What Spark's reader, and `KafkaEnds`, must know of a topic."""
    return {"kafka.bootstrap.servers": address, "subscribe": topic, "startingOffsets": "earliest"}


def topic_rides(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """The stream as it arrives, in the shape of `raw_rides`."""
    records = spark.readStream.format("kafka").options(**options).load()
    return records.select("partition", "offset", "timestamp", F.col("value").cast("string"))


class TopicFeed(RideFeed):
    """Appends taxi rides to a new topic on schedule, whatever becomes of them there.

    Row `i` of the schedule is record `i // 2` of partition `i % 2`, and its timestamp is its scheduled arrival.

    Parameters
    ----------
    address, topic
        The broker, and the topic to make.
    phases
        As for `RideFeed`.
    """

    def __init__(self, address: str, topic: str, phases: Sequence[Phase]) -> None:
        super().__init__("", phases)
        self._address, self._topic = address, topic

    def _lander(self) -> Callable[[Landing], Lands]:
        from confluent_kafka.admin import AdminClient, NewTopic

        client = AdminClient({"bootstrap.servers": self._address})  # lives until the topic is there
        client.create_topics([NewTopic(self._topic, PARTITIONS, 1)])[self._topic].result(_PATIENCE_S)
        return partial(TopicLander, self._address, self._topic)


class TopicLander:
    """Appends the rides of one run to a topic. A record costs about 3 microseconds of CPU here (2 busy cores)."""

    def __init__(self, address: str, topic: str, landing: Landing) -> None:
        from confluent_kafka import Producer

        # One request at a time to each partition, so that a retry cannot change the order.
        settings = {"bootstrap.servers": address, "linger.ms": 5, "batch.size": 1_000_000, "max.in.flight": 1}
        self._producer = Producer(settings | {"queue.buffering.max.messages": 2 * landing.schedule.largest_file + 1})
        self._topic, self._landing = topic, landing
        self._writer = RideWriter(landing.book, landing.schedule.largest_file)

    def land(self, file: int) -> int:
        """Append the rows of one file of the schedule, wait until the broker has them, and return how many."""
        schedule = self._landing.schedule
        rows = schedule.file_rows(file)
        arrival_us = schedule.arrival_us(rows)
        text, width = self._writer.write(rows.start, schedule.event_s(arrival_us)).tobytes(), self._writer.width
        arrival_ms = ((self._landing.started_us + arrival_us) // 1000).tolist()
        for place, (row, at_ms) in enumerate(zip(rows, arrival_ms, strict=True)):
            value = text[place * width : (place + 1) * width]
            self._producer.produce(self._topic, value, partition=row % PARTITIONS, timestamp=at_ms)
        if left := self._producer.flush(_PATIENCE_S):
            hint = "see that the broker runs"
            refuse(
                f"the broker to take all of {len(rows)} records", f"{left} not taken", hint=hint, error=JettisonError
            )
        return len(rows)
