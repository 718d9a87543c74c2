"""Where the web interface is no help, rows are counted by `observe` or estimated, and that is said once."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from jettison.errors import Unsupported
from jettison.lab.bench.streams import KeepShare
from jettison.spark import validate
from jettison.spark.executions import Executions
from spark_since import FILTERS_DESCRIBED


@pytest.fixture
def forbidden() -> Iterator[str]:
    """Address of a web interface that answers nobody."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def said(caplog: pytest.LogCaptureFixture, words: str) -> int:
    return sum(words in record.getMessage() for record in caplog.records)


def run(source, numbered, checkpoint: Path, batches: range, **settings: Any) -> list[dict[str, Any]]:
    shedder = jt.Shedder(latency="1 minute", checkpoint=checkpoint, policy=KeepShare(0.5), **settings)
    with shedder:
        query = shedder.start(shedder.guard(source.stream(), row_id="id").writeStream.format("noop"))
        for batch in batches:
            source.land(numbered(1000 * batch, 1000 * batch + 1000))
            query.processAllAvailable()
        assert shedder.close()
    return [record["points"]["rows"] for record in shedder.ledger.records("batch") if record["batch_id"] in batches]


def test_while_nothing_is_dropped_nobody_asks_the_interface_and_counts_are_exact(
    source, numbered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    fetched = Executions._fetched
    monkeypatch.setattr(Executions, "_fetched", lambda self, path: asked.append(path) or fetched(self, path))
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=KeepShare(1.0))
    with shedder:
        rows = shedder.guard(source.stream().withWatermark("at", "1 minute"), row_id="id")
        before = len(asked)  # whether it answers was asked at the guard
        query = shedder.start(
            rows.where("value < 50").groupBy("key").count().writeStream.format("noop").outputMode("update")
        )
        for batch in range(4):
            source.land(numbered(1000 * batch, 1000 * batch + 1000 + batch))
            query.processAllAvailable()
        assert shedder.close()
    points = [
        record["points"]["rows"] for record in shedder.ledger.records("batch") if record["points"]["rows"]["seen"]
    ]
    assert [(one["seen"], one["kept"], one["exact"]) for one in points] == [
        (1000 + n, 1000 + n, True) for n in range(4)
    ]
    assert len(asked) == before


def test_below_a_filter_the_input_is_not_what_the_guard_sees(source, numbered, tmp_path: Path) -> None:
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=KeepShare(1.0))
    with shedder:
        rows = shedder.guard(source.stream().where("id % 4 = 0"), row_id="id")
        query = shedder.start(rows.writeStream.format("noop"))
        source.land(numbered(0, 1000))
        query.processAllAvailable()
        assert shedder.close()
    (record,) = (record for record in shedder.ledger.records("batch") if record["batch_id"] == 0)
    assert record["points"]["rows"] == {"seen": 250, "kept": 250, "dropped": 0, "exact": True}


@FILTERS_DESCRIBED
def test_an_interface_that_is_closed_is_found_out_before_the_query_starts(
    source, numbered, tmp_path: Path, monkeypatch, caplog: pytest.LogCaptureFixture, forbidden: str
) -> None:
    monkeypatch.setattr(validate, "web_interface", lambda spark: forbidden)
    with pytest.raises(Unsupported, match=r"accounting='metrics' needs the driver's web interface.*403"):
        run(source, numbered, tmp_path / "refused", range(1), accounting="metrics")
    with caplog.at_level(logging.WARNING, logger="jettison"):
        points = run(source, numbered, tmp_path / "c", range(2))
    assert [(point["seen"], point["exact"]) for point in points] == [(1000, True)] * 2, "by `observe`"
    assert said(caplog, "counted by `observe`") == 1


@FILTERS_DESCRIBED
def test_an_interface_that_fails_later_leaves_estimates_and_the_next_start_observes(
    spark: SparkSession, source, numbered, tmp_path: Path, monkeypatch, caplog, forbidden: str
) -> None:
    urls = iter([spark.sparkContext.uiWebUrl])  # at the guard; when the query has started, it answers no more
    monkeypatch.setattr(validate, "web_interface", lambda spark: next(urls, forbidden))
    with caplog.at_level(logging.WARNING, logger="jettison"):
        points = run(source, numbered, tmp_path / "c", range(6))
    assert [(point["seen"], point["exact"]) for point in points] == [(1000, False)] * 6
    faults = [record["detail"] for record in jt.Ledger(tmp_path / "c" / "jettison" / "ledger").records("fault")]
    assert len(faults) == 3, "then it was given up"
    assert "estimates until the query is started again" in faults[-1]
    assert said(caplog, "403") == 1
    monkeypatch.undo()
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="jettison"):
        points = run(source, numbered, tmp_path / "c", range(6, 8))
    assert [(point["seen"], point["exact"]) for point in points] == [(1000, True)] * 2
    assert said(caplog, "it failed in an earlier run") == 1
    run(source, numbered, tmp_path / "c", range(8, 9), accounting="metrics")
    assert not (tmp_path / "c" / "jettison" / "accounting.json").exists()
    assert json.loads((tmp_path / "c" / "metadata").read_text()), "the same query all along"


@FILTERS_DESCRIBED
def test_a_job_description_of_the_users_hides_no_count(spark: SparkSession, source, numbered, tmp_path: Path) -> None:
    spark.sparkContext.setJobDescription("mine")
    try:
        points = run(source, numbered, tmp_path / "c", range(2), accounting="metrics")
    finally:
        spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]
    assert [(point["seen"], point["exact"]) for point in points] == [(1000, True)] * 2
