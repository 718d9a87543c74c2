"""Table 4, and what dropping saves: task CPU with a window drop against the same query without it."""

from __future__ import annotations

import statistics
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.bench.streams import Cost, Variant, alternate
from jettison.policies.window_drop import WindowDrop
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.reproduce.window import streams

_TUPLES = 900_000
_GAP = 10


def idle(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Table 4: installed and dropping nothing, for windows of 25 to 100 tuples and two selectivities."""
    tuples = _TUPLES // 3 if settings.quick else _TUPLES
    streams.land(spark, folder / "in", tuples, files=3)
    sizes = (25, 100) if settings.quick else (25, 50, 75, 100)
    repetitions = 1 if settings.quick else 5
    rows, worst = [], {True: 0.0, False: 0.0}
    for parse in (True, False):
        for selectivity in (1.0, 0.5):
            for size in sizes:
                # Without a parse the query is so cheap that windows of a few tuples cost more in state than in rows.
                variants = {
                    name: _query(spark, folder, size, selectivity, parse, policy)
                    for name, policy in (("plain", None), ("window drop", _policy(size, 0.0)))
                }
                costs = alternate(spark, folder, variants, repetitions)
                cpu, wall = _ratio(costs, "cpu_s"), 1.0 / _ratio(costs, "rows_per_s")
                worst[parse] = max(worst[parse], cpu)
                rows.append(["JSON" if parse else "columns", selectivity, size, cpu, wall])
                settings.say(f"  {rows[-1]}")
    config = {"tuples": tuples, "repetitions": repetitions, "sizes": list(sizes), "selectivities": [1.0, 0.5]}
    paper = "throughput 0.96 to 1.0"
    claims = [
        Claim(
            "idle-json", "task CPU, idle over plain, with a JSON parse, worst", paper, worst[True], 1.05, config=config
        ),
        Claim(
            "idle-columns",
            "task CPU, idle over plain, without a parse, worst",
            paper,
            worst[False],
            1.12,
            config=config,
        ),
    ]
    header = ["rows", "selectivity", "window in tuples", "task CPU over plain", "time over plain"]
    return claims, Section("Table 4: installed and dropping nothing", table(header, rows))


def saved(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Half of all tumbling windows dropped in front of a JSON parse, against the plain query."""
    streams.land(spark, folder / "in", _TUPLES, files=3)
    size, repetitions = 1000, 1 if settings.quick else 5
    variants = {
        "plain": _query(spark, folder, size, 1.0, True, None),
        "half dropped": _query(spark, folder, size, 1.0, True, _policy(size, 0.5)),
    }
    costs = alternate(spark, folder, variants, repetitions)
    ratio = _ratio(costs, "cpu_s")
    config = {"tuples": _TUPLES, "window": size, "drop_share": 0.5, "batch_size": _GAP, "repetitions": repetitions}
    claim = Claim(
        "half-dropped-cpu", "task CPU at p = 0.5 over plain, parse behind the guard", "", ratio, 0.6, config=config
    )
    rows = [[name, statistics.median(cost.cpu_s for cost in of)] for name, of in costs.items()]
    return [claim], Section("CPU saved by dropping half of the windows", table(["query", "task CPU in s"], rows))


def _policy(size: int, share: float) -> WindowDrop:
    return streams.fixed_drop(streams.branch((size, size), max_gap=_GAP), share=share, tuples=_TUPLES)


def _query(
    spark: SparkSession, folder: Path, size: int, selectivity: float, parse: bool, policy: WindowDrop | None
) -> Variant:
    def build(shedder: jt.Shedder | None) -> DataFrame:
        rows = streams.guarded(shedder, streams.source(spark, folder / "in"))
        if parse:
            parsed = F.from_json("json", "id BIGINT, value DOUBLE, unit STRING, station STRING").alias("r")
            rows = rows.select("at", parsed).select("at", "r.*")
        rows = rows.where(f"id % 100 < {100 * selectivity:.0f}")
        answers = rows.groupBy(streams.window("at", size)).agg(
            F.count(F.lit(1)).alias("n"), F.avg("value").alias("mean")
        )
        return streams.whole(shedder, answers)

    return streams.appended(build, policy)


def _ratio(costs: dict[str, list[Cost]], measure: str) -> float:
    plain, other = costs.values()
    return float(
        statistics.median(getattr(b, measure) / getattr(a, measure) for a, b in zip(plain, other, strict=True))
    )
