"""The loop as users run it: nothing of it is replaced, and the controller itself decides what a real query sheds.

Rows cost what a sleep takes, so that capacity does not depend on the machine, and phases last for a number of
batches, so that a slow machine only takes longer. What looks at rows, shares, ledger and exactness is `long` and must
pass; `live` is what looks at latency.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison import functions as jf
from jettison import policy as jp
from jettison.lab.bench.harm import dropped_share
from jettison.lab.bench.harm_run import Case, capacity, run_cold
from jettison.lab.demo.verdict import MINUTE_S
from jettison.spark.join_totals import join_side
from jettison.spark.network_query import Network
from live_stream import Collected, Feed, Live, costly, dropped, kept_share, sheds_fairly
from public_policies import public_policies

pytestmark = pytest.mark.spark
live, long = pytest.mark.live, pytest.mark.long

BOUND_S, SHORT_BOUND_S = 6.0, 4.0
CAPACITY_ROWS_PER_S = 900.0
"""At about 1 ms a row."""
SETTLING_BATCHES, STEADY_BATCHES, OVERLOADED_BATCHES = 4, 5, 4
CALM, OVERLOAD = 0.25 * CAPACITY_ROWS_PER_S, 3.0 * CAPACITY_ROWS_PER_S
IDEAL_SHARE = CAPACITY_ROWS_PER_S / OVERLOAD
FAIR_SHARE, SHORT_FAIR_SHARE = IDEAL_SHARE / 3.0, 0.05
"""What must be kept: a busy machine takes a second or two for each batch, of which the short bound leaves little.

The controller's floor is 0.01.
"""


def answers(rows: DataFrame) -> DataFrame:
    """Counts by second and key, each with its status."""
    windows = rows.withWatermark("at", "0 seconds").groupBy(F.window("at", "1 second"), "key")
    return windows.agg(jt.count(window="window").alias("n")).selectExpr("unix_seconds(window.start) second", "key", "n")


def start(
    rows: DataFrame, folder: Path, sink: Collected, *, row_ms: int, arrival: str = "at", bound_s: float = BOUND_S
) -> Live:
    """Start the query of `answers` behind a guard, with rows that cost `row_ms` each."""
    shedder = jt.Shedder(latency=bound_s, checkpoint=folder / "checkpoint")
    guarded = shedder.guard(rows, row_id="id", arrival=arrival)
    slow = costly(guarded, row_ms) if row_ms else guarded
    return Live(shedder, shedder.start(answers(slow).writeStream.outputMode("append").foreachBatch(sink)))


def drops_nothing(live: Live, feed: Feed, batches: int = 8, *, said: str = "") -> None:
    """Run for some batches, none of which may lose a row; nothing may go wrong, but for what is to be said."""
    with live, feed:
        live.until(lambda: len(live.batches()) >= batches, f"{batches} batches")
    assert sum(map(dropped, live.batches())) == 0, live.story()
    assert not faults(live, said), live.story()
    assert not said or len(faults(live)) == 1, live.story()


def faults(live: Live, *but: str) -> list[str]:
    """What went wrong; on a busy machine counts may be late, and are then called estimates."""
    found = live.shedder.ledger.records("fault")
    return [fault["detail"] for fault in found if fault["kind"] not in ("accounting", *but)]


def in_time(batches: list[dict[str, Any]]) -> bool:
    """Whether the bound holds after the first batches, but for one: for once a machine may be slower than foreseen."""
    settled = batches[SETTLING_BATCHES:]
    return len(settled) > 3 and sum(batch["latency_s"] > BOUND_S for batch in settled) <= 1


@dataclass(frozen=True, slots=True)
class Stepped:
    """A run below capacity, then at three times of it, then below again: its batches, and answers by second and key.

    `early` answers were out before the first step. `settled` are the last batches, which came after some that lost no row.
    """

    calm: list[dict[str, Any]]
    overload: list[dict[str, Any]]
    settled: list[dict[str, Any]]
    early: list[Row]
    answers: dict[tuple[int, str], Row]
    truth: dict[tuple[int, str], int]
    live: Live

    def answers_between(self, from_s: float, to_s: float) -> dict[tuple[int, str], Row]:
        """Answers of the windows that lie in a stretch of time."""
        return {key: n for key, n in self.answers.items() if from_s <= key[0] and key[0] + 1 <= to_s}


def overloaded(live: Live, feed: Feed, rows_per_s: float) -> float:
    """Step up and wait until rows have been shed for some batches, and fairly; returns the time of the step."""
    up_s, feed.rows_per_s = time.time(), rows_per_s
    batches = SETTLING_BATCHES + STEADY_BATCHES
    live.until(lambda: len(live.batches(up_s)) >= batches, f"{batches} batches of the overload")
    # A controller that has cut the share to its floor, and stays there, never comes to this.
    live.until(
        lambda: sheds_fairly(live.batches(up_s), FAIR_SHARE, STEADY_BATCHES),
        f"{STEADY_BATCHES} batches in a row that drop rows and keep {FAIR_SHARE:.2f} of them",
    )
    return up_s


@pytest.fixture(scope="module")
def stepped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stepped:
    folder, sink = tmp_path_factory.mktemp("stepped"), Collected()
    feed = Feed(folder / "in", CALM)
    quiet = SETTLING_BATCHES + STEADY_BATCHES
    with start(feed.stream(spark), folder, sink, row_ms=1) as live, feed:
        live.until(lambda: len(live.batches()) >= 6 and len(sink.rows) > 10, "six batches and some answers")
        calm, early = live.batches(), sink.rows
        up_s = overloaded(live, feed, OVERLOAD)
        down_s, feed.rows_per_s = time.time(), CALM
        live.until(
            lambda: len(last := live.batches(down_s)[-quiet:]) == quiet and not any(map(dropped, last)),
            f"{quiet} batches in a row after the overload that lose no row",
        )
        settled_s = live.batches(down_s)[-STEADY_BATCHES]["started_s"]
        live.until(  # where batches are short, those so far had no time to let a window out
            lambda: any(settled_s <= row.second < live.batches()[-1]["started_s"] - 1 for row in sink.rows),
            "an answer about rows that came since",
        )
    return Stepped(
        calm=calm,
        overload=[batch for batch in live.batches(up_s) if batch["started_s"] <= down_s],
        settled=[batch for batch in live.batches(down_s) if batch["started_s"] >= settled_s],
        early=early,
        answers={(row.second, row.key): row.n for row in sink.rows},
        truth=dict(feed.rows_by_window),
        live=live,
    )


@long
def test_below_capacity_nothing_is_dropped_and_answers_are_exact(stepped: Stepped) -> None:
    assert sum(map(dropped, stepped.calm)) == 0, stepped.live.story()
    assert {row.n.status for row in stepped.early} == {"exact"}, stepped.live.story()


@long
def test_at_three_times_the_capacity_every_batch_loses_rows_but_not_too_many(stepped: Stepped) -> None:
    steady = stepped.overload[-STEADY_BATCHES:]
    assert all(map(dropped, steady)), stepped.live.story()
    assert statistics.median(map(kept_share, steady)) >= FAIR_SHARE, stepped.live.story()


@live
def test_at_three_times_the_capacity_latency_comes_back_and_most_of_what_can_be_kept_is(stepped: Stepped) -> None:
    assert in_time(stepped.overload), stepped.live.story()
    steady = [batch["points"]["rows"] for batch in stepped.overload[SETTLING_BATCHES:]]
    kept = sum(point["kept"] for point in steady) / sum(point["seen"] for point in steady)
    assert 0.5 < kept / IDEAL_SHARE < 1.2, stepped.live.story()


@long
def test_no_answer_that_misses_rows_is_called_exact(stepped: Stepped) -> None:
    exact = {key: n.value for key, n in stepped.answers.items() if n.status == "exact"}
    assert exact == {key: stepped.truth[key] for key in exact}
    begin_s, end_s = (stepped.overload[place]["started_s"] for place in (-STEADY_BATCHES, -1))
    shed = stepped.answers_between(begin_s, end_s)
    assert shed
    assert not {n.status for n in shed.values()} - {"bounded", "few rows", "unconfirmed"}


@long
def test_when_the_load_falls_everything_is_kept_and_exact_again(stepped: Stepped) -> None:
    late = stepped.answers_between(stepped.settled[0]["started_s"], stepped.settled[-1]["started_s"])
    assert late
    assert {n.status for n in late.values()} == {"exact"}, stepped.live.story()
    assert not faults(stepped.live), stepped.live.story()
    assert stepped.live.books_closed, stepped.live.story()


@dataclass(frozen=True, slots=True)
class Costly:
    """A run with rows that cost 8 ms each, below capacity and then at three times of it."""

    calm: list[dict[str, Any]]
    overload: list[dict[str, Any]]
    live: Live


@pytest.fixture(scope="module")
def costly_rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Costly:
    folder, row_ms = tmp_path_factory.mktemp("costly"), 8
    capacity_rows_per_s = 1000 / row_ms
    feed = Feed(folder / "in", 0.25 * capacity_rows_per_s)
    with start(feed.stream(spark), folder, Collected(), row_ms=row_ms) as live, feed:
        live.until(lambda: len(live.batches()) >= 4, "four batches")
        calm = live.batches()
        up_s = overloaded(live, feed, 3.0 * capacity_rows_per_s)
    return Costly(calm, live.batches(up_s), live)


@long
def test_costly_rows_are_shed_only_above_capacity_and_not_too_many(costly_rows: Costly) -> None:
    live, steady = costly_rows.live, costly_rows.overload[-STEADY_BATCHES:]
    assert sum(map(dropped, costly_rows.calm)) == 0, live.story()
    assert all(map(dropped, steady)), live.story()
    assert statistics.median(map(kept_share, steady)) >= FAIR_SHARE, live.story()
    assert not faults(live), live.story()


@live
def test_costly_rows_are_shed_to_the_bound(costly_rows: Costly) -> None:
    assert in_time(costly_rows.overload), costly_rows.live.story()


@long
def test_a_cold_process_below_capacity_keeps_every_row() -> None:
    """A process of its own, in which nothing has run before."""
    run = run_cold(Case("cold", rows_per_s=5_000.0, duration_s=40.0, bound_s=5.0))
    assert len(run.batches) > 1
    assert dropped_share(run) == 0.0, [(batch.rows, batch.kept_fraction) for batch in run.batches]


@live
def test_a_cold_process_at_four_tenths_of_the_capacity_keeps_nearly_every_row() -> None:
    """Of the plain query, warm, in a process before it: a machine that is busier by then than it was, has less."""
    rows_per_s = 0.4 * capacity("files", "fares", load=1.5)
    run = run_cold(Case("cold-at-0.4", rows_per_s=rows_per_s, duration_s=70.0, bound_s=5.0))
    story = (
        rows_per_s,
        [(batch.rows, batch.committed_s - batch.started_s, batch.kept_fraction) for batch in run.batches],
    )
    assert dropped_share(run, to_s=MINUTE_S) <= 0.02, story
    assert dropped_share(run, from_s=MINUTE_S) == 0.0, story


@long
def test_a_large_fixed_cost_drops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", 100.0)
    drops_nothing(start(feed.stream(spark), tmp_path, Collected(pause_s=1.0), row_ms=0, bound_s=3.0), feed)


@long
@pytest.mark.parametrize(
    ("arrival", "said"),
    [
        ("at - interval 5 seconds", "arrival"),
        ("at - interval 1 hour", "arrival"),
        ("if(id = 500, timestamp_seconds(0), at)", ""),
    ],
    ids=["5 s behind", "1 h behind", "one row from 1970"],
)
def test_a_clock_that_is_wrong_drops_nothing(spark: SparkSession, tmp_path: Path, arrival: str, said: str) -> None:
    feed = Feed(tmp_path / "in", CALM)
    rows = feed.stream(spark).withColumn("arrived", F.expr(arrival))
    drops_nothing(start(rows, tmp_path, Collected(), row_ms=1, arrival="arrived"), feed, said=said)


def keeps_rows(live: Live) -> bool:
    return sheds_fairly(live.batches(), SHORT_FAIR_SHARE)


def sheds(live: Live, feed: Feed, *, said: str = "", fair: Callable[[Live], bool] = keeps_rows) -> list[dict[str, Any]]:
    """Step to three times the capacity until some batches have lost rows, and no longer too many; returns the batches.

    Nothing may go wrong, but for what the ledger is known to say of such a query; all else must be counted exactly.
    """
    with live, feed:
        live.until(lambda: len(live.batches()) >= 3, "three batches")
        feed.rows_per_s = OVERLOAD
        live.until(
            lambda: sum(1 for batch in live.batches() if dropped(batch)) >= OVERLOADED_BATCHES,
            f"{OVERLOADED_BATCHES} batches that drop rows",
        )
        live.until(lambda: fair(live), f"a share of {SHORT_FAIR_SHARE} that is kept")
    assert live.books_closed, live.story()
    assert not faults(live, said), live.story()
    points = [point for batch in live.batches() for point in batch["points"].values()]
    assert all(point["seen"] == point["kept"] + point["dropped"] for point in points)
    counted = [batch for batch in live.batches() if said or all(point["exact"] for point in batch["points"].values())]
    assert counted, live.story()
    return counted


@long
@pytest.mark.parametrize(
    ("arrival", "said"),
    [("at - interval 1 hour", "arrival"), ("if(id % 1000 = 500, timestamp_seconds(0), at)", "")],
    ids=["1 h behind", "rows from 1970"],
)
def test_an_overload_is_shed_though_a_clock_is_wrong(
    spark: SparkSession, tmp_path: Path, arrival: str, said: str
) -> None:
    feed = Feed(tmp_path / "in", CALM)
    rows = feed.stream(spark).withColumn("arrived", F.expr(arrival))
    live = start(rows, tmp_path, Collected(), row_ms=1, arrival="arrived", bound_s=SHORT_BOUND_S)
    assert max(batch["latency_s"] for batch in sheds(live, feed, said=said)) < 3600.0, live.story()


SEEN_ROWS = {"value": np.arange(100.0)}
ROW_POLICIES = {
    "UniformDrop": jt.UniformDrop,
    "PriorityDrop": lambda: jt.PriorityDrop({"value >= 75": 2}),
    "ConceptDrop": lambda: jt.ConceptDrop(group="key", time="at", window="2 seconds"),
    "Sifter": lambda: jt.Sifter(jt.RangeQueries([jt.Attribute.number("value", 0, 100)], ["value > 75"]), SEEN_ROWS),
}


@long
@pytest.mark.parametrize("policy", ROW_POLICIES.values(), ids=ROW_POLICIES)
def test_a_policy_sheds_and_its_ledger_agrees_with_the_sink(
    spark: SparkSession, tmp_path: Path, policy: Callable[[], jp.Policy]
) -> None:
    feed, sink = Feed(tmp_path / "in", CALM), Collected()
    shedder = jt.Shedder(latency=SHORT_BOUND_S, checkpoint=tmp_path / "checkpoint", policy=policy())
    rows = costly(shedder.guard(feed.stream(spark), row_id="id", arrival="at"), 1).select("id", "jt_weight")
    live = Live(shedder, shedder.start(rows.writeStream.foreachBatch(sink)))
    counted = sheds(live, feed)
    kept = {batch["batch_id"]: batch["points"]["rows"]["kept"] for batch in counted}
    assert kept == {number: len(sink.batches[number]) for number in kept}
    assert len({row.id for row in sink.rows}) == len(sink.rows), "a row came out twice"
    assert min(row.jt_weight for row in sink.rows) == 1.0
    assert max(row.jt_weight for row in sink.rows) > 1.0


@long
def test_windows_that_are_left_are_whole(spark: SparkSession, tmp_path: Path) -> None:
    feed, sink = Feed(tmp_path / "in", CALM), Collected()
    policy = jt.WindowDrop(time="at", window="1 second", max_gap=10)
    shedder = jt.Shedder(latency=SHORT_BOUND_S, checkpoint=tmp_path / "checkpoint", policy=policy)
    rows = costly(shedder.guard(feed.stream(spark).withWatermark("at", "0 seconds"), row_id="id"), 1)
    windows = rows.groupBy(F.window("at", "1 second"), "key").agg(F.count(F.lit(1)).alias("n"))
    delivered = shedder.deliver(windows).selectExpr("unix_seconds(window.start) second", "key", "n")
    live = Live(shedder, shedder.start(delivered.writeStream.outputMode("append").foreachBatch(sink)))

    def may_keep(live: Live) -> bool:
        """By rows nothing could be told: few windows are in a batch, and by `max_gap` any plan keeps one of eleven."""
        return [*live.shedder.ledger.records("plan")][-1]["decision"]["share"] >= SHORT_FAIR_SHARE

    sheds(live, feed, fair=may_keep)
    assert {(row.second, row.key): row.n for row in sink.rows} == {
        (row.second, row.key): feed.rows_by_window[row.second, row.key] for row in sink.rows
    }
    assert 0 < sum(row.n for row in sink.rows) <= shedder.ledger.totals().kept


@long
def test_pairs_of_a_join_stand_for_all_pairs(spark: SparkSession, tmp_path: Path) -> None:
    feed, sink = Feed(tmp_path / "in", CALM), Collected()
    policy = jt.JoinDrop("id", "at", "2 seconds")
    shedder = jt.Shedder(latency=SHORT_BOUND_S, checkpoint=tmp_path / "checkpoint", policy=policy)

    def guarded(side: str) -> DataFrame:
        rows = shedder.guard(feed.stream(spark), row_id="id", arrival="at", name=side)
        watermarked = join_side(costly(rows, 0.5), side).withWatermark("at", "0 seconds")
        return watermarked.select("id", "at", f"{side}_weight", f"{side}_whole")

    # Each row meets itself on the other side, and no other.
    pairs = guarded("left").join(guarded("right"), ["id", "at"]).select("id", jf.pair_weight().alias("stands_for"))
    live = Live(shedder, shedder.start(pairs.writeStream.foreachBatch(sink)))
    sheds(live, feed)
    rows = min(sum(batch["points"][side]["seen"] for batch in live.batches()) for side in ("left", "right"))
    assert len({row.id for row in sink.rows}) == len(sink.rows) < rows
    assert min(row.stands_for for row in sink.rows) == 1.0 < max(row.stands_for for row in sink.rows)
    assert sum(row.stands_for for row in sink.rows) == pytest.approx(rows, rel=0.1)


@long
def test_a_network_sheds_and_its_ledger_agrees_with_the_sinks(spark: SparkSession, tmp_path: Path) -> None:
    feed, every, high = Feed(tmp_path / "in", CALM), Collected(), Collected()
    network = Network()
    readings = network.input("readings", feed.stream(spark), row_id="id")
    work = network.map("work", readings, lambda rows: costly(rows, 1))
    network.output("every", work, every)
    network.output("high", network.filter("above", work, "value >= 50", selectivity=0.5), high)
    query = network.start(latency=SHORT_BOUND_S, checkpoint=tmp_path / "checkpoint")
    assert network.shedder is not None
    # Both outputs read the input's rows in one execution, so its count is an estimate, and that is said.
    batches = sheds(Live(network.shedder, query), feed, said="estimate")
    for batch in batches:
        number, points = batch["batch_id"], batch["points"]
        assert points["work__every"]["kept"] == len(every.batches[number])
        if not points["work__above"]["dropped"] and not points["work__every"]["dropped"]:
            assert len(high.batches[number]) == sum(row.value >= 50 for row in every.batches[number])


def test_every_policy_has_shed_live() -> None:
    """Those that need a query of their own have a test of their own."""
    own = {
        "WindowDrop": test_windows_that_are_left_are_whole,
        "JoinDrop": test_pairs_of_a_join_stand_for_all_pairs,
        "NetworkDrop": test_a_network_sheds_and_its_ledger_agrees_with_the_sinks,
    }
    assert public_policies() == {*ROW_POLICIES, *own}
