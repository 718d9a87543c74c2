"""Figures 9 and 10: utility lost by each shedder as the input rates grow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jettison.reproduce.aurora.compare import (
    RANDOM,
    RANDOM_LP,
    SEMANTIC,
    SEMANTIC_LP,
    Losses,
    compare,
    excess_percent,
    shedders,
)
from jettison.reproduce.aurora.plots import curves
from jettison.reproduce.aurora.seeds import for_each
from jettison.reproduce.aurora.statistics import Samples, mean
from jettison.reproduce.claims import Claim
from jettison.reproduce.report import RunSettings, Section, table
from jettison.sim.network.generator import random_network

GAPS = (10.0, 8.0, 6.0, 5.0, 4.0, 3.0)
"""Mean inter-arrival times: excess loads of 22 to 307 %."""

Table = dict[str, Samples]
"""By shedder, percent lost: a row for each seed, a column for each of `GAPS`."""


def measure(seeds: Sequence[int]) -> tuple[Table, Table]:
    """Tuple and value utility lost, for the paper's five queries with uniformly drawn utilities."""
    runs = for_each(seeds, _losses)
    names = list(runs[0][0].by_tuple)
    by_tuple = {name: np.array([[losses.by_tuple[name] for losses in run] for run in runs]) for name in names}
    by_value = {name: np.array([[losses.by_value[name] for losses in run] for run in runs]) for name in names}
    return by_tuple, by_value


def _losses(seed: int) -> list[Losses]:
    """What each shedder loses on one network, by gap."""
    graph = random_network(seed, skew=0.0)
    planners = shedders(graph, seed)
    return [compare(graph, planners, seed=seed, mean_gap=gap) for gap in GAPS]


def claims(by_tuple: Table, by_value: Table, config: dict[str, object]) -> list[Claim]:
    """The orderings of both figures. A difference counts as far as its 95 % interval is above zero, at every rate.

    They are about the paper's own shedders; one more is about ours beside them.
    """
    admissions = [name for name in by_tuple if name not in (RANDOM, SEMANTIC, RANDOM_LP, SEMANTIC_LP)]
    others = [name for name in by_value if name not in (SEMANTIC, SEMANTIC_LP)]
    apart = [mean(column).value for column in (by_tuple[RANDOM] - by_tuple[SEMANTIC]).T]
    level = by_tuple[RANDOM].mean(axis=0)
    return [
        Claim(
            "tuple-loss-admission",
            "both load shedders lose less tuple utility than every admission control at every rate; the figure is the "
            "lowest bound of any of these differences, in percentage points",
            paper="figure 9: the QoS-driven algorithms perform much better",
            ours=min(
                _surely_above(by_tuple[admission], by_tuple[shedder])
                for shedder in (RANDOM, SEMANTIC)
                for admission in admissions
            ),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "tuple-loss-semantic",
            "Semantic-LS loses less tuple utility than Random-LS at every rate; lowest bound of the differences",
            paper="figure 9: less by a constant amount",
            ours=_surely_above(by_tuple[RANDOM], by_tuple[SEMANTIC]),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "tuple-loss-constant",
            "that amount is roughly constant: over the rates it varies by at most a quarter of what the loss itself does",
            paper="figure 9: a constant amount",
            ours=(max(apart) - min(apart)) / float(level.max() - level.min()),
            at_most=0.25,
            config=config,
        ),
        Claim(
            "tuple-loss-growth",
            "every shedder loses more the higher the rate; smallest growth from one rate to the next",
            paper="figure 9: all algorithms are negatively affected by increasing input rates",
            ours=min(float(np.diff(samples.mean(axis=0)).min()) for samples in by_tuple.values()),
            at_least=0.0,
            config=config,
        ),
        *(
            Claim(
                f"tuple-loss-{name.removeprefix('Input-').lower()}",
                f"{name} loses more than both uniform rules at every rate; lowest bound of the differences",
                paper="figure 9: Input-Random and Input-Cost-Top perform poorly compared to others",
                ours=min(
                    _surely_above(by_tuple[name], by_tuple[other]) for other in ("Input-Uniform", "Input-Cost-Uniform")
                ),
                at_least=0.0,
                config=config,
            )
            for name in ("Input-Random", "Input-Cost-Top")
        ),
        Claim(
            "value-loss-semantic",
            "Semantic-LS loses less value utility than all others at every rate; lowest bound of the differences",
            paper="figure 10: significantly outperforms the other approaches",
            ours=min(_surely_above(by_value[other], by_value[SEMANTIC]) for other in others),
            at_least=0.0,
            config=config,
        ),
        Claim(
            "tuple-loss-default",
            "the linear program that runs by default loses at most half a percentage point more tuple utility in the "
            "simulator than the paper's table, at any rate, with random and with semantic drops; lowest bound of what the "
            "table loses more",
            paper="",
            ours=min(
                _surely_above(by_tuple[papers], by_tuple[ours])
                for papers, ours in ((RANDOM, RANDOM_LP), (SEMANTIC, SEMANTIC_LP))
            ),
            at_least=-0.5,
            config=config,
        ),
    ]


def run(settings: RunSettings) -> tuple[list[Section], list[Claim]]:
    """Measure, plot and judge both figures."""
    count = 20 if settings.quick else 60
    settings.say(f"figures 9 and 10: {count} networks at {len(GAPS)} rates")
    by_tuple, by_value = measure(range(settings.seed * 1000, settings.seed * 1000 + count))
    config: dict[str, object] = {"networks": count, "mean_gaps": list(GAPS), "seed": settings.seed}
    sections = [
        _section("Figure 9: tuple utility lost", by_tuple),
        _section("Figure 10: value utility lost", by_value),
    ]
    return sections, claims(by_tuple, by_value, config)


def _surely_above(higher: Samples, lower: Samples) -> float:
    """The lowest bound, over the rates, of the paired difference."""
    return min(mean(column).lower for column in (higher - lower).T)


def _section(title: str, losses: Table) -> Section:
    excess = [excess_percent(gap) for gap in GAPS]
    header = ["shedder", *(f"+{percent:.0f} %" for percent in excess)]
    rows = [[name, *(str(mean(column)) for column in samples.T)] for name, samples in losses.items()]
    text = (
        "Percent lost by excess load, mean over random networks of 5 queries, 34 filters, 13 unions and 18 inputs, with "
        f"95 % confidence intervals. {RANDOM} and {SEMANTIC} follow the paper's table, the two below them our linear "
        "program.\n\n" + table(header, rows)
    )
    series = {name: [mean(column) for column in samples.T] for name, samples in losses.items()}
    return Section(title, text, curves(excess, series, x_label="excess load [%]", y_label="utility lost [%]"))
