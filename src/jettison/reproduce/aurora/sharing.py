"""Figure 12: Random-LS against Input-Uniform when twenty queries share their first box."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jettison.network.admission import ADMISSIONS
from jettison.network.candidates import drop_model
from jettison.network.optimum import frontier
from jettison.network.roadmap import greedy_road_map, paper_road_map
from jettison.reproduce.aurora.compare import RANDOM, compare, excess_percent
from jettison.reproduce.aurora.plots import curves
from jettison.reproduce.aurora.statistics import Interval, Samples, bootstrap
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.sim.network.generator import shared_network
from jettison.sim.network.monitor import AdmissionPlanner, Planner

SKEWS = (0.0, 1.0, 2.0)
GAPS = (10.0, 6.0, 4.0, 2.0, 1.0)
UNIFORM, PAPER, GREEDY = "Input-Uniform", "paper's table", "re-evaluated table"
_NAMES = (UNIFORM, RANDOM)
_SCALE = 8.0  # one input instead of 18
_STEP = 0.02


def measure(seeds: Sequence[int]) -> Samples:
    """Tuple utility lost, by planner, seed, skew and gap."""
    losses = np.empty((len(_NAMES), len(seeds), len(SKEWS), len(GAPS)))
    for row, seed in enumerate(seeds):
        for line, skew in enumerate(SKEWS):
            graph = shared_network(seed, skew=skew)
            model = drop_model(graph)
            planners: dict[str, list[Planner]] = {
                UNIFORM: [AdmissionPlanner(model, ADMISSIONS[UNIFORM], seed)],
                RANDOM: [frontier(model)],
            }
            for column, gap in enumerate(GAPS):
                lost = compare(graph, planners, seed=seed, mean_gap=gap, scale=_SCALE).by_tuple
                losses[:, row, line, column] = [lost[name] for name in _NAMES]
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


def _losses(planner: Planner, loads: Sequence[float]) -> Samples:
    model = planner.model
    return np.array([model.full_utility - model.utility(planner.at(load)) for load in loads])


def ratios(losses: Samples, chosen: NDArray[np.intp] | slice = slice(None)) -> Samples:
    """Loss of Input-Uniform over that of Random-LS, by skew and gap."""
    means = losses[:, chosen].mean(axis=1)
    return np.asarray(means[0] / means[1])


def claims(losses: Samples, seed: int, config: dict[str, object]) -> list[Claim]:
    """Both observations of the paper, and that the shedder never does worse."""
    count = losses.shape[1]

    def growth(gap: int, lower: float, higher: float) -> Interval:
        ends = [SKEWS.index(lower), SKEWS.index(higher)]
        return bootstrap(lambda c: float(np.diff(ratios(losses, c)[ends, gap])[0]), count, seed)

    def fall(skew: int) -> Interval:
        return bootstrap(lambda c: float(-np.diff(ratios(losses, c)[skew, [0, -1]])[0]), count, seed)

    def ratio(skew: int, gap: int) -> Interval:
        return bootstrap(lambda c: float(ratios(losses, c)[skew, gap]), count, seed, draws=400)

    return [
        Claim(
            "sharing-wins",
            "with 20 queries behind one box, Input-Uniform loses at least as much tuple utility as Random-LS; lowest "
            "bound of the loss ratio over all skews and loads",
            paper="figure 12: Random-LS performs better",
            ours=min(ratio(s, g).lower for s in range(len(SKEWS)) for g in range(len(GAPS))),
            at_least=0.999,
            config=config,
        ),
        Claim(
            "sharing-skew",
            "that ratio grows from skew 0 to 1 at every load of the paper's range, up to 307 %; lowest bound of the growth",
            paper="figure 12: as QoS graphs get more skewed, Random-LS performs better",
            ours=min(growth(gap, 0.0, 1.0).lower for gap in range(len(GAPS)) if excess_percent(GAPS[gap]) <= 308.0),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "sharing-skew-extreme",
            "that ratio grows from skew 0 to 1 at every load, extreme ones included; lowest bound of the growth",
            paper="figure 12: the same, but the success diminishes at extreme loads",
            ours=min(growth(gap, 0.0, 1.0).lower for gap in range(len(GAPS))),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "sharing-skew-beyond",
            "that ratio grows further from skew 1 to 2 at every load; lowest bound of the growth",
            paper="figure 12: as QoS graphs get more skewed, Random-LS performs better",
            ours=min(growth(gap, 1.0, 2.0).lower for gap in range(len(GAPS))),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "sharing-extreme",
            f"that ratio is lower at {excess_percent(GAPS[-1]):.0f} % than at {excess_percent(GAPS[0]):.0f} % excess load, "
            "at every skew; lowest bound of the fall",
            paper="figure 12: the success diminishes as the load gets to extremely high levels",
            ours=min(fall(skew).lower for skew in range(len(SKEWS))),
            at_least=0.0,
            config=config,
        ),
    ]


def run(settings: RunSettings) -> tuple[list[Section], list[Claim]]:
    """Measure, plot and judge the figure."""
    count = 20 if settings.quick else 60
    settings.say(f"figure 12: {count} draws of 20 QoS graphs at {len(SKEWS)} skews and {len(GAPS)} rates")
    losses = measure(range(settings.seed * 1000 + 400, settings.seed * 1000 + 400 + count))
    config: dict[str, object] = {"draws": count, "skews": list(SKEWS), "mean_gaps": list(GAPS), "seed": settings.seed}
    excess = [excess_percent(gap) for gap in GAPS]

    def ratio(skew: int, gap: int) -> Interval:
        return bootstrap(lambda c: float(ratios(losses, c)[skew, gap]), count, settings.seed, draws=400)

    series = {f"skew {skew:g}": [ratio(line, gap) for gap in range(len(GAPS))] for line, skew in enumerate(SKEWS)}
    header = [f"+{percent:.0f} %" for percent in excess]
    text = "Tuple utility lost by Input-Uniform over that lost by Random-LS.\n\n"
    text += table(["QoS", *header], [[name, *map(str, intervals)] for name, intervals in series.items()])
    text += (
        "\n\nFor comparison, the loss that the greedy tables foresee over that of the linear program, which plans for "
        f"Random-LS above (steps of {_STEP:g}, mean over draws):\n\n"
    )
    rows = [
        [name, f"skew {skew:g}", *(f"{ratio:.3f}" for ratio in line)]
        for name, lines in table_losses(range(settings.seed * 1000 + 400, settings.seed * 1000 + 405)).items()
        for skew, line in zip(SKEWS, lines, strict=True)
    ]
    text += table(["planner", "QoS", *header], rows)
    plot = curves(excess, series, x_label="excess load [%]", y_label="loss ratio Input-Uniform / Random-LS")
    return [Section("Figure 12: effect of sharing", text, plot)], claims(losses, settings.seed, config)
