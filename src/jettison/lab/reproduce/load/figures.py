"""Figures 4 to 8, the paper's literal forms beside ours, and cost with value: one parameter at a time, simulated."""

from __future__ import annotations

from functools import cache

import numpy as np

from jettison.costs.sketch import FloatArray
from jettison.lab.reproduce.load.sweep import Figure, Point, Runs, Sweep
from jettison.lab.sim.load import kernels
from jettison.lab.sim.load.algorithms import (
    BASE_LINE,
    FULL_KNOWLEDGE,
    LAS,
    OURS,
    STRAW_MAN,
    Algorithm,
    BaseLine,
    Ours,
    Paper,
    compared,
    sketch_shape,
)
from jettison.lab.sim.load.workload import Stream, StreamSettings, streams

BOUND_MS = 6.4
APART = "LAS, margin 0.1 apart"
NOP_START, LISTED_CHECK, COSTS_KNOWN = "LAS, literal start", "LAS, literal CHECK", "ours, costs known"
BY_UTILITY = "ours, by cost per utility"


def _all(bound_ms: float, under_provisioning: float = 0.25) -> dict[str, Algorithm]:
    return {**compared(bound_ms), BASE_LINE: BaseLine(max(0.0, under_provisioning))}


figure4 = Figure(
    "Figure 4: input throughput",
    "under-provisioning",
    [
        # Straw-Man at 90 % is near its bar, and its runs differ much: more of them, lest the verdict hang on the seed.
        Point(x, BOUND_MS, _all(BOUND_MS, x), StreamSettings(under_provisioning=x), 5 if x == 0.9 else 1)
        for x in (-0.1, 0.0, 0.1, 0.25, 0.5, 0.75, 0.9)
    ],
    {
        "fig4-full-knowledge": lambda s: max(one.waits_ms.max() / one.bound_ms for one in s.of(FULL_KNOWLEDGE)),
        "fig4-straw-man": lambda s: min(s.over_bounds(STRAW_MAN, low=0.0)),
        "fig4-base-line": lambda s: min(s.over_bounds(BASE_LINE, low=0.0)),
        "fig4-over-provisioned-wait": lambda s: max(one.over_bound for one in s.measured if one.x < 0.0),
        "fig4-over-provisioned-drops": lambda s: max(one.drop_share for one in s.measured if one.x < 0.0),
        "fig4-las": lambda s: max(s.over_bounds(LAS, low=0.0)),
        "fig4-las-drops": lambda s: max(s.drop_ratios(LAS, FULL_KNOWLEDGE, low=0.25)),
        "fig4-ours": lambda s: max(s.over_bounds(OURS, low=0.0)),
        "fig4-ours-drops": lambda s: 1.0 - s.drop_ratios(OURS, FULL_KNOWLEDGE, low=0.25)[0],
        "fig4-ours-drops-everywhere": lambda s: max(s.drop_ratios(OURS, FULL_KNOWLEDGE, low=0.25)),
    },
    quick=400,  # the same reason as for the orders at 90 %
)

figure5 = Figure(
    "Figure 5: the bound",
    "bound ms",
    [Point(bound, bound, _all(bound)) for bound in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)],
    {
        "fig5-full-knowledge": lambda s: max(s.over_bounds(FULL_KNOWLEDGE)),
        "fig5-straw-man": lambda s: s.at(12.8, STRAW_MAN).waits_ms.mean() / s.at(12.8, BASE_LINE).waits_ms.mean(),
        "fig5-las": lambda s: min(one.over_bound / s.at(one.x, LAS).over_bound for one in s.of(STRAW_MAN, low=0.8)),
        "fig5-las-large": lambda s: s.at(12.8, LAS).over_bound,
        "fig5-ours": lambda s: max(s.over_bounds(OURS)),
    },
    logarithmic=True,
)

figure6 = Figure(
    "Figure 6: largest cost, with the bound equal to it",
    "largest cost ms",
    [Point(cost, cost, _all(cost), StreamSettings(largest_cost_ms=cost)) for cost in (0.4, 1.6, 6.4, 25.6, 51.2)],
    {
        "fig6-las-consistent": lambda s: max(s.over_bounds(LAS)) / min(s.over_bounds(LAS)),
        "fig6-las-drops": lambda s: min(s.drop_ratios(LAS, BASE_LINE)) - 1.0,
        "fig6-ours": lambda s: max(s.over_bounds(OURS)),
    },
    logarithmic=True,
)


def ratio_at_most(over: FloatArray, under: FloatArray, associations: int) -> float:
    """Ratio of two means and three standard errors on top: below 1 only if there is more to it than chance."""
    means = [values.reshape(associations, -1).mean(axis=1) for values in (over, under)]
    ratio = means[0].mean() / means[1].mean()
    return float(ratio * (1.0 + 3.0 * np.sqrt(sum((one.std() / one.mean()) ** 2 / len(one) for one in means))))


figure7 = Figure(
    "Figure 7: frequency distribution",
    "Zipf exponent",
    [Point(x, BOUND_MS, _all(BOUND_MS), StreamSettings(skew=x)) for x in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)],
    {
        "fig7-baselines": lambda s: min(s.over_bounds(STRAW_MAN) + s.over_bounds(BASE_LINE)),
        "fig7-span": lambda s: np.ptp(s.at(3.0, STRAW_MAN).waits_ms) / np.ptp(s.at(0.0, STRAW_MAN).waits_ms),
        "fig7-las-uniform": lambda s: s.at(0.0, LAS).over_bound,
        "fig7-las-skewed": lambda s: max(s.over_bounds(LAS, low=1.5)),
        "fig7-las-drops": lambda s: ratio_at_most(s.at(3.0, LAS).drops, s.at(0.0, LAS).drops, s.runs.associations),
        "fig7-ours": lambda s: max(s.over_bounds(OURS)),
        "fig7-ours-drops": lambda s: min(1.0 - ratio for ratio in s.drop_ratios(OURS, FULL_KNOWLEDGE)),
    },
)


def _of_width(epsilon: float) -> dict[str, Algorithm]:
    rows, columns = sketch_shape(epsilon, Paper().delta)  # ours has the same cells, and learns its margin
    sized: dict[str, Algorithm] = {
        LAS: Paper(epsilon=epsilon),
        APART: Paper(epsilon=epsilon, margin=0.1),
        OURS: Ours(rows=rows, columns=columns),
    }
    return {**compared(BOUND_MS), **sized}


figure8 = Figure(
    "Figure 8: width of the sketch",
    "epsilon",
    [Point(epsilon, BOUND_MS, _of_width(epsilon)) for epsilon in (0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)],
    {
        "fig8-large": lambda s: s.at(1.0, LAS).over_bound,
        "fig8-small": lambda s: max(s.over_bounds(LAS, high=0.1)),
        "fig8-apart": lambda s: max(s.over_bounds(APART, high=0.1)),
        "fig8-ours": lambda s: max(s.over_bounds(OURS)),
    },
    logarithmic=True,
)

_VARIANTS: dict[str, Algorithm] = {
    FULL_KNOWLEDGE: Paper(costs=kernels.EXACT),
    LAS: Paper(),
    LISTED_CHECK: Paper(as_listed=True),
    NOP_START: Paper(warm_up=False),
    "LAS, literal synchronisation": Paper(sync=kernels.LITERAL),
    "LAS, clock not clamped": Paper(clamp_to_now=False),
    "LAS, immediate": Paper(sync=kernels.IMMEDIATE),
    OURS: Ours(),
    "ours, clock after every row": Ours(sync_every=1),
    "ours, the paper's 4 x 55 sketch": Ours(rows=4, columns=55),
    COSTS_KNOWN: Ours(exact=True),
}


@cache
def _least_drop_share(runs: Runs) -> float:
    """Share that no choice can drop fewer of: the costliest rows, until the rest fits into the time that there is."""
    shares = []
    for _, stream in streams(StreamSettings(), runs.associations, 1, runs.seed):
        time_ms = float(stream.arrivals_ms[-1]) + float(stream.costs_ms.max())
        fit = int(np.searchsorted(np.cumsum(np.sort(stream.costs_ms)), time_ms, side="right"))
        shares.append(1.0 - fit / len(stream.keys))
    return float(np.mean(shares))


def _saved(sweep: Sweep) -> float:
    return float(1.0 - sweep.drop_ratios(COSTS_KNOWN, FULL_KNOWLEDGE)[0])


corrections = Figure(
    "Literal forms, theorem 4.1, and the parts of ours",
    "under-provisioning",
    [Point(0.25, BOUND_MS, _VARIANTS)],
    {
        "listing-deadlock": lambda s: s.at(0.25, LISTED_CHECK).drop_share,
        "literal-start": lambda s: s.at(0.25, NOP_START).over_bound / s.at(0.25, LAS).over_bound,
        "theorem-4.1": _saved,
        "theorem-4.1-gap": _saved,
        "ours-near-fewest": lambda s: s.at(0.25, COSTS_KNOWN).drop_share / _least_drop_share(s.runs),
        "ours-sketch-enough": lambda s: (
            s.drop_ratios(OURS, COSTS_KNOWN)[0],
            {"sketch_bytes": 16 * Ours().rows * Ours().columns},
        ),
        "ours-cold-start": lambda s: s.at(0.25, OURS).over_bound,
    },
    orders=5,
    note=lambda s: (
        f"\n\nNo choice whatsoever can drop fewer than {_least_drop_share(s.runs):.4f} of the rows on average."
    ),
)


def _utility(stream: Stream, seed: int) -> FloatArray:
    """Of each row, independent of its cost, as a value graph of four levels over the keys would give it."""
    levels = np.array([0.1, 0.4, 0.7, 1.0])
    of_keys: FloatArray = np.random.default_rng([seed, 5]).choice(levels, size=stream.distinct)
    return of_keys[stream.keys]


def _lost(sweep: Sweep, than: str) -> float:
    return float(sweep.at(0.25, BY_UTILITY).lost.mean() / sweep.at(0.25, than).lost.mean())


utility = Figure(
    "Cost and value together",
    "under-provisioning",
    [
        Point(
            0.25,
            BOUND_MS,
            {FULL_KNOWLEDGE: _VARIANTS[FULL_KNOWLEDGE], OURS: Ours(), BY_UTILITY: Ours(utility=_utility)},
            utility=_utility,
        )
    ],
    {
        "utility-bound": lambda s: s.at(0.25, BY_UTILITY).over_bound,
        "utility-lost": lambda s: _lost(s, OURS),
        "utility-lost-paper": lambda s: _lost(s, FULL_KNOWLEDGE),
    },
    orders=5,
)
