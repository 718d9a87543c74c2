"""Options as real Kafka and S3 sources have them: nothing that Jettison writes, logs, shows or raises has a secret in it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import yaml
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

import jettison as jt
from jettison.cli import app
from jettison.core.storage import Folder
from jettison.errors import JettisonError
from jettison.lab.bench.streams import KeepShare
from jettison.page.html_page import whole
from jettison.page.view import Query

pytestmark = pytest.mark.spark

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCY"
OPTIONS = {
    "kafka.bootstrap.servers": "broker.example.org:9093",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
    f'username="ann" password="{SECRET}";',
    "kafka.ssl.truststore.password": SECRET,
    "fs.s3a.access.key": "AKIAIOSFODNN7EXAMPLE",
    "fs.s3a.secret.key": SECRET,
    "path": f"s3a://AKIAIOSFODNN7EXAMPLE:{SECRET}@rides/in",
}


def written(folder: Path) -> str:
    """All that lies in a folder."""
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "text", [json.dumps(OPTIONS), repr(OPTIONS), "\n".join(f"{k}={v}" for k, v in OPTIONS.items())]
)
def test_an_error_that_quotes_the_options_shows_them_nowhere(
    spark: SparkSession, source, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    source.land([{"id": number} for number in range(10)])

    def fail(rows: DataFrame, batch: int) -> None:
        raise ConnectionError(f"cannot write: {text}")

    checkpoint = tmp_path / "checkpoint"
    with caplog.at_level(logging.DEBUG, "jettison"):
        shedder = jt.Shedder(latency="1 minute", checkpoint=checkpoint, policy=KeepShare(0.5))
        kept = shedder.guard(source.stream(), row_id="id")
        query = shedder.start(kept.writeStream.foreachBatch(fail))
        with pytest.raises(StreamingQueryException):
            query.awaitTermination()
        assert shedder.await_books()
    status = shedder.status()
    assert "cannot write" in str(status.error)
    # What py4j logs is the user's own error, as it is.
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("jettison")]
    said = [written(checkpoint / "jettison"), repr(status), str(status), str(logged)]
    view = Query(str(checkpoint)).view()
    said += [repr(view), whole([view])]
    said.append(CliRunner().invoke(app, ["top", str(checkpoint), "--once"]).output)
    assert "cannot write" in said[0]
    assert not [text for text in said if "K7MDENG" in text or "wJalr" in text]


def test_a_checkpoint_with_credentials_in_its_address_is_refused_without_them() -> None:
    with pytest.raises(JettisonError) as refused:
        Folder(f"nowhere://ann:{SECRET}@host/rides")
    assert "K7MDENG" not in str(refused.value)


def test_a_pipeline_file_with_secrets_is_refused_and_planned_without_them(tmp_path: Path) -> None:
    inputs = {"format": "kafka", "options": OPTIONS, "row_id": ["partition", "offset"], "rate": 5}
    document = {
        "latency": "1 minute",
        "inputs": {"rides": inputs},
        "boxes": {"all": {"reads": "rides", "sql": "select * from rides"}},
        "outputs": {"out": {"reads": "all"}},
    }
    for number, wrong in enumerate(({}, {"options": OPTIONS}, {"inputs": {"rides": inputs | {"rat": 1}}})):
        path = tmp_path / f"{number}.yaml"
        path.write_text(yaml.safe_dump(document | wrong))
        for command in ("plan", "run") if wrong else ("plan",):
            result = CliRunner().invoke(app, [command, str(path)])
            shown = result.output + str(result.exception)
            assert "K7MDENG" not in shown
            assert "wJalr" not in shown
