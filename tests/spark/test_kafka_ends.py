"""What is asked of Kafka follows from the source's own options, and no secret shows."""

from __future__ import annotations

import pickle

import pytest

import jettison as jt
from jettison.errors import InvalidInput
from jettison.spark.kafka_ends import _client_settings

pytest.importorskip("confluent_kafka")

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="hunter\\"2; \\\\x";'
OPTIONS = {
    "kafka.bootstrap.servers": "broker:9093",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": JAAS,
    "kafka.ssl.truststore.password": "changeit",
    "subscribe": "rides, fares",
    "startingOffsets": "earliest",
}


def test_credentials_come_from_the_source_s_options() -> None:
    assert _client_settings(OPTIONS) == {
        "bootstrap.servers": "broker:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": 'hunter"2; \\x',
    }


def test_no_secret_shows() -> None:
    ends = jt.KafkaEnds(OPTIONS, client={"ssl.key.password": "hunter3"})
    assert repr(ends) == str(ends) == "KafkaEnds(subscribe='rides, fares')"
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(ends)


@pytest.mark.parametrize(
    "options", [{}, {"subscribe": "rides"}, {"kafka.bootstrap.servers": "b", "subscribe": "a", "assign": "{}"}]
)
def test_options_that_name_no_topics_or_no_broker_are_refused_without_their_values(options: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=r"kafka\.bootstrap\.servers and one of") as refused:
        jt.KafkaEnds(options | {"kafka.sasl.jaas.config": JAAS})
    assert "hunter" not in str(refused.value)


def test_a_broker_that_is_not_there_fails_within_some_seconds_and_names_no_secret() -> None:
    ends = jt.KafkaEnds(OPTIONS | {"kafka.bootstrap.servers": "127.0.0.1:9"})
    with pytest.raises(Exception, match=r".") as failed:
        ends()
    assert "hunter" not in str(failed.value) + repr(failed.value)
