"""What window drops cannot keep exact is refused, before the query starts or at its first answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import functions as F

import jettison as jt
from jettison.errors import InvalidInput, InvalidSetting, MissingColumn, Unsupported
from jettison.policies.window.window_drop import WindowDrop
from window_streams import Seconds, counts, run


def make(tmp_path: Path, **changes: object) -> jt.Shedder:
    policy = WindowDrop(**{"time": "at", "window": "10 seconds", "max_gap": 3, **changes})  # type: ignore[arg-type]
    return jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=policy)


def test_a_watermark_must_stand_before_the_guard(seconds: Seconds, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="withWatermark"):
        make(tmp_path).guard(seconds.stream(None), row_id="value")


def test_protected_rows_are_refused(seconds: Seconds, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="`protect` must be left out with WindowDrop"):
        make(tmp_path).guard(seconds.stream(), row_id="value", protect="value > 3")


@pytest.mark.parametrize(("time_column", "error"), [("when", MissingColumn), ("value", InvalidSetting)])
def test_the_time_column_must_be_there_and_be_a_time(
    seconds: Seconds, tmp_path: Path, time_column: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match="time"):
        make(tmp_path, time=time_column).guard(seconds.stream(), row_id="value")


def test_the_time_may_be_a_column_and_must_be_there_then_too(seconds: Seconds, tmp_path: Path) -> None:
    make(tmp_path, time=F.col("at")).guard(seconds.stream(), row_id="value")
    with pytest.raises(InvalidSetting, match="`time` must be a column of the stream"):
        make(tmp_path / "b", time=F.col("when")).guard(seconds.stream(), row_id="value")
    with pytest.raises(MissingColumn, match="`time` must name a column of the stream"):
        make(tmp_path / "c", time=F.col("at") + F.expr("interval 1 day")).guard(seconds.stream(), row_id="value")


def test_a_query_without_delivery_does_not_start(seconds: Seconds, tmp_path: Path) -> None:
    shedder = make(tmp_path)
    answers = counts(shedder.guard(seconds.stream(), row_id="value"))
    with pytest.raises(InvalidSetting, match="deliver"):
        shedder.start(answers.writeStream.format("noop"))


def test_session_windows_are_refused(seconds: Seconds, tmp_path: Path) -> None:
    shedder = make(tmp_path)
    rows = shedder.guard(seconds.stream(), row_id="value")
    sessions = rows.groupBy(F.session_window("at", "5 seconds")).count()
    with pytest.raises(Unsupported, match="session"):
        shedder.deliver(sessions, window="session_window")


def test_delivery_needs_the_window_itself(seconds: Seconds, tmp_path: Path) -> None:
    shedder = make(tmp_path)
    answers = counts(shedder.guard(seconds.stream(), row_id="value"))
    with pytest.raises(InvalidInput, match="window"):
        shedder.deliver(answers, window="n")
    with pytest.raises(MissingColumn):
        shedder.deliver(answers, window="hour")
    with pytest.raises(InvalidSetting, match="query"):
        shedder.deliver(answers, query="other")
    with pytest.raises(InvalidInput, match="`window` must name the column that Spark's `window` made"):
        shedder.deliver(answers, window=F.col("n"))
    with pytest.raises(InvalidSetting, match="`window` must be a column"):
        shedder.deliver(answers, window=F.col("hour"))


def test_delivery_belongs_to_window_drops(seconds: Seconds, tmp_path: Path) -> None:
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint")
    with pytest.raises(InvalidSetting, match="WindowDrop"):
        shedder.deliver(counts(shedder.guard(seconds.stream(), row_id="value")))


def test_windows_other_than_the_policys_stop_the_query(seconds: Seconds, tmp_path: Path) -> None:
    seconds.land(range(0, 20), range(20, 40), range(40, 60))
    shedder = make(tmp_path)
    rows = shedder.guard(seconds.stream(), row_id="value")
    with pytest.raises(
        InvalidSetting,
        match=r"^windows of 10 seconds.*, as the policy was told, got one from [-:\d ]+ to [-:\d ]+\. Hint",
    ):
        run(shedder, shedder.deliver(counts(rows, "20 seconds")))
