"""Figures 5, 8, 9 and 10: regions, throttler, fairness and query sizes, for skewed data under uniform queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
from matplotlib.figure import Figure

from jettison.reproduce.claims import Claim
from jettison.reproduce.report import Section, table
from jettison.reproduce.sifter.partitionings import COMBINATIONS
from jettison.reproduce.sifter.trial import CHOSEN, Outcome, Setting
from jettison.reproduce.sifter.workload import Workload

REGIONS = (4, 9, 16, 25, 36, 49, 64, 81, 100)
THROTTLERS = (0.1, 0.3, 0.5, 0.7, 0.9)
FAIRNESS = (0.1, 0.2, 0.4, 0.6, 0.8, 0.9)
SIDES = (0.01, 0.02, 0.03, 0.04, 0.05)

K = TypeVar("K")

# Outcomes by series (mostly the throttler) and by what the figure varies.
Curves = dict[float, dict[float, Outcome]]
Known = Mapping[Setting, Outcome]

_BY_REGIONS = {z: {float(n): Setting(Workload(), throttler=z, regions=n) for n in REGIONS} for z in THROTTLERS}
_BY_FAIRNESS = {z: {d: Setting(Workload(), throttler=z, fairness=d) for d in FAIRNESS} for z in THROTTLERS}
_BY_SIDE = {
    z: {side: Setting(replace(Workload(), sides=(side / 2, side)), throttler=z) for side in SIDES} for z in THROTTLERS
}
_BY_THROTTLER = {
    name: {z: Setting(workload, throttler=z) for z in THROTTLERS} for name, workload in list(COMBINATIONS.items())[:4]
}
_BY_SLOPES = {
    slopes: Setting(replace(Workload(), slopes=slopes)) for slopes in ((1.0, 1.0), (0.5, 1.0), (0.0, 1.0), (0.2, 0.4))
}


def settings() -> list[Setting]:
    """All that these figures need."""
    curves = (_BY_REGIONS, _BY_FAIRNESS, _BY_SIDE, _BY_THROTTLER)
    return [one for curve in curves for points in curve.values() for one in points.values()] + list(_BY_SLOPES.values())


@dataclass(frozen=True)
class Sensitivity:
    """Figures 5, 9, 10 and 8, and the loss cut under other QoS slopes, which the paper leaves unclear."""

    regions: Curves
    fairness: Curves
    side: Curves
    throttler: dict[str, dict[float, Outcome]]
    slopes: dict[tuple[float, float], Outcome]

    @classmethod
    def of(cls, known: Known) -> Sensitivity:
        """The figures from measured settings."""

        def curves(grid: Mapping[K, Mapping[float, Setting]]) -> dict[K, dict[float, Outcome]]:
            return {name: {x: known[one] for x, one in points.items()} for name, points in grid.items()}

        return cls(
            curves(_BY_REGIONS),
            curves(_BY_FAIRNESS),
            curves(_BY_SIDE),
            curves(_BY_THROTTLER),
            {slopes: known[one] for slopes, one in _BY_SLOPES.items()},
        )

    def sections(self) -> list[Section]:
        """Tables and plots."""
        return [
            gain_section("Figure 5: number of regions", "regions", self.regions),
            throttler_section(self.throttler),
            gain_section("Figure 9: fairness threshold", "fairness", self.fairness),
            gain_section("Figure 10: query sides", "longest side", self.side),
            slopes_section(self.slopes),
        ]


def gain_section(title: str, label: str, curves: Curves) -> Section:
    """Gain over random dropping, a curve per throttler."""
    figure = Figure(figsize=(6, 4))
    axes = figure.add_subplot()
    for z, outcomes in curves.items():
        axes.plot(list(outcomes), [100 * one.gain() for one in outcomes.values()], "o-", ms=3, label=f"z = {z:g}")
    axes.set(xlabel=label, ylabel="gain over random dropping in %")
    axes.legend(fontsize=7)
    places = list(next(iter(curves.values())))
    rows = [
        [f"z = {z:g}", *(f"{100 * one.gain():.1f} / {100 * one.loss_cut():.1f}" for one in outcomes.values())]
        for z, outcomes in curves.items()
    ]
    return Section(title, "Gain and loss cut in %.\n\n" + table([label, *map(str, places)], rows), figure)


def throttler_section(curves: Mapping[str, Mapping[float, Outcome]]) -> Section:
    """Overall QoS over the throttler."""
    figure = Figure(figsize=(6, 4))
    axes = figure.add_subplot()
    for name, outcomes in curves.items():
        axes.plot(list(outcomes), [one.mean(CHOSEN) for one in outcomes.values()], "o-", ms=3, label=name)
    axes.set(xlabel="throttler z", ylabel="overall QoS")
    axes.legend(fontsize=7)
    rows = [[name, *(one.mean(CHOSEN) for one in outcomes.values())] for name, outcomes in curves.items()]
    return Section("Figure 8: throttler", table(["workload", *(f"z = {z:g}" for z in THROTTLERS)], rows), figure)


def slopes_section(outcomes: Mapping[tuple[float, float], Outcome]) -> Section:
    """Gain and loss cut by the range of slopes."""
    rows = [[f"{low:g} to {high:g}", one.gain(), one.loss_cut()] for (low, high), one in outcomes.items()]
    return Section("QoS slopes", table(["slopes", "gain", "loss cut"], rows))


def claims(figures: Sensitivity, config: Mapping[str, object]) -> list[Claim]:
    """What the paper says of these figures."""
    regions, throttler, fairness = figures.regions, figures.throttler, figures.fairness
    side, slopes = figures.side, figures.slopes
    along_regions = [_steps(list(outcomes.values())) for outcomes in regions.values()]
    along_throttlers = [_steps([regions[z][float(n)] for z in reversed(THROTTLERS)]) for n in REGIONS]
    cuts = [one.loss_cut() for one in slopes.values()]
    names = list(throttler)
    bend = {name: _bend(outcomes) for name, outcomes in throttler.items()}
    heavy, strict = regions[0.1], fairness[0.3]
    claim = partial(Claim, config=config)
    return [
        Claim(
            "fig5-monotone-regions",
            "smallest step of the gain from one number of regions to the next, in standard errors, over all throttlers",
            "gains grow with l",
            min(error for steps in along_regions for _, error in steps),
            at_least=-3.0,
            config=dict(config) | {"smallest_step": min(step for steps in along_regions for step, _ in steps)},
        ),
        Claim(
            "fig5-monotone-throttler",
            "smallest step of the gain from one throttler to the next lower, in standard errors, over all regions",
            "gains grow as z falls",
            min(error for steps in along_throttlers for _, error in steps),
            at_least=-3.0,
            config=dict(config) | {"smallest_step": min(step for steps in along_throttlers for step, _ in steps)},
        ),
        claim("fig5-heavy-16", "gain at z = 0.1 with 16 regions", "25 %", heavy[16.0].gain(), at_least=0.25),
        claim("fig5-heavy-100", "gain at z = 0.1 with 100 regions", "50 %", heavy[100.0].gain(), at_least=0.50),
        claim(
            "fig5-diminishing",
            "gain from 49 to 100 regions less gain from 4 to 49, at z = 0.1: diminishing returns",
            "lines flatten around l = 100",
            (heavy[100.0].gain() - heavy[49.0].gain()) - (heavy[49.0].gain() - heavy[4.0].gain()),
            at_most=0.0,
        ),
        claim(
            "fig8-heavy-shedding",
            "QoS at z = 0.5 above the line from z = 0.1 to 0.9, smallest over the three skewed workloads",
            "more QoS per unit of z under heavy shedding",
            min(bend[name] for name in names[:3]),
            at_least=0.02,
        ),
        claim(
            "fig8-proportional",
            "the same for uniform data and queries: a straight line",
            "linear",
            abs(bend[names[3]]),
            at_most=0.02,
        ),
        claim("fig9-strict", "gain at z = 0.3, fairness 0.1", "5 %", strict[0.1].gain(), at_least=0.03, at_most=0.08),
        claim("fig9-loose", "gain at z = 0.3, fairness 0.9", "40 %", strict[0.9].gain(), at_least=0.40),
        claim(
            "fig9-flat",
            "spread of the gain over fairness at z = 0.9",
            "almost flat",
            float(np.ptp([one.gain() for one in fairness[0.9].values()])),
            at_most=0.05,
        ),
        claim(
            "fig10-volume",
            "gain with query sides up to 0.05 less gain up to 0.01, at z = 0.1",
            "slightly higher, around 15 % at z = 0.1",
            side[0.1][0.05].gain() - side[0.1][0.01].gain(),
            at_least=0.0,
        ),
        claim("slopes", "spread of the loss cut over ranges of the QoS slope", "", max(cuts) - min(cuts), at_most=0.03),
    ]


def _bend(outcomes: Mapping[float, Outcome]) -> float:
    """Height of the middle above the straight line between both ends."""
    return outcomes[0.5].mean(CHOSEN) - (outcomes[0.1].mean(CHOSEN) + outcomes[0.9].mean(CHOSEN)) / 2.0


def _steps(outcomes: Sequence[Outcome]) -> list[tuple[float, float]]:
    """Steps of the mean gain from one outcome to the next, as they are and in standard errors of the paired seeds."""
    found = []
    for one, other in pairwise(outcomes):
        step = other.gains() - one.gains()
        error = max(float(step.std(ddof=1)) / len(step) ** 0.5, 1e-12)
        found.append((float(step.mean()), float(step.mean()) / error))
    return found
