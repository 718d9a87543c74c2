"""Figures 9 to 12: each is a grid of networks, skews and rates, over which shedders are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from jettison.lab.intervals import Interval, Samples, mean
from jettison.lab.reproduce.aurora.compare import (
    LOAD_SHEDDERS,
    RANDOM,
    RANDOM_LP,
    SEMANTIC,
    SEMANTIC_LP,
    UNIFORM,
    compare,
    excess_percent,
    shedders,
)
from jettison.lab.reproduce.aurora.statistics import LossRatios
from jettison.lab.reproduce.claims import Claim, judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, plot, table
from jettison.lab.reproduce.workers import for_each
from jettison.lab.sim.network.admission import ADMISSIONS
from jettison.lab.sim.network.generator import random_network, shared_network
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.graph import QueryGraph

Losses = Mapping[str, Samples]
"""Percent lost by shedder: by seed, skew and mean gap between arrivals."""
Line = tuple[list[str], list[Interval]]
"""A line of a table: what it is called, and its figures."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What is measured for a figure: by skew of the utilities and mean inter-arrival time, on the networks of many seeds.

    Seeds start at `first_seed` beyond a thousand times the run's own; `drawn` says what each draws; `scale` is that of
    `compare`.
    """

    first_seed: int
    drawn: str
    network: Callable[..., QueryGraph]
    shedders: tuple[str, ...]
    skews: tuple[float, ...]
    gaps: tuple[float, ...]
    scale: float = 1.0

    @property
    def loads(self) -> list[str]:
        """The rates as excess loads, in words."""
        return [f"+{excess_percent(gap):.0f} %" for gap in self.gaps]


FIGURES = {
    "figures 9 and 10": Figure(
        0, "networks", random_network, (*LOAD_SHEDDERS, *ADMISSIONS), (0.0,), (10.0, 8.0, 6.0, 5.0, 4.0, 3.0)
    ),
    "figure 11": Figure(200, "networks", random_network, LOAD_SHEDDERS, (0.0, 0.5, 1.0, 1.5, 2.0), (6.0, 4.0, 3.0)),
    # One input instead of 18, so eight times the rows.
    "figure 12": Figure(
        400, "draws", shared_network, (UNIFORM, RANDOM, RANDOM_LP), (0.0, 1.0, 2.0), (10.0, 6.0, 4.0, 2.0, 1.0), 8.0
    ),
}


def measure(name: str, seeds: Sequence[int]) -> tuple[Losses, Losses]:
    """Tuple utility and value utility lost."""
    found = for_each(seeds, partial(_measured, name))
    by_tuple, by_value = ({one: np.array([run[one][kind] for run in found]) for one in found[0]} for kind in (0, 1))
    return by_tuple, by_value


def _measured(name: str, seed: int) -> dict[str, Samples]:
    """On one network, by shedder: both utilities, by skew and gap."""
    figure, grid = FIGURES[name], []
    for skew in figure.skews:
        graph = figure.network(seed, skew=skew)
        planners = shedders(graph, seed, figure.shedders)
        grid.append([compare(graph, planners, seed=seed, mean_gap=gap, scale=figure.scale) for gap in figure.gaps])
    by_shedder = np.moveaxis(np.array(grid), (3, 2), (0, 1))
    return dict(zip(planners, by_shedder, strict=True))


def run(name: str, settings: RunSettings) -> Judged:
    """Measure, plot and judge a figure."""
    figure, count = FIGURES[name], 20 if settings.quick else 60
    skews = f" at {len(figure.skews)} skews and" if len(figure.skews) > 1 else " at"
    settings.say(f"{name}: {count} {figure.drawn}{skews} {len(figure.gaps)} rates")
    first = settings.seed * 1000 + figure.first_seed
    seeds = range(first, first + count)
    by_tuple, by_value = measure(name, seeds)
    config: dict[str, object] = {figure.drawn: count}
    config |= {"skews": list(figure.skews)} if len(figure.skews) > 1 else {}
    config |= {"mean_gaps": list(figure.gaps), "seed": settings.seed}
    if name == "figure 11":
        return skew_sections(figure, by_value, settings.seed), skew_claims(figure, by_value, settings.seed, config)
    if name == "figure 12":
        found = sharing_sections(figure, by_tuple, settings.seed, seeds)
        return found, sharing_claims(figure, by_tuple, settings.seed, config)
    return loss_sections(figure, by_tuple, by_value), loss_claims(by_tuple, by_value, config)


figures_9_and_10 = partial(run, "figures 9 and 10")
figure_11 = partial(run, "figure 11")
figure_12 = partial(run, "figure 12")


def loss_claims(by_tuple: Losses, by_value: Losses, config: dict[str, object]) -> list[Claim]:
    """The orderings of figures 9 and 10. A difference counts as far as its 95 % interval is above zero, at every rate.

    They are about the paper's own shedders; one more is about ours beside them.
    """
    apart = [mean(column).value for column in (by_tuple[RANDOM] - by_tuple[SEMANTIC])[:, 0].T]
    level = by_tuple[RANDOM][:, 0].mean(axis=0)

    def surely_above(losses: Losses, higher: Iterable[str], lower: Iterable[str]) -> float:
        """The lowest bound, over the rates, of any paired difference."""
        differences = [(losses[a] - losses[b])[:, 0].T for a in higher for b in lower]
        return min(mean(column).lower for one in differences for column in one)

    uniform = (UNIFORM, "Input-Cost-Uniform")
    figures = {
        "tuple-loss-admission": surely_above(
            by_tuple, [a for a in by_tuple if a not in LOAD_SHEDDERS], [RANDOM, SEMANTIC]
        ),
        "tuple-loss-semantic": surely_above(by_tuple, [RANDOM], [SEMANTIC]),
        "tuple-loss-constant": (max(apart) - min(apart)) / float(level.max() - level.min()),
        "tuple-loss-growth": min(float(np.diff(lost[:, 0].mean(axis=0)).min()) for lost in by_tuple.values()),
        "tuple-loss-random": surely_above(by_tuple, ["Input-Random"], uniform),
        "tuple-loss-cost-top": surely_above(by_tuple, ["Input-Cost-Top"], uniform),
        "value-loss-semantic": surely_above(
            by_value, [one for one in by_value if one not in (SEMANTIC, SEMANTIC_LP)], [SEMANTIC]
        ),
        "tuple-loss-default": min(
            surely_above(by_tuple, [table], [program])
            for table, program in ((RANDOM, RANDOM_LP), (SEMANTIC, SEMANTIC_LP))
        ),
    }
    return judge("aurora", figures, config)


def skew_claims(figure: Figure, by_value: Losses, seed: int, config: dict[str, object]) -> list[Claim]:
    """The two trends of figure 11, each by the lowest bound over all lines of it."""
    ratios = LossRatios(by_value[RANDOM], by_value[SEMANTIC], seed)
    skews, gaps = range(len(figure.skews)), range(len(figure.gaps))
    figures = {
        "skew-grows": min(ratios.change((0, gap), (skews[-1], gap)).lower for gap in gaps),
        "skew-shrinks-with-rate": min(ratios.change((skew, gaps[-1]), (skew, 0)).lower for skew in skews),
    }
    return judge("aurora", figures, config)


def sharing_claims(figure: Figure, by_tuple: Losses, seed: int, config: dict[str, object]) -> list[Claim]:
    """Both observations of figure 12, and that the shedder never does worse."""
    ratios = LossRatios(by_tuple[UNIFORM], by_tuple[RANDOM], seed)
    skews, gaps = range(len(figure.skews)), range(len(figure.gaps))
    usual = [gap for gap in gaps if excess_percent(figure.gaps[gap]) <= 308.0]

    def least_growth(lower: float, higher: float, at: Sequence[int]) -> float:
        ends = figure.skews.index(lower), figure.skews.index(higher)
        return min(ratios.change((ends[0], gap), (ends[1], gap)).lower for gap in at)

    figures = {
        "sharing-wins": min(ratios.cell((skew, gap)).lower for skew in skews for gap in gaps),
        "sharing-skew": least_growth(0.0, 1.0, usual),
        "sharing-skew-extreme": least_growth(0.0, 1.0, gaps),
        "sharing-skew-beyond": least_growth(1.0, 2.0, gaps),
        "sharing-extreme": min(ratios.change((skew, gaps[-1]), (skew, 0)).lower for skew in skews),
    }
    return judge("aurora", figures, config)


def loss_sections(figure: Figure, by_tuple: Losses, by_value: Losses) -> list[Section]:
    """Figures 9 and 10."""
    text = (
        "Percent lost by excess load, mean over random networks of 5 queries, 34 filters, 13 unions and 18 inputs, with "
        f"95 % confidence intervals. {RANDOM} and {SEMANTIC} follow the paper's table, the two below them our linear "
        "program."
    )
    xs = [excess_percent(gap) for gap in figure.gaps]
    found = []
    for title, losses in (("Figure 9: tuple utility lost", by_tuple), ("Figure 10: value utility lost", by_value)):
        lines = [([name], [mean(column) for column in samples[:, 0].T]) for name, samples in losses.items()]
        drawn = plot({title: _lines(xs, lines)}, "excess load [%]", "utility lost [%]")
        found.append(Section(title, f"{text}\n\n{_table(['shedder', *figure.loads], lines)}", drawn))
    return found


def skew_sections(figure: Figure, by_value: Losses, seed: int) -> list[Section]:
    """Figure 11: a line for each rate."""
    lines = []
    for planner, above, below in (("paper's table", RANDOM, SEMANTIC), ("linear program", RANDOM_LP, SEMANTIC_LP)):
        ratios = LossRatios(by_value[above], by_value[below], seed)
        for gap, load in enumerate(figure.loads):
            lines.append(([planner, f"{load} load"], [ratios.cell((skew, gap)) for skew in range(len(figure.skews))]))
    header = ["planner", "load", *(f"skew {skew:g}" for skew in figure.skews)]
    text = f"Value utility lost by random drops over that lost by semantic ones.\n\n{_table(header, lines)}"
    title, shown = "Figure 11: effect of skew", _lines(figure.skews, lines[: len(figure.gaps)])
    drawn = plot({title: shown}, "Zipf skew of the utilities", "loss ratio Random-LS / Semantic-LS")
    return [Section(title, text, drawn)]


def sharing_sections(figure: Figure, by_tuple: Losses, seed: int, seeds: Sequence[int]) -> list[Section]:
    """Figure 12: a line for each skew."""
    lines = []
    for planner, name in (("paper's table (Random-LS)", RANDOM), ("linear program", RANDOM_LP)):
        ratios = LossRatios(by_tuple[UNIFORM], by_tuple[name], seed)
        for row, skew in enumerate(figure.skews):
            lines.append(([planner, f"skew {skew:g}"], [ratios.cell((row, gap)) for gap in range(len(figure.gaps))]))
    header = ["planner", "QoS", *figure.loads]
    unlike = [[f"skew {skew:g}", *line] for skew, line in zip(figure.skews, slopes(figure, seeds), strict=True)]
    parts = [
        "Tuple utility lost by Input-Uniform over that lost by random drops, planned in two ways.",
        _table(header, lines),
        "How much there is to choose between: mean slope of the 20 graphs over that of the flattest quarter.",
        table(["QoS", "first rows lost: mean", "flattest quarter", "ratio", "last rows lost: ratio"], unlike),
    ]
    title, xs = "Figure 12: effect of sharing", [excess_percent(gap) for gap in figure.gaps]
    shown = _lines(xs, lines[: len(figure.skews)])
    drawn = plot({title: shown}, "excess load [%]", "loss ratio Input-Uniform / Random-LS")
    return [Section(title, "\n\n".join(parts), drawn)]


def slopes(figure: Figure, seeds: Sequence[int]) -> list[list[float]]:
    """How unlike the graphs are, by skew: mean slope, that of the flattest quarter and their ratio, where graphs start to
    fall; the ratio where they end.
    """
    found = []
    for skew in figure.skews:
        graphs = [drop_model(figure.network(seed, skew=skew)).loss_tolerance.values() for seed in seeds]
        ends = np.array([[(graph.pieces[-1].slope, graph.pieces[0].slope) for graph in one] for one in graphs])
        means, flattest = ends.mean(axis=(0, 1)), np.sort(ends, axis=1)[:, :5].mean(axis=(0, 1))
        found.append([float(f) for f in (means[0], flattest[0], means[0] / flattest[0], means[1] / flattest[1])])
    return found


def _lines(xs: Sequence[float], lines: Sequence[Line]) -> dict[str, dict[float, Interval]]:
    """Lines of a table for a plot, by their last name."""
    return {names[-1]: dict(zip(xs, intervals, strict=True)) for names, intervals in lines}


def _table(header: Sequence[str], lines: Sequence[Line]) -> str:
    return table(header, [[*names, *map(str, intervals)] for names, intervals in lines])
