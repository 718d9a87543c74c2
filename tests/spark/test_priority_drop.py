"""Priorities in a real query: levels are counted from what is left of them, and the lightest rows go first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import jettison as jt
from jettison import policy as jp
from jettison.errors import InvalidSetting
from told_stream import await_plan, until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]


class HalfOfThem(jp.PriorityDrop):
    """Spends half, whatever the controller says."""

    def plan(self, stats: jp.Stats, budget: jp.Budget) -> jp.DropPlan:
        return super().plan(stats, jp.Budget(0.5, 0.5, 3600.0, budget.cause))


def half(*, least: float = 0.1) -> HalfOfThem:
    return HalfOfThem({"value < 20": 2, "value < 50": 1}, least=least)


@pytest.mark.parametrize("accounting", ["metrics", "observe"])
def test_levels_are_learned_and_the_lightest_go_first(
    spark: SparkSession, source, tmp_path: Path, numbered: Callable[..., list[dict[str, object]]], accounting: str
) -> None:
    """A fifth of the rows weighs 2, three tenths weigh 1; every fiftieth row is protected, among the first of them."""
    policy, kept = half(), {}
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=policy, accounting=accounting)  # type: ignore[arg-type]

    def sink(rows: DataFrame, batch: int) -> None:
        kept[batch] = [(row.value, row.vip, row.jt_weight) for row in rows.collect()]

    rows = shedder.guard(source.stream(), row_id="id", protect="vip")
    with shedder:
        query = shedder.start(rows.writeStream.foreachBatch(sink))
        run = shedder._run
        assert run is not None
        for number in range(3):
            source.land(numbered(10_000 * number, 10_000 * (number + 1)))
            query.processAllAvailable()
            until(lambda n=number: run.pilot.tally.batches > n)
            await_plan(run.pilot)
        newest = run.pilot.plan.points["rows"]
    # All rows but the protected ones: 0, 50 of every hundred values.
    assert policy.state()["rows"] == pytest.approx([19 / 98, 30 / 98, 49 / 98], abs=0.02)
    assert isinstance(newest, jp.LevelDrop)
    first, second, third = newest.keeps
    assert first == pytest.approx(1.0)
    assert 0.5 < second <= 1.0
    assert third == pytest.approx(0.1)
    last = kept[2]
    light = [weight for value, vip, weight in last if value >= 50 and not vip]
    assert len([1 for value, vip, _ in last if value < 20 and not vip]) == 1900
    assert {weight for value, vip, weight in last if value < 20 or vip} == {1.0}
    assert len(light) == pytest.approx(490, rel=0.2)
    assert sum(weight for _, _, weight in last) == pytest.approx(10_000, rel=0.06)


def test_a_predicate_that_is_none_is_refused_before_the_query_starts(source, tmp_path: Path) -> None:
    for wrong, said in [
        ("value", "must be true or false"),
        ("valu < 1", "must be a predicate over the stream's columns"),
    ]:
        policy = jp.PriorityDrop({wrong: 1})
        shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / wrong.split()[0], policy=policy)
        with pytest.raises(InvalidSetting, match=f"`priorities` {said}"):
            shedder.guard(source.stream(), row_id="id")
