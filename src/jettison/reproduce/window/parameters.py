"""Figures 12 and 13: what the size and the slide of the windows do to the drop rate that is needed."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
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
_EXCESS = (0.1, 0.25, 0.5)

Rates = dict[tuple[int, int], dict[float, float]]
"""Drop rate needed, by size and slide of the windows and by excess load."""


def windows(spark: SparkSession, folder: Path, settings: RunSettings) -> tuple[list[Claim], Section]:
    """Figure 12: tumbling windows and windows that slide by one tuple. Figure 13: slides in between."""
    streams.land(spark, folder / "in", _TUPLES)
    if settings.quick:
        kinds = [(25, 25), (100, 1), (100, 10), (100, 100)]
    else:
        kinds = [(size, slide) for size in (25, 50, 75) for slide in (1, size)] + [(100, s) for s in (1, 10, 50, 100)]
    measured: Rates = {}
    for number, (size, slide) in enumerate(kinds):
        warm_up = number == 0 or not settings.quick
        measured[size, slide] = _measured(spark, folder, settings, size, slide, warm_up=warm_up)
        settings.say(f"  size {size}, slide {slide}: {measured[size, slide]}")
    model: Rates = {kind: _modelled(*kind) for kind in kinds}
    both = [side for x in _EXCESS for side in (f"measured, {x:.0%}", f"model, {x:.0%}")]
    rows = [[*kind, *(side[kind][x] for x in _EXCESS for side in (measured, model))] for kind in kinds]
    text = "Drop rate needed at an excess load; 1 means that no drop allowed is enough.\n\n"
    section = Section(
        "Figures 12 and 13: size and slide", text + table(["size", "slide", *both], rows), _plot(measured)
    )
    return [*_claims_on_size(measured, model), *_claims_on_slide(measured)], section


def _claims_on_size(measured: Rates, model: Rates) -> list[Claim]:
    tumbling = {size: rates[0.25] for (size, slide), rates in measured.items() if slide == size}
    sliding = {size: rates[0.25] for (size, slide), rates in measured.items() if slide == 1}
    config = {"excess": 0.25, "batch_size": _GAP, "delay_ms": _DELAY_MS, "tuples": _TUPLES, "sizes": list(tumbling)}
    needs_less = "drop rate for tumbling windows minus that for slide 1, worst over all sizes"
    difference = "largest difference between window sizes, tumbling"
    return [
        Claim("model-tumbling", "the model's drop rate, tumbling", "0.2", model[100, 100][0.25], 0.205, 0.195),
        Claim("model-sliding", "the model's drop rate, slide 1", "0.39", model[100, 1][0.25], 0.41, 0.37),
        Claim(
            "tumbling-needs-less",
            needs_less,
            "lower in most cases",
            max(tumbling[size] - sliding[size] for size in sliding),
            at_most=0.0,
            config=config,
        ),
        Claim(
            "size-does-not-matter",
            difference,
            "almost fixed",
            max(tumbling.values()) - min(tumbling.values()),
            at_most=0.1,
            config=config,
        ),
    ]


def _claims_on_slide(measured: Rates) -> list[Claim]:
    rates = {slide: of[0.25] for (size, slide), of in measured.items() if size == 100}
    config = {"excess": 0.25, "size": 100, "slides": list(rates), "batch_size": _GAP}
    rise, fall = "drop rate at slide 10 minus that at slide 1", "drop rate at slide 100 minus that at slide 10"
    return [
        Claim("slide-rises-first", rise, "first increases", rates[10] - rates[1], at_least=0.0, config=config),
        Claim("slide-falls-then", fall, "then decreases", rates[100] - rates[10], at_most=0.0, config=config),
    ]


def _plot(measured: Rates) -> Figure:
    figure = Figure(figsize=(11, 4), layout="constrained")
    by_size, by_slide = figure.subplots(1, 2, sharey=True)
    for kind, excess in [(kind, x) for kind in ("tumbling", "slide 1") for x in _EXCESS]:
        slide = {size: size if kind == "tumbling" else 1 for size in range(25, 101, 25)}
        found = {size: measured[size, s][excess] for size, s in slide.items() if (size, s) in measured}
        modelled = {size: _modelled(size, s)[excess] for size, s in slide.items()}
        _points_and_line(by_size, found, modelled, f"{kind}, excess {excess:.0%}")
    by_size.set(xlabel="size of the windows in tuples", ylabel="drop rate needed", ylim=(0, 1.05), title="Figure 12")
    fine = [slide for slide in range(1, 101) if 100 % slide == 0]
    for excess in _EXCESS:
        found = {slide: rates[excess] for (size, slide), rates in measured.items() if size == 100}
        _points_and_line(by_slide, found, {s: _modelled(100, s)[excess] for s in fine}, f"excess {excess:.0%}")
    by_slide.set(xlabel="slide in tuples, windows of 100", xscale="log", title="Figure 13")
    return figure


def _points_and_line(axes: Axes, measured: dict[int, float], modelled: dict[int, float], label: str) -> None:
    points = axes.plot(list(measured), list(measured.values()), "o", label=f"{label}, measured")[0]
    axes.plot(list(modelled), list(modelled.values()), "--", color=points.get_color(), label="model")
    axes.legend(fontsize=6)


def _modelled(size: int, slide: int) -> dict[float, float]:
    query = Query(_DELAY_MS, 0.0, _DELAY_MS, size, slide, _GAP)
    return {x: required_windows(query, x) for x in _EXCESS}


def _measured(
    spark: SparkSession, folder: Path, settings: RunSettings, size: int, slide: int, *, warm_up: bool
) -> dict[float, float]:
    def variant(share: float) -> Variant:
        branch = streams.branch((size, slide), max_gap=_GAP)
        policy = streams.fixed_drop(branch, share=share, tuples=_TUPLES)

        def build(shedder: jt.Shedder | None) -> DataFrame:
            rows = streams.guarded(shedder, streams.source(spark, folder / "in"))
            rows = streams.busy(rows, "id", _DELAY_MS)
            answers = rows.groupBy(streams.window("at", size, slide)).agg(F.count(F.lit(1)).alias("n"))
            return streams.busy(streams.whole(shedder, answers), "window.start", _DELAY_MS)

        return streams.appended(build, policy)

    shares = (0.0, 0.6) if settings.quick else (0.0, 0.45, 0.9)
    repetitions = 1 if settings.quick else 2
    if warm_up:
        streams.cpu_s(spark, folder, variant(0.5))
    load = straight_line({s: streams.cpu_s(spark, folder, variant(s), repetitions) for s in shares})
    return {x: required_share(load, x, most=highest_share(_GAP)) for x in _EXCESS}
