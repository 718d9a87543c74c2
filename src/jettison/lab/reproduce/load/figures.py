"""Figures 4 to 8, the paper's literal forms beside ours, and cost with value: one parameter at a time, simulated."""

from __future__ import annotations

from functools import cache

import numpy as np

from jettison.costs.sketch import FloatArray
from jettison.lab.reproduce.load.sweep import Figure, Judge, Point, Runs, Sweep
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
_EXACTLY = 1.0 + 1e-9


def _all(bound_ms: float, under_provisioning: float = 0.25) -> dict[str, Algorithm]:
    return {**compared(bound_ms), BASE_LINE: BaseLine(max(0.0, under_provisioning))}


def _overloaded(x: float) -> bool:
    return x >= 0.0


def _heavily(x: float) -> bool:
    return x >= 0.25


figure4 = Figure(
    "Figure 4: input throughput",
    "under-provisioning",
    [
        # Straw-Man at 90 % is near its bar, and its runs differ much: more of them, lest the verdict hang on the seed.
        Point(x, BOUND_MS, _all(BOUND_MS, x), StreamSettings(under_provisioning=x), 5 if x == 0.9 else 1)
        for x in (-0.1, 0.0, 0.1, 0.25, 0.5, 0.75, 0.9)
    ],
    [
        Judge("fig4-full-knowledge", "Full Knowledge is never above the bound: worst run, wait / bound",
              "always abides", lambda s: max(one.waits_ms.max() / one.bound_ms for one in s.of(FULL_KNOWLEDGE)),
              at_most=_EXACTLY),
        Judge("fig4-straw-man", "Straw-Man is far over the bound wherever x >= 0: least mean wait / bound",
              "huge excess", lambda s: min(s.over_bounds(STRAW_MAN, _overloaded)), at_least=8.0),
        Judge("fig4-base-line", "Base Line is far over the bound wherever x >= 0: least mean wait / bound",
              "huge excess", lambda s: min(s.over_bounds(BASE_LINE, _overloaded)), at_least=8.0),
        Judge("fig4-over-provisioned-wait", "with time to spare all are under the bound: largest mean wait / bound",
              "same level", lambda s: max(one.over_bound for one in s.measured if one.x < 0.0), at_most=1.0),
        Judge("fig4-over-provisioned-drops", "with time to spare hardly anything is dropped: largest share",
              "superfluous", lambda s: max(one.drop_share for one in s.measured if one.x < 0.0), at_most=0.01),
        Judge("fig4-las", "corrected LAS holds 1.25 bounds from x = 0 to 90 %: largest mean wait / bound",
              "quite close", lambda s: max(s.over_bounds(LAS, _overloaded)), at_most=1.25),
        Judge("fig4-las-drops", "LAS drops slightly more than Full Knowledge for x >= 25 %: largest ratio",
              "slightly more", lambda s: max(s.drop_ratios(LAS, FULL_KNOWLEDGE, _heavily)), at_most=1.15),
        Judge("fig4-ours", "ours holds 1.05 bounds from x = 0 to 90 %: largest mean wait / bound",
              "", lambda s: max(s.over_bounds(OURS, _overloaded)), at_most=1.05),
        Judge("fig4-ours-drops", "ours drops fewer rows than Full Knowledge at the defaults: share saved",
              "optimal (theorem 4.1)", lambda s: 1.0 - s.drop_ratios(OURS, FULL_KNOWLEDGE, lambda x: x == 0.25)[0],
              at_least=0.15),
        Judge("fig4-ours-drops-everywhere", "ours never drops more than Full Knowledge for x >= 25 %: largest ratio",
              "optimal (theorem 4.1)", lambda s: max(s.drop_ratios(OURS, FULL_KNOWLEDGE, _heavily)), at_most=1.0),
    ],
    quick=400,  # the same reason as for the orders at 90 %
)  # fmt: skip

figure5 = Figure(
    "Figure 5: the bound",
    "bound ms",
    [Point(bound, bound, _all(bound)) for bound in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)],
    [
        Judge("fig5-full-knowledge", "Full Knowledge holds every bound: largest mean wait / bound",
              "perfectly approaches", lambda s: max(s.over_bounds(FULL_KNOWLEDGE)), at_most=_EXACTLY),
        Judge("fig5-straw-man", "Straw-Man's wait grows towards Base Line's from 0.8 ms on: wait / Base Line's at 12.8 ms",
              "approaches Base Line", lambda s: s.at(12.8, STRAW_MAN).waits_ms.mean() /
              s.at(12.8, BASE_LINE).waits_ms.mean(), at_least=0.5),
        Judge("fig5-las", "LAS performs largely better than Straw-Man from 0.8 ms on: least ratio of their waits",
              "largely better", lambda s: min(one.over_bound / s.at(one.x, LAS).over_bound
                                              for one in s.of(STRAW_MAN, lambda x: x >= 0.8)), at_least=5.0),
        Judge("fig5-las-large", "for large bounds LAS approaches Full Knowledge: mean wait / bound at 12.8 ms",
              "approaches", lambda s: s.at(12.8, LAS).over_bound, at_most=1.25),
        Judge("fig5-ours", "ours holds 1.05 of every bound: largest mean wait / bound",
              "", lambda s: max(s.over_bounds(OURS)), at_most=1.05),
    ],
    logarithmic=True,
)  # fmt: skip

figure6 = Figure(
    "Figure 6: largest cost, with the bound equal to it",
    "largest cost ms",
    [Point(cost, cost, _all(cost), StreamSettings(largest_cost_ms=cost)) for cost in (0.4, 1.6, 6.4, 25.6, 51.2)],
    [
        Judge("fig6-las-consistent", "LAS is consistent as costs grow: largest over smallest mean wait / bound",
              "rather consistent", lambda s: max(s.over_bounds(LAS)) / min(s.over_bounds(LAS)), at_most=1.5),
        Judge("fig6-las-drops", "LAS always drops more than Base Line: least shedding ratio",
              "always positive", lambda s: min(s.drop_ratios(LAS, BASE_LINE)) - 1.0, at_least=0.0),
        Judge("fig6-ours", "ours holds 1.05 bounds whatever the largest cost: largest mean wait / bound",
              "", lambda s: max(s.over_bounds(OURS)), at_most=1.05),
    ],
    logarithmic=True,
)  # fmt: skip


def ratio_at_most(over: FloatArray, under: FloatArray, associations: int) -> float:
    """Ratio of two means and three standard errors on top: below 1 only if there is more to it than chance."""
    means = [values.reshape(associations, -1).mean(axis=1) for values in (over, under)]
    ratio = means[0].mean() / means[1].mean()
    return float(ratio * (1.0 + 3.0 * np.sqrt(sum((one.std() / one.mean()) ** 2 / len(one) for one in means))))


figure7 = Figure(
    "Figure 7: frequency distribution",
    "Zipf exponent",
    [Point(x, BOUND_MS, _all(BOUND_MS), StreamSettings(skew=x)) for x in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)],
    [
        Judge("fig7-baselines", "Straw-Man and Base Line are bad for every distribution: least mean wait / bound",
              "invariably bad", lambda s: min(s.over_bounds(STRAW_MAN) + s.over_bounds(BASE_LINE)), at_least=8.0),
        Judge("fig7-span", "Straw-Man's best and worst run lie further apart with skew: span at Zipf-3.0 over uniform",
              "span increases", lambda s: np.ptp(s.at(3.0, STRAW_MAN).waits_ms) / np.ptp(s.at(0.0, STRAW_MAN).waits_ms),
              at_least=1.0),
        Judge("fig7-las-uniform", "LAS for uniform items: mean wait / bound",
              "", lambda s: s.at(0.0, LAS).over_bound, at_most=1.75),
        Judge("fig7-las-skewed", "LAS improves with skew, at or under the bound from Zipf-1.5 on: largest mean wait / bound",
              "improves", lambda s: max(s.over_bounds(LAS, lambda x: x >= 1.5)), at_most=1.0),
        Judge("fig7-las-drops", "LAS's shedding ratio falls with skew: drops at Zipf-3.0 over uniform, upper end",
              "decreases", lambda s: ratio_at_most(s.at(3.0, LAS).drops, s.at(0.0, LAS).drops, s.runs.associations),
              at_most=1.0),
        Judge("fig7-ours", "ours holds 1.05 bounds for every distribution: largest mean wait / bound",
              "", lambda s: max(s.over_bounds(OURS)), at_most=1.05),
        Judge("fig7-ours-drops", "ours drops fewer rows than Full Knowledge for every distribution: least share saved",
              "optimal (theorem 4.1)", lambda s: min(1.0 - ratio for ratio in s.drop_ratios(OURS, FULL_KNOWLEDGE)),
              at_least=0.0),
    ],
)  # fmt: skip


def _of_width(epsilon: float) -> dict[str, Algorithm]:
    rows, columns = sketch_shape(epsilon, Paper().delta)  # ours has the same cells, and learns its margin
    sized: dict[str, Algorithm] = {
        LAS: Paper(epsilon=epsilon),
        APART: Paper(epsilon=epsilon, margin=0.1),
        OURS: Ours(rows=rows, columns=columns),
    }
    return {**compared(BOUND_MS), **sized}


def _narrow(x: float) -> bool:
    return x <= 0.1


figure8 = Figure(
    "Figure 8: width of the sketch",
    "epsilon",
    [Point(epsilon, BOUND_MS, _of_width(epsilon)) for epsilon in (0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)],
    [
        Judge("fig8-large", "for a large epsilon LAS drops much and waits hardly: mean wait / bound at 1.0",
              "close to 0", lambda s: s.at(1.0, LAS).over_bound, at_most=0.1),
        Judge("fig8-small", "for epsilon <= 0.1 LAS is at or under the bound, margin = epsilon: largest mean wait / bound",
              "always below or equal", lambda s: max(s.over_bounds(LAS, _narrow)), at_most=1.0),
        Judge("fig8-apart", "the same with a margin of 0.1 set apart from the width: largest mean wait / bound",
              "always below or equal", lambda s: max(s.over_bounds(APART, _narrow)), at_most=1.0),
        Judge("fig8-ours", "ours holds 1.05 bounds with a sketch of every width: largest mean wait / bound",
              "", lambda s: max(s.over_bounds(OURS)), at_most=1.05),
    ],
    logarithmic=True,
)  # fmt: skip

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
def _fewest_share(runs: Runs) -> float:
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
    [
        Judge("listing-deadlock", "CHECK as listed drops everything once the mean is above the bound: share dropped",
              "", lambda s: s.at(0.25, LISTED_CHECK).drop_share, at_least=0.99),
        Judge("literal-start", "the NOP start leaves a backlog: mean wait over that of a warm start",
              "no load shedding is required", lambda s: s.at(0.25, NOP_START).over_bound / s.at(0.25, LAS).over_bound,
              at_least=10.0),
        Judge("theorem-4.1", "no online shedder that holds the bound drops fewer rows than CHECK with all costs known: "
              "share that dropping the costliest saves", "0", _saved, at_most=0.0),
        Judge("theorem-4.1-gap", "dropping the costliest saves a quarter of the drops: share",
              "", _saved, at_least=0.24),
        Judge("ours-near-fewest", "with costs known ours drops few more rows than the fewest possible: ratio",
              "", lambda s: s.at(0.25, COSTS_KNOWN).drop_share / _fewest_share(s.runs), at_most=1.25),
        Judge("ours-sketch-enough", "a sketch of 64 KiB costs ours few rows: drops over those with costs known",
              "", lambda s: s.drop_ratios(OURS, COSTS_KNOWN)[0], at_most=1.1,
              config={"sketch_bytes": 16 * Ours().rows * Ours().columns}),
        Judge("ours-cold-start", "ours starts cold, without any warm-up, and still holds: mean wait / bound",
              "", lambda s: s.at(0.25, OURS).over_bound, at_most=1.05),
    ],
    orders=5,
    note=lambda s: f"\n\nNo choice whatsoever can drop fewer than {_fewest_share(s.runs):.4f} of the rows on average.",
)  # fmt: skip


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
    [Point(0.25, BOUND_MS, {FULL_KNOWLEDGE: _VARIANTS[FULL_KNOWLEDGE], OURS: Ours(), BY_UTILITY: Ours(utility=_utility)},
           utility=_utility)],
    [
        Judge("utility-bound", "dropping by cost per utility holds the bound: mean wait / bound",
              "future work", lambda s: s.at(0.25, BY_UTILITY).over_bound, at_most=1.05),
        Judge("utility-lost", "it loses less utility than dropping by cost alone: ratio of utility lost",
              "future work", lambda s: _lost(s, OURS), at_most=0.9),
        Judge("utility-lost-paper", "and less than the paper's Full Knowledge: ratio of utility lost",
              "future work", lambda s: _lost(s, FULL_KNOWLEDGE), at_most=0.5),
    ],
    orders=5,
)  # fmt: skip
