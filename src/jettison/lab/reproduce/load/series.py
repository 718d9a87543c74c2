"""Figures 9 and 11, simulated, as their streams unfold: seven phases of abrupt changes, and tweets that cost unequally."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jettison.costs.sketch import FloatArray
from jettison.lab.reproduce.claims import Claim, judge
from jettison.lab.reproduce.claims import Figure as Number
from jettison.lab.reproduce.load.sweep import wait_and_drop_plot
from jettison.lab.reproduce.load.tweets import real_tweets, tweet_like_stream, tweet_stream
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table
from jettison.lab.reproduce.workers import for_each_compiled
from jettison.lab.sim.load import kernels
from jettison.lab.sim.load.algorithms import FULL_KNOWLEDGE, LAS, OURS, STRAW_MAN, Outcome, Paper, compared
from jettison.lab.sim.load.workload import SEVEN_PHASES, Stream, StreamSettings, phased_stream

PHASES_BOUND_MS, TWEETS_BOUND_MS = 64.0, 32.0
ROWS_PER_PHASE, WINDOW = 20_000, 4_000
TWEETS = 500_000
"""As in the paper. Straw-Man's wait grows with the stream, so a shorter one would flatter it."""
IMMEDIATE = "LAS, immediate"
RECOVERED = 1.25
"""Bounds that count as close to the bound."""
_WINDOWS = ROWS_PER_PHASE // WINDOW
_LAST = {phase.name: _WINDOWS * (number + 1) - 1 for number, phase in enumerate(SEVEN_PHASES)}

Waits = Mapping[str, FloatArray]
"""Mean waits by algorithm: one row a stream, one column a window."""


def windows(outcome: Outcome, rows: int) -> tuple[FloatArray, FloatArray]:
    """Mean waiting time of the rows kept, and share dropped, in consecutive windows; a shorter rest is left out."""
    whole = len(outcome.kept) // rows * rows
    kept = outcome.kept[:whole].reshape(-1, rows).sum(axis=1)
    waits = outcome.waits_ms[:whole].reshape(-1, rows).sum(axis=1)
    return waits / np.maximum(kept, 1), 1.0 - kept / rows


def _at_end_of(waits: Waits, name: str, phases: str) -> float:
    """Mean over the streams of the last window's wait over the bound, of the worst phase."""
    return max(float(np.mean(waits[name][:, _LAST[phase]])) / PHASES_BOUND_MS for phase in phases)


def of_phases(waits: Waits) -> dict[str, Number]:
    """Who has recovered by the end of which phases."""
    return {
        "fig9-las": _at_end_of(waits, LAS, "ABCDE"),
        "fig9-las-f": _at_end_of(waits, LAS, "F"),
        "fig9-las-f-immediate": _at_end_of(waits, IMMEDIATE, "F"),
        "fig9-straw-man": _at_end_of(waits, STRAW_MAN, "G"),
        "fig9-ours": _at_end_of(waits, OURS, "ABCDEFG"),
        "fig9-ours-f": waits[OURS][:, _LAST["E"] + 1].max() / PHASES_BOUND_MS,  # the worst stream
    }


def figure9(settings: RunSettings) -> Judged:
    """Seven phases: mean over streams of the waiting time and drops in windows of 4,000 rows."""
    count = 50 if settings.quick else 200

    def of_stream(number: int) -> dict[str, tuple[FloatArray, FloatArray]]:
        seed = 1000 * settings.seed + number
        stream = phased_stream(StreamSettings(), SEVEN_PHASES, ROWS_PER_PHASE, seed)
        algorithms = compared(PHASES_BOUND_MS, float(stream.costs_ms[:ROWS_PER_PHASE].mean()))
        algorithms[IMMEDIATE] = Paper(PHASES_BOUND_MS, sync=kernels.IMMEDIATE)
        return {name: windows(algorithm(stream, seed), WINDOW) for name, algorithm in algorithms.items()}

    by_stream = for_each_compiled(range(count), of_stream)
    waits, drops = (
        {name: np.array([one[name][which] for one in by_stream]) for name in by_stream[0]} for which in (0, 1)
    )
    x = [float(WINDOW * (number + 1)) for number in range(_WINDOWS * len(SEVEN_PHASES))]
    means = {name: (waits[name].mean(axis=0).tolist(), drops[name].mean(axis=0).tolist()) for name in waits}
    lines = {name: dict(zip(x, zip(*of, strict=True), strict=True)) for name, of in means.items()}
    starts = {float(ROWS_PER_PHASE * number): phase.name for number, phase in enumerate(SEVEN_PHASES)}
    drawn = wait_and_drop_plot(lines, dict.fromkeys((0.0, x[-1]), PHASES_BOUND_MS), "rows", phases=starts)
    rows = [
        [phase, name, *(figures[last - back] for figures in of for back in (_WINDOWS - 1, 0))]
        for phase, last in _LAST.items()
        for name, of in means.items()
    ]
    header = ["phase", "algorithm", "wait ms, first 4,000", "last 4,000", "dropped, first 4,000", "last 4,000"]
    text = f"{table(header, rows)}\n\n{_recovered(waits)}"
    config = {"streams": count, "seed": settings.seed}
    return [Section("Figure 9: seven phases", text, drawn)], judge("load", of_phases(waits), config)


def _recovered(waits: Waits) -> str:
    """In how many streams each had recovered by the end of F: a mean over streams hides whether one or all are lost."""
    rows = []
    for name, values in waits.items():
        over_bound = values[:, _LAST["F"]] / PHASES_BOUND_MS
        within = int((over_bound <= RECOVERED).sum())
        rows.append([name, within, len(values), float(np.median(over_bound)), float(over_bound.max())])
    header = ["algorithm", f"streams within {RECOVERED} bounds at the end of F", "of", "median wait / bound", "worst"]
    return table(header, rows)


def figure11(settings: RunSettings) -> Judged:
    """The application: the tweet-like stream always, the real one where it is at hand."""
    cases = {"tweet-like": tweet_like_stream(TWEETS, settings.seed)}
    if (path := real_tweets()) is not None:
        cases["real tweets"] = tweet_stream(path, TWEETS)
    judged = [_tweets(name, stream, settings.seed) for name, stream in cases.items()]
    return [section for section, _ in judged], [claim for _, claims in judged for claim in claims]


def _tweets(source: str, stream: Stream, seed: int) -> tuple[Section, list[Claim]]:
    outcomes = {name: algorithm(stream, seed) for name, algorithm in compared(TWEETS_BOUND_MS).items()}
    waits = {name: outcome.mean_wait_ms for name, outcome in outcomes.items()}
    drops = {name: outcome.drop_share for name, outcome in outcomes.items()}
    known, mark = waits[FULL_KNOWLEDGE], "fig11-" + source.replace(" ", "-")
    figures = {
        f"{mark}-las": waits[LAS] / known,
        f"{mark}-straw-man": waits[STRAW_MAN] / known,
        f"{mark}-straw-man-50": waits[STRAW_MAN] / known,
        f"{mark}-ours": waits[OURS] / known,
        f"{mark}-ours-drops": drops[OURS] / max(drops[FULL_KNOWLEDGE], 1e-9),
    }
    size = max(1, len(stream.keys) // 40)
    x = [float(size * (number + 1)) for number in range(len(stream.keys) // size)]
    lines = {
        name: dict(zip(x, zip(*windows(outcome, size), strict=True), strict=True)) for name, outcome in outcomes.items()
    }
    drawn = wait_and_drop_plot(lines, dict.fromkeys((0.0, x[-1]), TWEETS_BOUND_MS), "rows")
    header = ["algorithm", "mean wait ms", "over Full Knowledge", "dropped"]
    text = table(header, [[name, waits[name], waits[name] / known, drops[name]] for name in outcomes])
    config = {"rows": len(stream.keys), "source": source, "seed": seed, "mean_cost_ms": stream.mean_cost_ms}
    section = Section(f"Figure 11: the application, {source}, simulated", text, drawn)
    return section, judge("load", figures, config)
