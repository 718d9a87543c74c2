"""What an older Spark lacks is done in another way, or refused by name before the query starts."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import jettison as jt
from jettison import policy as jp
from jettison.errors import Unsupported
from jettison.lab.bench.streams import KeepShare
from jettison.spark import validate
from jettison.spark.executions import Executions

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


@pytest.fixture(params=[(4, 0), (4, 1), (4, 2)], ids=lambda found: ".".join(map(str, found)))
def older(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    monkeypatch.setattr(validate, "version", lambda spark: request.param)
    return request.param


def test_filters_that_nobody_describes_are_counted_by_observe(
    source, numbered, tmp_path: Path, monkeypatch, caplog: pytest.LogCaptureFixture, older: tuple[int, int]
) -> None:
    # A new session may show no execution yet, and so not show what its interface lacks.
    monkeypatch.setattr(Executions, "_fetched", lambda self, path: [])
    with caplog.at_level(logging.WARNING, logger="jettison"):
        shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=KeepShare(0.5))
        with shedder:
            query = shedder.start(shedder.guard(source.stream(), row_id="id").writeStream.format("noop"))
            source.land(numbered(0, 1000))
            query.processAllAvailable()
    (record,) = (record for record in shedder.ledger.records("batch") if record["batch_id"] == 0)
    point = record["points"]["rows"]
    assert (point["seen"], point["exact"]) == (1000, True)
    assert 400 < point["kept"] < 600
    assert sum("counted by `observe`" in record.getMessage() for record in caplog.records) == 1


def test_metrics_that_are_asked_for_by_name_are_refused(source, tmp_path: Path, older: tuple[int, int]) -> None:
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", accounting="metrics")
    with pytest.raises(Unsupported, match=r"does not say which filter is which; since 4\.3 it does.*'observe'"):
        shedder.guard(source.stream(), row_id="id")


@pytest.mark.parametrize(
    ("policy", "point"),
    [
        (jt.ConceptDrop(group="key", time="at", window="1 minute"), "rows"),
        (jt.JoinDrop(key="key", time="at", pane="1 minute"), "left"),
    ],
)
def test_groups_are_named_since_4_1(source, tmp_path: Path, monkeypatch, policy: jp.Policy, point: str) -> None:
    monkeypatch.setattr(validate, "version", lambda spark: (4, 0))
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=policy)
    with pytest.raises(Unsupported, match=r"names groups .* needs Spark 4\.1 or newer, got .* for drop point"):
        shedder.guard(source.stream(), row_id="id", name=point)


@pytest.mark.parametrize("older", [(4, 0), (4, 1)], indirect=True)
def test_rows_are_sampled_since_4_2(source, tmp_path: Path, older: tuple[int, int]) -> None:
    def guarded(sample_every: int) -> list[str]:
        queries = jt.RangeQueries([jt.Attribute.number("value", 0, 100)], ["value > 20"])
        policy = jt.Sifter(queries, {"value": [1.0]}, sample_every=sample_every)
        shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=policy)
        return shedder.guard(source.stream(), row_id="id").columns

    assert "jt_weight" in guarded(0)
    with pytest.raises(Unsupported, match=r"`sample_every` .* needs Spark 4\.2 or newer, got"):
        guarded(100)


def test_what_is_older_than_all_that_was_tried_is_refused(source, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(validate, "version", lambda spark: (3, 5))
    with pytest.raises(Unsupported, match=r"a guard needs Spark 4\.0 or newer, got"):
        jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c").guard(source.stream(), row_id="id")
