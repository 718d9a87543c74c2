"""Figures 10 and 11: where drops are placed, in a chain of aggregates and in a shared plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.bench.streams import Variant
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.reproduce.window import streams
from jettison.reproduce.window.model import Load, required_share, straight_line
from jettison.windows.decide import highest_share

_GAP = 10
_EXCESS = tuple(x / 100 for x in range(0, 201, 5))
_SHOWN = (0.1, 0.25, 0.5, 0.75, 1.0, 2.0)
_BUSY_S = 1.2  # CPU of each of the three parts of a query, over the whole run

Lines = dict[str, Load]


def pipeline(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Figure 10: count over 10 tuples, count of that over 100, and equal work before, between and after."""
    tuples = 40_000
    streams.land(spark, folder / "in", tuples)
    per_part = [1e3 * _BUSY_S / tuples * factor for factor in (1, 10, 100)]

    def variant(place: str, share: float) -> Variant:
        # In the middle the drop sees the answers of the first aggregate: only the last window is left behind it.
        at_input = place == "input"
        levels = ((10, 10), (100, 100)) if at_input else ((100, 100),)
        policy = streams.fixed_drop(streams.branch(*levels, max_gap=_GAP), share=share, tuples=tuples)

        def build(shedder: jt.Shedder | None) -> DataFrame:
            rows = streams.source(spark, folder / "in")
            if at_input:
                rows = streams.guarded(shedder, rows)
            rows = streams.busy(rows, "id", per_part[0])
            inner = rows.groupBy(streams.window("at", 10)).agg(F.count(F.lit(1)).alias("n"))
            inner = inner.withColumn("at", F.window_time("window")).drop("window")
            if place == "middle":
                inner = streams.guarded(shedder, inner)
            inner = streams.busy(inner, "at", per_part[1])
            answers = inner.groupBy(streams.window("at", 100)).agg(F.sum("n").alias("n"))
            if place == "after":
                return streams.busy(streams.keep_some(answers, share), "window.start", per_part[2])
            return streams.busy(streams.whole(shedder, answers), "window.start", per_part[2])

        return streams.appended(build, None if place == "after" else policy)

    lines, points = _measure(spark, folder, settings, variant, ("input", "middle", "after"))
    claims = _claims(lines, "pipeline", "10", settings)
    limit = lines["after"](0.0) / lines["after"](1.0) - 1.0
    claims.append(
        Claim(
            "pipeline-random-fails",
            "excess load from which a random drop after the aggregates delivers nothing",
            "about 0.65",
            limit,
            at_most=0.75,
            at_least=0.35,
            config={"parts": "three, of equal work", "tuples": tuples},
        )
    )
    return claims, _section("Figure 10: a chain of aggregates", lines, points)


def fan_out(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Figure 11: two counts over a shared input, with work before the split, before and after each aggregate."""
    tuples = 40_000
    streams.land(spark, folder / "in", tuples)
    sizes = {"short": 50, "long": 100}
    shared_ms = 1e3 * _BUSY_S / tuples / 2

    def one(query: str, place: str, share: float) -> Variant:
        size = sizes[query]
        all_queries = [streams.branch((s, s), max_gap=_GAP, name=name) for name, s in sizes.items()]
        mine = streams.branch((size, size), max_gap=_GAP, name=query)
        queries = all_queries if place == "shared" else [mine]
        policy = streams.fixed_drop(*queries, share=share, tuples=tuples)

        def build(shedder: jt.Shedder | None) -> DataFrame:
            rows = streams.source(spark, folder / "in")
            if place == "shared":
                rows = streams.guarded(shedder, rows)
            rows = streams.busy(rows, "id", shared_ms)
            if place == "split":
                rows = streams.guarded(shedder, rows)
            rows = streams.busy(rows, "value", shared_ms)
            answers = rows.groupBy(streams.window("at", size)).agg(F.count(F.lit(1)).alias("n"))
            if place == "after":
                return streams.busy(streams.keep_some(answers, share), "window.start", 2 * shared_ms * size)
            whole = streams.whole(shedder, answers, query)
            if place == "shared":
                # The other query runs by itself; here only its marks count.
                other = next(name for name in sizes if name != query)
                streams.whole(shedder, answers, other)
            return streams.busy(whole, "window.start", 2 * shared_ms * size)

        return streams.appended(build, None if place == "after" else policy)

    def both(place: str, share: float) -> Variant:
        return streams.side_by_side([one(query, place, share) for query in sizes])

    lines, points = _measure(spark, folder, settings, both, ("shared", "split", "after"))
    return _claims(lines, "fan-out", "11", settings), _section("Figure 11: a shared plan", lines, points)


def _measure(
    spark: SparkSession,
    folder: Path,
    settings: RunSettings,
    variant: Callable[[str, float], Variant],
    places: tuple[str, ...],
) -> tuple[Lines, dict[tuple[str, float], float]]:
    shares = (0.0, 0.9) if settings.quick else (0.0, 0.45, 0.9)
    repetitions = _repetitions(settings)
    for place in places[:1] if settings.quick else places:
        streams.cpu_s(spark, folder, variant(place, 0.5))  # warm up
    points = {}
    for place in places:
        for share in shares:
            points[place, share] = streams.cpu_s(spark, folder, variant(place, share), repetitions)
            settings.say(f"  {place}, drop share {share}: {points[place, share]:.2f} s of task CPU")
    lines = {place: straight_line({share: points[place, share] for share in shares}) for place in places}
    return lines, points


def _repetitions(settings: RunSettings) -> int:
    return 1 if settings.quick else 2


def _required(place: str, line: Load, excess: float) -> float:
    return required_share(line, excess, most=1.0 if place == "after" else highest_share(_GAP))


def _claims(lines: Lines, name: str, figure: str, settings: RunSettings) -> list[Claim]:
    early, middle, after = lines
    config = {"figure": figure, "batch_size": _GAP, "excess": [0.0, 2.0], "repetitions": _repetitions(settings)}
    pairs = [(early, middle), (middle, after)]
    return [
        Claim(
            f"{name}-{first}-before-{second}",
            f"drop rate needed with drops at '{first}' minus that at '{second}', worst over all excess loads",
            "equal or smaller at all load levels",
            max(_required(first, lines[first], x) - _required(second, lines[second], x) for x in _EXCESS),
            at_most=0.02,
            config=config,
        )
        for first, second in pairs
    ]


def _section(title: str, lines: Lines, points: dict[tuple[str, float], float]) -> Section:
    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    for place, line in lines.items():
        axes.plot([100 * x for x in _EXCESS], [_required(place, line, x) for x in _EXCESS], label=f"drops at: {place}")
    axes.set(xlabel="excess load in %", ylabel="drop rate needed", ylim=(0, 1.05))
    axes.legend()
    cpu = table(
        ["drops at", "drop share", "task CPU in s"], [[place, share, s] for (place, share), s in points.items()]
    )
    rows = [[x, *(_required(place, line, x) for place, line in lines.items())] for x in _SHOWN]
    needed = table(["excess load", *lines], rows)
    return Section(
        title, f"{cpu}\n\nDrop rate needed (1 means that nothing can be delivered in time):\n\n{needed}", figure
    )
