"""Pipeline files on live queries."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partialmethod
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from jettison.cli import app
from jettison.runtime.ledger import Ledger
from jettison.spark import pipeline
from jettison.spark.network_query import Network
from spark.test_network import rows

pytestmark = pytest.mark.spark


def test_a_pipeline_file_runs(spark: SparkSession, source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From YAML on disk to Parquet on disk: a shared map, a filter, a windowed aggregate and a join in SQL."""
    # The command as it is, but in the tests' session, and ending when all is read.
    monkeypatch.setattr(pipeline, "local_session", lambda name, master: nullcontext(spark))
    monkeypatch.setattr(Network, "start", partialmethod(Network.start, available_now=True))
    inputs = {"format": "json", "path": str(source.folder), "schema": source.SCHEMA, "row_id": ["id"]}
    inputs["options"] = {"maxFilesPerTrigger": 1}
    sums = "select window.start, sum(value * jt_weight) as total from parse group by window(at, '1 minute')"
    pairs = (
        "select high.*, other, jt_weight_right from high join (select id as other, at as other_at, jt_weight_right "
        "from parse) on high.id = other and high.at = other_at"
    )
    document = {
        "checkpoint": str(tmp_path / "checkpoint"),
        "latency": "1 minute",
        "inputs": {"readings": inputs},
        "boxes": {
            "parse": {"reads": "readings", "kind": "map", "sql": "select *, value * 2 as twice from readings"},
            "high": {"reads": "parse", "sql": "select * from parse where value >= 60", "selectivity": 0.4},
            "sums": {"reads": "parse", "kind": "aggregate", "sql": sums, "watermark": {"at": "1 second"}},
            "pairs": {"reads": ["high", "parse"], "kind": "join", "sql": pairs, "watermark": {"at": "1 second"}},
        },
        "outputs": {
            "everything": {"reads": "parse", "path": str(tmp_path / "everything")},
            "alarms": {"reads": "high", "path": str(tmp_path / "alarms")},
            "minutes": {"reads": "sums", "path": str(tmp_path / "minutes")},
            "matches": {"reads": "pairs", "path": str(tmp_path / "matches")},
        },
    }
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(document))
    landed = rows(0, 500)
    source.land(landed[:400])
    source.land(landed[400:])
    result = CliRunner().invoke(app, ["run", str(tmp_path / "pipeline.yaml")])
    assert result.exit_code == 0, result.output
    assert "Running: alarms, everything, matches, minutes from readings, within 1 minute." in result.output
    # Two branches read the source, and Spark says 1,000 rows: the count is called an estimate.
    assert "ended, about 500 of 500 rows kept" in result.output
    committed = {int(file.name) for file in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")}
    ledger = Ledger(tmp_path / "checkpoint" / "jettison" / "ledger")
    assert {record["batch_id"] for record in ledger.records("batch")} == committed
    written = {name: spark.read.parquet(str(tmp_path / name)) for name in document["outputs"]}
    high = [row for row in landed if row["value"] >= 60]
    assert written["everything"].count() == 500
    assert written["alarms"].count() == written["matches"].count() == len(high)
    assert "twice" in written["alarms"].columns
    # What each row stands for: itself, as nothing was shed.
    for name in ("everything", "alarms", "matches"):
        assert written[name].where("jt_weight = 1.0").count() == written[name].count()
    totals = [row.total for row in written["minutes"].orderBy("start").collect()]
    assert totals[0] == sum(row["value"] for row in landed[:60])
    assert len(totals) >= 6
