"""Figures 10 and 11 on Spark, with busy waiting: micro-batches instead of tuples, so the bounds are in seconds."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jettison.costs.sketch import FloatArray
from jettison.lab.fresh_process import in_fresh_process
from jettison.lab.recorded_session import recorded_session
from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.load.feed import Feed
from jettison.lab.reproduce.load.on_spark import NOTHING, SparkOutcome, Way, run_on_spark, ways
from jettison.lab.reproduce.load.paper_rule import PaperRule
from jettison.lab.reproduce.load.sweep import wait_and_drop_plot
from jettison.lab.reproduce.load.tweets import real_tweets, tweet_like_stream, tweet_stream
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.sim.load.algorithms import FULL_KNOWLEDGE, LAS, OURS
from jettison.lab.sim.load.workload import SEVEN_PHASES, IntArray, StreamSettings, phased_stream

BOUND_S = 2.0
_WITHIN_S = 900.0  # for a cluster to start, run and end
CORES = 2
"""Partitions that run side by side; a stream is as fast as so many operators."""

Outcomes = Mapping[str, SparkOutcome]


def figure10(settings: RunSettings) -> Judged:
    """The seven phases, each so many seconds long at the rate of the first."""
    mean_ms = phased_stream(StreamSettings(), SEVEN_PHASES, 2000, settings.seed).costs_ms[:2000].mean()
    rows = int(CORES * (2.5 if settings.quick else 10.0) / mean_ms * 1e3)
    stream = phased_stream(StreamSettings(), SEVEN_PHASES, rows, settings.seed)
    costs_us, offsets_s = _microseconds(stream.costs_ms), stream.arrivals_ms / 1e3 / CORES
    outcomes = _run(stream.keys, costs_us, offsets_s, ways(BOUND_S, costs_us, costs_us[:rows], stream.keys[:rows]))
    parts = {phase.name: slice(rows * number, rows * (number + 1)) for number, phase in enumerate(SEVEN_PHASES)}
    second_half_of_f = slice(parts["F"].start + rows // 2, parts["F"].stop)
    overloaded = [parts[name] for name in "BDF"]
    known, ours = outcomes[FULL_KNOWLEDGE], outcomes[OURS]
    figures = {
        "fig10-las": outcomes[LAS].mean_wait_s(second_half_of_f) / BOUND_S,
        "fig10-ours": np.max([ours.mean_wait_s(part) for part in parts.values()]) / BOUND_S,
        "fig10-ours-over": (ours.waits_s > 1.2 * BOUND_S).sum() / ours.kept.sum(),
        "fig10-ours-f": ours.mean_wait_s(second_half_of_f) / BOUND_S,
        "fig10-ours-drops": sum(map(ours.drop_share, overloaded)) / sum(map(known.drop_share, overloaded)),
    }
    lines = [
        [phase, name, one.mean_wait_s(part), one.mean_wait_s(part) / BOUND_S, one.drop_share(part)]
        for phase, part in parts.items()
        for name, one in outcomes.items()
    ]
    text = table(["phase", "algorithm", "mean wait s", "mean / bound", "dropped"], lines)
    config = {"rows": len(costs_us), "bound_s": BOUND_S, "cores": CORES, "seed": settings.seed}
    return _judged("Figure 10: seven phases on Spark", text, outcomes, offsets_s, figures, config)


def figure11(settings: RunSettings) -> Judged:
    """Tweets at the rate that the operators could just take without any overhead."""
    path, seconds = real_tweets(), 7.0 if settings.quick else 30.0
    whole = tweet_like_stream(100_000, settings.seed) if path is None else tweet_stream(path, 100_000)
    rows = min(len(whole.keys), int(CORES * seconds / whole.mean_cost_ms * 1e3))
    keys, costs_us = whole.keys[:rows], _microseconds(whole.costs_ms[:rows])
    offsets_s = np.arange(rows) * float(costs_us.mean()) / 1e6 / CORES
    unprotected: dict[str, Way | PaperRule | None] = {} if settings.quick else {NOTHING: None}
    outcomes = _run(keys, costs_us, offsets_s, unprotected | ways(BOUND_S, costs_us, costs_us, keys))
    known, ours = outcomes[FULL_KNOWLEDGE], outcomes[OURS]
    figures = {
        "fig11-spark-las": outcomes[LAS].mean_wait_s() / known.mean_wait_s(),
        "fig11-spark-ours": ours.mean_wait_s() / BOUND_S,
        "fig11-spark-ours-known": ours.mean_wait_s() / known.mean_wait_s(),
        "fig11-spark-ours-drops": ours.drop_share() / max(known.drop_share(), 1e-9),
    }
    lines = [
        [name, one.mean_wait_s(), one.mean_wait_s() / BOUND_S, float(one.waits_s.max()), one.drop_share(),
         "" if one.status is None else f"{one.status.overhead:.1%}"]
        for name, one in outcomes.items()
    ]  # fmt: skip
    text = table(["algorithm", "mean wait s", "mean / bound", "longest s", "dropped", "own time"], lines)
    source = "tweet-like" if path is None else "real tweets"
    config = {"rows": rows, "bound_s": BOUND_S, "source": source, "cores": CORES, "seed": settings.seed}
    return _judged(f"Figure 11: the application on Spark, {source}", text, outcomes, offsets_s, figures, config)


def executors(settings: RunSettings) -> Judged:
    """Ours on one and on two executors of one core, each cluster in a process of its own."""
    seconds = 8.0 if settings.quick else 30.0
    found = {number: in_fresh_process(_WITHIN_S, held_on, number, seconds, settings.seed) for number in (1, 2)}
    text = table(
        ["executors", "mean wait / bound", "dropped"], [[number, *figures] for number, figures in found.items()]
    )
    config = {"bound_s": BOUND_S, "seconds": seconds, "seed": settings.seed}
    claims = judge("load", {f"spark-executors-{number}": figures[0] for number, figures in found.items()}, config)
    return [Section("Executors of their own", text)], claims


def held_on(executors: int, seconds: float, seed: int) -> tuple[float, float]:
    """Mean wait over the bound, and share of rows dropped, of ours at half as many rows again as such a cluster can take."""
    stream = phased_stream(StreamSettings(), SEVEN_PHASES[:1], 20_000, seed)
    rows = int(1.5 * executors * seconds / stream.mean_cost_ms * 1e3)
    offsets_s = stream.arrivals_ms[:rows] / 1e3 / executors / 1.5
    with tempfile.TemporaryDirectory(prefix="jettison-load-") as scratch:
        # Executors of a local cluster put their logs in a work directory; not where this process happens to be.
        os.chdir(scratch)
        os.environ |= {"SPARK_WORKER_DIR": f"{scratch}/work", "SPARK_LOCAL_DIRS": f"{scratch}/scratch"}
        with recorded_session("jettison-load", master=f"local-cluster[{executors},1,1024]") as spark:
            feed = Feed(Path(scratch) / "in", stream.keys[:rows], _microseconds(stream.costs_ms[:rows]), offsets_s)
            outcome = run_on_spark(spark, feed, Way(), BOUND_S, Path(scratch))
    return outcome.mean_wait_s() / BOUND_S, outcome.drop_share()


def _microseconds(costs_ms: FloatArray) -> IntArray:
    return np.round(costs_ms * 1e3).astype(np.int64)


def _run(
    keys: IntArray, costs_us: IntArray, offsets_s: FloatArray, compared: Mapping[str, Way | PaperRule | None]
) -> dict[str, SparkOutcome]:
    with (
        tempfile.TemporaryDirectory(prefix="jettison-load-") as scratch,
        recorded_session("jettison-load", master=f"local[{CORES}]") as spark,
    ):
        folders = {name: Path(scratch) / str(number) for number, name in enumerate(compared)}
        return {
            name: run_on_spark(spark, Feed(folder / "in", keys, costs_us, offsets_s), compared[name], BOUND_S, folder)
            for name, folder in folders.items()
        }


def _judged(
    title: str,
    text: str,
    outcomes: Outcomes,
    offsets_s: FloatArray,
    figures: Mapping[str, float],
    config: Mapping[str, object],
) -> Judged:
    edges = np.linspace(0, len(offsets_s), 41).astype(int)
    parts = [slice(first, last) for first, last in itertools.pairwise(edges)]
    x = [float(offsets_s[part.start]) for part in parts]
    lines = {
        name: {at: (1e3 * one.mean_wait_s(part), one.drop_share(part)) for at, part in zip(x, parts, strict=True)}
        for name, one in outcomes.items()
    }
    drawn = wait_and_drop_plot(lines, dict.fromkeys((x[0], x[-1]), 1e3 * BOUND_S), "seconds")
    return [Section(title, text, drawn)], judge("load", figures, config)
