"""Asks Kafka how far its topics reach: what waits is known before a batch."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from jettison.errors import InvalidInput, refuse
from jettison.extras import require

_PATIENCE_S = 3.0
_LOOK_AGAIN_S = 30.0  # for new partitions and topics
_CHOICES = ("subscribe", "subscribePattern", "assign")
_JAAS = re.compile(r'\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|(\S+?))\s*(?=[\s;]|$)')
_QUIET = {"log_level": 0, "client.id": "jettison"}
# What Kafka's Java client and the one here call alike.
_ALIKE = {"ssl.endpoint.identification.algorithm", "security.protocol", "sasl.mechanism", "client.rack"}


class KafkaEnds:
    """Says how many records the topics of a query have had, by their end offsets: `Shedder(ask=KafkaEnds(options))`.

    Needs the extra `kafka`. Nothing of the options is written anywhere, credentials least of all.

    Parameters
    ----------
    options
        Those of the query's own Kafka source: `kafka.bootstrap.servers`, and `subscribe`, `subscribePattern` or `assign`.
        Of `kafka.security.protocol`, `kafka.sasl.mechanism` and `kafka.sasl.jaas.config` (user and password) the
        client here takes notice too.
    client
        Further settings as librdkafka names them, such as `{"ssl.ca.location": ...}`: key stores of Java are not read.

    Examples
    --------
    >>> KafkaEnds({"kafka.bootstrap.servers": "broker:9092", "subscribe": "rides"})
    KafkaEnds(subscribe='rides')
    """

    def __init__(self, options: Mapping[str, Any], client: Mapping[str, Any] | None = None) -> None:
        chosen = [name for name in _CHOICES if options.get(name)]
        if len(chosen) != 1 or not options.get("kafka.bootstrap.servers"):
            hint = "pass the options that the query's Kafka source has"
            names = ", ".join(sorted(str(name) for name in options)) or "none"  # values may be secrets
            expected = f"`options` must name kafka.bootstrap.servers and one of {', '.join(_CHOICES)}"
            refuse(expected, names, hint=hint, error=InvalidInput)
        self._how, self._what = chosen[0], str(options[chosen[0]])
        self._settings = {**_QUIET, **_client_settings(options), **(client or {})}
        self._committed = str(options.get("kafka.isolation.level", "")) == "read_committed"
        self._admin: Any = None
        self._partitions: list[Any] = []
        self._looked_s = 0.0
        require("confluent_kafka", where="`KafkaEnds`")

    def __repr__(self) -> str:
        return f"KafkaEnds({self._how}={self._what!r})"

    def __reduce__(self) -> Any:
        raise TypeError("KafkaEnds holds credentials: no pickle of it is made")

    def __call__(self) -> float:
        """Sum of the end offsets of all partitions."""
        from confluent_kafka import IsolationLevel
        from confluent_kafka.admin import AdminClient, OffsetSpec

        if self._admin is None:
            self._admin = AdminClient(self._settings)
        if time.monotonic() - self._looked_s > _LOOK_AGAIN_S or not self._partitions:
            self._partitions = self._found()
            self._looked_s = time.monotonic()
        level = IsolationLevel.READ_COMMITTED if self._committed else IsolationLevel.READ_UNCOMMITTED
        latest: Any = OffsetSpec  # it ships no types
        asked = {partition: latest.latest() for partition in self._partitions}
        answers = self._admin.list_offsets(asked, isolation_level=level, request_timeout=_PATIENCE_S)
        return float(sum(answer.result(_PATIENCE_S).offset for answer in answers.values()))

    def _found(self) -> list[Any]:
        from confluent_kafka import TopicPartition

        if self._how == "assign":
            return [
                TopicPartition(topic, one) for topic, partitions in json.loads(self._what).items() for one in partitions
            ]
        topics = self._admin.list_topics(timeout=_PATIENCE_S).topics
        if self._how == "subscribe":
            names = [name.strip() for name in self._what.split(",")]
        else:
            names = [name for name in topics if re.fullmatch(self._what, name)]
        return [TopicPartition(name, one) for name in names if name in topics for one in topics[name].partitions]


def _client_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the client here that the options of the source stand for."""
    given = {name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")}
    settings = {name: given[name] for name in ("bootstrap.servers", *sorted(_ALIKE)) if name in given}
    found = {name: quoted or bare for name, quoted, bare in _JAAS.findall(str(given.get("sasl.jaas.config", "")))}
    return settings | {f"sasl.{name}": re.sub(r"\\(.)", r"\1", value) for name, value in found.items()}
