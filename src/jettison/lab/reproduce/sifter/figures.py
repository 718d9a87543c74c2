"""Figures 4, 5 and 8 to 10: what each of them varies, and which claims follow from the true QoS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import numpy as np

from jettison.lab.reproduce.claims import Figure, judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, plot, table
from jettison.lab.reproduce.sifter.trial import CHOSEN, METHODS, Outcome, Setting, measure, seeds_of
from jettison.lab.reproduce.sifter.workload import Workload
from jettison.policies.regions.build import PARTITIONINGS

SKEWS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
REGIONS = (4, 9, 16, 25, 36, 49, 64, 81, 100)
THROTTLERS = (0.1, 0.3, 0.5, 0.7, 0.9)
FAIRNESS = (0.1, 0.2, 0.4, 0.6, 0.8, 0.9)
SIDES = (0.01, 0.02, 0.03, 0.04, 0.05)
SLOPES = ((1.0, 1.0), (0.5, 1.0), (0.0, 1.0), (0.2, 0.4))
COMBINATIONS: Mapping[str, Workload] = {
    "uniform data, skewed queries": Workload(data="uniform", query="skewed"),
    "skewed data, uniform queries": Workload(data="skewed", query="uniform"),
    "skewed data, skewed queries": Workload(data="skewed", query="skewed"),
    "uniform data, uniform queries": Workload(data="uniform", query="uniform"),
    "aligned normals": Workload(data="skewed", query="skewed", aligned=True),
}
SKEWED_QUERIES, SKEWED_DATA, BOTH, *PROPORTIONAL = COMBINATIONS
# Fewer rows leave more queries empty, which changes gains (not loss cuts): quick runs count on as many.
_ROWS = 100_000

Known = Mapping[Setting, Outcome]
Curve = dict[float, Outcome]


@dataclass(frozen=True, slots=True)
class Sweep:
    """One figure: the setting at every point of its curves. With `methods` each curve is drawn for every method."""

    title: str
    x: str
    curves: Mapping[str, Mapping[float, Setting]]
    methods: bool = False

    @property
    def settings(self) -> list[Setting]:
        return [setting for points in self.curves.values() for setting in points.values()]

    def of(self, known: Known) -> dict[str, Curve]:
        """Outcomes by curve and by what varies along it."""
        return {name: {x: known[one] for x, one in points.items()} for name, points in self.curves.items()}

    def section(self, known: Known) -> Section:
        """All points as a table, and a plot."""
        outcomes = self.of(known)
        header = ["", self.x, *METHODS, "best single", "gain", "loss cut", "empty queries"]
        rows = [
            [name, x, *map(one.mean, METHODS), one.best_single, one.gain(), one.loss_cut(), one.empty_share]
            for name, points in outcomes.items()
            for x, one in points.items()
        ]
        drawn = {
            name: {way: {x: one.mean(way) for x, one in points.items()} for way in METHODS}
            for name, points in outcomes.items()
        }
        gains = {name: {x: one.gain() for x, one in points.items()} for name, points in outcomes.items()}
        panels, y = (drawn, "overall QoS") if self.methods else ({self.title: gains}, "gain over random dropping")
        return Section(self.title, table(header, rows), plot(panels, self.x, y))


def _by_throttler(points: Iterable[tuple[float, Setting]]) -> dict[str, dict[float, Setting]]:
    points = list(points)
    return {f"z = {z:g}": {x: replace(one, throttler=z) for x, one in points} for z in THROTTLERS}


FIGURE_4 = Sweep(
    "Figure 4: partitionings under skew",
    "skew",
    {
        f"{name}, {kind}": {
            skew: Setting(replace(one, global_skew=skew) if kind == "G" else replace(one, local_skew=skew))
            for skew in SKEWS
        }
        for name, one in COMBINATIONS.items()
        for kind in "GL"
    },
    methods=True,
)
FIGURE_5 = Sweep(
    "Figure 5: number of regions",
    "regions",
    _by_throttler((float(n), Setting(Workload(), regions=n)) for n in REGIONS),
)
FIGURE_8 = Sweep(
    "Figure 8: throttler",
    "throttler",
    {name: {z: Setting(one, throttler=z) for z in THROTTLERS} for name, one in list(COMBINATIONS.items())[:4]},
)
FIGURE_9 = Sweep(
    "Figure 9: fairness threshold",
    "fairness",
    _by_throttler((d, Setting(Workload(), fairness=d)) for d in FAIRNESS),
)
FIGURE_10 = Sweep(
    "Figure 10: query sides",
    "longest side",
    _by_throttler((side, Setting(Workload(sides=(side / 2, side)))) for side in SIDES),
)
QOS_SLOPES = Sweep(
    "QoS slopes, which the paper leaves unclear",
    "steepest",
    {f"{low:g} to {high:g}": {high: Setting(Workload(slopes=(low, high)))} for low, high in SLOPES},
)
FIGURES = (FIGURE_4, FIGURE_5, FIGURE_8, FIGURE_9, FIGURE_10, QOS_SLOPES)


def figures(settings: RunSettings) -> Judged:
    """Measure all figures and judge their claims."""
    seeds = seeds_of(settings)
    known = measure([one for figure in FIGURES for one in figure.settings], seeds, _ROWS)
    config = {"seeds": len(seeds), "first_seed": seeds[0], "rows": _ROWS}
    return [figure.section(known) for figure in FIGURES], judge("sifter", measured(known), config)


def measured(known: Known) -> dict[str, Figure]:
    """What the claims are judged by."""
    return {**_of_partitionings(known), **_of_sensitivity(known)}


def _of_partitionings(known: Known) -> dict[str, Figure]:
    at = FIGURE_4.of(known)
    everything = [one for curve in at.values() for one in curve.values()]
    proportional = [one for name in PROPORTIONAL for kind in "GL" for one in at[f"{name}, {kind}"].values()]
    queries_g, queries_l = (at[f"{SKEWED_QUERIES}, {kind}"] for kind in "GL")
    data_g, data_l = (at[f"{SKEWED_DATA}, {kind}"] for kind in "GL")
    both_g = at[f"{BOTH}, G"]
    worst = max(known, key=lambda setting: known[setting].behind_best())
    ends = data_l[1.0].gain(), data_l[10.0].gain()
    return {
        "fig4-beats-random": min(one.loss_cut() for one in everything),
        "fig4-no-single-best": float(len({one.best_single for one in everything})),
        "fig4-skewed-queries-global": min(one.loss_cut() for skew, one in queries_g.items() if skew >= 2),
        "fig4-skewed-queries-local": min(one.loss_cut() for skew, one in queries_l.items() if skew >= 8),
        "fig4-qdpart-best": max(one.behind_best("qdpart") for skew, one in queries_g.items() if skew >= 2),
        "fig4-skewed-data-global": min(one.loss_cut() for one in data_g.values()),
        "fig4-skewed-data-local": (ends[0] - ends[1], {"gain_at_1": ends[0], "gain_at_10": ends[1]}),
        "fig4-data-equidepth-best": max(one.behind_best("data") for one in data_g.values()),
        "fig4-both-skewed": (
            min(one.loss_cut() for skew, one in both_g.items() if skew >= 2),
            {"at_G_1": both_g[1.0].loss_cut()},
        ),
        "fig4-proportional": max(one.gain() for one in proportional),
        "fig4-proportional-loss": max(one.loss_cut() for one in proportional),
        "choice-any-setting": (
            known[worst].behind_best(),
            {"worst_setting": asdict(worst), "best_there": known[worst].best_single},
        ),
        "choice-each-combination": max(
            _behind_on_average([*at[f"{name}, G"].values(), *at[f"{name}, L"].values()]) for name in COMBINATIONS
        ),
    }


def _of_sensitivity(known: Known) -> dict[str, Figure]:
    regions, throttler, fairness, side, slopes = (figure.of(known) for figure in FIGURES[1:])
    along_regions = [step for curve in regions.values() for step in _steps(curve.values())]
    along_throttlers = [
        step for n in REGIONS for step in _steps(regions[f"z = {z:g}"][float(n)] for z in reversed(THROTTLERS))
    ]
    heavy = {n: one.gain() for n, one in regions["z = 0.1"].items()}
    bend = {name: _bend(curve) for name, curve in throttler.items()}
    cuts = [one.loss_cut() for curve in slopes.values() for one in curve.values()]
    return {
        "fig5-monotone-regions": (
            min(error for _, error in along_regions),
            {"smallest_step": min(step for step, _ in along_regions)},
        ),
        "fig5-monotone-throttler": (
            min(error for _, error in along_throttlers),
            {"smallest_step": min(step for step, _ in along_throttlers)},
        ),
        "fig5-heavy-16": heavy[16.0],
        "fig5-heavy-100": heavy[100.0],
        "fig5-diminishing": (heavy[100.0] - heavy[49.0]) - (heavy[49.0] - heavy[4.0]),
        "fig8-heavy-shedding": min(bend[name] for name in (SKEWED_QUERIES, SKEWED_DATA, BOTH)),
        "fig8-proportional": abs(bend[PROPORTIONAL[0]]),
        "fig9-strict": fairness["z = 0.3"][0.1].gain(),
        "fig9-loose": fairness["z = 0.3"][0.9].gain(),
        "fig9-flat": float(np.ptp([one.gain() for one in fairness["z = 0.9"].values()])),
        "fig10-volume": side["z = 0.1"][0.05].gain() - side["z = 0.1"][0.01].gain(),
        "slopes": max(cuts) - min(cuts),
    }


def _behind_on_average(outcomes: list[Outcome]) -> float:
    means = {method: sum(one.mean(method) for one in outcomes) / len(outcomes) for method in METHODS}
    return max(means[name] for name in PARTITIONINGS) - means[CHOSEN]


def _bend(curve: Curve) -> float:
    """Height of the middle above the straight line between both ends."""
    return curve[0.5].mean(CHOSEN) - (curve[0.1].mean(CHOSEN) + curve[0.9].mean(CHOSEN)) / 2.0


def _steps(outcomes: Iterable[Outcome]) -> list[tuple[float, float]]:
    """Steps of the mean gain from one outcome to the next, as they are and in standard errors of the paired seeds."""
    found = []
    for one, other in pairwise(outcomes):
        step = other.gains() - one.gains()
        error = max(float(step.std(ddof=1)) / len(step) ** 0.5, 1e-12)
        found.append((float(step.mean()), float(step.mean()) / error))
    return found
