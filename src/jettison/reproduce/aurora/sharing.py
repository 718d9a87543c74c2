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
GAPS = (8.0, 6.0, 4.0, 2.0, 1.0, 0.5)
UNIFORM, PAPER, GREEDY = "Input-Uniform", "paper's table", "re-evaluated table"
_NAMES = (UNIFORM, RANDOM, PAPER, GREEDY)


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
                PAPER: [paper_road_map(model, step=0.02)],
                GREEDY: [greedy_road_map(model, step=0.02)],
            }
            for column, gap in enumerate(GAPS):
                lost = compare(graph, planners, seed=seed, mean_gap=gap).by_tuple
                losses[:, row, line, column] = [lost[name] for name in _NAMES]
    return losses


def ratios(losses: Samples, planner: str, chosen: NDArray[np.intp] | slice = slice(None)) -> Samples:
    """Loss of Input-Uniform over that of a planner, by skew and gap."""
    means = losses[:, chosen].mean(axis=1)
    return np.asarray(means[_NAMES.index(UNIFORM)] / means[_NAMES.index(planner)])


def claims(losses: Samples, seed: int, config: dict[str, object]) -> list[Claim]:
    """Both observations of the paper, and that the shedder never does worse."""
    count = losses.shape[1]

    def growth(gap: int) -> Interval:
        return bootstrap(lambda c: float(np.diff(ratios(losses, RANDOM, c)[[0, -1], gap])[0]), count, seed)

    def fall(skew: int) -> Interval:
        return bootstrap(lambda c: float(-np.diff(ratios(losses, RANDOM, c)[skew, [0, -1]])[0]), count, seed)

    def ratio(skew: int, gap: int) -> Interval:
        return bootstrap(lambda c: float(ratios(losses, RANDOM, c)[skew, gap]), count, seed, draws=400)

    return [
        Claim(
            "sharing-wins",
            "with 20 queries behind one box, Input-Uniform loses at least as much tuple utility as Random-LS; lowest bound of "
            "the loss ratio over all skews and loads",
            paper="figure 12: Random-LS performs better",
            ours=min(ratio(s, g).lower for s in range(len(SKEWS)) for g in range(len(GAPS))),
            at_least=0.999,
            config=config,
        ),
        Claim(
            "sharing-skew",
            f"that ratio grows from skew {SKEWS[0]:g} to {SKEWS[-1]:g} up to {excess_percent(GAPS[2]):.0f} % excess load; "
            "lowest bound of the growth",
            paper="figure 12: as QoS graphs get more skewed, Random-LS performs better",
            ours=min(growth(gap).lower for gap in range(3)),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "sharing-extreme",
            f"that ratio is lower at {excess_percent(GAPS[-1]):.0f} % than at {excess_percent(GAPS[0]):.0f} % excess load, at every "
            "skew; lowest bound of the fall",
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
    series, rows = {}, []
    for planner in (RANDOM, GREEDY, PAPER):
        for s, skew in enumerate(SKEWS):
            intervals = [
                bootstrap(
                    lambda c, p=planner, s=s, g=g: float(ratios(losses, p, c)[s, g]), count, settings.seed, draws=400
                )
                for g in range(len(GAPS))
            ]
            rows.append([planner, f"{skew:g}", *map(str, intervals)])
            if planner == RANDOM:
                series[f"skew {skew:g}"] = intervals
    text = (
        "Tuple utility lost by Input-Uniform over that lost by Random-LS, whose plans come from the linear program, from "
        "the greedy table that is re-evaluated after every row, or from the paper's table.\n\n"
    )
    text += table(["planner", "skew", *(f"+{percent:.0f} %" for percent in excess)], rows)
    plot = curves(excess, series, x_label="excess load [%]", y_label="loss ratio Input-Uniform / Random-LS")
    return [Section("Figure 12: effect of sharing", text, plot)], claims(losses, settings.seed, config)
