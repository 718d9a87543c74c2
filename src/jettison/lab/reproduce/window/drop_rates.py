"""Figures 10 to 13: the share of answers to drop at an excess load, by where drops are placed and by the windows.

Each follows from measured task CPU: the smallest share so that the query's CPU falls to 1 / (1 + excess) of what it takes
with nothing dropped. 1 means that nothing can be delivered in time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.streams import Variant
from jettison.lab.reproduce.claims import Figure, judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, plot, table
from jettison.lab.reproduce.window import streams
from jettison.lab.reproduce.window.model import Load, Query, required_share, required_windows, straight_line
from jettison.lab.reproduce.window.streams import FixedDrop, branch, busy
from jettison.policies.window.window_choice import highest_share

_GAP = 10
_TUPLES = 40_000
_BUSY_S = 1.2  # CPU of each of the three parts of a query, over the whole run
_SHORT, _LONG = 50, 100  # windows of the two queries of figure 11
_FEW_TUPLES = 6_000  # of figures 12 and 13, where windows overlap
_DELAY_MS = 0.3  # there, before and after the aggregate, per tuple and per answer
_EXCESS = tuple(x / 100 for x in range(0, 201, 5))
_SHOWN = (0.1, 0.25, 0.5, 1.0, 2.0)
_AT = 0.25  # excess load at which figures 12 and 13 are judged

Dropping = Callable[[float], Variant]
"""A query that drops such a share of its answers."""


def chain(spark: SparkSession, folder: Path, settings: RunSettings) -> Judged:
    """Figure 10: count over 10 tuples, count of that over 100, and equal work before, between and after."""
    streams.land(spark, folder / "in", _TUPLES)
    before, between, after = (1e3 * _BUSY_S / _TUPLES * factor for factor in (1, 10, 100))

    def variant(place: str, share: float) -> Variant:
        # In the middle the drop sees the answers of the first aggregate: only the last window is left behind it.
        levels = ((10, 10), (100, 100)) if place == "input" else ((100, 100),)

        def build(shedder: jt.Shedder | None) -> DataFrame:
            rows = streams.source(spark, folder / "in")
            rows = busy(streams.guarded(shedder, rows) if place == "input" else rows, "id", before)
            inner = rows.groupBy(streams.window("at", 10)).agg(F.count(F.lit(1)).alias("n"))
            inner = inner.withColumn("at", F.window_time("window")).drop("window")
            inner = busy(streams.guarded(shedder, inner) if place == "middle" else inner, "at", between)
            answers = inner.groupBy(streams.window("at", 100)).agg(F.sum("n").alias("n"))
            left = streams.random_drop(answers, share) if place == "after" else streams.whole(shedder, answers)
            return busy(left, "window.start", after)

        queries = (branch(*levels, max_gap=_GAP),)
        policy = FixedDrop(time="at", queries=queries, share=share, tuples=_TUPLES)
        return streams.appended(build, None if place == "after" else policy)

    lines = _measured(spark, folder, settings, {p: partial(variant, p) for p in ("input", "middle", "after")}, 0.9)
    fails = lines["after"](0.0) / lines["after"](1.0) - 1.0
    return _judged("Figure 10: a chain of aggregates", "pipeline", lines, {"pipeline-random-fails": fails}, settings)


def shared_plan(spark: SparkSession, folder: Path, settings: RunSettings) -> Judged:
    """Figure 11: two counts over a shared input, with work before the split, before and after each aggregate."""
    streams.land(spark, folder / "in", _TUPLES)
    shared_ms = 1e3 * _BUSY_S / _TUPLES / 2

    def one(size: int, place: str, share: float) -> Variant:
        def build(shedder: jt.Shedder | None) -> DataFrame:
            rows = streams.source(spark, folder / "in")
            rows = busy(streams.guarded(shedder, rows) if place == "shared" else rows, "id", shared_ms)
            rows = busy(streams.guarded(shedder, rows) if place == "split" else rows, "value", shared_ms)
            answers = rows.groupBy(streams.window("at", size)).agg(F.count(F.lit(1)).alias("n"))
            left = (
                streams.random_drop(answers, share) if place == "after" else streams.whole(shedder, answers, str(size))
            )
            if place == "shared":  # the other query runs by itself; here only its marks count
                streams.whole(shedder, answers, str(_SHORT + _LONG - size))
            return busy(left, "window.start", 2 * shared_ms * size)

        sizes = (_SHORT, _LONG) if place == "shared" else (size,)
        queries = tuple(branch((s, s), max_gap=_GAP, name=str(s)) for s in sizes)
        policy = FixedDrop(time="at", queries=queries, share=share, tuples=_TUPLES)
        return streams.appended(build, None if place == "after" else policy)

    def both(place: str, share: float) -> Variant:
        return streams.side_by_side([one(size, place, share) for size in (_SHORT, _LONG)])

    lines = _measured(spark, folder, settings, {p: partial(both, p) for p in ("shared", "split", "after")}, 0.9)
    return _judged("Figure 11: a shared plan", "fan-out", lines, {}, settings)


def windows(spark: SparkSession, folder: Path, settings: RunSettings) -> Judged:
    """Figure 12: tumbling windows and windows that slide by one tuple. Figure 13: slides in between."""
    streams.land(spark, folder / "in", _FEW_TUPLES)
    kinds = [(25, 25), (100, 1), (100, 10), (100, 100)]
    if not settings.quick:
        kinds = [(size, slide) for size in (25, 50, 75) for slide in (1, size)] + [(100, s) for s in (1, 10, 50, 100)]

    def variant(size: int, slide: int, share: float) -> Variant:
        def build(shedder: jt.Shedder | None) -> DataFrame:
            rows = busy(streams.guarded(shedder, streams.source(spark, folder / "in")), "id", _DELAY_MS)
            answers = rows.groupBy(streams.window("at", size, slide)).agg(F.count(F.lit(1)).alias("n"))
            return busy(streams.whole(shedder, answers), "window.start", _DELAY_MS)

        queries = (branch((size, slide), max_gap=_GAP),)
        return streams.appended(build, FixedDrop(time="at", queries=queries, share=share, tuples=_FEW_TUPLES))

    dropping = {f"{size}/{slide}": partial(variant, size, slide) for size, slide in kinds}
    lines = _measured(spark, folder, settings, dropping, 0.6)
    rates = {kind: _required(line, _AT) for kind, line in zip(kinds, lines.values(), strict=True)}
    modelled = {kind: _modelled(*kind) for kind in kinds}
    rows = [[*kind, rates[kind], modelled[kind]] for kind in kinds]
    header = ["size", "slide", f"measured, {_AT:.0%} excess", "model"]
    panels = {
        "Figure 12": {
            f"{kind}{of}": {float(size): found[size, slide] for size, slide in kinds if slide == (one or size)}
            for kind, one in (("tumbling", None), ("slide 1", 1))
            for of, found in (("", rates), (", model", modelled))
        },
        "Figure 13": {
            f"windows of 100{of}": {float(slide): found[size, slide] for size, slide in kinds if size == 100}
            for of, found in (("", rates), (", model", modelled))
        },
    }
    config = {"excess": _AT, "batch_size": _GAP, "delay_ms": _DELAY_MS, "tuples": _FEW_TUPLES, "kinds": kinds}
    section = Section("Figures 12 and 13", table(header, rows), plot(panels, "size, or slide, in tuples", "drop rate"))
    return [section], judge("window", of_windows(rates), config)


def of_windows(rates: Mapping[tuple[int, int], float]) -> dict[str, Figure]:
    """What the claims on figures 12 and 13 are judged by; drop rates by size and slide."""
    tumbling = {size: rate for (size, slide), rate in rates.items() if slide == size}
    sliding = {size: rate for (size, slide), rate in rates.items() if slide == 1}
    return {
        "model-tumbling": _modelled(100, 100),
        "model-sliding": _modelled(100, 1),
        "tumbling-needs-less": max(tumbling[size] - sliding[size] for size in sliding),
        "size-does-not-matter": max(tumbling.values()) - min(tumbling.values()),
        "slide-rises-first": rates[100, 10] - rates[100, 1],
        "slide-falls-then": rates[100, 100] - rates[100, 10],
    }


def _measured(
    spark: SparkSession, folder: Path, settings: RunSettings, variants: Mapping[str, Dropping], quick_share: float
) -> dict[str, Load]:
    """Task CPU of each by the share dropped: through two points, or through three of two runs each."""
    shares = (0.0, quick_share) if settings.quick else (0.0, 0.45, 0.9)
    lines = {}
    for number, (name, dropping) in enumerate(variants.items()):
        if number == 0 or not settings.quick:
            streams.cpu_s(spark, folder, dropping(0.5))  # warm up
        points = {s: streams.cpu_s(spark, folder, dropping(s), 1 if settings.quick else 2) for s in shares}
        settings.say(f"  {name}, seconds of task CPU by drop share: {points}")
        lines[name] = straight_line(points)
    return lines


def _required(line: Load, excess: float, place: str = "") -> float:
    return required_share(line, excess, most=1.0 if place == "after" else highest_share(_GAP))


def _modelled(size: int, slide: int) -> float:
    return required_windows(Query(_DELAY_MS, 0.0, _DELAY_MS, size, slide, _GAP), _AT)


def _judged(
    title: str, name: str, lines: Mapping[str, Load], figures: Mapping[str, Figure], settings: RunSettings
) -> Judged:
    """Earlier places need no higher rate than later ones."""
    rates = {place: {x: _required(line, x, place) for x in _EXCESS} for place, line in lines.items()}
    early, middle, after = lines
    worst = {
        f"{name}-{first}-before-{second}": max(rates[first][x] - rates[second][x] for x in _EXCESS)
        for first, second in ((early, middle), (middle, after))
    }
    config = {"batch_size": _GAP, "tuples": _TUPLES, "quick": settings.quick}
    rows = [[x, *(rates[place][x] for place in lines)] for x in _SHOWN]
    drawn = plot({title: rates}, "excess load", "drop rate needed")
    return [Section(title, table(["excess load", *lines], rows), drawn)], judge("window", {**worst, **figures}, config)
