"""Figure 11: how much more value utility random drops lose than semantic ones, by skew of the utilities and by rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jettison.reproduce.aurora.compare import (
    RANDOM,
    RANDOM_LP,
    SEMANTIC,
    SEMANTIC_LP,
    compare,
    excess_percent,
    load_shedders,
)
from jettison.reproduce.aurora.loss_ratios import LossRatios
from jettison.reproduce.aurora.plots import curves
from jettison.reproduce.aurora.seeds import for_each
from jettison.reproduce.aurora.statistics import Samples
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.sim.network.generator import random_network

SKEWS = (0.0, 0.5, 1.0, 1.5, 2.0)
GAPS = (6.0, 4.0, 3.0)
_SHEDDERS = (RANDOM, SEMANTIC, RANDOM_LP, SEMANTIC_LP)


def measure(seeds: Sequence[int]) -> dict[str, Samples]:
    """Value utility lost by each load shedder, by seed, gap and skew."""
    losses = np.array(for_each(seeds, _losses))
    return {name: losses[:, number] for number, name in enumerate(_SHEDDERS)}


def _losses(seed: int) -> Samples:
    """Value utility lost on one network, by shedder, gap and skew."""
    losses = np.empty((len(_SHEDDERS), len(GAPS), len(SKEWS)))
    for column, skew in enumerate(SKEWS):
        graph = random_network(seed, skew=skew)
        planners = load_shedders(graph)
        for line, gap in enumerate(GAPS):
            lost = compare(graph, planners, seed=seed, mean_gap=gap).by_value
            losses[:, line, column] = [lost[name] for name in _SHEDDERS]
    return losses


def claims(ratios: LossRatios, config: dict[str, object]) -> list[Claim]:
    """The two trends of the figure, each by the lowest bound over all lines of it."""
    last = len(SKEWS) - 1, len(GAPS) - 1
    growth = [ratios.change((gap, 0), (gap, last[0])) for gap in range(len(GAPS))]
    fall = [ratios.change((last[1], skew), (0, skew)) for skew in range(len(SKEWS))]
    return [
        Claim(
            "skew-grows",
            f"the loss of Random-LS over that of Semantic-LS grows from skew {SKEWS[0]:g} to {SKEWS[-1]:g} at every rate; "
            "lowest bound of the growth",
            paper="figure 11: as the skew gets larger, Semantic-LS gets increasingly more effective",
            ours=min(interval.lower for interval in growth),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "skew-shrinks-with-rate",
            f"that ratio shrinks from {excess_percent(GAPS[0]):.0f} to {excess_percent(GAPS[-1]):.0f} % excess load at "
            "every skew; lowest bound of the fall",
            paper="figure 11: as the input rates increase, this effect tends to diminish",
            ours=min(interval.lower for interval in fall),
            at_least=0.0,
            config=config,
        ),
    ]


def run(settings: RunSettings) -> tuple[list[Section], list[Claim]]:
    """Measure, plot and judge the figure."""
    count = 20 if settings.quick else 60
    settings.say(f"figure 11: {count} networks at {len(SKEWS)} skews and {len(GAPS)} rates")
    lost = measure(range(settings.seed * 1000 + 200, settings.seed * 1000 + 200 + count))
    config: dict[str, object] = {
        "networks": count,
        "skews": list(SKEWS),
        "mean_gaps": list(GAPS),
        "seed": settings.seed,
    }
    loads = [f"+{excess_percent(gap):.0f} % load" for gap in GAPS]
    ratios = LossRatios(lost[RANDOM], lost[SEMANTIC], settings.seed)
    series = ratios.rows(loads)
    text = "Value utility lost by random drops over that lost by semantic ones.\n\n"
    header = ["planner", "load", *(f"skew {skew:g}" for skew in SKEWS)]
    rows = [["paper's table", name, *map(str, intervals)] for name, intervals in series.items()]
    ours = LossRatios(lost[RANDOM_LP], lost[SEMANTIC_LP], settings.seed).rows(loads)
    rows += [["linear program", name, *map(str, intervals)] for name, intervals in ours.items()]
    text += table(header, rows)
    plot = curves(SKEWS, series, x_label="Zipf skew of the utilities", y_label="loss ratio Random-LS / Semantic-LS")
    return [Section("Figure 11: effect of skew", text, plot)], claims(ratios, config)
