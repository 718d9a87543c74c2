"""Networks on live queries: shared work once, outputs as plain Spark gives them, decisions as in the simulator."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.core.hashing import salt, salted
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, Stats
from jettison.errors import InvalidInput, InvalidSetting, MissingColumn
from jettison.lab.sim.network.admission import ADMISSIONS, AdmissionDrop
from jettison.lab.sim.network.engine import offered
from jettison.lab.sim.network.rows import Rows
from jettison.policies.network import LossTolerance, QoS, QueryGraph
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.network.range_setting import RangeDrop
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.spark import network_query as network_module
from jettison.spark.calibrate import calibrate
from jettison.spark.network_query import Network
from network_operators import equal_values, window_totals
from told_stream import await_plan, until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "one_partition")]


class Collected:
    """A sink that remembers the rows of every batch."""

    def __init__(self, *, keep_weight: bool = False) -> None:
        self.batches: dict[int, list[Any]] = {}
        self._keep_weight = keep_weight

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = (rows if self._keep_weight else rows.drop("jt_weight")).collect()

    @property
    def rows(self) -> list[Any]:
        return [row for batch in self.batches.values() for row in batch]

    def ids(self) -> list[int]:
        return sorted(row.id for row in self.rows)


def rows(start: int, stop: int) -> list[dict[str, object]]:
    """A row a second, values 0 to 100, seven keys."""
    return [
        {
            "id": i,
            "key": f"k{i % 7}",
            "value": float(i * 37 % 101),
            "at": f"2026-01-01T{i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}Z",
        }
        for i in range(start, stop)
    ]


def fixed(plan: dict[str, Any]) -> type[NetworkDrop]:
    """A policy class that always gives `plan`."""

    class Fixed(NetworkDrop):
        def plan(self, stats: Stats, budget: Budget) -> DropPlan:
            settings = {location.name: RandomDrop() for location in self.model.locations}
            return DropPlan(0, settings | plan, cause="fixed")

    return Fixed


def run(network: Network, tmp_path: Path, source: Any, batches: list[list[dict[str, object]]], **options: Any) -> Any:
    # Without a token the drop points decide as they do in the simulator.
    (tmp_path / "checkpoint" / "jettison").mkdir(parents=True)
    (tmp_path / "checkpoint" / "jettison" / "token").touch()
    query = network.start(latency="1 minute", checkpoint=tmp_path / "checkpoint", **options)
    try:
        for batch in batches:
            source.land(batch)
            query.processAllAvailable()
        if not batches:
            query.awaitTermination()
    finally:
        query.stop()
    assert network.shedder is not None
    assert network.shedder.await_books()
    return query


def windowed(rows: DataFrame) -> DataFrame:
    """Sums and counts as anybody writes them."""
    return (
        rows.withWatermark("at", "10 seconds")
        .groupBy(F.window("at", "1 minute"), "key")
        .agg(F.sum("value").alias("total"), F.count(F.lit(1)).alias("rows"))
        .select("window.start", "key", "total", "rows")
    )


def weighed(rows: DataFrame) -> DataFrame:
    """The same over weights, and over rows that have none."""
    if "jt_weight" not in rows.columns:
        return windowed(rows)
    return (
        rows.withWatermark("at", "10 seconds")
        .groupBy(F.window("at", "1 minute"), "key")
        .agg(F.sum(F.col("value") * F.col("jt_weight")).alias("total"), F.sum("jt_weight").cast("long").alias("rows"))
        .select("window.start", "key", "total", "rows")
    )


def joined(left: DataFrame, right: DataFrame) -> DataFrame:
    a = left.withWatermark("at", "10 seconds").alias("a")
    b = right.select(
        "jt_weight_right" if "jt_weight_right" in right.columns else F.lit(1.0),
        F.col("id").alias("other"),
        F.col("at").alias("other_at"),
        F.col("value").alias("other_value"),
    )
    b = b.withWatermark("other_at", "10 seconds").alias("b")
    return a.join(
        b, F.expr("a.value = b.other_value and b.other_at between a.at and a.at + interval 2 minutes"), "inner"
    )


def test_hashes_are_those_of_spark(spark: SparkSession) -> None:
    ids = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, 500, dtype=np.int64)
    for point in ("a", "parse__alarms", "x9", "rows"):
        frame = spark.createDataFrame([(int(i),) for i in ids], "id long")
        theirs = [r[0] for r in frame.select(F.xxhash64(F.lit(salt(point)).cast("bigint"), "id")).collect()]
        assert theirs == salted(point, ids).tolist()


def test_with_nothing_shed_every_output_is_what_plain_spark_gives(spark: SparkSession, source, tmp_path: Path) -> None:
    """Filters, a windowed aggregate and a stream-stream join behind one shared map, which runs once for each row."""
    network = Network()
    stream = network.input("readings", source.stream(), row_id="id")
    parsed = network.map("parse", stream, lambda r: r.withColumn("value", F.col("value") * 2))
    high = network.filter("high", parsed, "value > 150", selectivity=0.25)
    low = network.filter("low", parsed, "value < 20", selectivity=0.1)
    sums = network.aggregate("sums", parsed, weighed)
    pairs = network.join("pairs", high, network.filter("again", parsed, "value > 150"), joined)
    sinks = {name: Collected() for name in ("high_rows", "low_rows", "window_sums", "pair_rows")}
    for name, stream in zip(sinks, (high, low, sums, pairs), strict=True):
        network.output(name, stream, sinks[name])
    batches = [rows(0, 400), rows(400, 700), rows(700, 1500)]
    query = run(network, tmp_path, source, batches)
    # Rows that the scans of the source gave: four outputs need them, one scan for each would count them four times.
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == [400, 300, 800]

    plain = source.stream(maxFilesPerTrigger=10).withColumn("value", F.col("value") * 2)
    expected = {
        "high_rows": plain.where("value > 150"),
        "low_rows": plain.where("value < 20"),
        "window_sums": windowed(plain),
        "pair_rows": joined(plain.where("value > 150"), plain.where("value > 150")),
    }
    for name, frame in expected.items():
        mine, theirs = sinks[name].rows, Collected()
        query = frame.writeStream.foreachBatch(theirs).option("checkpointLocation", str(tmp_path / name)).start()
        query.processAllAvailable()
        query.stop()
        columns = sorted(set(mine[0].asDict()) & set(theirs.rows[0].asDict())) if mine else []
        as_set = [Counter(tuple(str(row[c]) for c in columns) for row in some) for some in (mine, theirs.rows)]
        assert mine, name
        assert as_set[0] == as_set[1], name


def alarm_network(source: Any, sinks: dict[str, Collected], **qos: QoS) -> Network:
    network = Network(integral_values=True)
    stream = network.input("readings", source.stream(), row_id="id", values=[(0, 100, 1.0)])
    parsed = network.map("parse", stream, lambda r: r.withColumn("twice", F.col("value") * 2), cost=3.0)
    high = network.filter("high", parsed, "value >= 60", cost=2.0, selectivity=0.4, passes=[(60, 100)])
    low = network.filter("low", parsed, "value <= 30", cost=1.0, selectivity=0.3, passes=[(0, 30)])
    network.output("out_high", high, sinks["out_high"], qos=qos.get("high"))
    network.output("out_low", low, sinks["out_low"], qos=qos.get("low"))
    return network


@pytest.mark.parametrize(
    ("kind", "given", "changes", "integral"),
    [
        ("int", None, (), True),
        ("bigint", None, (), True),
        ("double", None, (), False),
        ("int", None, [(0, 1, 1.0)], False),
        ("double", True, (), True),
        ("int", False, (), False),
    ],
)
def test_whole_numbers_are_told_by_the_type_of_the_value(
    source: Any, kind: str, given: bool | None, changes: Any, integral: bool
) -> None:
    network = Network(integral_values=given)
    rows = source.stream().withColumn("value", F.col("value").cast(kind))
    stream = network.input("readings", rows, row_id="id", values=[(0, 100, 1.0)])
    parsed = network.map("parse", stream, lambda r: r, values=changes)
    network.output("out", parsed, Collected())
    assert network.graph.integral_values is integral


@pytest.mark.parametrize(
    ("plan", "semantic"),
    [
        ({"readings": RandomDrop(0.6), "parse__high": RandomDrop(0.5), "parse__low": RandomDrop(0.25)}, False),
        (
            {
                "readings": RangeDrop("value", [(0, 10), (31, 60)], 0.6),
                "parse__high": RangeDrop("value", [(60, 75.5)], 0.5),
            },
            True,
        ),
    ],
)
def test_simulator_and_spark_keep_the_same_rows(
    source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: dict[str, Any], semantic: bool
) -> None:
    monkeypatch.setattr(network_module, "NetworkDrop", fixed(plan))
    sinks = {"out_high": Collected(), "out_low": Collected()}
    network = alarm_network(source, sinks)
    landed = rows(0, 3000)
    run(network, tmp_path, source, [landed[:1000], landed[1000:]], semantic=semantic)
    simulated = offered(network.graph, {"readings": as_simulated(landed)}, DropPlan(1, plan))
    for name, sink in sinks.items():
        assert 0 < len(sink.rows) < 1000
        assert sink.ids() == sorted(simulated[name].ids.tolist())


def two_inputs(source: Any, sinks: dict[str, Collected]) -> Network:
    """Weighted sums of one input, and pairs of rows of both."""
    network = Network()
    readings = network.input("readings", source.stream(), row_id="id")
    others = network.input("others", source.stream(), row_id="id")
    network.output("sums", network.aggregate("totals", readings, estimated_totals), sinks["sums"])
    network.output("pairs", network.join("matched", readings, others, joined), sinks["pairs"])
    return network


def estimated_totals(rows: DataFrame) -> DataFrame:
    windows = rows.withWatermark("at", "10 seconds").groupBy(F.window("at", "1 minute"))
    return windows.agg(jt.sum("value").alias("total")).select(F.unix_timestamp("window.start").alias("start"), "total")


def as_simulated(landed: list[dict[str, object]]) -> Rows:
    """The same rows for the simulator; they arrive at their event time, in seconds since the first."""
    ids = np.array([row["id"] for row in landed], dtype=np.int64)
    return Rows(ids, np.array([row["value"] for row in landed], dtype=float), ids.astype(float))


def test_aggregates_and_joins_behind_drops_are_those_of_the_simulator_and_estimate_the_truth(
    source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {"readings": RandomDrop(0.8), "others": RandomDrop(0.5), "readings__matched": RandomDrop(0.7)}
    monkeypatch.setattr(network_module, "NetworkDrop", fixed(plan))
    sinks = {"sums": Collected(keep_weight=True), "pairs": Collected(keep_weight=True)}
    network, landed = two_inputs(source, sinks), rows(0, 1800)
    run(network, tmp_path, source, [landed[:900], landed[900:]])
    functions = {
        "totals": lambda part: window_totals(part, length=60.0),
        "matched": lambda left, right: equal_values(left, right, within=120.0),
    }
    arrived = dict.fromkeys(("readings", "others"), as_simulated(landed))
    truth = offered(network.graph, arrived, functions=functions)
    simulated = offered(network.graph, arrived, DropPlan(1, plan), functions)

    pairs = Counter((row.id, round(row.jt_weight, 6)) for row in sinks["pairs"].rows)
    assert pairs == Counter(zip(simulated["pairs"].ids.tolist(), simulated["pairs"].weighing.round(6), strict=True))
    assert simulated["pairs"].weighing.sum() == pytest.approx(len(truth["pairs"]), rel=0.1)

    midnight = 1767225600  # 2026-01-01
    totals = {(row.start - midnight) // 60: row.total for row in sinks["sums"].rows}
    assert len(totals) > 20
    expected = dict(zip(simulated["sums"].ids.tolist(), simulated["sums"].values, strict=True))
    assert {window: total.value for window, total in totals.items()} == pytest.approx(
        {window: expected[window] for window in totals}
    )
    exact = dict(zip(truth["sums"].ids.tolist(), truth["sums"].values, strict=True))
    held = [total.lower <= exact[window] <= total.upper for window, total in totals.items()]
    assert sum(held) >= 0.85 * len(held)
    assert all(total.lower < total.value < total.upper for total in totals.values())


@pytest.mark.long
def test_every_admission_control_sheds_at_the_inputs_as_in_the_simulator(source, tmp_path: Path) -> None:
    class Half(AdmissionDrop):
        def plan(self, stats: Stats, budget: Budget) -> DropPlan:
            return super().plan(Stats(0, 0.0, 1.0), Budget(0.5, 0.5, 3.0, "told"))

    class Admitting(Network):
        rule = ""

        def policy(self, graph: QueryGraph, **settings: Any) -> NetworkDrop:
            return Half(graph, rule=self.rule, **settings)

    landed = rows(0, 600)
    source.land(landed)
    plans = {}
    for name in ADMISSIONS:
        network, sinks = Admitting(), {"dear": Collected(), "cheap": Collected()}
        network.rule = name
        for number, output in enumerate(sinks):
            stream = network.input(f"in{number}", source.stream(), row_id="id")
            box = network.map(f"box{number}", stream, lambda part: part, cost=3.0 - 2.0 * number)
            network.output(output, box, sinks[output])
        run(network, tmp_path / name, source, [], available_now=True)
        plans[name] = Half(network.graph, rule=name).plan(Stats(0, 0.0, 1.0), Budget(1.0, 1.0, 3.0, ""))
        arrived = dict.fromkeys(("in0", "in1"), as_simulated(landed))
        simulated = offered(network.graph, arrived, plans[name])
        for output, sink in sinks.items():
            assert sink.ids() == sorted(simulated[output].ids.tolist()), (name, output)
    kept = {name: [setting.keep_fraction for setting in plan.points.values()] for name, plan in plans.items()}
    assert kept["Input-Cost-Top"] == pytest.approx([1 / 3, 1.0])
    assert kept["Input-Uniform"] == pytest.approx([2 / 3, 0.0])
    assert kept["Input-Cost-Uniform"] == pytest.approx([0.5, 0.5])


def test_identity_and_arrival_may_be_columns(source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows are kept as under the names, and what was added for the network does not come out of it."""
    monkeypatch.setattr(network_module, "NetworkDrop", fixed({"readings": RandomDrop(0.4)}))
    given = {"names": ("id", "at"), "columns": ([F.col("id") + 0], F.to_timestamp("at"))}
    kept = {}
    source.land(rows(0, 500))
    for name, (row_id, arrival) in given.items():
        network, sinks = Network(), [Collected(), Collected()]
        stream = network.input("readings", source.stream(), row_id=row_id, arrival=arrival)
        for number, sink in enumerate(sinks):
            network.output(f"out{number}", network.filter(f"part{number}", stream, f"id % 2 = {number}"), sink)
        run(network, tmp_path / name, source, [], available_now=True)
        kept[name] = [sink.ids() for sink in sinks]
        assert set(sinks[0].rows[0].asDict()) == {"id", "key", "value", "vip", "at"}
    assert kept["names"] == kept["columns"]
    assert 100 < sum(map(len, kept["names"])) < 300


class Crossing:
    """A sink that is done only when all of its kind have been called for the batch: alone it waits in vain."""

    def __init__(self, meeting: threading.Barrier) -> None:
        self._meeting = meeting
        self.seen: list[tuple[int, int, str | None]] = []

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        self._meeting.wait(timeout=60)
        # Local properties belong to a thread: by this one Spark tells whose jobs these are.
        group = rows.sparkSession.sparkContext.getLocalProperty("spark.jobGroup.id")
        self.seen.append((batch_id, rows.count(), group))


def parts(source: Any, sinks: Mapping[str, Any], **settings: Any) -> Network:
    """Each sink gets the rows whose number leaves the same remainder."""
    network = Network(**settings)
    stream = network.input("readings", source.stream(), row_id="id")
    for number, (name, sink) in enumerate(sinks.items()):
        part = network.filter(f"part{number}", stream, f"id % {len(sinks)} = {number}")
        network.output(name, part, sink)
    return network


def test_sinks_of_a_batch_run_side_by_side_as_jobs_of_the_query(source, tmp_path: Path) -> None:
    meeting = threading.Barrier(3)
    sinks = {name: Crossing(meeting) for name in ("a", "b", "c")}
    query = run(parts(source, sinks), tmp_path, source, [rows(0, 90), rows(90, 390)])
    for sink in sinks.values():
        assert sink.seen == [(0, 30, str(query.runId)), (1, 100, str(query.runId))]


def test_sinks_can_be_called_one_after_another(source, tmp_path: Path) -> None:
    called: list[tuple[str, int, str]] = []

    def noting(name: str) -> Callable[[DataFrame, int], None]:
        def sink(rows: DataFrame, batch_id: int) -> None:
            called.append((name, rows.count(), "begins"))
            time.sleep(0.05)
            called.append((name, rows.count(), "ends"))

        return sink

    run(parts(source, {name: noting(name) for name in "abcde"}, sinks_at_once=1), tmp_path, source, [rows(0, 100)])
    assert called == [(name, 20, end) for name in "abcde" for end in ("begins", "ends")]


@pytest.mark.long
def test_an_error_of_one_sink_fails_the_batch_and_names_its_output(source, tmp_path: Path) -> None:
    """All sinks get the batch again when the query is started again."""

    class Full(Exception):
        pass

    full = [True]

    def failing(rows: DataFrame, batch_id: int) -> None:
        if full[0]:
            raise Full("the disk is full")

    others = {name: Collected() for name in ("a", "b", "d", "e", "f")}
    sinks = {"a": others["a"], "b": others["b"], "broken": failing, **others}
    source.land(rows(0, 60))
    with pytest.raises(StreamingQueryException, match=r"(?s)the disk is full.*in the sink of output 'broken'"):
        run(parts(source, sinks), tmp_path, source, [], available_now=True)
    full[0] = False
    query = parts(source, sinks).start(latency="1 minute", checkpoint=tmp_path / "checkpoint", available_now=True)
    query.awaitTermination()
    ids = sorted(i for sink in others.values() for i in sink.ids())
    assert ids == [i for i in range(60) if i % 6 != 2]
    assert {batch for sink in others.values() for batch in sink.batches} == {0}


def test_walking_the_road_map_changes_only_the_plan(source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two outputs of different tolerance: the tolerant one is shed, within one run of one query."""

    class Told(NetworkDrop):
        share = 1.0

        def plan(self, stats: Stats, budget: Budget) -> DropPlan:
            return super().plan(stats, Budget(self.share, self.share, 3.0, "told"))

    monkeypatch.setattr(network_module, "NetworkDrop", Told)
    sinks = {"out_high": Collected(), "out_low": Collected()}
    network = alarm_network(source, sinks, low=QoS(LossTolerance([(100, 1), (5, 0.9), (0, 0)])))
    query = network.start(latency="1 minute", checkpoint=tmp_path / "checkpoint")
    shedder, run_id = network.shedder, query.runId
    assert shedder is not None
    source.land(rows(0, 1000))
    query.processAllAvailable()
    Told.share = 0.85
    # The next look at the query, here when it reports that it is idle, makes the plan.
    until(lambda: min(shedder.status().keep_fraction.values()) < 1.0)
    await_plan(shedder._run.pilot)
    source.land(rows(1000, 3000))
    query.processAllAvailable()
    query.stop()
    assert query.runId == run_id
    first, second = rows(0, 1000), rows(1000, 3000)
    assert len(sinks["out_low"].batches[0]) == sum(row["value"] <= 30 for row in first)
    assert len(sinks["out_high"].batches[0]) == sum(row["value"] >= 60 for row in first)
    assert len(sinks["out_low"].batches[1]) < 0.9 * sum(row["value"] <= 30 for row in second)
    assert len(sinks["out_high"].batches[1]) == sum(row["value"] >= 60 for row in second)


def test_the_plan_is_read_once_a_batch_however_many_drop_points_there_are(source, tmp_path: Path) -> None:
    sinks = {"out_high": Collected(), "out_low": Collected()}
    network = alarm_network(source, sinks)
    query = run(network, tmp_path, source, [rows(0, 100)])
    observed = [p.observedMetrics for p in query.recentProgress if p.numInputRows]
    assert [[name.split("@")[0] for name in metrics] for metrics in observed] == [["jettison-plan:network"]]
    assert network.shedder is not None
    assert set(network.shedder.status().keep_fraction) == {"readings", "parse__high", "parse__low"}


def test_the_books_count_every_drop_point(source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        network_module, "NetworkDrop", fixed({"readings": RandomDrop(0.5), "parse__low": RandomDrop(0.2)})
    )
    sinks = {"out_high": Collected(), "out_low": Collected()}
    network = alarm_network(source, sinks)
    run(network, tmp_path, source, [rows(0, 2000)])
    assert network.shedder is not None
    record = next(network.shedder.ledger.records("batch"))["points"]
    assert record["readings"]["seen"] == 2000  # and not 4000: the way to the split ran once
    assert record["readings"]["kept"] == record["parse__high"]["seen"] == record["parse__low"]["seen"]
    assert record["parse__high"]["kept"] == record["parse__high"]["seen"]
    assert record["parse__low"]["kept"] / record["parse__low"]["seen"] == pytest.approx(0.2, abs=0.05)


def test_calibration_finds_costs_and_selectivities(spark: SparkSession, source, tmp_path: Path) -> None:
    network = Network()
    stream = network.input("readings", source.stream(), row_id="id")
    hashed = "sha2(concat(cast(id as string), sha2(cast(value as string), 512)), 512)"
    heavy = network.map("heavy", stream, lambda r: r.withColumn("h", F.expr(hashed)).where("h > ''"))
    light = network.filter("light", heavy, "value >= 50", selectivity=0.9)
    network.output("o", light, Collected())
    sample = spark.range(100_000).selectExpr("id", "'k' as key", "cast(id % 100 as double) as value", "now() as at")
    found = calibrate(network, {"readings": sample}, repetitions=3)
    assert found["light"].selectivity == pytest.approx(0.5)
    assert found["heavy"].cost_us > found["light"].cost_us
    assert network.graph.boxes["light"].selectivity == pytest.approx(0.5)
    assert "load saved" in network.plan()


def test_the_interval_of_the_trigger_goes_to_the_query_and_to_the_shedder(source, tmp_path: Path) -> None:
    network, sink = Network(), Collected()
    network.output("o", network.filter("all", network.input("in", source.stream(), row_id="id"), "value >= 0"), sink)
    with pytest.raises(InvalidSetting, match="`trigger` must be shorter than `latency`"):
        network.start(latency="1 second", checkpoint=tmp_path / "c", trigger="1 minute")
    run(network, tmp_path, source, [rows(0, 5)], trigger="0.5 seconds")
    assert network.shedder is not None
    assert network.shedder._settings.trigger_interval_s == 0.5


def test_a_network_that_may_not_be_shed_is_refused(source, tmp_path: Path) -> None:
    network = Network()
    stream = network.input("readings", source.stream(), row_id="id")
    network.output("o", network.aggregate("sums", stream, windowed), Collected())
    with pytest.raises(InvalidSetting, match=r"'sums': `sum\(value\)` does not use `jt_weight`"):
        network.start(latency="1 minute", checkpoint=tmp_path / "c")


def test_a_shared_box_that_loses_the_identity_is_refused_before_anything_runs(
    spark: SparkSession, source, tmp_path: Path
) -> None:
    network = Network()
    stream = network.input("readings", source.stream(), row_id="id")
    parsed = network.map("parse", stream, lambda r: r.select("value", "jt_weight"))
    network.output("high", network.filter("above", parsed, "value >= 50"), Collected())
    network.output("low", network.filter("below", parsed, "value < 50"), Collected())
    expected = (
        r"several readers must carry on the `row_id` columns, id, got .* without id for box 'parse'\. Hint: select"
    )
    sample = spark.createDataFrame([(1, "k", 1.0, None, None)], source.SCHEMA)
    for attempt in (
        network.plan,
        lambda: network.calibrate({"readings": sample}, repetitions=1),
        lambda: network.start(latency="1 minute", checkpoint=tmp_path / "c"),
    ):
        with pytest.raises(MissingColumn, match=expected):
            attempt()


def test_answers_that_are_read_twice_are_refused_and_the_last_box_needs_no_identity(source) -> None:
    network = Network()
    stream = network.input("readings", source.stream(), row_id="id")
    sums = network.aggregate("sums", network.map("narrow", stream, lambda r: r.drop("id")), weighed)
    network.output("all", sums, Collected())
    assert "readings" in network.plan()
    network.output("some", network.filter("large", sums, "total > 400"), Collected())
    with pytest.raises(
        MissingColumn, match=r"without id for box 'sums'\. Hint: .*give each reader of an aggregate one"
    ):
        network.plan()


def test_mistakes_are_refused(source, tmp_path: Path) -> None:
    network = Network()
    stream = network.input("readings", source.stream(), row_id="id")
    with pytest.raises(InvalidSetting, match="same `row_id` columns"):
        network.input("others", source.stream(), row_id="key")
    with pytest.raises(InvalidInput, match="must be given by names of columns, or columns"):
        network.input("others", source.stream(), row_id=["id", 7])
    with pytest.raises(InvalidSetting, match="same `row_id` columns"):
        network.input("others", source.stream(), row_id=F.col("id"))
    with pytest.raises(InvalidSetting, match="`sinks_at_once` must be 1 or more, got 0"):
        Network(sinks_at_once=0)
    network.output("o", network.map("narrow", stream, lambda r: r.select("id")), Collected())
    with pytest.raises(MissingColumn, match=r"jt_weight.*box 'narrow'"):
        network.start(latency="1 minute", checkpoint=tmp_path / "c")


@pytest.mark.parametrize("lost", ["jt_weight", "jt_weight_right"])
def test_a_join_must_carry_on_the_weights_of_both_sides(source, lost: str) -> None:
    """A pair weighs the product: without one of them it would stand for too few, and not say so."""
    network = Network()
    sides = [network.input(name, source.stream(), row_id="id") for name in ("left", "right")]
    network.output("o", network.join("pairs", *sides, lambda left, right: joined(left, right).drop(lost)), Collected())
    with pytest.raises(
        MissingColumn, match=rf"must carry on `jt_weight` and `jt_weight_right`.*Hint: select {lost} too"
    ):
        network.plan()
