"""Figure 11: how much more value utility random drops lose than semantic ones, by skew of the utilities and by rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jettison.network.candidates import drop_model
from jettison.network.optimum import frontier
from jettison.reproduce.aurora.compare import RANDOM, SEMANTIC, compare, excess_percent
from jettison.reproduce.aurora.plots import curves
from jettison.reproduce.aurora.statistics import Interval, Samples, bootstrap
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.sim.network.generator import random_network

SKEWS = (0.0, 0.5, 1.0, 1.5, 2.0)
GAPS = (6.0, 4.0, 3.0)


def measure(seeds: Sequence[int]) -> tuple[Samples, Samples]:
    """Value utility lost by Random-LS and Semantic-LS, by seed, gap and skew."""
    losses = np.empty((2, len(seeds), len(GAPS), len(SKEWS)))
    for row, seed in enumerate(seeds):
        for column, skew in enumerate(SKEWS):
            graph = random_network(seed, skew=skew)
            planners = {
                RANDOM: [frontier(drop_model(graph))],
                SEMANTIC: [frontier(drop_model(graph, semantic=True))],
            }
            for line, gap in enumerate(GAPS):
                lost = compare(graph, planners, seed=seed, mean_gap=gap).by_value
                losses[:, row, line, column] = lost[RANDOM], lost[SEMANTIC]
    return losses[0], losses[1]


def ratios(random: Samples, semantic: Samples, chosen: NDArray[np.intp] | slice = slice(None)) -> Samples:
    """Ratio of the mean losses, by gap and skew. A mean of ratios would be ruled by seeds that hardly lose anything."""
    return np.asarray(random[chosen].mean(axis=0) / semantic[chosen].mean(axis=0))


def claims(random: Samples, semantic: Samples, seed: int, config: dict[str, object]) -> list[Claim]:
    """The two trends of the figure, each by the lowest bound over all lines of it."""
    count = len(random)

    def growth(gap: int) -> Interval:
        return bootstrap(lambda c: float(np.diff(ratios(random, semantic, c)[gap][[0, -1]])[0]), count, seed)

    def fall(skew: int) -> Interval:
        return bootstrap(lambda c: float(-np.diff(ratios(random, semantic, c)[[0, -1], skew])[0]), count, seed)

    return [
        Claim(
            "skew-grows",
            f"the loss of Random-LS over that of Semantic-LS grows from skew {SKEWS[0]:g} to {SKEWS[-1]:g} at every rate; "
            "lowest bound of the growth",
            paper="figure 11: as the skew gets larger, Semantic-LS gets increasingly more effective",
            ours=min(growth(gap).lower for gap in range(len(GAPS))),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "skew-shrinks-with-rate",
            f"that ratio shrinks from {excess_percent(GAPS[0]):.0f} to {excess_percent(GAPS[-1]):.0f} % excess load at "
            "every skew; lowest bound of the fall",
            paper="figure 11: as the input rates increase, this effect tends to diminish",
            ours=min(fall(skew).lower for skew in range(len(SKEWS))),
            at_least=0.0,
            config=config,
        ),
    ]


def run(settings: RunSettings) -> tuple[list[Section], list[Claim]]:
    """Measure, plot and judge the figure."""
    count = 20 if settings.quick else 60
    settings.say(f"figure 11: {count} networks at {len(SKEWS)} skews and {len(GAPS)} rates")
    random, semantic = measure(range(settings.seed * 1000 + 200, settings.seed * 1000 + 200 + count))
    config: dict[str, object] = {
        "networks": count,
        "skews": list(SKEWS),
        "mean_gaps": list(GAPS),
        "seed": settings.seed,
    }

    def ratio(gap: int, skew: int) -> Interval:
        return bootstrap(lambda c: float(ratios(random, semantic, c)[gap, skew]), count, settings.seed, draws=400)

    series = {
        f"+{excess_percent(gap):.0f} % load": [ratio(line, column) for column in range(len(SKEWS))]
        for line, gap in enumerate(GAPS)
    }
    rows = [[name, *map(str, intervals)] for name, intervals in series.items()]
    text = "Value utility lost by Random-LS over that lost by Semantic-LS.\n\n"
    text += table(["load", *(f"skew {skew:g}" for skew in SKEWS)], rows)
    plot = curves(SKEWS, series, x_label="Zipf skew of the utilities", y_label="loss ratio Random-LS / Semantic-LS")
    return [Section("Figure 11: effect of skew", text, plot)], claims(random, semantic, settings.seed, config)
