"""Figures 10 and 11 on Spark, with busy waiting: micro-batches instead of tuples, so the bounds are in seconds."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import SparkSession

from jettison.costs.sketch import FloatArray
from jettison.reproduce.claims import Claim
from jettison.reproduce.load.feed import Feed
from jettison.reproduce.load.on_spark import NOTHING, Paper, SparkOutcome, Way, run_on_spark, ways
from jettison.reproduce.load.plots import series_plot
from jettison.reproduce.load.sweep import FULL_KNOWLEDGE, LAS, OURS
from jettison.reproduce.load.tweets import real_tweets, tweet_like_stream, tweet_stream
from jettison.reproduce.report import Section, table
from jettison.sim.load.workload import SEVEN_PHASES, IntArray, StreamSettings, phased_stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUND_S = 2.0
CORES = 2
"""Partitions that run side by side; a stream is as fast as so many operators."""


def run_spark_phases(spark: SparkSession, phase_s: float, seed: int) -> tuple[Section, list[Claim]]:
    """Figure 10: the seven phases, each `phase_s` long at the rate of the first."""
    mean_ms = phased_stream(StreamSettings(), SEVEN_PHASES, 2000, seed).costs_ms[:2000].mean()
    rows = int(CORES * phase_s / mean_ms * 1e3)
    stream = phased_stream(StreamSettings(), SEVEN_PHASES, rows, seed)
    costs_us = np.round(stream.costs_ms * 1e3).astype(np.int64)
    offsets_s = stream.arrivals_ms / 1e3 / CORES
    with tempfile.TemporaryDirectory(prefix="jettison-load-") as scratch:
        outcomes = {
            name: run_on_spark(
                spark, Feed(Path(scratch) / name / "in", stream.keys, costs_us, offsets_s), way, BOUND_S,
                Path(scratch) / name,
            )
            for name, way in ways(costs_us, past_us=costs_us[:rows], past_keys=stream.keys[:rows]).items()
        }  # fmt: skip
    parts = {phase.name: slice(rows * number, rows * (number + 1)) for number, phase in enumerate(SEVEN_PHASES)}
    second_half_of_f = slice(parts["F"].start + rows // 2, parts["F"].stop)
    overloaded = [parts[name] for name in "BDF"]
    config = {"rows": len(costs_us), "bound_s": BOUND_S, "cores": CORES, "seed": seed}
    ours = outcomes[OURS]
    text = table(
        ["phase", "algorithm", "mean wait s", "mean / bound", "dropped"],
        [[phase, name, outcomes[name].mean_wait_s(part), outcomes[name].mean_wait_s(part) / BOUND_S,
          outcomes[name].drop_share(part)] for phase, part in parts.items() for name in outcomes],
    )  # fmt: skip
    section = Section("Figure 10: seven phases on Spark", text, _plot(outcomes, offsets_s))
    return section, [
        Claim("fig10-las", "the paper's own LAS on Spark has recovered by the second half of F: mean wait / bound",
              "converges", outcomes[LAS].mean_wait_s(second_half_of_f) / BOUND_S, at_most=1.25, config=config),
        Claim("fig10-ours", "ours on Spark holds the bound within 20 % in every phase: largest mean wait / bound",
              "", float(np.max([ours.mean_wait_s(part) for part in parts.values()])) / BOUND_S, at_most=1.2, config=config),
        Claim("fig10-ours-over", "hardly a row waits more than 1.2 bounds: share of the rows kept",
              "", float((ours.waits_s > 1.2 * BOUND_S).sum() / ours.kept.sum()), at_most=0.05, config=config),
        Claim("fig10-ours-f", "ours has recovered by the second half of F: mean wait / bound",
              "converges", ours.mean_wait_s(second_half_of_f) / BOUND_S, at_most=1.05, config=config),
        Claim("fig10-ours-drops", "ours drops fewer rows than Full Knowledge where there is too much: ratio in B, D, F",
              "", sum(ours.drop_share(part) for part in overloaded) /
              sum(outcomes[FULL_KNOWLEDGE].drop_share(part) for part in overloaded), at_most=0.85, config=config),
    ]  # fmt: skip


def run_spark_application(
    spark: SparkSession, seconds: float, seed: int, *, compare_nothing: bool
) -> tuple[Section, list[Claim]]:
    """Figure 11: tweets at the rate that the operators could just take without any overhead."""
    path = real_tweets()
    whole = tweet_like_stream(100_000, seed) if path is None else tweet_stream(path, 100_000)
    rows = min(len(whole.keys), int(CORES * seconds / whole.mean_cost_ms * 1e3))
    keys, costs_us = whole.keys[:rows], np.round(whole.costs_ms[:rows] * 1e3).astype(np.int64)
    offsets_s = np.arange(rows) * float(costs_us.mean()) / 1e6 / CORES
    candidates: dict[str, Way | Paper | None] = {
        **({NOTHING: None} if compare_nothing else {}),
        **ways(costs_us, past_us=costs_us, past_keys=keys),
    }
    with tempfile.TemporaryDirectory(prefix="jettison-load-") as scratch:
        outcomes = {
            name: run_on_spark(
                spark, Feed(Path(scratch) / name / "in", keys, costs_us, offsets_s), way, BOUND_S, Path(scratch) / name
            )
            for name, way in candidates.items()
        }
    ours, known = outcomes[OURS], outcomes[FULL_KNOWLEDGE]
    source = "tweet-like" if path is None else "real tweets"
    config = {"rows": rows, "bound_s": BOUND_S, "source": source, "cores": CORES, "seed": seed}
    text = table(
        ["algorithm", "mean wait s", "mean / bound", "longest s", "dropped", "own time"],
        [[name, one.mean_wait_s(), one.mean_wait_s() / BOUND_S, float(one.waits_s.max()), one.drop_share(),
          "" if one.status is None else f"{one.status.overhead:.1%}"] for name, one in outcomes.items()],
    )  # fmt: skip
    section = Section(f"Figure 11: the application on Spark, {source}", text, _plot(outcomes, offsets_s))
    return section, [
        Claim("fig11-spark-las", "the paper's own LAS on Spark is close to Full Knowledge: ratio of waits",
              "extremely close", outcomes[LAS].mean_wait_s() / known.mean_wait_s(), at_most=1.1, config=config),
        Claim("fig11-spark-ours", "ours on Spark holds the bound within 20 %: mean wait / bound",
              "", ours.mean_wait_s() / BOUND_S, at_most=1.2, config=config),
        Claim("fig11-spark-ours-known", "ours waits at most 1.5 times as long as Full Knowledge on Spark: ratio",
              "", ours.mean_wait_s() / known.mean_wait_s(), at_most=1.5, config=config),
        Claim("fig11-spark-ours-drops", "ours drops no more rows than Full Knowledge on Spark: ratio",
              "", ours.drop_share() / max(known.drop_share(), 1e-9), at_most=1.0, config=config),
    ]  # fmt: skip


def held_on(spark: SparkSession, cores: int, seconds: float, seed: int) -> tuple[float, float]:
    """Mean wait over the bound, and share of rows dropped, of ours at half as many rows again as the cores can take."""
    stream = phased_stream(StreamSettings(), SEVEN_PHASES[:1], 20_000, seed)
    rows = int(1.5 * cores * seconds / stream.mean_cost_ms * 1e3)
    costs_us: IntArray = np.round(stream.costs_ms[:rows] * 1e3).astype(np.int64)
    offsets_s = stream.arrivals_ms[:rows] / 1e3 / cores / 1.5
    with tempfile.TemporaryDirectory(prefix="jettison-load-") as scratch:
        feed = Feed(Path(scratch) / "in", stream.keys[:rows], costs_us, offsets_s)
        outcome = run_on_spark(spark, feed, Way(), BOUND_S, Path(scratch))
    return outcome.mean_wait_s() / BOUND_S, outcome.drop_share()


def _plot(outcomes: dict[str, SparkOutcome], offsets_s: FloatArray) -> Figure:
    edges = np.linspace(0, len(offsets_s), 41).astype(int)
    parts = [slice(first, last) for first, last in itertools.pairwise(edges)]
    return series_plot(
        [float(offsets_s[part.start]) for part in parts],
        {name: [1e3 * one.mean_wait_s(part) for part in parts] for name, one in outcomes.items()},
        {name: [one.drop_share(part) for part in parts] for name, one in outcomes.items()},
        1e3 * BOUND_S,
        "seconds",
    )
