"""What only an engine can tell: which groups the windows of a stream held, and which of them the answers hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.scripted import keep, scripted
from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.policies.groups.concept_drop import ConceptDrop

WINDOW_S = 60
START_S = 1_767_225_600  # a multiple of the window
SCHEMA = "offset BIGINT, time TIMESTAMP, value STRING"
ROUTE = """regexp_extract(value, '"route":"([^"]*)', 1)"""
"""Reads the group out of a row without parsing it."""


def drift(spark: SparkSession, folder: Path, settings: RunSettings) -> Judged:
    """New groups, vanishing ones, and the heaviest turning into the rarest, from window to window."""
    windows, batches = (2, 5) if settings.quick else (3, 8)
    outcomes = [
        (exact, run_case(spark, DriftCase(seed, windows, batches, exact_counts=exact), folder / f"{exact}{seed}"))
        for exact in (False, True)
        for seed in range(settings.seed * 100, settings.seed * 100 + (1 if settings.quick else 4))
    ]
    figures = {
        "spark-missing": float(sum(len(one.missing) for _, one in outcomes)),
        "spark-counts": float(sum(len(one.miscounted) for exact, one in outcomes if exact)),
    }
    config = {"runs": len(outcomes), "windows": windows, "batches_per_window": batches, "groups_per_window": 60}
    rows = [["counted" if exact else "gone", *one.summary()] for exact, one in outcomes]
    section = Section("On Spark: streams under drift", table(["dropped rows", *LiveOutcome.HEADER], rows))
    return [section], judge("concept", figures, config)


def crowded(spark: SparkSession, folder: Path, settings: RunSettings) -> Judged:
    """More groups than rows may be kept: all appear with their counts, those without a value say so."""
    groups = 37_500 if settings.quick else 750_000  # a window; with those of the second 50,000 or a million
    case = DriftCase(settings.seed, windows=2, batches=3, groups=groups, rows=2 * groups, share=0.1, exact_counts=True)
    outcome = run_case(spark, case, folder)
    empty = [answer for answer in outcome.answers.values() if answer.mean is None]
    silent = sum(answer.status != "few rows" for answer in empty)
    config = {"kept_share": outcome.kept_share, "without_value": len(empty)}
    figures = {"spark-crowded": float(len(outcome.missing) + len(outcome.miscounted) + silent)}
    section = Section("On Spark: more groups than rows to keep", table(LiveOutcome.HEADER, [outcome.summary()]))
    return [section], judge("concept", figures, config)


@dataclass(frozen=True, slots=True)
class DriftCase:
    """Windows whose groups change: some vanish, some are new, and the heaviest turn into the rarest.

    Each window has about so many groups and rows, in so many micro-batches. With `exact_counts` dropped rows are still
    counted; with `all_new` no group of a window was in any window before.
    """

    seed: int
    windows: int = 3
    batches: int = 8
    groups: int = 60
    rows: int = 12_000
    share: float = 0.25
    exact_counts: bool = False
    all_new: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows counted in one group of one window, their mean, and what the answer says of itself."""

    rows: int
    mean: float | None
    status: str


@dataclass(frozen=True, slots=True)
class LiveOutcome:
    """Rows of every group and window as they were, the answers, rows kept of all rows, what is on record and went wrong."""

    truth: Mapping[tuple[int, str], Answer]
    answers: Mapping[tuple[int, str], Answer]
    kept_share: float
    concepts: list[dict[str, object]]
    causes: list[str]
    faults: Mapping[str, int]

    HEADER: ClassVar = ["groups and windows", "missing", "miscounted", "rows kept", "mean error"]

    def summary(self) -> list[object]:
        """A line of a table under `HEADER`."""
        return [len(self.truth), len(self.missing), len(self.miscounted), self.kept_share, self.error]

    @property
    def missing(self) -> list[tuple[int, str]]:
        """Groups that a window held and its answer does not."""
        return sorted(set(self.truth) - set(self.answers))

    @property
    def miscounted(self) -> list[tuple[int, str]]:
        """Groups whose count is not what it was."""
        return sorted(one for one, answer in self.answers.items() if answer.rows != self.truth[one].rows)

    @property
    def error(self) -> float:
        """Mean relative error over all groups; 1 for a group without a value."""
        errors = [_error(self.truth[one].mean, self.answers[one].mean) for one in self.truth if one in self.answers]
        return float(np.sum(errors) + len(self.missing)) / len(self.truth)


def _error(true: float | None, found: float | None) -> float:
    return 1.0 if found is None or true is None else min(abs(found - true) / abs(true), 1.0)


def window_groups(case: DriftCase, window: int) -> tuple[list[str], np.ndarray]:
    """Names of a window's groups and the rows of each."""
    names = []
    for place in range(case.groups):
        # Of three places one has a new name in every window, one has always the same, and one every other window another.
        age = window if case.all_new else (window, 0, window // 2)[place % 3]
        names.append(f"route {place}" if age == 0 else f"route {place} of {age}")
    size = 1.0 / (1.0 + np.arange(case.groups)) ** 2
    rows = np.maximum(1, np.floor(case.rows * size / size.sum())).astype(int)
    return names, rows if window % 2 == 0 else rows[::-1]  # the heaviest group is the rarest next time


def land(case: DriftCase, folder: Path) -> dict[tuple[int, str], Answer]:
    """Write the stream, a file for each micro-batch, and return what its windows hold."""
    folder.mkdir(parents=True)
    random, truth, offset, number = np.random.default_rng(case.seed), {}, 0, 0
    for window in range(case.windows):
        names, rows = window_groups(case, window)
        group = np.repeat(np.arange(len(names)), rows)
        value = np.round(random.lognormal(2.0, 0.5, len(group)) * (1 + group % 7), 2)
        at = np.sort(random.uniform(window, window + 1, len(group))) * WINDOW_S
        mixed = random.permutation(len(group))
        group, value = group[mixed], value[mixed]
        mean = np.bincount(group, weights=value) / rows
        for name, count, of_group in zip(names, rows.tolist(), mean.tolist(), strict=True):
            truth[window, name] = Answer(count, of_group, "exact")
        for batch in range(case.batches):
            here = np.flatnonzero((at / WINDOW_S - window) * case.batches // 1 == batch)
            texts = [f'{{"ride":{offset + i},"route":"{names[group[i]]}","fare":{value[i]:.2f}}}' for i in here]
            _write(folder, number, offset + here, at[here], texts)
            number += 1
        offset += len(group)
    # One row two windows later, so that all of them close.
    _write(folder, number, np.array([offset]), np.array([(case.windows + 2.0) * WINDOW_S]), ['{"route":"end"}'])
    return truth


def _write(folder: Path, number: int, offsets: np.ndarray, at_s: np.ndarray, texts: list[str]) -> None:
    times = pa.array(np.round((START_S + at_s) * 1e6).astype("int64")).cast(pa.timestamp("us", tz="UTC"))
    path = folder / f"{number:05d}.parquet"
    pq.write_table(pa.table({"offset": offsets, "time": times, "value": texts}), path)
    os.utime(path, (START_S + number, START_S + number))  # files are taken in the order of their age


def shed_answers(rows: DataFrame, *, exact_counts: bool) -> DataFrame:
    """The query: rows and mean fare by window and route, over guarded rows."""
    fare = F.from_json("value", "fare DOUBLE")["fare"].alias("fare")
    route = F.col("route") if exact_counts else F.expr(ROUTE).alias("route")
    parsed = rows.select("time", "jt_weight", route, fare)
    counted = F.count(F.lit(1)) if exact_counts else F.round(jt.count().getField("value")).cast("long")
    grouped = parsed.groupBy(F.window("time", f"{WINDOW_S} seconds"), "route")
    return grouped.agg(counted.alias("rows"), jt.avg("fare").alias("fare"))


def run_case(spark: SparkSession, case: DriftCase, folder: Path) -> LiveOutcome:
    """Run the stream through a guard and compare."""
    truth = land(case, folder / "in")
    policy = scripted(
        ConceptDrop,
        lambda batch: keep(case.share),
        group="route" if case.exact_counts else ROUTE,
        time="time",
        window=f"{WINDOW_S} seconds",
        strict=not case.exact_counts,
        exact_counts=case.exact_counts,
    )
    shedder = jt.Shedder(latency="1 hour", checkpoint=folder / "checkpoint", policy=policy)
    raw = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    raw = raw.withWatermark("time", "0 seconds")
    guarded = shedder.guard(raw.withColumn("route", F.expr(ROUTE)) if case.exact_counts else raw, row_id="offset")
    found: dict[tuple[int, str], Answer] = {}

    def collect(batch: DataFrame, number: int) -> None:
        columns = [
            "unix_seconds(window.start) AS start",
            "route",
            "rows",
            "fare.value AS mean",
            "fare.status AS status",
        ]
        for row in batch.selectExpr(*columns).collect():
            found[(row.start - START_S) // WINDOW_S, row.route] = Answer(row.rows, row["mean"], row.status)

    answers = shed_answers(guarded, exact_counts=case.exact_counts)
    writer = answers.writeStream.outputMode("append").foreachBatch(collect).trigger(availableNow=True)
    query = shedder.start(writer)
    query.awaitTermination()
    shedder.await_books()
    totals = shedder.ledger.totals()
    return LiveOutcome(
        truth=truth,
        answers={one: answer for one, answer in found.items() if one[1] != "end"},
        kept_share=totals.kept / totals.seen,
        concepts=list(shedder.ledger.records("concept")),
        causes=[record["cause"] for record in shedder.ledger.records("plan")],
        faults=dict(shedder.status().faults),
    )
