"""Figures 9 to 12: each is a grid of networks, skews and rates, over which shedders are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jettison.lab.reproduce.aurora.compare import (
    RANDOM,
    RANDOM_LP,
    SEMANTIC,
    SEMANTIC_LP,
    STEP,
    UNIFORM,
    Planners,
    all_shedders,
    compare,
    excess_percent,
    for_each,
    load_shedders,
    random_shedders,
)
from jettison.lab.reproduce.aurora.statistics import Interval, LossRatios, Samples, mean
from jettison.lab.reproduce.claims import Claim
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.sim.network.generator import random_network, shared_network
from jettison.lab.sim.network.monitor import Planner
from jettison.lab.sim.network.roadmap import greedy_road_map, paper_road_map
from jettison.lab.sim.network.survival import utility
from jettison.policies.network.candidates import drop_model
from jettison.policies.network.graph import QueryGraph
from jettison.policies.network.optimum import frontier

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Plot

Losses = Mapping[str, Samples]
"""Percent lost by shedder: by seed, skew and mean gap between arrivals."""
Line = tuple[list[str], list[Interval]]
"""A line of a table: what it is called, and its figures."""
_MARKERS = "osv^Dx*P"


@dataclass(frozen=True, slots=True)
class Figure:
    """What is measured for a figure.

    Parameters
    ----------
    first_seed
        Of the networks, beyond a thousand times the run's seed.
    drawn
        What a seed draws, in words.
    network, shedders
        The network of a seed and a skew, and who is compared on it.
    skews, gaps
        Zipf parameters of the utilities, and mean inter-arrival times.
    scale
        See `compare`.
    """

    first_seed: int
    drawn: str
    network: Callable[..., QueryGraph]
    shedders: Callable[[QueryGraph, int], Planners]
    skews: tuple[float, ...]
    gaps: tuple[float, ...]
    scale: float = 1.0

    @property
    def loads(self) -> list[str]:
        """The rates as excess loads, in words."""
        return [f"+{excess_percent(gap):.0f} %" for gap in self.gaps]


FIGURES = {
    "figures 9 and 10": Figure(0, "networks", random_network, all_shedders, (0.0,), (10.0, 8.0, 6.0, 5.0, 4.0, 3.0)),
    "figure 11": Figure(200, "networks", random_network, load_shedders, (0.0, 0.5, 1.0, 1.5, 2.0), (6.0, 4.0, 3.0)),
    # One input instead of 18, so eight times the rows.
    "figure 12": Figure(
        400, "draws", shared_network, random_shedders, (0.0, 1.0, 2.0), (10.0, 6.0, 4.0, 2.0, 1.0), 8.0
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
        planners = figure.shedders(graph, seed)
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
    at_least_0 = partial(Claim, at_least=0.0, config=config)
    ours = (RANDOM, SEMANTIC, RANDOM_LP, SEMANTIC_LP)
    apart = [mean(column).value for column in (by_tuple[RANDOM] - by_tuple[SEMANTIC])[:, 0].T]
    level = by_tuple[RANDOM][:, 0].mean(axis=0)

    def surely_above(higher: Samples, lower: Samples) -> float:
        """The lowest bound, over the rates, of the paired difference."""
        return min(mean(column).lower for column in (higher - lower)[:, 0].T)

    return [
        at_least_0(
            "tuple-loss-admission",
            "both load shedders lose less tuple utility than every admission control at every rate; the figure is the "
            "lowest bound of any of these differences, in percentage points",
            "figure 9: the QoS-driven algorithms perform much better",
            min(surely_above(by_tuple[a], by_tuple[s]) for s in ours[:2] for a in by_tuple if a not in ours),
        ),
        at_least_0(
            "tuple-loss-semantic",
            "Semantic-LS loses less tuple utility than Random-LS at every rate; lowest bound of the differences",
            "figure 9: less by a constant amount",
            surely_above(by_tuple[RANDOM], by_tuple[SEMANTIC]),
        ),
        Claim(
            "tuple-loss-constant",
            "that amount is roughly constant: over the rates it varies by at most a quarter of what the loss itself does",
            "figure 9: a constant amount",
            (max(apart) - min(apart)) / float(level.max() - level.min()),
            at_most=0.25,
            config=config,
        ),
        at_least_0(
            "tuple-loss-growth",
            "every shedder loses more the higher the rate; smallest growth from one rate to the next",
            "figure 9: all algorithms are negatively affected by increasing input rates",
            min(float(np.diff(samples[:, 0].mean(axis=0)).min()) for samples in by_tuple.values()),
        ),
        *(
            at_least_0(
                f"tuple-loss-{name.removeprefix('Input-').lower()}",
                f"{name} loses more than both uniform rules at every rate; lowest bound of the differences",
                "figure 9: Input-Random and Input-Cost-Top perform poorly compared to others",
                min(surely_above(by_tuple[name], by_tuple[other]) for other in (UNIFORM, "Input-Cost-Uniform")),
            )
            for name in ("Input-Random", "Input-Cost-Top")
        ),
        at_least_0(
            "value-loss-semantic",
            "Semantic-LS loses less value utility than all others at every rate; lowest bound of the differences",
            "figure 10: significantly outperforms the other approaches",
            min(surely_above(by_value[o], by_value[SEMANTIC]) for o in by_value if o not in (SEMANTIC, SEMANTIC_LP)),
        ),
        Claim(
            "tuple-loss-default",
            "the linear program that runs by default loses at most half a percentage point more tuple utility in the "
            "simulator than the paper's table, at any rate, with random and with semantic drops; lowest bound of what the "
            "table loses more",
            "",
            min(surely_above(by_tuple[a], by_tuple[b]) for a, b in ((RANDOM, RANDOM_LP), (SEMANTIC, SEMANTIC_LP))),
            at_least=-0.5,
            config=config,
        ),
    ]


def skew_claims(figure: Figure, by_value: Losses, seed: int, config: dict[str, object]) -> list[Claim]:
    """The two trends of figure 11, each by the lowest bound over all lines of it."""
    at_least_0, ratios = (
        partial(Claim, at_least=0.0, config=config),
        LossRatios(by_value[RANDOM], by_value[SEMANTIC], seed),
    )
    skews, gaps = range(len(figure.skews)), range(len(figure.gaps))
    return [
        at_least_0(
            "skew-grows",
            f"the loss of Random-LS over that of Semantic-LS grows from skew {figure.skews[0]:g} to {figure.skews[-1]:g} at "
            "every rate; lowest bound of the growth",
            "figure 11: as the skew gets larger, Semantic-LS gets increasingly more effective",
            min(ratios.change((0, gap), (skews[-1], gap)).lower for gap in gaps),
        ),
        at_least_0(
            "skew-shrinks-with-rate",
            f"that ratio shrinks from {excess_percent(figure.gaps[0]):.0f} to {excess_percent(figure.gaps[-1]):.0f} % "
            "excess load at every skew; lowest bound of the fall",
            "figure 11: as the input rates increase, this effect tends to diminish",
            min(ratios.change((skew, gaps[-1]), (skew, 0)).lower for skew in skews),
        ),
    ]


def sharing_claims(figure: Figure, by_tuple: Losses, seed: int, config: dict[str, object]) -> list[Claim]:
    """Both observations of figure 12, and that the shedder never does worse."""
    at_least_0, ratios = (
        partial(Claim, at_least=0.0, config=config),
        LossRatios(by_tuple[UNIFORM], by_tuple[RANDOM], seed),
    )
    skews, gaps = range(len(figure.skews)), range(len(figure.gaps))
    usual = [gap for gap in gaps if excess_percent(figure.gaps[gap]) <= 308.0]

    def least_growth(lower: float, higher: float, at: Sequence[int]) -> float:
        ends = figure.skews.index(lower), figure.skews.index(higher)
        return min(ratios.change((ends[0], gap), (ends[1], gap)).lower for gap in at)

    return [
        Claim(
            "sharing-wins",
            "with 20 queries behind one box, Input-Uniform loses at least as much tuple utility as Random-LS; lowest "
            "bound of the loss ratio over all skews and loads",
            "figure 12: Random-LS performs better",
            min(ratios.cell((skew, gap)).lower for skew in skews for gap in gaps),
            at_least=0.999,
            config=config,
        ),
        at_least_0(
            "sharing-skew",
            "that ratio grows from skew 0 to 1 at every load of the paper's range, up to 307 %; lowest bound of the growth",
            "figure 12: as QoS graphs get more skewed, Random-LS performs better",
            least_growth(0.0, 1.0, usual),
        ),
        at_least_0(
            "sharing-skew-extreme",
            "that ratio grows from skew 0 to 1 at every load, extreme ones included; lowest bound of the growth",
            "figure 12: the same, but the success diminishes at extreme loads",
            least_growth(0.0, 1.0, gaps),
        ),
        at_least_0(
            "sharing-skew-beyond",
            "that ratio grows further from skew 1 to 2 at every load; lowest bound of the growth",
            "figure 12: as QoS graphs get more skewed, Random-LS performs better",
            least_growth(1.0, 2.0, gaps),
        ),
        at_least_0(
            "sharing-extreme",
            f"that ratio is lower at {excess_percent(figure.gaps[-1]):.0f} % than at {excess_percent(figure.gaps[0]):.0f} % "
            "excess load, at every skew; lowest bound of the fall",
            "figure 12: the success diminishes as the load gets to extremely high levels",
            min(ratios.change((skew, gaps[-1]), (skew, 0)).lower for skew in skews),
        ),
    ]


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
        plot = curves(xs, lines, "excess load [%]", "utility lost [%]")
        found.append(Section(title, f"{text}\n\n{_table(['shedder', *figure.loads], lines)}", plot))
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
    shown = lines[: len(figure.gaps)]
    plot = curves(figure.skews, shown, "Zipf skew of the utilities", "loss ratio Random-LS / Semantic-LS")
    return [Section("Figure 11: effect of skew", text, plot)]


def sharing_sections(figure: Figure, by_tuple: Losses, seed: int, seeds: Sequence[int]) -> list[Section]:
    """Figure 12: a line for each skew."""
    lines = []
    for planner, name in (("paper's table (Random-LS)", RANDOM), ("linear program", RANDOM_LP)):
        ratios = LossRatios(by_tuple[UNIFORM], by_tuple[name], seed)
        for row, skew in enumerate(figure.skews):
            lines.append(([planner, f"skew {skew:g}"], [ratios.cell((row, gap)) for gap in range(len(figure.gaps))]))
    header = ["planner", "QoS", *figure.loads]
    foreseen = [
        [name, f"skew {skew:g}", *(f"{ratio:.3f}" for ratio in line)]
        for name, by_skew in table_losses(figure, seeds[:5]).items()
        for skew, line in zip(figure.skews, by_skew, strict=True)
    ]
    unlike = [[f"skew {skew:g}", *line] for skew, line in zip(figure.skews, slopes(figure, seeds), strict=True)]
    parts = [
        "Tuple utility lost by Input-Uniform over that lost by random drops, planned in two ways.",
        _table(header, lines),
        f"For comparison, the loss that the greedy tables foresee over that of the linear program (steps of {STEP:g}, mean "
        "over draws):",
        table(header, foreseen),
        "How much there is to choose between: mean slope of the 20 graphs over that of the flattest quarter.",
        table(["QoS", "first rows lost: mean", "flattest quarter", "ratio", "last rows lost: ratio"], unlike),
    ]
    xs, shown = [excess_percent(gap) for gap in figure.gaps], lines[: len(figure.skews)]
    plot = curves(xs, shown, "excess load [%]", "loss ratio Input-Uniform / Random-LS")
    return [Section("Figure 12: effect of sharing", "\n\n".join(parts), plot)]


def table_losses(figure: Figure, seeds: Sequence[int]) -> dict[str, Samples]:
    """Loss of each kind of table over the least, by skew and gap, as its plans foresee it; mean over seeds."""
    makers = {"re-evaluated table": greedy_road_map, "paper's table": paper_road_map}
    found: dict[str, list[Samples]] = {name: [] for name in makers}
    for seed in seeds:
        for skew in figure.skews:
            model = drop_model(figure.network(seed, skew=skew))
            loads = [model.full_load / (1.0 + excess_percent(gap) / 100.0) for gap in figure.gaps]
            least = _foreseen(frontier(model), loads)
            for name, make in makers.items():
                found[name].append(_foreseen(make(model, step=STEP), loads) / least)
    return {name: np.array(r).reshape(len(seeds), len(figure.skews), -1).mean(axis=0) for name, r in found.items()}


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


def curves(xs: Sequence[float], lines: Sequence[Line], x_label: str, y_label: str) -> Plot:
    """Lines of a table as a plot with error bars."""
    from matplotlib.figure import Figure as NewPlot  # takes a while to import, and only reports need it

    plot = NewPlot(figsize=(7.0, 4.2))
    axes = plot.subplots()
    for (names, intervals), marker in zip(lines, _MARKERS, strict=False):
        bars = [[i.value - i.lower for i in intervals], [i.upper - i.value for i in intervals]]
        middle = [interval.value for interval in intervals]
        axes.errorbar(xs, middle, yerr=bars, label=names[-1], marker=marker, capsize=2, lw=1.2)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return plot


def _table(header: Sequence[str], lines: Sequence[Line]) -> str:
    return table(header, [[*names, *map(str, intervals)] for names, intervals in lines])


def _foreseen(planner: Planner, loads: Sequence[float]) -> Samples:
    model = planner.model
    return np.array([model.full_utility - utility(model, planner.at(load)) for load in loads])
