"""Behaviour as recorded: rows kept and their weights, plans of every policy, answers, and a course of the controller.

The files in `tests/data/golden` hold what was found when they were written, one JSON value a line, every float with all
its digits. Where numpy adds up, the last of them may differ: it does so in another order on another processor. All else
agrees to the bit. Whoever means to change one writes them again: `JETTISON_GOLDEN=write pytest tests/spark/test_golden.py`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import jettison as jt
from jettison import functions as jf
from jettison import policy as jp
from jettison.answers.estimate import (
    count_estimate,
    mean_estimate,
    quantile,
    stddev_estimate,
    sum_estimate,
    variance_estimate,
)
from jettison.control.controller import Controller, ControlSettings
from jettison.core.stats import EventTimes
from jettison.core.storage import Folder
from jettison.costs.cost_book import CostBook, costs_folder
from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.costs.partition_settings import PartitionSettings
from jettison.costs.sketch import CostSketch
from jettison.costs.task_report import TaskReport
from jettison.costs.timed_partition import PartitionShedder, WorkerMemory
from jettison.lab.sampled import NUMPY, describe
from jettison.lab.sim.network.admission import AdmissionDrop
from jettison.lab.sim.plant import Plant, PlantSettings
from jettison.policies.base import Lesson
from jettison.policies.groups.group_setting import bytes_of_groups
from jettison.policies.network import Box, Input, Output, QueryGraph
from jettison.policies.regions.region_setting import RegionDrop
from jettison.runtime import plan_file
from jettison.runtime.schedule import DEPENDENT_US, Doubts, Schedule
from jettison.spark import doubts
from jettison.spark.channel import Channel

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
SECOND = 1_000_000
START = 1_767_225_600  # 2026-01-01, a multiple of all windows


def agree(name: str, found: Iterable[str], *, summed: bool = False) -> None:
    """Each line is as it was recorded; but for the last digits where numpy has `summed`."""
    lines, file = list(found), GOLDEN / f"{name}.jsonl"
    if os.environ.get("JETTISON_GOLDEN") == "write":
        file.write_text("".join(f"{line}\n" for line in lines))
    recorded = file.read_text().splitlines()
    assert len(lines) == len(recorded)
    for line, before in zip(lines, recorded, strict=True):
        about = summed and _agree(json.loads(line), json.loads(before))
        assert line == before or about, f"{line}\nin place of\n{before}"


def _agree(found: Any, recorded: Any) -> bool:
    """Equal, floats to nine digits: what is left of a difference of large numbers has lost the others."""
    if isinstance(found, float) and isinstance(recorded, float):
        return math.isclose(found, recorded, rel_tol=1e-9)
    if isinstance(found, dict) and isinstance(recorded, dict):
        return list(found) == list(recorded) and all(_agree(found[name], recorded[name]) for name in found)
    if isinstance(found, list) and isinstance(recorded, list):
        return len(found) == len(recorded) and all(map(_agree, found, recorded))
    return type(found) is type(recorded) and bool(found == recorded)


def on_file(plan: jp.DropPlan) -> str:
    """The plan as it is published, with a lease that never changes."""
    return plan_file.encode(Schedule.of(plan), valid_until_us=0).decode()


# Settings: a fixed plan, and the rows that a guard keeps under it.

SCHEMA = (
    "n long, part int, id long, key string, value double, sector string, vip boolean, at timestamp, arrived timestamp"
)
KEYS = {  # the upper half of Spark's xxhash64
    "k0": -956208224, "k1": -145488492, "k2": 1931595285, "k3": -1687084729, "k4": -249655998, None: 0,
}  # fmt: skip


def rows() -> list[dict[str, object]]:
    """A minute of rows, five a second: some late, some protected, and nulls, NaN and far values here and there."""

    def value(i: int) -> float | None:
        return None if i % 19 == 0 else float("nan") if i % 43 == 0 else 1e9 if i % 37 == 0 else i * 37 % 101 / 4

    def at(i: int) -> str | None:
        behind = 640 if i % 41 == 0 else 15 if i % 9 == 0 else 0  # as many panes as keys tell apart, or three windows
        return None if i % 23 == 0 else instant(START + i // 5 - behind)

    return [
        {
            "n": i,
            "part": None if i % 7 == 0 else i % 4,
            "id": None if i % 5 == 0 else i - (i % 4 == 3),  # some rows share one
            "key": None if i % 17 == 0 else f"k{i // 3 % 5}",
            "value": value(i),
            "sector": [None, "tech", "food", "steel", "elsewhere", "tech", "food"][i % 7],
            "vip": i % 11 == 0,
            "at": at(i),
            "arrived": None if i % 29 == 0 else "2020-01-01T00:00:00Z" if i % 3 == 0 else "2100-01-01T00:00:00Z",
        }
        for i in range(300)
    ]


def instant(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()


def landed(spark: SparkSession, folder: Path, rows: list[dict[str, object]]) -> DataFrame:
    """A stream of one file, which is one partition of one micro-batch."""
    folder.mkdir()
    (folder / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return spark.readStream.schema(SCHEMA).json(str(folder))


def collected(start: Callable[[DataStreamWriter], StreamingQuery], query: DataFrame) -> list[str]:
    """The names of all columns and then all rows that a query finds, in the order of their first column."""
    rows: list[list[Any]] = []
    writer = query.writeStream.foreachBatch(lambda batch, _: rows.extend(map(list, batch.collect())))
    start(writer.trigger(availableNow=True)).awaitTermination()
    ordered = sorted(rows, key=lambda row: (row[0] is None, row[0] or 0, str(row)))
    return [json.dumps(query.columns), *map(json.dumps, ordered)]


def shedder(folder: Path, policy: jp.Policy) -> jt.Shedder:
    """With a token that is the same in every run, so that the same rows are dropped."""
    (folder / "checkpoint" / "jettison").mkdir(parents=True)
    (folder / "checkpoint" / "jettison" / "token").write_text("golden")
    return jt.Shedder(policy=policy, latency="1 hour", checkpoint=folder / "checkpoint", plan_lease="1 hour")


def fixed(policy: type, plan: jp.DropPlan) -> type:
    """A policy of that kind with one plan for all times."""

    class Fixed(policy):  # type: ignore[misc,valid-type]
        def plan(self, stats: jp.Stats, budget: jp.Budget) -> jp.DropPlan:
            return plan

        def continued(self, previous: jp.DropPlan, stats: jp.Stats, budget: jp.Budget) -> jp.DropPlan:
            return plan

    return Fixed


def test_kept_at_random(spark: SparkSession, tmp_path: Path) -> None:
    """By two guards, one behind the other: weights multiply."""
    plan = jp.DropPlan(1, {"rows": jp.RandomDrop(0.4, 0.1, 60.0), "again": jp.RandomDrop(0.8)}, "golden")
    shed = shedder(tmp_path, fixed(jt.UniformDrop, plan)())
    once = shed.guard(landed(spark, tmp_path / "in", rows()), row_id=["part", "id"], arrival="arrived", protect="vip")
    twice = shed.guard(once, row_id="id", name="again")
    agree("kept_at_random", [on_file(plan), *collected(shed.start, twice.select("n", "jt_weight"))])


def test_kept_by_range(spark: SparkSession, tmp_path: Path) -> None:
    plan = jp.DropPlan(1, {"rows": jp.RangeDrop("value", ((2.5, 5.0), (10.0, 12.5), (20.0, 24.75)), 0.6)}, "golden")
    graph = QueryGraph([Input("rows", 1.0, ((0.0, 25.0, 1.0),))], [Box("b", ("rows",), "map")], [Output("o", "b")])
    shed = shedder(tmp_path, fixed(jp.NetworkDrop, plan)(graph, semantic=True))
    kept = shed.guard(landed(spark, tmp_path / "in", rows()), row_id="id", protect="vip")
    agree("kept_by_range", [on_file(plan), *collected(shed.start, kept.select("n", "jt_weight"))])


def test_kept_by_priority(spark: SparkSession, tmp_path: Path) -> None:
    """Three levels, and rows of which a predicate cannot tell; late ones with shares of their own."""
    setting = jp.LevelDrop(0.6, (1.0, 0.7, 0.3), 0.3, (0.9, 0.25, 0.0), 60.0)
    plan = jp.DropPlan(1, {"rows": setting}, "golden")
    shed = shedder(tmp_path, fixed(jp.PriorityDrop, plan)({"value > 20": 2, "sector = 'tech'": 1, "key = 'k1'": 1}))
    kept = shed.guard(landed(spark, tmp_path / "in", rows()), row_id="id", arrival="arrived", protect="vip")
    agree("kept_by_priority", [on_file(plan), *collected(shed.start, kept.select("n", "jt_weight"))])


@pytest.mark.since(4, 1)
def test_kept_by_group(spark: SparkSession, tmp_path: Path) -> None:
    """Dropped rows stay, without weight and with nothing but their group and time."""
    plan = jp.DropPlan(1, {"rows": by_group(0.5)}, "golden")
    shed = shedder(tmp_path, fixed(jt.ConceptDrop, plan)("key", "at", "10 seconds", exact_counts=True))
    kept = shed.guard(landed(spark, tmp_path / "in", rows()), row_id="id", arrival="arrived", protect="vip")
    found = kept.select("n", "jt_weight", "key", (F.unix_seconds("at") - START).alias("second"), "value")
    agree("kept_by_group", [on_file(plan), *collected(shed.start, found)])


@pytest.mark.since(4, 1)
def test_kept_before_a_join(spark: SparkSession, tmp_path: Path) -> None:
    sides = {"left": by_group(0.5, whole=True), "right": by_group(0.9, whole=True)}
    plan = jp.DropPlan(1, sides, "golden")
    shed = shedder(tmp_path, fixed(jt.JoinDrop, plan)("key", "at", "10 seconds"))
    stream = landed(spark, tmp_path / "in", rows())
    guarded = [shed.guard(stream, row_id="id", name=side, arrival="arrived", protect="vip") for side in sides]
    both = [
        rows.select("n", F.lit(side).alias("side"), "jt_weight", "jt_whole")
        for side, rows in zip(sides, guarded, strict=True)
    ]
    agree("kept_before_a_join", [on_file(plan), *collected(shed.start, both[0].union(both[1]))])


def by_group(share: float, *, whole: bool = False) -> jp.GroupDrop:
    """Named groups in the first two of four panes."""
    some, others = sorted(KEYS.values()), sorted(hashed for key, hashed in KEYS.items() if key not in ("k0", "k1"))
    return jp.GroupDrop(
        keep_fraction=0.5,
        pane_us=10 * SECOND,
        starts_us=tuple((START + 10 * pane) * SECOND for pane in range(4)),
        others=(1.0, 0.8, 0.3, 0.0),
        groups=(tuple(some), tuple(others), (), ()),
        keeps=(tuple(share / (1 + i) for i in range(len(some))), (share,) * len(others), (), ()),
        new_keep_fraction=0.75,
        late_factor=0.5,
        late_after_s=60.0,
        whole=whole,
    )


SPACE = [jt.Attribute.number("value", 0, 25), jt.Attribute.category("sector", ["tech", "food", "steel"])]
CODES = 2**24


@pytest.mark.since(4, 2)
def test_kept_by_region(spark: SparkSession, tmp_path: Path) -> None:
    setting = RegionDrop(
        keep_fraction=0.5,
        space=1165953061,  # a checksum of the attributes
        cuts=((1, CODES // 4, CODES // 2, CODES + 1), (1, CODES // 3 + 2, CODES + 1)),
        cells=(4, 4, 4, 4, 4, 0, 1, 4, 4, 2, 0, 4, 4, 1, 3, 4, 4, 4, 4, 4),
        missing=(4, 0, 1, 2),
        keep=(0.2, 0.5, 1.0, 0.02, 0.7),
        late_keep_fraction=0.2,
        late_keep=(0.1, 0.1, 0.5, 0.0, 0.3),
        late_after_s=60.0,
    )
    plan = jp.DropPlan(1, {"rows": setting}, "golden")
    sample = {"value": [1.0], "sector": ["tech"]}
    policy = fixed(jt.Sifter, plan)(jt.RangeQueries(SPACE, ["value > 20"]), sample, sample_every=20)
    shed = shedder(tmp_path, policy)
    kept = shed.guard(landed(spark, tmp_path / "in", rows()), row_id="id", arrival="arrived", protect="vip")
    agree("kept_by_region", [on_file(plan), *collected(shed.start, kept.select("n", "jt_weight", "jt_sampled"))])


WINDOWS = {"short": ("5 seconds", "5 seconds"), "long": ("10 seconds", "5 seconds")}
MARKS = {"short": "kkddkdddkkdk", "long": "kdddkddkkddd"}


def test_kept_by_window(spark: SparkSession, tmp_path: Path) -> None:
    """The rows that one of two queries needs, and the answers that are delivered, each with all its rows."""
    first = (START // 5,) * 2
    setting = jp.WindowMarks(first, tuple(MARKS.values()), tuple(map(opens_us, MARKS.values())), first[0] + 12)
    plan = jp.DropPlan(1, {"rows": setting}, "golden")
    windows = {query: [window] for query, window in WINDOWS.items()}
    shed = shedder(tmp_path, fixed(jt.WindowDrop, plan).for_query(time="at", windows=windows, max_gap=3))
    stream = landed(spark, tmp_path / "in", [*rows(), {"n": 300, "at": instant(START + 600)}])
    kept = shed.guard(stream.withWatermark("at", "5 seconds"), row_id="id")
    parts = [kept.selectExpr("n AS number", "'row' AS of", "jt_weight", "null AS rows")]
    for query, window in WINDOWS.items():
        answers = kept.groupBy(F.window("at", *window)).agg(F.array_sort(F.collect_list("n")).alias("rows"))
        number = F.unix_seconds("window.start") - START
        parts.append(shed.deliver(answers, query=query).select(number, F.lit(query), F.lit(None), "rows"))
    agree("kept_by_window", [on_file(plan), *collected(shed.start, reduce(DataFrame.union, parts))])


def opens_us(marks: str) -> tuple[int | None, ...]:
    """For each dropped window when the next kept one begins."""
    nexts = [next((later for later in range(n, 12) if marks[later] == "k"), 12) for n in range(12)]
    return tuple(None if after == n else (START + 5 * after) * SECOND for n, after in enumerate(nexts))


COSTS_S = {"k0": 1.0, "k1": 2.0, "k2": 16.0, "k4": 7.0, None: 3.0}


def test_kept_by_cost(spark: SparkSession, tmp_path: Path) -> None:
    """What rows cost is known and not learned, and seconds in size: no clock can change a decision."""
    costs = CostSketch(SharedHashes(2, 64, seed=1))
    costs.learn(fingerprints(list(COSTS_S)[:-1]), list(COSTS_S.values())[:-1])
    book = CostBook(costs, version=7)
    book.save(costs_folder(tmp_path / "checkpoint"))
    timed = [row for row in rows() if row["arrived"] is not None]  # an unknown arrival is now, to the microsecond
    stream = landed(spark, tmp_path / "in", timed)
    options = {"key": "key", "max_wait": "101 seconds", "arrival": "arrived", "sketch": (2, 64), "learn": False}
    wrapped = jt.load_aware(numbers, checkpoint=tmp_path / "checkpoint", **options)

    def start(writer: DataStreamWriter) -> StreamingQuery:
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    found = collected(start, wrapped.map(stream, "n long"))
    wrapped.close()
    agree("kept_by_cost", [book.encode().decode(), *found])


def numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.select(["n"])


@pytest.mark.parametrize(
    ("name", "options"),
    [("costliest_first", {}), ("tail_drop", {"rule": "tail_drop"}), ("by_utility", {"value": "worth"})],
)
def test_costs_as_they_are_learned(name: str, options: dict[str, Any]) -> None:
    """Five micro-batches of 80 rows on a clock that only the function moves."""
    hashes, now, lines = SharedHashes(2, 32, seed=1), [1000.0], []
    book, total, memory = CostBook.empty(hashes), TaskReport.empty(hashes), WorkerMemory()

    def function(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            now[0] += sum(COSTS_S.get(key, 0.5) / 64 for key in batch["key"].to_pylist())
            yield batch

    for number in range(5):
        ages = [1.5 - i / 40 for i in range(80)]
        at = pa.array([round((now[0] - age) * 1e6) for age in ages], pa.timestamp("us", "UTC"))
        keys = [row["key"] for row in rows()[80 * number % 220 :][:80]]
        batch = pa.record_batch({"key": keys, "at": at, "row": range(80), "worth": [1.0 + i % 3 for i in range(80)]})
        report = TaskReport.empty(hashes)
        settings = PartitionSettings("key", 2.0, "at", **options)
        task = PartitionShedder(settings, deepcopy(book.costs), memory, report, lambda: now[0], number)
        passed = [row for result in task.run(function, iter([batch])) for row in result["row"].to_pylist()]
        total = TaskReport.empty(hashes).add(total).add(report.of_batch(number))
        book.tell(total)
        lines += [json.dumps({"kept": passed, "now_s": now[0], "busy_s": report.busy_s, "wait_s": report.wait_s})]
        lines += [book.encode().decode()]
    agree(f"costs_as_they_are_learned_{name}", lines)


# Policies: the plans that they make of a short course.

BUDGETS = [
    jp.Budget(1.0, 1.0, 3.0, "idle"),
    jp.Budget(0.5, 0.2, 3.0, "busy"),
    jp.Budget(0.12, 0.05, 3.25, "busier"),
    jp.Budget(0.0, 0.0, 3.25, "hopeless"),
    jp.Budget(0.8, 0.8, 3.0, "better"),
    jp.Budget(1.0, 0.05, 3.0, "late rows only"),
]


def test_plans_of_uniform_drop() -> None:
    points = {"rows": jp.PointStats(1000, 700), "vips": jp.PointStats(500, 500, protected_share=0.25)}
    plans = [jt.UniformDrop().plan(jp.Stats(n, 100.0 + n, 1.0, points), one) for n, one in enumerate(BUDGETS)]
    agree("plans_of_uniform_drop", [plan.to_json() for plan in plans])


@pytest.mark.parametrize("spared", [[], ["a"]], ids=["all", "spared"])
def test_plans_of_priority_drop(spared: list[str]) -> None:
    """Nothing is known of the levels at first; one of them is empty for a while, and at one point rows are protected."""
    policy, lines = jp.PriorityDrop({"a": 3, "b": 2, "c": 1, "d": 2}, least=0.05), []
    policy.spare(spared)
    for n, budget in enumerate(2 * BUDGETS):
        points = {"rows": jp.PointStats(1000, 700), "vips": jp.PointStats(500, 500, protected_share=0.25)}
        stats = jp.Stats(n, 100.0 + n, 1.0, points)
        plan = policy.plan(stats, budget)
        levels = (100.0 + 7 * n, 250.0 * (n % 3), 350.0 / (1 + n), 300.0)
        policy.learn(Lesson(n, plan, {"rows": levels, "vips": levels[::-1]}))
        lines.append(plan.to_json())
    agree(f"plans_of_priority_drop_{'spared' if spared else 'all'}", [*lines, json.dumps(policy.state())])


@pytest.mark.parametrize(
    ("name", "policy", "room"),
    [
        ("concept_drop", jt.ConceptDrop("key", "at", "10 seconds"), None),
        ("concept_drop_to_an_error", jt.ConceptDrop("key", "at", ("20 seconds", "10 seconds"), rows=900, error=0.1), None),
        ("concept_drop_strict", jt.ConceptDrop("key", "at", "10 seconds", strict=True), 9),
        ("join_drop", jt.JoinDrop("key", "at", "10 seconds"), None),
        ("join_drop_to_an_error", jt.JoinDrop("key", "at", "10 seconds", rows=2000, error=0.2), 10),
    ],
)  # fmt: skip
def test_plans_by_group(name: str, policy: Any, room: int | None) -> None:
    """Micro-batches of six seconds, so that most have rows of two panes; groups grow and shrink."""
    books, plan, lines = {side: policy.groups.book(side) for side in ("left", "right")}, None, []
    policy.groups._variation["left"] = 0.5
    for n, budget in enumerate(BUDGETS):
        newest_us = (START + 6 * n + 6) * SECOND
        panes = sorted({(START + 6 * n + second) // 10 * 10 * SECOND for second in (0, 5)})
        for side, book in books.items():
            groups = [1, 2, 3, 5, 8, 13, -21, -34, 40 + n, 50 + n] if side == "left" else [1, 2, 3, 4, -21, 40 + n]
            sizes = [1 + 400 * (1 + (i + n) % 4) // (i + 1) ** 2 for i in range(len(groups))]
            every = [(pane, group, size) for pane in panes for group, size in zip(groups, sizes, strict=True)]
            book.add(*zip(*every, strict=True), newest_us=newest_us, setting=plan.points[side] if plan else None)
            book.close(book.oldest_open_us)
        points = {side: jp.PointStats(2000, 1000) for side in books}
        plan = policy.plan(jp.Stats(n, 100.0 + n, 1.0, points, plan_bytes=room and bytes_of_groups(room)), budget)
        lines.append(plan.to_json())
    agree(f"plans_of_{name}", lines)


@pytest.mark.parametrize("partitioning", ["auto", "grid", "data", "query", "qdpart"])
def test_plans_of_sifter(partitioning: str) -> None:
    """It is told of sampled rows and of what passed; the last line is the filter for sources."""
    texts = [f"value between {low} and {low + 4} and sector != 'food'" for low in range(0, 20, 3)]
    queries = jt.RangeQueries(SPACE, [*texts, "value is null", "value > 18"], weights=[1, 2, 1, 1, 3, 1, 1, 2, 4])
    value, sector = np.arange(400) * 37 % 101 / 4, np.arange(400.0) * 7 % 3
    value[::50], sector[::60] = np.nan, np.nan
    options = {"regions": 9, "sample_every": 50, "sample_size": 400, "partitioning": partitioning}
    policy = jt.Sifter(queries, np.column_stack([value, sector]), **options)
    lines = []
    for n, budget in enumerate(BUDGETS):
        stats = jp.Stats(n, 100.0 + n, 1.0, {"rows": jp.PointStats(1000, 400 + 20 * n)})
        plan = policy.plan(stats, budget)
        policy.learn(Lesson(n, plan, {"rows": np.column_stack([value[n::4] * (1 + n) / 6, sector[n::4]])}))
        policy.learn(Lesson(n, plan, counted=stats))
        lines.append(plan.to_json())
    agree(f"plans_of_sifter_{partitioning}", [*lines, json.dumps(policy.to_bytes(0.4).hex())], summed=True)


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("random", jp.NetworkDrop, {}),
        ("semantic", jp.NetworkDrop, {"semantic": True}),
        ("admission", AdmissionDrop, {"rule": "Input-Cost-Uniform"}),
    ],
)
def test_plans_of_network_drop(name: str, kind: type[jp.NetworkDrop], options: dict[str, Any]) -> None:
    """The inputs change their proportions, and the selectivity of a box is learned."""
    uniform = ((0.0, 100.0, 1.0),)
    boxes = [
        Box("parse", ("a",), "map", cost=4.0, selectivity=0.9),
        Box("low", ("parse",), cost=2.0, selectivity=0.4, passes=((0.0, 40.0),)),
        Box("high", ("parse",), cost=3.0, selectivity=0.5, passes=((50.0, 100.0),)),
        Box("both", ("low", "b"), "union", cost=5.0),
    ]
    outputs = [
        Output("o1", "both", jt.QoS(value=jt.ValueUtility([(0, 60, 0.2), (60, 100, 1.0)]))),
        Output("o2", "high", jt.QoS(value=jt.ValueUtility([(0, 70, 0.5), (70, 100, 1.0)]))),
    ]
    policy = kind(QueryGraph([Input("a", 10.0, uniform), Input("b", 6.0, uniform)], boxes, outputs), **options)
    lines = []
    for n, budget in enumerate(BUDGETS):
        seen = {"a": 1000 + 300 * n, "b": 600, "parse__low": 500 + 90 * n, "parse__high": 500 + 90 * n}
        stats = jp.Stats(n, 100.0 + n, 1.0, {name: jp.PointStats(rows, rows) for name, rows in seen.items()})
        lines.append(policy.plan(stats, budget).to_json())
        policy.learn(Lesson(n, counted=stats))
    agree(f"plans_of_network_drop_{name}", lines)


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("runs", jt.WindowDrop(time="at", window=("10 seconds", "5 seconds"), max_gap=6)),
        ("tumbling", jt.WindowDrop(time="at", window="5 seconds", max_gap=3)),
        ("queries", jt.WindowDrop.for_query(
            time="at",
            windows={"nested": [("10 seconds", "5 seconds"), "20 seconds"], "plain": ["5 seconds"]},
            max_gap={"nested": 4, "plain": 9},
            cost={"nested": 3.0, "plain": 1.0},
        )),
    ],
)  # fmt: skip
def test_plans_of_window_drop(name: str, policy: jt.WindowDrop) -> None:
    """Each plan builds on the one before, twice through all budgets."""
    plan, lines = jp.DropPlan(0), []
    for n, budget in enumerate(2 * BUDGETS):
        newest = START + 17 * n
        times = EventTimes(newest * SECOND, 15 * SECOND, (newest - 12) * SECOND if n else None)
        stats = jp.Stats(n, 100.0 + n, 1.0, {"rows": jp.PointStats(100, 100)}, event_times=times)
        plan = policy.continued(plan, stats, budget)
        lines.append(plan.to_json())
    agree(f"plans_of_window_drop_{name}", lines)


# Answers: what each estimator makes of one weighted table.

GROUPS = {  # rows, and the weights that they have in turn
    "shed": (150, [2.5]), "mixed": (150, [1.0, 1.25, 4.0, 10.0]), "few": (7, [4.0, 2.0]), "one": (1, [3.0]),
    "whole": (40, [1.0]), "counted": (50, [3.0, None]), "no value": (2, [2.0, 1.0]),
}  # fmt: skip


def table() -> list[tuple[str, int, float | None, float | None]]:
    """Group, second, value and weight; some rows have no value, and those without a weight none."""

    def row(key: str, i: int, weight: float | None) -> tuple[str, int, float | None, float | None]:
        empty = key == "no value" or weight is None or i % 13 == 5
        return key, i * 7 % 40, None if empty else (i * i % 97) / 7 - 3, weight

    return [row(key, i, weights[i % len(weights)]) for key, (count, weights) in GROUPS.items() for i in range(count)]


def weighted(spark: SparkSession) -> DataFrame:
    """In one partition, because sums of floats hang on their order."""
    made = spark.createDataFrame(table(), "key string, second long, x double, jt_weight double").coalesce(1)
    return made.withColumns({"d": F.col("x").cast("decimal(12,2)"), "at": F.timestamp_seconds(F.col("second") + START)})


def named(answers: DataFrame, *order: str) -> list[str]:
    """The answers with the names of their fields; decimals as text."""
    found = sorted(answers.collect(), key=lambda row: [row[name] for name in order])
    return [json.dumps(row.asDict(recursive=True), default=str) for row in found]


@pytest.mark.usefixtures("vouched_for")
def test_answers(spark: SparkSession) -> None:
    answers = {
        "count": jt.count(), "sum": jt.sum("d", confidence=0.99), "avg": jt.avg("x"), "variance": jt.variance("x"),
        "stddev": jt.stddev("x"), "p90": jt.percentile("x", 0.9), "evidence": jf.evidence("x"),
    }  # fmt: skip
    found = weighted(spark).groupBy("key").agg(*[column.alias(name) for name, column in answers.items()])
    agree("answers", named(found, "key"), summed=True)


def test_answers_in_doubt(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of ten seconds, of which the first two begin before the last drop; then with rows that share decisions."""
    marks = iter(("rows", "avg"))
    monkeypatch.setattr(doubts.secrets, "token_hex", lambda _: next(marks))
    channel, lines = Channel(Folder(tmp_path), lease_s=60.0), []
    channel.prepare()
    doubts.register(spark, channel)
    try:
        window, second = F.window("at", "10 seconds"), (F.unix_seconds("window.start") - START).alias("second")
        answers = [jt.count(window="window").alias("rows"), jt.avg("x", window="window").alias("avg")]
        grouped = weighted(spark).where("key IN ('mixed', 'whole', 'few')").groupBy("key", window)
        found = grouped.agg(*answers).select("key", second, "rows", "avg")
        for until_us in ((START + 15) * SECOND, DEPENDENT_US):
            channel.publish(Schedule.of(jp.DropPlan(1), Doubts(until_us, DEPENDENT_US, {"rows": 0, "avg": 0})))
            lines += named(found, "key", "second")
    finally:
        doubts.unregister(spark, channel)
    agree("answers_in_doubt", lines, summed=True)


def test_answers_of_numpy() -> None:
    formulas = {
        "count": count_estimate, "sum": sum_estimate, "avg": mean_estimate,
        "variance": variance_estimate, "stddev": stddev_estimate,
    }  # fmt: skip
    lines = []
    for key in GROUPS.keys() - {"counted"}:
        values, weights = zip(
            *[(np.nan if x is None else x, w) for group, _, x, w in table() if group == key], strict=True
        )
        known = describe(values, weights)
        found = {name: formula(NUMPY, *known, quantile(0.95)) for name, formula in formulas.items()}
        parts = ("value", "lower", "upper", "exact", "enough")
        plain = {name: {part: np.asarray(getattr(of, part)).item() for part in parts} for name, of in found.items()}
        lines.append(json.dumps({"key": key, **plain}))
    agree("answers_of_numpy", sorted(lines), summed=True)


def test_join_totals(spark: SparkSession) -> None:
    """Key 0 was decided as a whole on both sides, and so was key 1 on the left; the others row by row."""

    def side(name: str, count: int, weights: list[float], whole: list[int]) -> DataFrame:
        rows = [(i, i * i % 5, i * 3 % 7 / 4, weights[i % len(weights)], i * i % 5 in whole) for i in range(count)]
        schema = f"{name}_id long, ad long, {name}_value double, jt_weight double, jt_whole boolean"
        return jf.join_side(spark.createDataFrame(rows, schema).coalesce(1), name)

    left, right = side("left", 40, [2.0, 1.0, 3.5], [0, 1]), side("right", 30, [1.25, 5.0], [0])
    pairs = left.join(right, "ad").withColumn("minute", F.col("left_id") % 2)
    by = {"by": ["minute"], "key": "ad", "left_id": "left_id", "right_id": "right_id"}
    pairs_and_sums = [jf.join_totals(pairs, **by, value=value) for value in (None, "left_value")]
    agree("join_totals", named(reduce(DataFrame.union, pairs_and_sums), "minute", "value"))


@pytest.mark.parametrize("place", [None, "place"], ids=["all", "neighbours"])
def test_borrowed_answers(place: str | None) -> None:
    """Windows that overlap, each with groups that are known well, little, not at all, or whole."""
    borrower, lines = jf.Borrower(group="route", evidence="fare", neighbourhood=place), []
    for number in range(4):
        kept = [60, 60 - 5 * number, 3, 0 if number > 1 else 2, 1, 20]
        fares = [
            {
                "mean": (10.0 + i * i) * (1.0 + number * (i + 2) % 4 / 9) if rows else None,
                "variance": 4.0 + i / 7 if rows > 1 else None,
                "kept": rows,
                "effective_rows": None if i == 5 else rows * 0.8 + 0.1,
                "rows": float(rows) if i == 5 else 4.0 * rows + 9,
            }
            for i, rows in enumerate(kept)
        ]
        window = {"start": 30 * number, "end": 30 * number + 60}
        answers = pa.table({"window": [window] * 6, "route": list("abcdef"), "place": list("xxyyxy"), "fare": fares})
        lines += map(json.dumps, borrower.estimates(answers).select(["route", "estimate"]).to_pylist())
    agree(f"borrowed_answers_{'neighbours' if place else 'all'}", lines, summed=True)


def test_interpolated_answers() -> None:
    first = datetime.fromtimestamp(START, UTC)
    by_time = {first + timedelta(minutes=5 * n): n * n / 3 for n in (0, 1, 4, 5, 11)}
    by_number = {7 + 10 * n: 1.0 / (1 + n) for n in (-2, 1, 2, 6)}
    found = [
        jf.interpolate(by_time, ("10 minutes", "5 minutes")),
        jf.interpolate(by_number, ("0.00002 s", "0.00001 s", "0.000007 s")),
    ]
    agree("interpolated_answers", [json.dumps(asdict(one), default=str) for series in found for one in series])


# The controller.


def test_course_of_the_controller() -> None:
    """Two minutes with a young process, an overload, a pause and a higher overload; its state at the end."""

    def rate(now_s: float) -> float:
        return next(
            rows for until_s, rows in ((30, 4e4), (60, 3e5), (70, 5e4), (80, 0.0), (200, 5e5)) if now_s < until_s
        )

    controller = Controller(ControlSettings(latency_bound_s=3.0))
    trace = Plant(PlantSettings(cold_factor=1.0, seed=3), rate).run(controller, until_s=120.0)
    names = ["batch", "started_s", "duration_s", "seen", "kept", "kept_share", "plan"]
    rows = [
        [one.batch_id, one.started_s, one.duration_s, one.seen, one.kept, batch.kept_share, one.plan_version]
        for batch in trace
        for one in [batch.stats]
    ]
    agree("course_of_the_controller", map(json.dumps, [names, *rows, controller.to_dict()]), summed=True)
