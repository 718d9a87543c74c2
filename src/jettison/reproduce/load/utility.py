"""Cost and value together, which the paper leaves as future work: drop what costs most per unit of utility."""

from __future__ import annotations

import numpy as np

from jettison.costs.sketch import FloatArray
from jettison.reproduce.claims import Claim
from jettison.reproduce.load.sweep import FULL_KNOWLEDGE, OURS, Runs
from jettison.reproduce.report import Section, table
from jettison.sim.load.algorithms import OursSettings, PaperSettings, full_knowledge, ours
from jettison.sim.load.workload import StreamSettings, streams

VALUED = "ours, by cost per utility"
BOUND_MS = 6.4


def run_utility(runs: Runs) -> tuple[Section, list[Claim]]:
    """Keys have a utility, independent of their cost, as a value graph of four levels would give it."""
    figures: dict[str, list[tuple[float, float, float]]] = {}
    for hash_seed, stream in streams(StreamSettings(), runs.associations, runs.orders, runs.seed):
        utility = _utility_of_keys(stream.distinct, hash_seed)[stream.keys]
        algorithms = {
            FULL_KNOWLEDGE: full_knowledge(PaperSettings(bound_ms=BOUND_MS)),
            OURS: ours(OursSettings(bound_ms=BOUND_MS)),
            VALUED: ours(OursSettings(bound_ms=BOUND_MS), utility / utility.mean()),
        }
        for name, algorithm in algorithms.items():
            outcome = algorithm(stream, hash_seed)
            lost = float(utility[~outcome.kept].sum() / utility.sum())
            figures.setdefault(name, []).append((outcome.mean_wait_ms, outcome.drop_share, lost))
    means = {name: np.mean(values, axis=0) for name, values in figures.items()}
    text = table(
        ["algorithm", "mean wait / bound", "rows dropped", "utility lost"],
        [[name, float(wait) / BOUND_MS, float(drop), float(lost)] for name, (wait, drop, lost) in means.items()],
    )
    return Section("Cost and value together", text), [
        Claim("utility-bound", "dropping by cost per utility holds the bound: mean wait / bound",
              "future work", float(means[VALUED][0]) / BOUND_MS, at_most=1.05, config=runs.config),
        Claim("utility-lost", "it loses less utility than dropping by cost alone: ratio of utility lost",
              "future work", float(means[VALUED][2] / means[OURS][2]), at_most=0.9, config=runs.config),
        Claim("utility-lost-paper", "and less than the paper's Full Knowledge: ratio of utility lost",
              "future work", float(means[VALUED][2] / means[FULL_KNOWLEDGE][2]), at_most=0.5, config=runs.config),
    ]  # fmt: skip


def _utility_of_keys(distinct: int, seed: int) -> FloatArray:
    levels = np.array([0.1, 0.4, 0.7, 1.0])
    return np.random.default_rng([seed, 5]).choice(levels, size=distinct)
