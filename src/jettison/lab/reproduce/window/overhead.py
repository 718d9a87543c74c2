"""Table 4, and what dropping saves: task CPU with a window drop against the same query without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.streams import Variant, alternate, median, median_ratio
from jettison.lab.reproduce.claims import Figure, judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.reproduce.window import streams

_GAP = 10
_BATCHES, _FILES_A_BATCH = 2, 2
# About two seconds of work a batch on two cores: what comes with each batch must not stand for what comes with rows.
_ROWS_A_BATCH = {"json": 1_000_000, "columns": 6_000_000}
CELLS = [(size, selectivity) for selectivity in (0.5, 1.0) for size in (25, 50, 75, 100)]
"""Of table 4: windows in tuples, and the share of rows that pass a filter."""
# Functions of the columns, so that the source cannot skip anything by its own statistics; not deterministic in the
# optimizer's eyes, so that no parse is moved in front of it.
_NO_ROW = "length(json) < 0 or unix_micros(at) < 0 or spark_partition_id() < -1"


def idle(spark: SparkSession, folder: Path, settings: RunSettings) -> Judged:
    """Table 4: installed and dropping nothing, for windows of 25 to 100 tuples and two selectivities."""
    rows, claims = [], []
    for kind in _ROWS_A_BATCH:
        _land(spark, folder, kind)
        ratios = {}
        for size, selectivity in CELLS[-1:] if settings.quick else CELLS:
            query = _Means(spark, folder / "in", kind, size, selectivity)
            costs = alternate(spark, folder, {"plain": query.plain(), "idle": query.dropping(0.0)}, 2)
            cpu = median_ratio(costs["idle"], costs["plain"], lambda cost: cost.cpu_s)
            wall = median_ratio(costs["idle"], costs["plain"], lambda cost: 1.0 / cost.rows_per_s)
            ratios[size, selectivity] = cpu
            rows.append([kind, selectivity, size, median(costs["plain"], lambda cost: cost.cpu_s), cpu, wall])
            settings.say(f"  {rows[-1]}")
        claims += judge("window", of_idle(kind, ratios), {"rows_per_batch": _ROWS_A_BATCH[kind], "batches": _BATCHES})
    header = ["rows", "selectivity", "window in tuples", "plain: task CPU in s", "CPU over plain", "time over plain"]
    return [Section("Table 4: installed and dropping nothing", table(header, rows))], claims


def of_idle(kind: str, ratios: Mapping[tuple[int, float], float]) -> dict[str, Figure]:
    """The worst cell where all were measured; a part of the table is judged under another name."""
    name = f"idle-{kind}" if set(ratios) == set(CELLS) else f"idle-some-cells-{kind}"
    return {name: (max(ratios.values()), {"cells": list(ratios)})}


def saved(spark: SparkSession, folder: Path, settings: RunSettings) -> Judged:
    """Half of all tumbling windows dropped in front of a JSON parse, against the plain query."""
    size, repetitions = 1000, 3
    _land(spark, folder, "json")
    query = _Means(spark, folder / "in", "json", size, 1.0)
    variants = {"plain": query.plain(), "half of the windows dropped": query.dropping(0.5)}
    if not settings.quick:  # what the source costs, which no drop behind it can save; no claim depends on it
        variants["no row let through"] = query.plain(where=_NO_ROW)
    costs = alternate(spark, folder, variants, repetitions)
    ratio = {name: median_ratio(of, costs["plain"], lambda cost: cost.cpu_s) for name, of in costs.items()}
    rows = [[name, median(of, lambda cost: cost.cpu_s), ratio[name]] for name, of in costs.items()]
    config = {"window": size, "batch_size": _GAP, "repetitions": repetitions, "rows_per_batch": _ROWS_A_BATCH["json"]}
    claims = judge("window", {"half-dropped-cpu": ratio["half of the windows dropped"]}, config)
    header = ["query", "task CPU in s", "over plain"]
    return [Section("CPU saved by dropping half of the windows", table(header, rows))], claims


def _land(spark: SparkSession, folder: Path, kind: str) -> None:
    files = _FILES_A_BATCH * _BATCHES
    streams.land(spark, folder / "in", _BATCHES * _ROWS_A_BATCH[kind], files, text=kind == "json")


@dataclass(frozen=True, slots=True)
class _Means:
    """Counts and means over tumbling windows of `size` tuples; a filter lets a share of the rows pass."""

    spark: SparkSession
    folder: Path
    kind: str
    size: int
    selectivity: float

    def plain(self, where: str = "") -> Variant:
        return streams.appended(lambda _: self._answers(None, where), None)

    def dropping(self, share: float) -> Variant:
        """With a window drop that drops so large a share of the windows."""
        queries = (streams.branch((self.size, self.size), max_gap=_GAP),)
        tuples = _BATCHES * _ROWS_A_BATCH[self.kind]
        policy = streams.FixedDrop(time="at", queries=queries, share=share, tuples=tuples)
        return streams.appended(self._answers, policy)

    def _answers(self, shedder: jt.Shedder | None, where: str = "") -> DataFrame:
        rows = streams.source(self.spark, self.folder, files_a_batch=_FILES_A_BATCH)
        rows = streams.guarded(shedder, rows.where(where) if where else rows)
        if self.kind == "json":
            parsed = F.from_json("json", "id BIGINT, value DOUBLE, unit STRING, station STRING").alias("r")
            rows = rows.select("at", parsed).select("at", "r.*")
        if self.selectivity < 1.0:
            rows = rows.where(f"id % 100 < {100 * self.selectivity:.0f}")
        means = F.count(F.lit(1)).alias("n"), F.avg("value").alias("mean")
        return streams.whole(shedder, rows.groupBy(streams.window("at", self.size)).agg(*means))
