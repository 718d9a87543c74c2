"""A companion that only this file knows: shown, recorded and closed with its query, and in no answer's way if it says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import jettison as jt
from jettison.core.storage import home
from jettison.errors import InvalidSetting
from jettison.runtime.companion import CompanionReport, reports
from jettison.runtime.ledger import Ledger, Totals
from jettison.spark import doubts

pytestmark = pytest.mark.spark


@dataclass
class Censor:
    """Drops every second row, or would."""

    checkpoint: Path
    keeps_answers_exact: bool = True
    name: str = "censor"
    operator: str = "Filter censored"
    least_latency_s: float = 0.0
    closed: list[str] = field(default_factory=list)

    def status(self) -> str:
        return "5 of 10 rows censored"

    def close(self) -> None:
        ledger = Ledger.open(home(self.checkpoint) / "ledger", writer="censor")
        ledger.counted("censor", 1.0, 0, self.name, 10, 5, reason="taste")
        CompanionReport(self.name, self.status(), ("word", "rows"), (("no", "5"),)).lay_down(
            home(self.checkpoint), "censor"
        )
        self.closed.append("closed")


def test_it_is_shown_recorded_and_closed_with_its_query(spark: SparkSession, source, tmp_path: Path) -> None:
    source.land([{"id": i, "key": "a", "value": 1.0, "vip": False} for i in range(10)])
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path)
    censor = Censor(tmp_path)
    shedder.attach(censor)
    with pytest.raises(InvalidSetting, match="one companion a query, got 'censor' as a second one"):
        shedder.attach(censor)
    writer = shedder.guard(source.stream(), row_id="id").writeStream.format("noop").trigger(availableNow=True)
    shedder.start(writer).awaitTermination()
    assert shedder.await_books()
    assert censor.closed == ["closed"]
    assert shedder.status().companions == {"censor": "5 of 10 rows censored"}
    assert "; censor: 5 of 10 rows censored" in str(shedder.status())
    assert shedder.ledger.totals("censor") == Totals(1, 10, 5)
    assert [one["reason"] for one in shedder.ledger.records("censor")] == ["taste"]
    assert [one.rows for one in reports(home(tmp_path))] == [(("no", "5"),)]


def test_a_plan_that_shows_it_leaves_doubt_while_it_is_open_and_drops_unseen(
    spark: SparkSession, tmp_path: Path
) -> None:
    honest, secret = Censor(tmp_path), Censor(tmp_path, keeps_answers_exact=False, operator="Filter secret")
    doubts.companion_opened(spark, honest)
    doubts.companion_opened(spark, secret)
    assert not doubts.companions_leave_doubt("+- Filter censored(word)")
    assert doubts.companions_leave_doubt("+- Filter secret(word)")
    doubts.companion_closed(secret)
    assert not doubts.companions_leave_doubt("+- Filter secret(word)")
    doubts.companion_closed(honest)
