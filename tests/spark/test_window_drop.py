"""Window drops on real streams, from guard to delivery: whatever is delivered is exact."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, Stats
from jettison.policies.window import horizon
from jettison.policies.window.window_marks import WindowMarks
from window_streams import START, Ahead, Answers, KeepHalf, Seconds, counts, dropped_windows, fold_of, folded, run

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]
TWENTIES = [range(start, start + 20) for start in range(0, 240, 20)]


@pytest.mark.parametrize(("slide", "aggregate", "answer"), [(10, folded, fold_of), (5, counts, len)])
def test_kept_windows_are_whole_and_dropped_ones_do_not_appear(
    seconds: Seconds,
    tmp_path: Path,
    slide: int,
    aggregate: Callable[..., DataFrame],
    answer: Callable[[range], int],
) -> None:
    seconds.land(*TWENTIES[:4])
    policy = Ahead(time="at", window=("10 seconds", f"{slide} seconds"), max_gap=3)
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=policy)
    rows = shedder.guard(seconds.stream(), row_id="value")
    found = run(shedder, shedder.deliver(aggregate(rows, slide=f"{slide} seconds"), window=F.col("window")))
    dropped = {n * slide - START for n in dropped_windows(list(shedder.ledger.records("plan"))[:1])}
    whole = {start: answer(range(4 * max(start, 0), 4 * start + 40)) for start in range(slide - 10, 70, slide)}
    assert found == {start: value for start, value in whole.items() if start not in dropped}
    assert any(start in dropped for start in whole)
    assert shedder.ledger.totals().kept < 320
    assert not set(shedder.status().faults) - {"accounting"}, "counts may be late on a busy machine; plans may not"


def test_a_window_that_rows_had_reached_before_its_mark_is_held_back(seconds: Seconds, tmp_path: Path) -> None:
    class TooLate(Ahead):
        """Says nothing at first, then drops a window that half its rows have entered."""

        def continued(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
            if previous.cause == "fixed":
                return replace(previous, version=0)
            if stats.batch_id < 0:
                return DropPlan(0, {name: WindowMarks() for name in stats.points}, "nothing yet")
            return super().continued(DropPlan(0), stats, budget)

    policy = TooLate(time="at", window="10 seconds", max_gap=3)
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=policy)
    answers, sink = shedder.deliver(counts(shedder.guard(seconds.stream(), row_id="value"))), Answers()
    query = shedder.start(answers.writeStream.outputMode("append").foreachBatch(sink))
    seconds.land(range(0, 25))  # half of the window that starts at 20, which will be dropped
    query.processAllAvailable()
    deadline = time.monotonic() + 120
    while not any(record["cause"] == "fixed" for record in shedder.ledger.records("plan")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    seconds.land(range(25, 50), range(50, 75), range(75, 100))
    query.processAllAvailable()
    query.stop()
    (plan,) = [record for record in shedder.ledger.records("plan") if record["cause"] == "fixed"]
    assert START // 10 + 2 in dropped_windows([plan])
    assert 20 not in sink.found, "the window was dropped in part, and delivered"
    assert set(sink.found.values()) == {40}


def test_without_a_readable_plan_rows_are_kept_and_no_dropped_window_comes_out(
    seconds: Seconds, tmp_path: Path
) -> None:
    seconds.land(TWENTIES[0])
    policy = Ahead(time="at", window="10 seconds", max_gap=3)
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=policy)
    answers, sink = shedder.deliver(counts(shedder.guard(seconds.stream(), row_id="value"))), Answers()
    query = shedder.start(answers.writeStream.outputMode("append").foreachBatch(sink))
    query.processAllAvailable()
    plan = tmp_path / "checkpoint" / "jettison" / "plan"
    content = bytearray(plan.read_bytes())
    content[30] ^= 1
    plan.write_bytes(bytes(content))
    seconds.land(range(20, 60))
    query.processAllAvailable()
    query.stop()
    # 40 is a kept window: it may still come out, whole, once the pilot has put the plan right.
    assert set(sink.found) <= {0, 10, 40}
    assert set(sink.found.values()) == {40}
    assert shedder.status().faults["plan"] >= 1


def test_marks_outlive_their_controller(spark: SparkSession, seconds: Seconds, tmp_path: Path) -> None:
    """An expired lease must not bring back windows that have lost rows."""
    seconds.land(*TWENTIES[:4])
    policy = Ahead(time="at", window="10 seconds", max_gap=3)
    shedder = jt.Shedder(
        latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=policy, plan_lease="1 microsecond"
    )
    found = run(shedder, shedder.deliver(counts(shedder.guard(seconds.stream(), row_id="value"))))
    assert set(found.values()) == {40}
    assert shedder.ledger.totals().kept < 320


def test_arrivals_are_those_of_all_rows_not_of_the_kept_ones(seconds: Seconds, tmp_path: Path) -> None:
    """Between two kept windows nothing would seem to arrive, and in them all that has come since the last."""
    seconds.land(range(0, 60))
    policy = Ahead(time="at", window="10 seconds", max_gap=3)
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=policy)
    answers = shedder.deliver(counts(shedder.guard(seconds.stream(), row_id="value", arrival="at")))
    query = shedder.start(answers.writeStream.format("noop").outputMode("append").trigger(availableNow=True))
    query.awaitTermination()
    observed = [row.asDict() for progress in query.recentProgress for row in progress.observedMetrics.values()]
    (batch,) = [row for row in observed if row.get("seen")]
    assert batch["kept"] < batch["seen"] == 240
    oldest, newest = (round(at / 1e6) - START for at in batch["arrivals_us"])  # of one row in 16
    assert 0 <= oldest < 20
    assert 40 <= newest < 60


def test_a_restart_goes_on_with_the_same_marks(seconds: Seconds, tmp_path: Path) -> None:
    sink = Answers()
    for round in range(3):
        seconds.land(*TWENTIES[4 * round : 4 * round + 4])
        policy = KeepHalf(time="at", window=("10 seconds", "5 seconds"), max_gap=3)
        shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=policy)
        rows = shedder.guard(seconds.stream("3 seconds"), row_id="value")
        answers = shedder.deliver(counts(rows, slide="5 seconds"))
        query = shedder.start(answers.writeStream.outputMode("append").foreachBatch(sink))
        query.processAllAvailable()
        query.stop()
    assert {n for start, n in sink.found.items() if start >= 0} == {40}
    plans = list(shedder.ledger.records("plan"))
    dropped = {5 * n - START for n in dropped_windows(plans)}
    assert dropped & set(range(0, 240))
    assert set(range(0, 220, 5)) - dropped <= set(sink.found)
    plan_of = {batch["batch_id"]: batch["plan_version"] for batch in shedder.ledger.records("batch")}
    for start, batch in sink.batch_of.items():  # a mark may come after its window was delivered whole, never before
        before = [plan for plan in plans if plan["version"] <= (plan_of.get(batch) or 0)]
        assert start not in {5 * n - START for n in dropped_windows(before)}


class ShutsLong(Ahead):
    """Keeps two common slides, drops one, and then shuts down one of the queries."""

    def continued(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        if "rows" in previous.points:
            return DropPlan(0, previous.points, "as before")
        fan, decider = self.fan, self.decider(self.fan)
        first = fan.first_unit_after(START * 1_000_000 - 1)
        marks = horizon.begin(fan, START * 1_000_000)
        marks = horizon.extend(fan, marks, decider, begun=first + 2, until=first + 3, drop_share=1.0)
        marks = replace(marks, shut=("long",))
        marks = horizon.extend(fan, marks, decider, begun=first + 3, until=first + 6, drop_share=0.0)
        return DropPlan(0, {name: marks for name in stats.points}, "fixed")


def test_two_queries_share_one_guard_and_one_that_is_shut_leaves_the_other_whole(
    seconds: Seconds, tmp_path: Path
) -> None:
    seconds.land(*(range(start, start + 40) for start in range(0, 160, 40)))
    policy = ShutsLong.for_query(
        time="at",
        windows={"short": ["10 seconds"], "long": [("30 seconds", "15 seconds")]},
        max_gap={"short": 9, "long": 6},
    )
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=policy)
    rows = shedder.guard(seconds.stream(), row_id="value")
    short = shedder.deliver(counts(rows), query="short").withColumn("size", F.lit(10))
    long = shedder.deliver(counts(rows, "30 seconds", "15 seconds"), query="long").withColumn("size", F.lit(30))
    found: list[tuple[int, int, int]] = []

    def collect(batch: DataFrame, number: int) -> None:
        starts = batch.selectExpr("size", f"unix_seconds(window.start) - {START} start", "n").collect()
        found.extend((row["size"], row["start"], row["n"]) for row in starts)

    query = shedder.start(short.unionByName(long).writeStream.foreachBatch(collect).trigger(availableNow=True))
    query.awaitTermination()
    # A common slide is 30 s: the one from 60 on is dropped for both, those after it for the long windows alone.
    assert sorted(found) == sorted(
        [(10, start, 40) for start in (*range(0, 60, 10), *range(90, 150, 10))]
        + [(30, -15, 60), *((30, start, 120) for start in range(0, 60, 15))]
    )
    # The last long window that is kept needs rows until 75, the short windows need them again from 90 on. Each query reads
    # the source for itself, in a sink's own execution: rows are counted once, as an estimate.
    totals = shedder.ledger.totals()
    assert (totals.seen, totals.dropped) == (4 * 160, 4 * 15)


@pytest.mark.parametrize(("slide", "rows_share_windows"), [("5 seconds", True), ("10 seconds", False)])
def test_rows_are_dropped_before_they_are_parsed_and_windows_where_answers_leave(
    seconds: Seconds, tmp_path: Path, slide: str, *, rows_share_windows: bool
) -> None:
    seconds.land(TWENTIES[0])
    policy = Ahead(time="at", window=("10 seconds", slide), max_gap=3)
    shedder = jt.Shedder(latency="1 hour", checkpoint=tmp_path / "checkpoint", policy=policy)
    rows = shedder.guard(seconds.stream(), row_id="value")
    parsed = rows.withColumn("value", F.from_json(F.format_string('{"value": %d}', "value"), "value INT")["value"])
    answers = shedder.deliver(counts(parsed, slide=slide))
    query = shedder.start(answers.writeStream.format("noop").outputMode("append"))
    query.processAllAvailable()
    captured = io.StringIO()
    with contextlib.redirect_stdout(captured):
        query.explain()
    query.stop()
    plan = captured.getvalue()
    for operator in ("Python", "Pandas", "Arrow", "MapPartitions"):
        assert operator not in plan
    assert plan.count("FileScan binaryFile") == 2, "once by the guard, and once where answers are held back"
    above, below = plan.split("StateStoreSave", 1)
    assert ".kept0" in above
    assert (".kept0" in below) == rows_share_windows, (
        "below the aggregate only where a kept row may lie in a dropped window"
    )
    behind_the_guard, guard = below.split("Filter (jt_keep", 1)
    assert "from_json" in behind_the_guard
    assert "jt_plan" not in behind_the_guard, "the plan would be copied into every row"
    decided = guard.splitlines()[1].split("CASE", 1)[0]
    assert "jt_plan" not in decided, "nor must it leave with the decision"
    assert "from_json" not in guard.split("BroadcastExchange", 1)[0]
