"""No secret stays in an error text, and what is no secret does."""

from __future__ import annotations

import json
import time

import pytest

from jettison.core.redact import redacted


@pytest.mark.parametrize(
    "text",
    [
        "jdbc:postgresql://ann:hunter2@db:5432/rides",
        "s3a://AKIA:hunter2@bucket/x",
        "amqp://ann:p@hunter2@host/x",
        "password=hunter2",
        "PASSWORD: hunter2",
        'option("password", x) failed: {"password": "hunter2", "user": "ann"}',
        "ssl.truststore.password=hunter2, ssl=true",
        "access_token=hunter2&x=1",
        "fs.s3a.secret.key = hunter2",
        "fs.s3a.access.key=hunter2",
        "Authorization: Bearer hunter2hunter2",
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="ann" password="hunter2";',
        "kafka.sasl.jaas.config -> ScramLoginModule required username='a' password='hunter2'; broke",
        "api_key='hunter2'",
    ],
)
def test_no_secret_is_left(text):
    assert "hunter2" not in redacted(text)


SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCY;2"
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"
OPTIONS = {
    "kafka.sasl.jaas.config": f'{JAAS} username="ann" password="{SECRET}";',
    "kafka.ssl.truststore.password": SECRET,
    "kafka.ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----\nMII{SECRET}\n-----END PRIVATE KEY-----",
    "kafka.sasl.oauthbearer.client.credentials.client.secret": SECRET,
    "fs.s3a.secret.key": SECRET,
    "fs.s3a.session.token": SECRET,
    "fs.s3a.bucket.rides.access.key": SECRET,
    "fs.azure.account.key.rides.dfs.core.windows.net": SECRET,
    "path": f"s3a://AKIAIOSFODNN7EXAMPLE:{SECRET}@rides/in",
}
STYLES = {
    "setting": lambda name, value: f"{name}={value}",
    "Scala's map": lambda name, value: f"Map(subscribe -> rides, {name} -> {value}, startingOffsets -> latest)",
    "Scala's pair": lambda name, value: f"ArrayBuffer((spark.app.name,x), (spark.hadoop.{name},{value}))",
    "Python": lambda name, value: f"options { ({'subscribe': 'rides', name: value, 'x': 1})!r} are wrong",
    "JSON": lambda name, value: "got " + json.dumps({"subscribe": "rides", name: value, "x": 1}),
    "YAML": lambda name, value: f"options:\n  subscribe: rides\n  {name}: {value}\n  x: 1",
    "command": lambda name, value: f"spark-submit --conf spark.hadoop.{name}={value} job.py",
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("style", STYLES)
def test_options_of_real_sources_show_no_secret_however_they_are_written(name, style):
    """Of a secret with signs in it, not the smallest part."""
    value = OPTIONS[name]
    if ";" in SECRET and style in ("setting", "Scala's map", "command", "YAML") and "jaas" not in name:
        value = value.replace(";", "")  # without quotes nobody can tell where such a value ends
    shown = redacted(STYLES[style](name, value))
    assert not [part for part in SECRET.replace("/", ";").replace("+", ";").split(";")[:-1] if part in shown]


@pytest.mark.parametrize(
    "text",
    [
        "batch 3 found no valid plan and kept every row",
        "412,000 rows/s arrive, 131,000 rows/s can be processed within 3.0 s: keep 0.31",
        "http://127.0.0.1:4040/api/v1/applications/local-1/sql: HTTP Error 403: Forbidden",
        "the token of the lease is gone",
        "http://127.0.0.1:4040/api is asked at ten, and mail goes to ann@example.org",
        "offsets (partition,3) of rides@2 at kafka://host:9092/rides",
        "got 'password' of type string",
    ],
)
def test_other_words_stay(text):
    assert redacted(text) == text


@pytest.mark.parametrize(
    "part",
    [
        "(",
        "(a.",
        "'",
        "jaas.config='",
        "-----BEGIN PRIVATE KEY-----",
        "x",
        "x.",
        "a:",
        "://a",
        "://a:",
        "password",
        "password ",
        "password=",
        'password="',
        "jaas.config",
        "token:",
        "://a:b@",
    ],
)
def test_a_long_text_takes_no_time(part):
    text = part * (200_000 // len(part))
    started = time.process_time()
    redacted(text)
    assert time.process_time() - started < 2.0
