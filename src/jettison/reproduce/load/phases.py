"""Figure 9: seven phases of abrupt changes, as the stream unfolds."""

from __future__ import annotations

import numpy as np

from jettison.costs.sketch import FloatArray
from jettison.reproduce.claims import Claim
from jettison.reproduce.load.plots import series_plot
from jettison.reproduce.load.sweep import FULL_KNOWLEDGE, LAS, OURS, STRAW_MAN, side_by_side
from jettison.reproduce.report import Section, table
from jettison.sim.load import kernels
from jettison.sim.load.algorithms import Algorithm, OursSettings, PaperSettings, full_knowledge, las, ours, straw_man
from jettison.sim.load.replay import Outcome
from jettison.sim.load.workload import SEVEN_PHASES, StreamSettings, phased_stream

BOUND_MS = 64.0
ROWS_PER_PHASE, WINDOW = 20_000, 4_000
IMMEDIATE = "LAS, immediate"
RECOVERED = 1.25
"""Bounds that count as close to the bound."""
_WINDOWS = ROWS_PER_PHASE // WINDOW
_LAST = {phase.name: _WINDOWS * (number + 1) - 1 for number, phase in enumerate(SEVEN_PHASES)}


def run_phases(streams: int, seed: int) -> tuple[Section, list[Claim]]:
    """Mean over streams of the waiting time and drops in windows of 4,000 rows."""

    def of_stream(number: int) -> dict[str, tuple[FloatArray, FloatArray]]:
        stream = phased_stream(StreamSettings(), SEVEN_PHASES, ROWS_PER_PHASE, seed=1000 * seed + number)
        algorithms = _algorithms(float(stream.costs_ms[:ROWS_PER_PHASE].mean()))
        return {
            name: windows(algorithm(stream, 1000 * seed + number), WINDOW) for name, algorithm in algorithms.items()
        }

    by_stream = side_by_side(of_stream, range(streams))
    waits = {name: [one[name][0] for one in by_stream] for name in by_stream[0]}
    drops = {name: [one[name][1] for one in by_stream] for name in by_stream[0]}
    mean_waits = {name: np.mean(values, axis=0) for name, values in waits.items()}
    mean_drops = {name: np.mean(values, axis=0) for name, values in drops.items()}
    return _section(mean_waits, mean_drops, _recovered(waits)), _claims(waits, {"streams": streams, "seed": seed})


def windows(outcome: Outcome, rows: int) -> tuple[FloatArray, FloatArray]:
    """Mean waiting time of the rows kept, and share dropped, in consecutive windows; a shorter rest is left out."""
    whole = len(outcome.kept) // rows * rows
    kept = outcome.kept[:whole].reshape(-1, rows).sum(axis=1)
    waits = outcome.waits_ms[:whole].reshape(-1, rows).sum(axis=1)
    return waits / np.maximum(kept, 1), 1.0 - kept / rows


def _algorithms(first_mean_cost_ms: float) -> dict[str, Algorithm]:
    paper = PaperSettings(bound_ms=BOUND_MS)
    return {
        LAS: las(paper),
        IMMEDIATE: las(PaperSettings(bound_ms=BOUND_MS, sync=kernels.IMMEDIATE)),
        OURS: ours(OursSettings(bound_ms=BOUND_MS)),
        STRAW_MAN: straw_man(paper, first_mean_cost_ms),
        FULL_KNOWLEDGE: full_knowledge(paper),
    }


def _claims(waits: dict[str, list[FloatArray]], config: dict[str, int]) -> list[Claim]:
    def at_end_of(name: str, *phases: str) -> float:
        """Mean over the streams of the last window's wait over the bound, of the worst phase."""
        return max(float(np.mean([one[_LAST[phase]] for one in waits[name]])) / BOUND_MS for phase in phases)

    first_of_f = _LAST["E"] + 1
    return [
        Claim("fig9-las", "LAS has recovered by the end of each of the phases A to E: largest wait / bound",
              "close to the threshold", at_end_of(LAS, *"ABCDE"), at_most=RECOVERED, config=config),
        Claim("fig9-las-f", "LAS converges to the bound within phase F, synchronised in turn: wait / bound at its end",
              "quickly converges", at_end_of(LAS, "F"), at_most=RECOVERED, config=config),
        Claim("fig9-las-f-immediate", "the same with immediate synchronisation: wait / bound at the end of F",
              "quickly converges", at_end_of(IMMEDIATE, "F"), at_most=RECOVERED, config=config),
        Claim("fig9-straw-man", "Straw-Man is lost after F and does not recover in G: wait / bound at its end",
              "cannot be recovered", at_end_of(STRAW_MAN, "G"), at_least=8.0, config=config),
        Claim("fig9-ours", "ours has recovered by the end of every phase, F included: largest wait / bound",
              "", at_end_of(OURS, *"ABCDEFG"), at_most=1.05, config=config),
        Claim("fig9-ours-f", "ours holds the bound already in the first 4,000 rows of F: wait / bound, worst stream",
              "", max(float(one[first_of_f]) for one in waits[OURS]) / BOUND_MS, at_most=RECOVERED, config=config),
    ]  # fmt: skip


def _recovered(waits: dict[str, list[FloatArray]]) -> str:
    """In how many streams each had recovered by the end of F: a mean over streams hides whether one or all are lost."""
    rows = []
    for name, values in waits.items():
        over_bound = np.array([one[_LAST["F"]] for one in values]) / BOUND_MS
        within = int((over_bound <= RECOVERED).sum())
        rows.append([name, within, len(values), float(np.median(over_bound)), float(over_bound.max())])
    header = ["algorithm", f"streams within {RECOVERED} bounds at the end of F", "of", "median wait / bound", "worst"]
    return table(header, rows)


def _section(waits: dict[str, FloatArray], drops: dict[str, FloatArray], recovered: str) -> Section:
    rows = [
        [phase.name, name, *(float(figures[name][_LAST[phase.name] - back]) for figures in (waits, drops)
                             for back in (_WINDOWS - 1, 0))]
        for phase in SEVEN_PHASES
        for name in waits
    ]  # fmt: skip
    header = ["phase", "algorithm", "wait ms, first 4,000", "last 4,000", "dropped, first 4,000", "last 4,000"]
    x = [float(WINDOW * (number + 1)) for number in range(_WINDOWS * len(SEVEN_PHASES))]
    marks = {float(ROWS_PER_PHASE * number): phase.name for number, phase in enumerate(SEVEN_PHASES)}
    lists = [{name: values.tolist() for name, values in figures.items()} for figures in (waits, drops)]
    plot = series_plot(x, lists[0], lists[1], BOUND_MS, "rows", marks)
    return Section("Figure 9: seven phases", f"{table(header, rows)}\n\n{recovered}", plot)
