"""`jettison bench prove`: Jettison beside its rivals on each workload, in turn, with intervals over the repetitions."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jettison.errors import refuse
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.result import Result
from jettison.lab.machine import this_machine
from jettison.lab.prove.judge import MEASURES, Figures
from jettison.lab.prove.record import Record, records
from jettison.lab.prove.rivals import RIVALS, entrants
from jettison.lab.prove.rivals.rival import Rival
from jettison.lab.prove.saturated import Settled, capacity
from jettison.lab.prove.trial import Trial
from jettison.lab.prove.turns import turns
from jettison.lab.prove.workload import Workload
from jettison.lab.prove.workloads import all_workloads
from jettison.lab.recorded_session import MANY_BATCHES
from jettison.spark.session import local_session

BOUND_S, SECONDS = 5.0, 60.0
HOPELESS_RUNS = 2
"""Runs of a rival whose rows can only pile up."""


def prove(
    console: Console,
    only: str | None,
    repetitions: int,
    rivals: Sequence[str] = (),
    seconds: float = SECONDS,
    minutes: float | None = None,
    earlier: Sequence[Mapping[str, Any]] = (),
) -> Iterator[list[Result]]:
    """All workloads in turn, in one session; after each turn, all results of its workload so far.

    The first turn of a workload measures its capacity and its truth, and tunes. With results of `earlier` it goes on from
    where they end, under the same load and settings.
    """
    workloads = chosen(all_workloads(console), only)
    known = {name: one for name, one in records(earlier).items() if name in workloads}
    for name, one in known.items():
        _require_same(one, workloads[name], entrants(workloads[name], rivals), seconds)
    done = {name: known[name].rounds if name in known else 0 for name in workloads}
    trials: dict[str, Trial] = {}
    with (
        local_session("jettison bench", settings=MANY_BATCHES) as spark,
        tempfile.TemporaryDirectory(prefix="jettison-prove-") as scratch,
    ):
        for name in turns(done, repetitions, minutes):
            workload, entered = workloads[name], entrants(workloads[name], rivals)
            try:
                if name not in trials:
                    folder = Path(scratch) / name
                    if name not in known:
                        found = capacity(spark, folder / "capacity", workload)
                        rounds = repetitions if minutes is None else None
                        known[name] = Record(_config(workload, found, seconds, rounds))
                    rows_per_s = float(known[name].config["capacity_rows_per_s"])
                    load = workload.shape(rows_per_s, workload.seconds * seconds)
                    trials[name] = Trial(spark, folder, workload, load, BOUND_S, rows_per_s)
                    agreed = "" if known[name].config["capacity_agrees"] else "; no two runs agree"
                    console.print(f"  {name}: plain processes {rows_per_s:,.0f} rows/s{agreed}", highlight=False)
                    settings = warm_and_tune(console, trials[name], entered, known[name].settings)
                    known[name].settings = settings
                    if unsettled := trials[name].unsettled:
                        console.print(f"    no two runs agree: {', '.join(unsettled)}", highlight=False)
                        known[name].config = {**known[name].config, "unsettled": unsettled}
                trials[name].prepare()
                one_round(console, trials[name], entered, known[name])
            except Exception as error:  # whatever it was, the other workloads have something to say
                console.print(f"  {name} is left: {error}", highlight=False, markup=False)
                del done[name]
            if len(workloads) > 1 and name in trials:
                trials[name].tidy()
            if name in known and known[name].rounds:
                console.print(_table(known[name].runs))
                yield known[name].results()


def warm_and_tune(
    console: Console, trial: Trial, entered: Sequence[Rival], known: Mapping[str, float | None]
) -> dict[str, float | None]:
    """The setting of each entrant that is not known, once each has run: first those that have none are warmed.

    One that cannot be tuned has none, and dies in each of its runs: in those of a later command too.
    """
    settings: dict[str, float | None] = {}
    for rival in sorted(entered, key=lambda one: one.is_set):
        try:
            found = known[rival.name] if rival.is_set and rival.name in known else trial.tuned(rival)
        except Exception as error:  # the others go on
            console.print(f"    {rival.name}: {error}", highlight=False, markup=False)
            found = None
        settings[rival.name] = found
        if found is not None:
            console.print(f"    {rival.name}: {found:,.4g}", highlight=False)
    return {rival.name: settings[rival.name] for rival in entered}


def one_round(console: Console, trial: Trial, entered: Sequence[Rival], record: Record) -> None:
    """A run of each, the order reversed every other time."""
    rounds = record.rounds
    for rival in entered:
        record.runs.setdefault(rival.name, [])
    for rival in entered[:: -1 if rounds % 2 else 1]:
        if rounds < HOPELESS_RUNS or not rival.is_hopeless(trial.load, trial.capacity_rows_per_s):
            record.runs[rival.name].append(_run(console, trial, rival, record.settings[rival.name]))


def _run(console: Console, trial: Trial, rival: Rival, setting: float | None) -> Figures:
    """One run; what it died of is said, and the others go on: its figures are then not known."""
    try:
        return trial.run(rival, setting)
    except Exception as error:  # whatever it was, hours of other runs have something to say
        console.print(f"    {rival.name}: {error}", highlight=False, markup=False)
        return Figures()


def _config(workload: Workload, capacity: Settled, seconds: float, rounds: int | None) -> dict[str, Any]:
    """Under what a workload runs; `rounds` were fixed beforehand, or none but the time."""
    rows_per_s = round(capacity.rows_per_s)
    length_s = workload.seconds * seconds
    return {
        "workload": workload.name,
        "what": workload.what,
        "capacity_rows_per_s": rows_per_s,
        "capacity_runs": [round(run) for run in capacity.runs],
        "capacity_agrees": capacity.agrees,
        "unsettled": [],
        "rounds": rounds,
        "rivals": _all_rivals(workload),
        "peak_rows_per_s": round(workload.shape(rows_per_s, length_s).peak_rows_per_s),
        "bound_s": BOUND_S,
        "seconds": length_s,
        "window_s": workload.window_s,
        "left_out": dict(workload.left_out),
        "machine": this_machine(),
    }


def _all_rivals(workload: Workload) -> list[str]:
    return [name for name, rival in RIVALS.items() if rival.fits(workload)]


def _require_same(record: Record, workload: Workload, entered: Sequence[Rival], seconds: float) -> None:
    """Refuse to go on with runs that would not stand beside the earlier ones."""
    names = [rival.name for rival in entered]
    for what, now, then in (
        ("entrants", names, list(record.runs)),
        ("rivals that there are", _all_rivals(workload), record.config.get("rivals")),
        ("bound", BOUND_S, record.config["bound_s"]),
        ("length of a run", workload.seconds * seconds, record.config["seconds"]),
        ("machine", this_machine(), record.config["machine"]),
    ):
        if now != then:
            hint = "give the same options, or measure into a new file"
            refuse(f"--resume needs the {what} of the file, {then}", str(now), where=workload.name, hint=hint)


def _table(found: Mapping[str, Sequence[Figures]]) -> Table:
    table = Table(title="median of the runs")
    for column in ("", *found):
        table.add_column(column, justify="right" if column else "left", overflow="fold")
    for measure in MEASURES:
        medians = [statistics.median(getattr(run, measure) for run in runs) for runs in found.values()]
        table.add_row(measure, *(f"{value:.3g}" for value in medians))
    return table
