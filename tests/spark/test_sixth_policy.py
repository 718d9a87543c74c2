"""A policy that Jettison does not know, made from its extension points alone: the example to follow for a new one.

It drops the rows of the largest values. The pieces are a setting (what a plan says), a spec (what is known beforehand), a
policy (which plan to make) and a mechanism (how Spark executes it, what it observes, and how that is read back).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.errors import Unsupported
from jettison.page.panels import TablePanel
from jettison.page.view import Query
from jettison.policy import (
    ALL_CHECKS,
    Budget,
    Candidates,
    Decision,
    DropPlan,
    Lesson,
    Policy,
    Setting,
    Spec,
    Stats,
    beside_protected,
)
from jettison.spark import mechanisms
from jettison.spark.mechanisms import DropPoint
from live_stream import Collected, Feed, Live, costly, dropped
from page_ledgers import query

pytestmark = pytest.mark.spark
FEW, MANY = 100, 1500


@dataclass(frozen=True, slots=True)
class Limit(Setting):
    """Keep the rows whose value is at most `highest`; all rows where that is `None`."""

    highest: float | None = None
    keep_fraction: float = 1.0

    kind: ClassVar[str] = "limit"

    @property
    def keeps_everything(self) -> bool:
        return self.highest is None

    def decide(self, spec: Spec, rows: Candidates) -> Decision:
        values = np.asarray(rows.columns["value"], float)
        return Decision(values <= (np.inf if self.highest is None else self.highest), np.ones(len(rows)))


@dataclass(frozen=True, slots=True)
class LimitSpec(Spec):
    """The column that holds the value."""

    column: str

    kind: ClassVar[str] = Limit.kind


@dataclass
class DropLargest(Policy):
    """Keeps the lowest values, taken as evenly spread between 0 and the highest one seen."""

    column: str
    highest: dict[str, float] = field(default_factory=dict)

    state_type: ClassVar[Any] = dict[str, float]

    @property
    def spec(self) -> LimitSpec:
        return LimitSpec(self.column)

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        return DropPlan(0, {name: self._setting(name, budget.share, stats) for name in stats.points}, budget.cause)

    def learn(self, lesson: Lesson) -> None:
        for name, highest in lesson.observed.items():
            self.highest[name] = max(self.highest.get(name, 0.0), highest)

    def state(self) -> dict[str, float]:
        return self.highest

    def restore(self, state: dict[str, float]) -> None:
        self.highest = dict(state)

    def _setting(self, name: str, share: float, stats: Stats) -> Limit:
        others = beside_protected(share, stats.points[name].protected_share)
        return Limit() if share >= 1.0 or name not in self.highest else Limit(others * self.highest[name], others)


class LimitMechanism(mechanisms.Mechanism):
    """Executes `Limit`."""

    schema = "struct<highest: double>"

    def __init__(self, spec: LimitSpec) -> None:
        self._column = spec.column

    def plan_fields(self, setting: Column, now_us: Column) -> dict[str, Column]:
        return {"highest": setting["highest"]}

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        return rows[self._column] <= plan["highest"], F.lit(1.0)

    def learned(self, keep: Column) -> dict[str, Column]:
        return {"highest": F.max(F.when(keep, F.col(self._column)))}

    def read(self, observed: Mapping[str, Any]) -> float | None:
        return observed.get("highest")


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanisms, "_by_kind", dict(mechanisms._by_kind))
    mechanisms.register(Limit.kind, LimitMechanism)


@pytest.mark.parametrize("check", ALL_CHECKS, ids=lambda check: check.__name__)
def test_it_passes_every_check_of_a_policy(check) -> None:
    check(DropLargest("value", {f"point{i}": 100.0 for i in range(3)}))


def test_a_kind_of_setting_that_nobody_registered_is_refused_by_name(source, tmp_path: Path) -> None:
    shedder = jt.Shedder(latency="5 seconds", checkpoint=tmp_path / "checkpoint", policy=DropLargest("value"))
    with pytest.raises(Unsupported, match=r"group, priority, random.*got .limit."):
        shedder.guard(source.stream(), row_id="id")


def test_the_page_shows_it(tmp_path: Path) -> None:
    query(tmp_path, setting=Limit(50.0, 0.5), policy=DropLargest("value"))
    (panel,) = Query(str(tmp_path)).view().panels
    assert isinstance(panel, TablePanel)
    assert (panel.title, panel.rows) == ("Setting of the kind limit at rides", [["highest", "50.0"]])


@pytest.mark.long
@pytest.mark.usefixtures("registered", "interpreted")
def test_it_runs_on_spark_under_the_controller_and_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of 2 ms: a hundred a second are few, and 1,500 three times too many. The last run is a dry one."""
    with Feed(tmp_path / "in", rows_per_s=FEW) as feed:
        for restored, dry_run in [(False, False), (True, False), (True, True)]:
            policy, sink = DropLargest("value"), Collected()
            shedder = jt.Shedder(
                latency="4 seconds",
                checkpoint=tmp_path / "checkpoint",
                policy=policy,
                dry_run=dry_run,
            )
            rows = costly(shedder.guard(feed.stream(spark), row_id="id", arrival="at"), row_ms=2.0)
            started_s = time.time()
            with Live(shedder, shedder.start(rows.writeStream.foreachBatch(sink))) as live:
                assert bool(policy.highest) == restored, "what it has learned is there again before the first batch"
                live.until(lambda: len(live.batches(started_s)) > 1, "a second batch")  # noqa: B023
                feed.rows_per_s = MANY
                live.until(lambda: sum(map(dropped, live.batches(started_s))) > 100, "shedding")  # noqa: B023
                feed.rows_per_s = FEW
            assert live.books_closed
            assert list(shedder.ledger.records("start"))[-1]["restored"] == restored
            _judge(live, sink, started_s, dry_run=dry_run)


def _judge(live: Live, sink: Collected, since_s: float, *, dry_run: bool) -> None:
    """Every batch holds the rows that its plan keeps, each of weight 1; in a dry run it holds all of them."""
    limits = {plan["version"]: plan["points"]["rows"]["highest"] for plan in live.shedder.ledger.records("plan")}
    shed = [batch for batch in live.batches(since_s) if dropped(batch)]
    assert shed
    for batch in shed:
        rows, counts = sink.batches[batch["batch_id"]], batch["points"]["rows"]
        there = Candidates("rows", np.array([row["id"] for row in rows]), {"value": [row["value"] for row in rows]})
        kept = Limit(limits[batch["plan_version"]]).decide(LimitSpec("value"), there).keep
        assert len(rows) == counts["seen" if dry_run else "kept"]
        assert kept.sum() == counts["kept"]
    assert {row["jt_weight"] for row in sink.rows} == {1.0}
