"""A topic that a run of `jettison bench faults` reads."""

from __future__ import annotations

from collections.abc import Sequence

PARTITIONS = 2
_PATIENCE_S = 60.0


class Topic:
    """A new topic, to which lines can be appended."""

    def __init__(self, address: str, name: str) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        self._address, self._name = address, name
        client = AdminClient({"bootstrap.servers": address, "log_level": 0})
        client.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(_PATIENCE_S)

    def append(self, lines: Sequence[bytes]) -> None:
        """Append lines to the partitions in turn, and wait until the broker has them."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._address, "log_level": 0})
        for number, line in enumerate(lines):
            producer.produce(self._name, line, partition=number % PARTITIONS)
        if left := producer.flush(_PATIENCE_S):
            raise TimeoutError(f"the broker has not taken {left} of {len(lines)} records")

    def options(self, rows_per_batch: int) -> dict[str, str]:
        """What Spark's source is given."""
        return {
            "kafka.bootstrap.servers": self._address,
            "subscribe": self._name,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(rows_per_batch),
        }
