"""`jettison bench prove`: Jettison beside its rivals on each workload, in turn, with intervals over the repetitions."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jettison.lab import intervals
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.result import Result
from jettison.lab.bench.streams import in_turn
from jettison.lab.machine import this_machine
from jettison.lab.prove.judge import MEASURES, Figures
from jettison.lab.prove.rivals import entrants
from jettison.lab.prove.rivals.rival import Rival
from jettison.lab.prove.trial import Trial
from jettison.lab.prove.workloads import all_workloads
from jettison.lab.recorded_session import recorded_session

BOUND_S, SECONDS = 5.0, 60.0


def prove(
    console: Console, only: str | None, repetitions: int, rivals: Sequence[str] = (), seconds: float = SECONDS
) -> Iterator[list[Result]]:
    """Each workload in a session of its own: capacity, rows and truth, tuning, and then all in turn."""
    for name, workload in chosen(all_workloads(console), only).items():
        with (
            recorded_session("jettison bench") as spark,
            tempfile.TemporaryDirectory(prefix="jettison-prove-") as scratch,
        ):
            trial = Trial.of(spark, Path(scratch), workload, bound_s=BOUND_S, seconds=seconds)
            console.print(f"  {name}: plain processes {trial.capacity_rows_per_s:,.0f} rows/s", highlight=False)
            settings = warm_and_tune(console, trial, entered := entrants(workload, rivals))
            runs = {one.name: partial(_run, console, trial, one, settings[one.name]) for one in entered}
            found = in_turn(runs, repetitions)
            config = {
                "workload": name,
                "what": workload.what,
                "capacity_rows_per_s": round(trial.capacity_rows_per_s),
                "peak_rows_per_s": round(trial.load.peak_rows_per_s),
                "bound_s": BOUND_S,
                "seconds": seconds,
                "machine": this_machine(),
            }
            console.print(_table(found))
            yield results(found, settings, config)


def warm_and_tune(console: Console, trial: Trial, entered: Sequence[Rival]) -> dict[str, float | None]:
    """The setting of each entrant, once each has run: first those that have none, so that no setting is chosen cold."""
    for rival in entered:
        if not rival.tries:
            _run(console, trial, rival, None)
    settings = {rival.name: trial.tuned(rival) for rival in entered}
    for rival in entered:
        if rival.tries:
            console.print(f"    {rival.name}: {settings[rival.name]:g}", highlight=False)
    return settings


def _run(console: Console, trial: Trial, rival: Rival, setting: float | None) -> Figures:
    """One run; what it died of is said, and the others go on: its figures are then not known."""
    try:
        return trial.run(rival, setting)
    except Exception as error:  # whatever it was, hours of other runs have something to say
        console.print(f"    {rival.name}: {error}", highlight=False)
        return Figures()


def results(
    found: Mapping[str, Sequence[Figures]], settings: Mapping[str, float | None], config: Mapping[str, Any]
) -> list[Result]:
    """Each figure of each entrant with its interval; the ratio is that of the first entrant over it, pair by pair.

    `samples` are the runs' own figures, from which everything else follows.
    """
    ours = next(iter(found))
    return [
        _result(entrant, measure, runs, found[ours], {**config, "setting": settings[entrant]})
        for entrant, runs in found.items()
        for measure in MEASURES
    ]


def _result(
    entrant: str, measure: str, runs: Sequence[Figures], ours: Sequence[Figures], config: Mapping[str, Any]
) -> Result:
    values, own = ([float(getattr(run, measure)) for run in of] for of in (runs, ours))
    known = [value for value in values if math.isfinite(value)]
    value = statistics.median(values) if not any(map(math.isnan, values)) else math.nan
    pairs = [(a, b) for a, b in zip(own, values, strict=True) if a > 0.0 and b > 0.0 and math.isfinite(a + b)]
    ratio = intervals.mean_ratio(*zip(*pairs, strict=True)) if len(pairs) == len(values) else None
    spread = intervals.mean(known) if known else None
    about = {
        **config,
        "entrant": entrant,
        "measure": measure,
        "samples": [value if math.isfinite(value) else None for value in values],
        "mean": None if spread is None else list(spread),
        "pairs": len(values),
    }
    return Result(
        f"{config['workload']}, {entrant}: {measure}",
        value,
        "s" if MEASURES[measure] else "",
        statistics.median(own),
        None if ratio is None else ratio.value,
        config=about,
        interval=None if ratio is None else (ratio.lower, ratio.upper),
    )


def _table(found: Mapping[str, Sequence[Figures]]) -> Table:
    table = Table(title="median of the runs")
    for column in ("", *found):
        table.add_column(column, justify="right" if column else "left", overflow="fold")
    for measure in MEASURES:
        medians = [statistics.median(getattr(run, measure) for run in runs) for runs in found.values()]
        table.add_row(measure, *(f"{value:.3g}" for value in medians))
    return table
