"""The tutorial is executed as it stands, block by block, on a stream that is too fast for its query."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from doc_blocks import ROOT, blocks

pytestmark = pytest.mark.spark

_PATIENCE_S = 300.0
_TRUTH = 200_000


@pytest.mark.long
def test_the_tutorial_sheds_and_its_bounds_are_honest(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    make, guard, status, answers, stop = blocks("docs/tutorial.md")
    names: dict[str, Any] = {}

    def bounded() -> list[Any]:
        folder = Path(names["folder"], "answers")
        if not (folder / "_spark_metadata" / "0").exists():
            return []
        found = spark.read.schema(names["answers"].schema).parquet(str(folder))
        return found.where("readings.status = 'bounded'").collect()

    def until_bounded(query: Any) -> None:
        deadline_s = time.monotonic() + _PATIENCE_S
        while not bounded():
            assert query.isActive
            assert time.monotonic() < deadline_s
            time.sleep(0.2)

    exec(make, names)
    wait = "query.awaitTermination(90)"  # however fast the machine, the test waits for what the page shows
    assert wait in guard
    names["until_bounded"] = until_bounded
    exec(guard.replace(wait, "until_bounded(query)"), names)
    try:
        exec(status, names)
        assert "rows kept, plan" in capsys.readouterr().out
        exec(answers, names)
        assert "bounded" in capsys.readouterr().out
    finally:
        exec(stop, names)
    ended, first, *_ = capsys.readouterr().out.splitlines()
    assert (ended, first.split()[0]) == ("ended", "1")
    for answer in bounded():
        readings = answer.readings
        assert readings.kept < readings.value
        assert readings.lower < readings.value < readings.upper
        if answer.window != min(one.window for one in names["found"].collect()):  # it began in the middle of the first
            assert abs(readings.value - _TRUTH) < 3 * (readings.upper - readings.lower)


def test_the_tutorial_is_short() -> None:
    assert len((ROOT / "docs/tutorial.md").read_text().split()) < 800
