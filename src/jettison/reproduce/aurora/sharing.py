"""Figure 12: Random-LS against Input-Uniform when twenty queries share their first box."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jettison.network.admission import ADMISSIONS
from jettison.network.candidates import drop_model
from jettison.network.optimum import frontier
from jettison.network.roadmap import greedy_road_map, paper_road_map
from jettison.reproduce.aurora.compare import RANDOM, RANDOM_LP, compare, excess_percent
from jettison.reproduce.aurora.loss_ratios import LossRatios
from jettison.reproduce.aurora.plots import curves
from jettison.reproduce.aurora.seeds import for_each
from jettison.reproduce.aurora.statistics import Samples
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.sim.network.generator import shared_network
from jettison.sim.network.monitor import AdmissionPlanner, Planner

SKEWS = (0.0, 1.0, 2.0)
GAPS = (10.0, 6.0, 4.0, 2.0, 1.0)
UNIFORM, PAPER, GREEDY = "Input-Uniform", "paper's table", "re-evaluated table"
_SCALE = 8.0  # one input instead of 18
_STEP = 0.02


def measure(seeds: Sequence[int]) -> dict[str, Samples]:
    """Tuple utility lost by Input-Uniform, by Random-LS and by our linear program, by seed, skew and gap."""
    losses = np.array(for_each(seeds, _simulated))
    return {name: losses[:, number] for number, name in enumerate((UNIFORM, RANDOM, RANDOM_LP))}


def _simulated(seed: int) -> Samples:
    """Tuple utility lost with one draw of QoS graphs, by shedder, skew and gap."""
    losses = np.empty((3, len(SKEWS), len(GAPS)))
    for line, skew in enumerate(SKEWS):
        graph = shared_network(seed, skew=skew)
        model = drop_model(graph)
        planners: dict[str, list[Planner]] = {
            UNIFORM: [AdmissionPlanner(model, ADMISSIONS[UNIFORM], seed)],
            RANDOM: [paper_road_map(model, step=_STEP)],
            RANDOM_LP: [frontier(model)],
        }
        for column, gap in enumerate(GAPS):
            lost = compare(graph, planners, seed=seed, mean_gap=gap, scale=_SCALE).by_tuple
            losses[:, line, column] = lost[UNIFORM], lost[RANDOM], lost[RANDOM_LP]
    return losses


def table_losses(seeds: Sequence[int]) -> dict[str, Samples]:
    """Loss of each kind of table over the least, by skew and gap, as its plans foresee it; mean over seeds."""
    found: dict[str, list[Samples]] = {GREEDY: [], PAPER: []}
    for seed in seeds:
        for skew in SKEWS:
            model = drop_model(shared_network(seed, skew=skew))
            loads = [model.full_load / (1.0 + excess_percent(gap) / 100.0) for gap in GAPS]
            least = _losses(frontier(model), loads)
            for name, make in ((GREEDY, greedy_road_map), (PAPER, paper_road_map)):
                found[name].append(_losses(make(model, step=_STEP), loads) / least)
    return {name: np.array(rows).reshape(len(seeds), len(SKEWS), -1).mean(axis=0) for name, rows in found.items()}


def slopes(seeds: Sequence[int]) -> list[list[float]]:
    """How unlike the graphs are: mean slope of the 20 over that of the 5 flattest, of first and of last rows lost.

    By skew: mean slope, that of the flattest quarter and their ratio, where graphs start to fall; the ratio where they end.
    """
    found = []
    for skew in SKEWS:
        ends = np.array([_end_slopes(seed, skew) for seed in seeds])  # by seed, query and end
        means, flattest = ends.mean(axis=(0, 1)), np.sort(ends, axis=1)[:, :5].mean(axis=(0, 1))
        found.append([float(f) for f in (means[0], flattest[0], means[0] / flattest[0], means[1] / flattest[1])])
    return found


def _end_slopes(seed: int, skew: float) -> list[tuple[float, float]]:
    graphs = drop_model(shared_network(seed, skew=skew)).loss_tolerance.values()
    return [(graph.pieces[-1].slope, graph.pieces[0].slope) for graph in graphs]


def _losses(planner: Planner, loads: Sequence[float]) -> Samples:
    model = planner.model
    return np.array([model.full_utility - model.utility(planner.at(load)) for load in loads])


def claims(ratios: LossRatios, config: dict[str, object]) -> list[Claim]:
    """Both observations of the paper, and that the shedder never does worse."""
    skews, gaps = range(len(SKEWS)), range(len(GAPS))
    usual = [gap for gap in gaps if excess_percent(GAPS[gap]) <= 308.0]

    def least_growth(lower: float, higher: float, at: Sequence[int]) -> float:
        ends = SKEWS.index(lower), SKEWS.index(higher)
        return min(ratios.change((ends[0], gap), (ends[1], gap)).lower for gap in at)

    return [
        Claim(
            "sharing-wins",
            "with 20 queries behind one box, Input-Uniform loses at least as much tuple utility as Random-LS; lowest "
            "bound of the loss ratio over all skews and loads",
            paper="figure 12: Random-LS performs better",
            ours=min(ratios.cell((skew, gap)).lower for skew in skews for gap in gaps),
            at_least=0.999,
            config=config,
        ),
        Claim(
            "sharing-skew",
            "that ratio grows from skew 0 to 1 at every load of the paper's range, up to 307 %; lowest bound of the growth",
            paper="figure 12: as QoS graphs get more skewed, Random-LS performs better",
            ours=least_growth(0.0, 1.0, usual),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "sharing-skew-extreme",
            "that ratio grows from skew 0 to 1 at every load, extreme ones included; lowest bound of the growth",
            paper="figure 12: the same, but the success diminishes at extreme loads",
            ours=least_growth(0.0, 1.0, gaps),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "sharing-skew-beyond",
            "that ratio grows further from skew 1 to 2 at every load; lowest bound of the growth",
            paper="figure 12: as QoS graphs get more skewed, Random-LS performs better",
            ours=least_growth(1.0, 2.0, gaps),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "sharing-extreme",
            f"that ratio is lower at {excess_percent(GAPS[-1]):.0f} % than at {excess_percent(GAPS[0]):.0f} % excess load, "
            "at every skew; lowest bound of the fall",
            paper="figure 12: the success diminishes as the load gets to extremely high levels",
            ours=min(ratios.change((skew, len(GAPS) - 1), (skew, 0)).lower for skew in skews),
            at_least=0.0,
            config=config,
        ),
    ]


def run(settings: RunSettings) -> tuple[list[Section], list[Claim]]:
    """Measure, plot and judge the figure."""
    count = 20 if settings.quick else 60
    settings.say(f"figure 12: {count} draws of 20 QoS graphs at {len(SKEWS)} skews and {len(GAPS)} rates")
    first = settings.seed * 1000 + 400
    lost = measure(range(first, first + count))
    ratios = LossRatios(lost[UNIFORM], lost[RANDOM], settings.seed)
    config: dict[str, object] = {"draws": count, "skews": list(SKEWS), "mean_gaps": list(GAPS), "seed": settings.seed}
    excess = [excess_percent(gap) for gap in GAPS]
    series = ratios.rows([f"skew {skew:g}" for skew in SKEWS])
    header = [f"+{percent:.0f} %" for percent in excess]
    text = "Tuple utility lost by Input-Uniform over that lost by random drops, planned in two ways.\n\n"
    both = [["paper's table (Random-LS)", name, *map(str, intervals)] for name, intervals in series.items()]
    ours = LossRatios(lost[UNIFORM], lost[RANDOM_LP], settings.seed).rows([f"skew {skew:g}" for skew in SKEWS])
    both += [["linear program", name, *map(str, intervals)] for name, intervals in ours.items()]
    text += table(["planner", "QoS", *header], both)
    text += (
        "\n\nFor comparison, the loss that the greedy tables foresee over that of the linear program "
        f"(steps of {_STEP:g}, mean over draws):\n\n"
    )
    rows = [
        [name, f"skew {skew:g}", *(f"{ratio:.3f}" for ratio in line)]
        for name, lines in table_losses(range(first, first + 5)).items()
        for skew, line in zip(SKEWS, lines, strict=True)
    ]
    text += table(["planner", "QoS", *header], rows)
    text += (
        "\n\nHow much there is to choose between: mean slope of the 20 graphs over that of the flattest quarter.\n\n"
    )
    unlike = [[f"skew {skew:g}", *line] for skew, line in zip(SKEWS, slopes(range(first, first + count)), strict=True)]
    text += table(["QoS", "first rows lost: mean", "flattest quarter", "ratio", "last rows lost: ratio"], unlike)
    plot = curves(excess, series, x_label="excess load [%]", y_label="loss ratio Input-Uniform / Random-LS")
    return [Section("Figure 12: effect of sharing", text, plot)], claims(ratios, config)
