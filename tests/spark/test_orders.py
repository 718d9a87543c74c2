"""Orders given to a real query: the next batches follow, answers stay honest, and a repeated batch stays as it was."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

import jettison as jt
from driver_process import kill_when, start_driver
from jettison.lab.bench.scripted import land
from jettison.lab.bench.streams import KeepShare
from jettison.page.command import run_top
from jettison.page.view import Query
from jettison.runtime.set_command import run_set
from told_stream import await_plan, until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]


class Steered:
    """A query that drops everything that it may, and the weights of the rows of every batch."""

    def __init__(self, source, folder: Path) -> None:  # type: ignore[no-untyped-def]
        self.source, self.checkpoint = source, folder / "checkpoint"
        self.weights: dict[int, list[float]] = {}
        self.shedder = jt.Shedder(latency="1 hour", checkpoint=self.checkpoint, policy=KeepShare(0.0))
        rows = self.shedder.guard(source.stream(), row_id="id")
        self.query = self.shedder.start(rows.writeStream.foreachBatch(self._sink))

    def _sink(self, rows: DataFrame, batch: int) -> None:
        self.weights[batch] = [row.jt_weight for row in rows.collect()]

    def give(self, **given: object) -> str:
        console = Console(file=io.StringIO(), width=400)
        run_set(console, str(self.checkpoint), **given)  # type: ignore[arg-type]
        return console.file.getvalue()  # type: ignore[attr-defined]

    def batch(self, rows: list[dict[str, object]]) -> list[float]:
        assert self.shedder._run is not None
        await_plan(self.shedder._run.pilot)
        self.source.land(rows)
        self.query.processAllAvailable()
        return self.weights[max(self.weights)]


def test_a_running_query_follows_and_everybody_is_told(
    spark: SparkSession, source, tmp_path: Path, numbered: Callable[..., list[dict[str, object]]]
) -> None:
    steered = Steered(source, tmp_path)
    with steered.shedder:
        assert steered.batch(numbered(0, 100)) == []
        assert "the query follows it from its next plan on" in steered.give(keep_everything=True, reason="fire drill")
        assert steered.batch(numbered(100, 200)) == [1.0] * 100
        steered.give(bound_s=30.0, dry_run=True, reason="fire drill")
        status = steered.shedder.status()
        assert (status.mode, status.latency_bound_s, len(status.orders)) == ("dry run", 30.0, 3)
        assert "in force until cleared: a latency bound of 30 s (set by " in str(status)
        steered.give(clear=["keep-everything", "dry-run"])
        run = steered.shedder._run
        assert run is not None
        until(lambda: not run.pilot.plan.keeps_everything)
        assert steered.batch(numbered(200, 300)) == []
        view = Query(str(steered.checkpoint)).view()
    assert view.bound_s == 30.0
    assert [order.partition(" (")[0] for order in view.orders] == ["a latency bound of 30 s"]
    told = [change.text for change in view.changes if change.kind == "order"]
    assert len(told) == 3
    assert all("fire drill" in text for text in told)
    console = Console(width=200, file=io.StringIO())
    run_top(console, str(steered.checkpoint))
    assert "set: a latency bound of 30 s (set by " in console.file.getvalue()  # type: ignore[attr-defined]
    totals = steered.shedder.ledger.totals()
    assert (totals.batches, totals.seen, totals.kept) == (3, 300, 100)


def test_orders_stand_after_a_restart_until_they_are_cleared(
    spark: SparkSession, source, tmp_path: Path, numbered: Callable[..., list[dict[str, object]]]
) -> None:
    first = Steered(source, tmp_path)
    with first.shedder:
        assert first.batch(numbered(0, 10)) == []
    assert "no query runs on this checkpoint" in first.give(keep_everything=True)
    second = Steered(source, tmp_path)
    with second.shedder:
        assert second.batch(numbered(10, 20)) == [1.0] * 10
        assert second.shedder.ledger.last("order")["text"].startswith("still in force: keep everything")  # type: ignore[index]
        second.give(clear=["all"])
        run = second.shedder._run
        assert run is not None
        until(lambda: not run.pilot.plan.keeps_everything)
        assert second.batch(numbered(20, 30)) == []


@pytest.mark.long
def test_a_batch_repeated_after_kill_9_keeps_its_rows_although_an_order_came_in_between(tmp_path: Path) -> None:
    land(tmp_path / "in", range(3), groups=500)
    first, again = tmp_path / "attempt-0.3.json", tmp_path / "attempt-0.9.json"
    kill_when(start_driver("replay_driver", tmp_path, str(tmp_path), "0.3"), first.exists)
    (tmp_path / "checkpoint" / "jettison" / "owner.json").unlink()  # a killed driver leaves it; nobody need wait here
    run_set(Console(file=io.StringIO()), str(tmp_path / "checkpoint"), keep_everything=True)
    assert start_driver("replay_driver", tmp_path, str(tmp_path), "0.9", "finish").wait(timeout=240) == 0
    kept = json.loads(first.read_text())
    assert 0 < len(kept) < 0.5 * 600
    assert json.loads(again.read_text()) == kept
    last = jt.Ledger(tmp_path / "checkpoint" / "jettison" / "ledger").last("batch")
    assert last is not None
    (counts,) = last["points"].values()
    assert (last["batch_id"], counts["kept"]) == (2, counts["seen"])
