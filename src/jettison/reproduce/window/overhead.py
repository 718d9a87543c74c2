"""Table 4, and what dropping saves: task CPU with a window drop against the same query without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.bench.streams import Variant, alternate, median, median_ratio
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.reproduce.window import streams

_GAP = 10
_FILES_A_BATCH = 2
CELLS = [(size, selectivity) for selectivity in (0.5, 1.0) for size in (25, 50, 75, 100)]
"""Of table 4: windows in tuples, and the share of rows that pass a filter."""


@dataclass(frozen=True, slots=True)
class Input:
    """Rows on disk, read a batch at a time: as JSON, or as columns that need no parse."""

    text: bool
    rows_per_batch: int
    batches: int = 2

    @property
    def name(self) -> str:
        """What the rows are, in a word."""
        return "JSON" if self.text else "columns"

    @property
    def rows(self) -> int:
        """All of them."""
        return self.rows_per_batch * self.batches

    def land(self, spark: SparkSession, folder: Path) -> None:
        """Write them."""
        streams.land(spark, folder, self.rows, files=_FILES_A_BATCH * self.batches, text=self.text)


def idle(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Table 4: installed and dropping nothing, for windows of 25 to 100 tuples and two selectivities."""
    # About two seconds of work a batch on two cores: what comes with each batch must not stand for what comes with rows.
    inputs = [Input(text=True, rows_per_batch=1_000_000), Input(text=False, rows_per_batch=6_000_000)]
    cells = CELLS[-1:] if settings.quick else CELLS
    repetitions, claims, rows = 2, [], []
    for given, bar in zip(inputs, (1.05, 1.12), strict=True):
        given.land(spark, folder / "in")
        ratios = {}
        for size, selectivity in cells:
            query = _Means(spark, folder / "in", given, size, selectivity)
            costs = alternate(spark, folder, {"plain": query.plain(), "idle": query.dropping(0.0)}, repetitions)
            cpu = median_ratio(costs["idle"], costs["plain"], lambda cost: cost.cpu_s)
            wall = median_ratio(costs["idle"], costs["plain"], lambda cost: 1.0 / cost.rows_per_s)
            ratios[size, selectivity] = cpu
            rows.append([given.name, selectivity, size, median(costs["plain"], lambda cost: cost.cpu_s), cpu, wall])
            settings.say(f"  {rows[-1]}")
        claims.append(idle_claim(given, ratios, bar, repetitions))
    header = [
        "rows",
        "selectivity",
        "window in tuples",
        "plain: task CPU in s",
        "task CPU over plain",
        "time over plain",
    ]
    return claims, Section("Table 4: installed and dropping nothing", table(header, rows))


def idle_claim(given: Input, ratios: Mapping[tuple[int, float], float], bar: float, repetitions: int) -> Claim:
    """The worst cell where all were measured; a part of the table is judged under another name."""
    whole = set(ratios) == set(CELLS)
    config = {"rows_per_batch": given.rows_per_batch, "batches": given.batches, "repetitions": repetitions}
    cells = "worst cell of table 4" if whole else f"worst of {len(ratios)} of the {len(CELLS)} cells of table 4"
    return Claim(
        f"idle-{given.name.lower()}" if whole else f"idle-some-cells-{given.name.lower()}",
        f"task CPU, idle over plain, rows as {given.name}, {cells}",
        "throughput 0.96 to 1.0",
        max(ratios.values()),
        at_most=bar,
        config=config | {"cells": list(ratios)},
    )


def saved(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Half of all tumbling windows dropped in front of a JSON parse, against the plain query."""
    size, repetitions = 1000, 3
    given = Input(text=True, rows_per_batch=1_000_000)
    given.land(spark, folder / "in")
    query = _Means(spark, folder / "in", given, size, 1.0)
    variants = {"plain": query.plain(), "half of the windows dropped": query.dropping(0.5)}
    if not settings.quick:  # no claim depends on it
        variants["no row let through"] = query.reading_only()
    costs = alternate(spark, folder, variants, repetitions)
    ratio = {name: median_ratio(of, costs["plain"], lambda cost: cost.cpu_s) for name, of in costs.items()}
    config = {"window": size, "drop_share": 0.5, "batch_size": _GAP, "repetitions": repetitions}
    claim = Claim(
        "half-dropped-cpu",
        "task CPU at p = 0.5 over plain, parse behind the guard",
        "",
        ratio["half of the windows dropped"],
        at_most=0.6,
        config=config | {"rows_per_batch": given.rows_per_batch, "batches": given.batches},
    )
    rows = [[name, median(of, lambda cost: cost.cpu_s), ratio[name]] for name, of in costs.items()]
    header = ["query", "task CPU in s", "over plain"]
    return [claim], Section("CPU saved by dropping half of the windows", table(header, rows))


@dataclass(frozen=True, slots=True)
class _Means:
    """Counts and means over tumbling windows of `size` tuples; a filter lets a share of the rows pass."""

    spark: SparkSession
    folder: Path
    given: Input
    size: int
    selectivity: float

    def plain(self) -> Variant:
        """Without Jettison."""
        return streams.appended(self._build(lambda rows: rows), None)

    def dropping(self, share: float) -> Variant:
        """With a window drop that drops so large a share of the windows."""
        branch = streams.branch((self.size, self.size), max_gap=_GAP)
        policy = streams.fixed_drop(branch, share=share, tuples=self.given.rows)
        return streams.appended(self._build(lambda rows: rows), policy)

    def reading_only(self) -> Variant:
        """Without Jettison, and with no row let through: what the source costs, which no drop behind it can save."""
        # Functions of the columns, so that the source cannot skip anything by its own statistics; not deterministic in the
        # optimizer's eyes, so that no parse is moved in front of it.
        nothing = "length(json) < 0 or unix_micros(at) < 0 or spark_partition_id() < -1"
        return streams.appended(self._build(lambda rows: rows.where(nothing)), None)

    def _build(self, let_through: Callable[[DataFrame], DataFrame]) -> Callable[[jt.Shedder | None], DataFrame]:
        def build(shedder: jt.Shedder | None) -> DataFrame:
            rows = let_through(streams.source(self.spark, self.folder, files_a_batch=_FILES_A_BATCH))
            rows = streams.guarded(shedder, rows)
            if self.given.text:
                parsed = F.from_json("json", "id BIGINT, value DOUBLE, unit STRING, station STRING").alias("r")
                rows = rows.select("at", parsed).select("at", "r.*")
            if self.selectivity < 1.0:
                rows = rows.where(f"id % 100 < {100 * self.selectivity:.0f}")
            answers = rows.groupBy(streams.window("at", self.size)).agg(
                F.count(F.lit(1)).alias("n"), F.avg("value").alias("mean")
            )
            return streams.whole(shedder, answers)

        return build
