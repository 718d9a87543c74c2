"""Figures 12 and 13: what the size and the slide of the windows do to the drop rate that is needed."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.bench.streams import Variant
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.reproduce.window import streams
from jettison.reproduce.window.model import Query, required_share, required_windows, straight_line
from jettison.windows.decide import highest_share

_GAP = 10
_TUPLES = 6_000
_DELAY_MS = 0.3  # before and after, per tuple and per answer


def sizes(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Figure 12: tumbling windows and windows that slide by one tuple, a quarter too much load."""
    streams.land(spark, folder / "in", _TUPLES, files=3)
    needed: dict[tuple[str, int], float] = {}
    for size in (25, 100) if settings.quick else (25, 50, 75, 100):
        for kind, slide in (("tumbling", size), ("slide 1", 1)):
            needed[kind, size] = _needed(spark, folder, settings, size, slide, (0.25,))[0]
            settings.say(f"  {kind}, size {size}: drop rate {needed[kind, size]:.2f}")
    model = {
        "tumbling": required_windows(Query(_DELAY_MS, 0.0, _DELAY_MS, 100, 100), 0.25),
        "slide 1": required_windows(Query(_DELAY_MS, 0.0, _DELAY_MS, 100, 1), 0.25),
    }
    tumbling = [value for (kind, _), value in needed.items() if kind == "tumbling"]
    sliding = [value for (kind, _), value in needed.items() if kind == "slide 1"]
    config = {"excess": 0.25, "batch_size": _GAP, "delay_ms": _DELAY_MS, "tuples": _TUPLES}
    claims = [
        Claim("model-tumbling", "the model's drop rate for tumbling windows", "0.2", model["tumbling"], 0.205, 0.195),
        Claim("model-sliding", "the model's drop rate for slide 1", "0.39", model["slide 1"], 0.41, 0.37),
        Claim(
            "tumbling-needs-less",
            "drop rate for tumbling windows minus that for slide 1, worst over all sizes",
            "lower in most cases",
            max(a - b for a, b in zip(tumbling, sliding, strict=True)),
            at_most=0.0,
            config=config,
        ),
        Claim(
            "size-does-not-matter",
            "largest difference between window sizes, tumbling",
            "almost fixed",
            max(tumbling) - min(tumbling),
            at_most=0.1,
            config=config,
        ),
    ]
    rows = [[kind, size, value, model[kind]] for (kind, size), value in needed.items()]
    return claims, Section("Figure 12: window size", table(["windows", "size", "measured", "model"], rows))


def slides(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Figure 13: windows of 100 tuples with slides from 1 to 100."""
    streams.land(spark, folder / "in", _TUPLES, files=3)
    excess = (0.1, 0.25, 0.5)
    steps = (1, 10, 50, 100)
    measured = {slide: _needed(spark, folder, settings, 100, slide, excess) for slide in steps}
    model = {s: [required_windows(Query(_DELAY_MS, 0.0, _DELAY_MS, 100, s), x) for x in excess] for s in steps}
    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    for place, x in enumerate(excess):
        axes.plot(steps, [measured[s][place] for s in steps], marker="o", label=f"measured, excess {x:.0%}")
        axes.plot(steps, [model[s][place] for s in steps], "--", label=f"model, excess {x:.0%}")
    axes.set(xlabel="slide in tuples", ylabel="drop rate needed", xscale="log", ylim=(0, 1.05))
    axes.legend(fontsize=7)
    at = excess.index(0.25)
    config = {"excess": 0.25, "size": 100, "slides": list(steps), "batch_size": _GAP}
    claims = [
        Claim(
            "slide-rises-first",
            "drop rate at slide 10 minus that at slide 1",
            "first increases",
            measured[10][at] - measured[1][at],
            at_least=0.0,
            config=config,
        ),
        Claim(
            "slide-falls-then",
            "drop rate at slide 100 minus that at slide 10",
            "then decreases",
            measured[100][at] - measured[10][at],
            at_most=0.0,
            config=config,
        ),
    ]
    header = ["slide", *(f"{side}, {x:.0%}" for side in ("measured", "model") for x in excess)]
    rows = [[slide, *measured[slide], *model[slide]] for slide in steps]
    return claims, Section("Figure 13: window slide", table(header, rows), figure)


def _needed(
    spark: SparkSession, folder: Path, settings: RunSettings, size: int, slide: int, excess: tuple[float, ...]
) -> list[float]:
    def variant(share: float) -> Variant:
        branch = streams.branch((size, slide), max_gap=_GAP)
        policy = streams.fixed_drop(branch, share=share, tuples=_TUPLES)

        def build(shedder: jt.Shedder | None) -> DataFrame:
            rows = streams.guarded(shedder, streams.source(spark, folder / "in"))
            rows = streams.busy(rows, "id", _DELAY_MS)
            answers = rows.groupBy(streams.window("at", size, slide)).agg(F.count(F.lit(1)).alias("n"))
            return streams.busy(streams.whole(shedder, answers), "window.start", _DELAY_MS)

        return streams.appended(build, policy)

    shares = (0.0, 0.6) if settings.quick else (0.0, 0.3, 0.6, 0.9)
    repetitions = 1 if settings.quick else 3
    streams.cpu_s(spark, folder, variant(0.5))  # warm up
    load = straight_line({s: streams.cpu_s(spark, folder, variant(s), repetitions) for s in shares})
    return [required_share(load, x, most=highest_share(_GAP)) for x in excess]
