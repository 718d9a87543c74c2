"""The shedder on live queries: plans without restarts, exact books, dry run, and what it refuses."""

from __future__ import annotations

import json
import logging
import shutil
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, Stats
from jettison.core.storage import Folder
from jettison.errors import InvalidInput, InvalidSetting, JettisonError, MissingColumn, Unsupported
from jettison.lab.bench.streams import KeepShare
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.runtime import plan_file
from jettison.runtime.schedule import Schedule
from spark_since import ACCOUNTING
from told_stream import await_plan, until


def start(shedder: jt.Shedder, rows: DataFrame, out: Path, *, id: str = "id", **guard: Any) -> Any:
    kept = shedder.guard(rows, row_id=id, **guard)
    return shedder.start(kept.writeStream.format("parquet").option("path", str(out)).outputMode("append"))


def settled(condition: Callable[[], bool], *, within_s: float = 120.0) -> bool:
    """Whether `condition` comes true: the books are kept on a thread of their own."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("accounting", ACCOUNTING)
@pytest.mark.parametrize("arrival", [None, "at"])
def test_books_agree_with_source_and_sink(
    spark: SparkSession, source, numbered, tmp_path: Path, accounting: str, arrival: str | None
) -> None:
    policy = KeepShare(0.4)
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=policy, accounting=accounting)
    # A filter of the user's before and after the guard must not confuse the counts.
    rows = source.stream().where("id >= 100")
    kept = shedder.guard(rows, row_id="id", arrival=arrival).where("value < 50")
    query = shedder.start(kept.writeStream.format("parquet").option("path", str(tmp_path / "out")))
    sizes = [700, 1, 1200, 300]
    for batch in range(len(sizes)):
        source.land(numbered(sum(sizes[:batch]), sum(sizes[: batch + 1])))
        query.processAllAvailable()
    assert settled(lambda: shedder.ledger.totals().batches >= len(sizes))
    query.stop()
    batches = {record["batch_id"]: record["points"]["rows"] for record in shedder.ledger.records("batch")}
    assert [batches[batch]["seen"] for batch in range(len(sizes))] == [600, 1, 1200, 300]
    assert all(point["seen"] == point["kept"] + point["dropped"] and point["exact"] for point in batches.values())
    # The rows that should have been kept, decided again over the whole source in one batch query.
    expected = expected_ids(spark, source, tmp_path, 0.4)
    assert shedder.ledger.totals().kept == len(expected)
    written = {row.id for row in spark.read.parquet(str(tmp_path / "out")).collect()}
    assert written == {i for i in expected if i % 100 < 50}


def expected_ids(spark: SparkSession, source, tmp_path: Path, keep_fraction: float) -> set[int]:
    from jettison.spark.channel import Channel
    from jettison.spark.drop_point import DropPoint
    from jettison.spark.guard import guarded
    from jettison.spark.mechanisms import RandomMechanism

    channel = Channel(Folder(tmp_path / "again"), lease_s=60.0)
    channel.publish(Schedule.of(DropPlan(1, {"rows": RandomDrop(keep_fraction)})))
    plan = channel.plan_row(spark, {"rows": RandomMechanism()}, metric="again")
    rows = spark.read.schema(source.SCHEMA).json(str(source.folder)).where("id >= 100")
    token = (tmp_path / "c" / "jettison" / "token").read_text()
    point = DropPoint("rows", ("id",), observed=False, token=token)
    return {row.id for row in guarded(rows, point, RandomMechanism(), plan).collect()}


def test_the_plan_changes_without_a_restart(source, numbered, tmp_path: Path) -> None:
    policy = KeepShare(1.0)
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=policy)
    query = start(shedder, source.stream(), tmp_path / "out")
    run = query.runId
    source.land(numbered(0, 1000))
    query.processAllAvailable()
    for batch, fraction in enumerate([0.0, 1.0], start=1):
        policy.keep_fraction = fraction
        # The next look at the query, here when it reports that it is idle, makes the plan.
        assert settled(lambda wanted=fraction: shedder.status().keep_fraction == {"rows": wanted})
        await_plan(shedder._run.pilot)
        source.land(numbered(batch * 1000, batch * 1000 + 1000))
        query.processAllAvailable()
    assert settled(lambda: shedder.ledger.totals().batches >= 3)
    kept = [record["points"]["rows"]["kept"] for record in shedder.ledger.records("batch")]
    assert kept == [1000, 0, 1000]
    assert query.runId == run
    plans = list(shedder.ledger.records("plan"))
    assert [plan["version"] for plan in plans] == [1, 2, 3]
    assert all(plan["cause"] for plan in plans)
    assert {record["plan_version"] for record in shedder.ledger.records("batch")} == {1, 2, 3}
    query.stop()


@pytest.mark.parametrize("while_it_runs", [0, 1])
def test_a_plan_made_while_a_batch_runs_is_that_of_the_next_batch(
    source, numbered, tmp_path: Path, while_it_runs: int
) -> None:
    """Though the next batch's rows are there already, and no report has come since."""
    policy, held, kept = KeepShare(1.0), threading.Event(), []

    def sink(rows: DataFrame, batch: int) -> None:
        kept.append(rows.count())
        if batch == while_it_runs:
            held.set()
            assert go_on.wait(120.0)

    go_on = threading.Event()
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=policy)
    query = shedder.start(shedder.guard(source.stream(), row_id="id").writeStream.foreachBatch(sink))
    pilot = shedder._run.pilot
    for batch in range(while_it_runs + 2):
        source.land(numbered(100 * batch, 100 * batch + 100))
        until(lambda batch=batch: held.is_set() or pilot.tally.batches > batch)
        if batch == while_it_runs:
            policy.keep_fraction = 0.0
    until(lambda: pilot.plan.version == 2)
    await_plan(pilot)
    assert len(kept) == while_it_runs + 1, "the next batch has not started"
    go_on.set()
    query.processAllAvailable()
    until(lambda: shedder.ledger.totals().batches >= while_it_runs + 2)
    query.stop()
    assert kept == [100] * (while_it_runs + 1) + [0]
    batches = list(shedder.ledger.records("batch"))
    assert [batch["plan_version"] for batch in batches] == [1] * (while_it_runs + 1) + [2]
    (made,) = (plan["at_s"] for plan in shedder.ledger.records("plan") if plan["version"] == 2)
    assert batches[-2]["started_s"] < made < batches[-1]["started_s"]


def forged(plans: list[Any]) -> bytes:
    """A plan file whose checksum and lease fit, whatever it holds."""
    body = json.dumps({"doubtful_until_us": 0, "doubts": "0;", "plans": plans})
    checked = f"{10**16 - 1} 00016 {0:010d} {body}".encode()
    return f"{zlib.crc32(checked):010d} ".encode() + checked


@pytest.mark.parametrize("fault", ["missing", "damaged", "truncated", "overlong", "expired", "empty", "all later"])
def test_a_plan_that_cannot_be_used_keeps_everything_and_says_so_once(
    source, numbered, tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    lease = "1 second" if fault == "expired" else "1 minute"
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=KeepShare(0.0), plan_lease=lease)
    query = start(shedder, source.stream(), tmp_path / "out")
    file = tmp_path / "c" / "jettison" / "plan"
    content = file.read_bytes()
    pilot = shedder._run.pilot
    assert pilot is not None
    # The controller is dead: nobody renews or heals the plan.
    pilot._publisher.publish = lambda *_: None  # type: ignore[method-assign]
    if fault == "missing":
        file.unlink()
    elif fault == "expired":
        time.sleep(1.5)
    else:
        later = {"from_us": 2**60, "version": 9, "points": {"rows": {"kind": "random", "keep_fraction": 0.0}}}
        spoilt = {
            "damaged": content.replace(b"0.0", b"0.5"),
            "truncated": content[:50],
            "overlong": content + b" ",
            "empty": forged([]),
            "all later": forged([later]),
        }
        file.write_bytes(spoilt[fault])
    with caplog.at_level(logging.WARNING, logger="jettison"):
        for batch in range(2):
            source.land(numbered(batch * 500, batch * 500 + 500))
            query.processAllAvailable()
        assert settled(lambda: shedder.ledger.totals().batches >= 2)
    query.stop()
    assert shedder.ledger.totals().kept == 1000
    assert shedder.status().faults["plan"] == 2
    assert len([record for record in caplog.records if "no valid plan" in record.message]) == 1


def test_a_plan_too_large_keeps_everything(source, numbered, tmp_path: Path) -> None:
    class Chatty(KeepShare):
        """Fits the file when the query starts, and never again."""

        started = False
        plan_bytes = 4096

        def plan(self, stats: Stats, budget: Budget) -> DropPlan:
            plan = DropPlan(0, {name: RandomDrop(0.0) for name in stats.points}, cause="x" * 10_000 * self.started)
            self.started = True
            return plan if plan.cause else super().plan(stats, budget)

    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=Chatty(0.1))
    query = start(shedder, source.stream(), tmp_path / "out")
    for batch in range(2):
        source.land(numbered(batch * 500, batch * 500 + 500))
        query.processAllAvailable()
        assert settled(lambda batch=batch: shedder.ledger.totals().batches > batch)
        await_plan(shedder._run.pilot)
    query.stop()
    kept = [record["points"]["rows"]["kept"] for record in shedder.ledger.records("batch")]
    assert 0 < kept[0] < 150
    assert kept[1] == 500
    assert shedder.status().faults["controller"] >= 1


def test_dry_run_decides_and_counts_but_drops_nothing(spark, source, numbered, tmp_path: Path) -> None:
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=KeepShare(0.3), dry_run=True)
    query = start(shedder, source.stream(), tmp_path / "out")
    source.land(numbered(0, 2000))
    query.processAllAvailable()
    assert settled(lambda: shedder.ledger.totals().batches >= 1)
    assert shedder.status().mode == "dry run"
    query.stop()
    written = spark.read.parquet(str(tmp_path / "out"))
    assert written.count() == 2000
    assert {row.jt_weight for row in written.select("jt_weight").distinct().collect()} == {1.0}
    assert 450 < shedder.ledger.totals().kept < 750
    assert shedder.status().mode == "ended"


def test_a_first_batch_on_a_backlog_is_kept_because_its_clock_is_not_known_yet(
    source, numbered, tmp_path: Path
) -> None:
    shedder = jt.Shedder(latency="5 seconds", checkpoint=tmp_path / "c")
    source.land(numbered(0, 4000))  # they arrived months ago, or the column is months behind
    query = start(shedder, source.stream(), tmp_path / "out", arrival="at")
    query.processAllAvailable()
    assert settled(lambda: shedder.ledger.totals().batches >= 1)
    query.stop()
    first = next(shedder.ledger.records("batch"))["points"]["rows"]
    assert (first["seen"], first["kept"]) == (4000, 4000)


def test_the_source_is_told_what_to_hand_over(source, tmp_path: Path, caplog) -> None:
    shedder = jt.Shedder(latency="5 seconds", checkpoint=tmp_path / "c", peak_rows_per_s=1000)
    assert shedder.rows_per_trigger == 2500
    with caplog.at_level(logging.INFO, logger="jettison"), shedder:
        shedder.start(shedder.guard(source.stream(), row_id="id").writeStream.format("noop"))
    assert any("at most 2500 rows" in record.getMessage() for record in caplog.records)
    assert jt.Shedder(latency="5 seconds", checkpoint=tmp_path / "c").rows_per_trigger is None


def test_columns_are_given_by_name_or_as_expressions_and_guard_fits_transform(source, numbered, tmp_path: Path) -> None:
    source.land(numbered(0, 2000))
    kept = {}
    for way, row_id, arrival in (
        ("names", "id", "at"),
        ("columns", F.col("id"), F.col("at")),
        ("expression", [F.col("id") + 0], F.col("at") + F.expr("interval 0 seconds")),
    ):
        folder = tmp_path / "c"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "jettison").mkdir(parents=True)
        (folder / "jettison" / "token").write_text("one for all")
        shedder = jt.Shedder(latency="1 minute", checkpoint=folder, policy=KeepShare(0.4))
        rows = source.stream().transform(shedder.guarding(row_id=row_id, arrival=arrival))
        assert rows.columns == [*source.stream().columns, "jt_weight"]
        with shedder:
            out = rows.writeStream.format("parquet").option("path", str(tmp_path / way))
            shedder.start(out).processAllAvailable()
        kept[way] = {row.id for row in source.stream().sparkSession.read.parquet(str(tmp_path / way)).collect()}
        assert shedder.ledger.totals().kept == len(kept[way])
    assert 600 < len(kept["names"]) < 1000
    assert kept["names"] == kept["columns"] == kept["expression"]


def test_status_and_protected_rows(source, numbered, tmp_path: Path) -> None:
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=KeepShare(0.0))
    query = start(shedder, source.stream(), tmp_path / "out", protect="vip", name="rides")
    source.land(numbered(0, 1000))
    query.processAllAvailable()
    assert settled(lambda: shedder.status().batches >= 1)
    status = shedder.status()
    query.stop()
    assert (status.mode, status.keep_fraction) == ("shedding", {"rides": 0.0})
    assert (status.rows_seen, status.rows_kept, status.rows_dropped) == (1000, 20, 980)
    assert status.latency_s is not None
    assert "told to keep 0.0" in str(status)
    assert status.faults == {}


@pytest.mark.parametrize("name", ["row.id", "row`id", "`", "a b", "row.`id`"])
def test_any_column_can_identify_rows(source, numbered, tmp_path: Path, name: str) -> None:
    source.land(numbered(0, 1000))
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c", policy=KeepShare(0.4))
    rows = source.stream().withColumnRenamed("id", name)
    with shedder:
        shedder.start(shedder.guard(rows, row_id=name).writeStream.format("noop")).processAllAvailable()
    assert 300 < shedder.ledger.totals().kept < 500


def test_the_status_tells_the_newest_plan_from_that_of_the_batch_that_runs(source, numbered, tmp_path: Path) -> None:
    begun, go_on, attempts = threading.Event(), threading.Event(), iter(("interrupted", "committed"))

    def wait(rows: Any, batch: int) -> None:
        rows.count()
        begun.set()
        assert go_on.wait(60.0)
        assert next(attempts) == "committed"

    def started() -> jt.Shedder:
        shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c")
        shedder.start(shedder.guard(source.stream(), row_id="id").writeStream.foreachBatch(wait))
        assert begun.wait(60.0)
        begun.clear()
        return shedder

    source.land(numbered(0, 1000))
    shedder = started()
    assert "that runs" not in str(shedder.status())
    pilot = shedder._run.pilot
    pilot._put_in_force(DropPlan(99, {"rows": RandomDrop(0.25)}, cause="as if overloaded"), time.time())
    expected = "shedding (keep fraction: rows 0.250) from the next batch on: the batch that runs keeps all its rows, "
    assert str(shedder.status()).startswith(expected)
    go_on.set()
    shedder.close()
    go_on.clear()
    shedder = started()
    assert "a batch that was begun before the restart keeps the rows of its first attempt" in str(shedder.status())
    go_on.set()
    assert settled(lambda: shedder.status().batches == 1)
    assert shedder.status().rows_kept == 1000
    shedder.close()


def test_a_source_that_stops_brings_everything_back(source, numbered, tmp_path: Path) -> None:
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c")
    query = start(shedder, source.stream(), tmp_path / "out")
    source.land(numbered(0, 100))
    query.processAllAvailable()
    pilot = shedder._run.pilot
    assert pilot is not None
    pilot._put_in_force(DropPlan(99, {"rows": RandomDrop(0.1)}, cause="as if overloaded"), time.time())
    assert settled(lambda: shedder.status().mode == "keeping everything")
    query.stop()


def test_threads_and_listener_end_with_the_query(spark, source, numbered, tmp_path: Path) -> None:
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c")
    query = start(shedder, source.stream(), tmp_path / "out")
    source.land(numbered(0, 10))
    query.processAllAvailable()
    query.stop()
    assert shedder.await_books()
    assert [record["faults"] for record in shedder.ledger.records("stop")] == [{}]
    assert settled(lambda: not any(thread.is_alive() for thread in shedder._run.pilot._threads))  # type: ignore[union-attr]


def test_a_query_that_fails_to_start_leaves_the_shedder_usable(source, numbered, tmp_path: Path) -> None:
    shedder = jt.Shedder(latency="1 minute", checkpoint=tmp_path / "c")
    rows = shedder.guard(source.stream(), row_id="id")
    source.land(numbered(0, 10))
    with pytest.raises(Exception, match="path"):
        shedder.start(rows.writeStream.format("parquet"))
    query = shedder.start(rows.writeStream.format("noop"))
    query.processAllAvailable()
    query.stop()


class TestRefusals:
    """Each error says what was expected, what came, and a way out, before anything starts."""

    def shedder(self, tmp_path: Path, **settings: Any) -> jt.Shedder:
        return jt.Shedder(**({"latency": "5 seconds", "checkpoint": tmp_path / "c"} | settings))

    @pytest.mark.parametrize("latency", [-1, 0, "soon", "-3 seconds", float("nan"), None])
    def test_bad_bound(self, tmp_path: Path, latency: Any) -> None:
        with pytest.raises(InvalidSetting, match=r"`latency` must be a positive duration.*Hint"):
            self.shedder(tmp_path, latency=latency)

    def test_share_of_late_rows_without_arrivals(self, source, tmp_path: Path) -> None:
        shedder = self.shedder(tmp_path, late_share=0.2)
        rows = shedder.guard(source.stream(), row_id="id")
        with pytest.raises(InvalidSetting, match=r"`late_share` needs a guard with `arrival`, got 0\.2"):
            shedder.start(rows.writeStream.format("noop"))

    def test_no_identity(self, source, tmp_path: Path) -> None:
        for nothing in ([], None, ""):
            with pytest.raises(JettisonError, match="`row_id` must name"):
                self.shedder(tmp_path).guard(source.stream(), row_id=nothing)  # type: ignore[arg-type]

    def test_missing_column(self, source, tmp_path: Path) -> None:
        with pytest.raises(MissingColumn, match=r"`row_id` must name a column .*got 'ids'.*did you mean 'id'"):
            self.shedder(tmp_path).guard(source.stream(), row_id="ids")
        with pytest.raises(MissingColumn, match="`arrival` must name a column"):
            self.shedder(tmp_path).guard(source.stream(), row_id="id", arrival="timestamp")

    def test_names_of_columns_ignore_case_where_spark_does(self, spark, source, tmp_path: Path) -> None:
        self.shedder(tmp_path).guard(source.stream(), row_id="ID", arrival="AT")
        spark.conf.set("spark.sql.caseSensitive", "true")
        try:
            with pytest.raises(MissingColumn, match=r"got 'ID'.*did you mean 'id'"):
                self.shedder(tmp_path).guard(source.stream(), row_id="ID")
        finally:
            spark.conf.unset("spark.sql.caseSensitive")

    def test_arrival_that_is_no_timestamp(self, source, tmp_path: Path) -> None:
        with pytest.raises(
            InvalidSetting, match=r"got 'value' of type double for drop point 'rows'\. Hint: make it one"
        ):
            self.shedder(tmp_path).guard(source.stream(), row_id="id", arrival="value")

    def test_batch_dataframe(self, spark: SparkSession, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="got a batch DataFrame"):
            self.shedder(tmp_path).guard(spark.range(3).toDF("id"), row_id="id")
        with pytest.raises(InvalidInput, match="got 3"):
            self.shedder(tmp_path).guard(3, row_id="id")  # type: ignore[arg-type]

    @pytest.mark.parametrize("name", ["jt_plan", "JT_Recent"])
    def test_a_column_that_the_guard_needs_for_itself(self, source, tmp_path: Path, name: str) -> None:
        rows = source.stream().withColumn(name, F.lit(1))
        with pytest.raises(InvalidInput, match=f"must not have a column '{name}'"):
            self.shedder(tmp_path).guard(rows, row_id="id")

    @pytest.mark.parametrize("name", ["JT_WEIGHT", "Jt_Weight", "jt_weight"])
    def test_a_column_that_is_called_like_the_weight_and_is_none(self, source, tmp_path: Path, name: str) -> None:
        rows = source.stream().withColumn(name, F.lit("heavy"))
        with pytest.raises(InvalidInput, match=rf"`jt_weight` must be the weight that.*got '{name}' of type string"):
            self.shedder(tmp_path).guard(rows, row_id="id")
        if name != "jt_weight":
            with pytest.raises(InvalidInput, match=f"got '{name}' of type double"):
                self.shedder(tmp_path).guard(rows.withColumn(name, F.lit(1.0)), row_id="id")

    def test_arrival_with_a_dot(self, source, tmp_path: Path) -> None:
        rows = source.stream().withColumnRenamed("at", "row.at")
        with pytest.raises(InvalidSetting, match=r"without dots and backticks, got 'row\.at'.*rename"):
            self.shedder(tmp_path).guard(rows, row_id="id", arrival="row.at")

    def test_protecting_by_what_is_not_there_leaves_no_drop_point_behind(self, source, tmp_path: Path) -> None:
        shedder = self.shedder(tmp_path)
        with pytest.raises(InvalidSetting, match="`protect` must be a predicate over the stream's columns"):
            shedder.guard(source.stream(), row_id="id", protect="nosuch > 1", name="a")
        with pytest.raises(InvalidSetting, match=r"got 'value >' \(\[PARSE_SYNTAX_ERROR\] .*\) for drop point"):
            shedder.guard(source.stream(), row_id="id", protect="value >", name="a")
        with pytest.raises(InvalidSetting, match="`protect` must be true or false"):
            shedder.guard(source.stream(), row_id="id", protect="value", name="a")
        shedder.guard(source.stream(), row_id="id", protect="value > 1", name="a")

    @pytest.mark.parametrize(
        ("column", "kind"),
        [("map(key, value)", "map<"), ("array(map(key, value))", "array<map<"), ("parse_json('{}')", "variant")],
    )
    def test_an_identity_that_has_no_hash(self, source, tmp_path: Path, column: str, kind: str) -> None:
        rows = source.stream().withColumn("m", F.expr(column))
        with pytest.raises(InvalidSetting, match=f"columns that can be hashed, got 'm' of type {kind}"):
            self.shedder(tmp_path).guard(rows, row_id="m")

    def test_bound_below_the_fixed_cost(self, source, tmp_path: Path) -> None:
        shedder = self.shedder(tmp_path, latency="1 ms")
        rows = shedder.guard(source.stream(), row_id="id")
        with pytest.raises(InvalidSetting, match=r"exceed the fixed cost of one trigger.*got 0.001 s"):
            shedder.start(rows.writeStream.format("noop"))

    def test_start_without_guard_and_twice(self, source, tmp_path: Path) -> None:
        shedder = self.shedder(tmp_path)
        with pytest.raises(InvalidSetting, match="needs a guarded stream"):
            shedder.start(source.stream().writeStream.format("noop"))
        with pytest.raises(
            InvalidSetting, match=r"`status` needs a query that was started, got none\. Hint: call `shedder\.start"
        ):
            shedder.status()
        with pytest.raises(InvalidSetting, match="`await_books` needs a query that was started"):
            shedder.await_books()

    def test_names(self, source, tmp_path: Path) -> None:
        shedder = self.shedder(tmp_path)
        shedder.guard(source.stream(), row_id="id", name="a")
        with pytest.raises(InvalidSetting, match=r"'a' twice\. Hint: leave it out"):
            shedder.guard(source.stream(), row_id="id", name="a")
        with pytest.raises(InvalidSetting, match="letters, digits"):
            shedder.guard(source.stream(), row_id="id", name="a.b")

    def test_checkpoint_nobody_can_write(self, source, tmp_path: Path) -> None:
        with pytest.raises(Unsupported, match=r"`checkpoint` must be a folder that.*got '/proc/nothing/c' .*Hint"):
            self.shedder(tmp_path, checkpoint="/proc/nothing/c").guard(source.stream(), row_id="id")
        with pytest.raises(Unsupported, match="filesystem"):
            self.shedder(tmp_path, checkpoint="gopher://host/checkpoint")

    @pytest.mark.parametrize("nothing", [None, "", 3])
    def test_no_checkpoint(self, tmp_path: Path, nothing: Any) -> None:
        with pytest.raises(InvalidInput, match=rf"`checkpoint` must be the path of a folder, got {nothing!r}\. Hint"):
            self.shedder(tmp_path, checkpoint=nothing)

    def test_a_checkpoint_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "c").write_text("")
        for path in (tmp_path / "c", f"file://{tmp_path}/c", tmp_path / "c" / "below"):
            with pytest.raises(InvalidSetting, match=r"`checkpoint` must be .* where a file lies"):
                self.shedder(tmp_path, checkpoint=path)

    def test_a_query_without_its_guard(self, source, numbered, tmp_path: Path, caplog) -> None:
        source.land(numbered(0, 10))
        shedder = self.shedder(tmp_path)
        shedder.guard(source.stream(), row_id="id")
        with caplog.at_level(logging.WARNING, logger="jettison"), shedder:
            shedder.start(source.stream().writeStream.format("noop")).processAllAvailable()
        expected = "does not read this shedder's plan, and keeps every row: is the guarded DataFrame in it?"
        assert [expected in record.getMessage() for record in caplog.records].count(True) == 1
        assert shedder.status().faults["guard"] == 1

    def test_wrong_settings(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidSetting, match="`accounting`"):
            self.shedder(tmp_path, accounting="guess")
        with pytest.raises(InvalidInput, match="`policy`"):
            self.shedder(tmp_path, policy="uniform")
        with pytest.raises(InvalidInput, match=r"pass an instance, such as policy=jettison\.UniformDrop\(\)"):
            self.shedder(tmp_path, policy=jt.UniformDrop)
        with pytest.raises(InvalidSetting, match="`headroom` must lie in"):
            self.shedder(tmp_path, headroom=7)
        for rate in (-1, 0, float("nan"), float("inf"), "many", True):
            with pytest.raises(InvalidSetting, match=r"`peak_rows_per_s` must be .*positive.* Hint"):
                self.shedder(tmp_path, peak_rows_per_s=rate)
        with pytest.raises(InvalidSetting, match=r"`trigger` must be a positive duration"):
            self.shedder(tmp_path, trigger="often")
        with pytest.raises(InvalidSetting, match=r"`trigger` must be shorter than `latency`, got .1 minute. and"):
            self.shedder(tmp_path, trigger="1 minute")


def test_the_plan_on_file_is_plain_json_behind_its_header(source, tmp_path: Path) -> None:
    shedder = jt.Shedder(latency="5 seconds", checkpoint=tmp_path / "c")
    shedder.guard(source.stream(), row_id="id")
    content = (tmp_path / "c" / "jettison" / "plan").read_text()
    assert json.loads(content[plan_file.BODY_START :])["plans"][0]["version"] == 0
