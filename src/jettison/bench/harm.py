"""`jettison bench harm`: rows are dropped only where it helps. On Spark, each case from a cold process."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from rich.console import Console

from jettison import java
from jettison.bench import harm_verdict
from jettison.bench.harm_capacity import saturated
from jettison.bench.harm_case import Case, Source, Work
from jettison.bench.harm_process import measure_warm, run_cold
from jettison.bench.harm_verdict import Record, rows_per_s
from jettison.bench.kafka import broker
from jettison.bench.kafka_jars import CONNECTOR, jars
from jettison.bench.result import Result
from jettison.demo.schedule import Phase
from jettison.errors import InvalidSetting, JettisonError, Unsupported, did_you_mean, explain

SETTLED_S = 20.0
"""Within this time after the start of an overload the bound must hold."""
MINUTE_S = 60.0
_SATURATED = 1.5
"""Least load under which a capacity is measured."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A case whose load is a multiple of what the plain query can process, and how it is judged.

    Parameters
    ----------
    case
        With one phase, whose rate is set once the capacity is known, unless `load` is 0.
    load
        Arrival rate in capacities of the plain query; 0 leaves the rate as it is.
    judge
        Turns the records of the run, and the ideal share kept, into results.
    """

    case: Case
    load: float
    judge: Callable[[Case, Sequence[Record], float], list[Result]]


def _trial(
    name: str,
    judge: Callable[[Case, Sequence[Record], float], list[Result]],
    *,
    load: float = 0.5,
    source: Source = "files",
    work: Work = "fares",
    bound_s: float = 5.0,
    duration_s: float = 45.0,
    rows_per_s: float = 0.0,
    **arrival: Any,
) -> Trial:
    return Trial(Case(name, source, work, (Phase(duration_s, rows_per_s),), bound_s, **arrival), load, judge)


def _below(case: Case, records: Sequence[Record], ideal: float) -> list[Result]:
    """At most 2 % of the rows of the first minute are dropped, none afterwards."""
    first = harm_verdict.dropped_share(records, to_s=MINUTE_S)
    later = harm_verdict.dropped_share(records, from_s=MINUTE_S)
    return [
        _result(case, "dropped in the first minute", first, records, at_most=0.02),
        _result(case, "dropped afterwards", later, records, at_most=0.0),
    ]


def _nothing(case: Case, records: Sequence[Record], ideal: float) -> list[Result]:
    """No row is dropped."""
    return [_result(case, "dropped", harm_verdict.dropped_share(records), records, at_most=0.0)]


def _overload(case: Case, records: Sequence[Record], ideal: float) -> list[Result]:
    """The bound holds soon, and from then on nearly as much is kept as could be."""
    holds_s = harm_verdict.bound_holds_from_s(records, case.bound_s or math.inf)
    worst_s = harm_verdict.latency_s(records, from_s=0.0, quantile=1.0)
    kept = harm_verdict.kept_of_ideal(records, from_s=holds_s, ideal=ideal)
    return [
        _result(case, "bound holds from", holds_s, records, unit="s", at_most=SETTLED_S, worst_s=round(worst_s, 2)),
        _result(case, "kept of the ideal", kept, records, at_least=0.8, ideal=round(ideal, 3)),
    ]


TRIALS: Mapping[str, Trial] = {
    trial.case.name: trial
    for trial in (
        _trial("kafka-below", _below, source="kafka", duration_s=70.0),
        _trial("files-below", _below, duration_s=70.0),
        _trial("kafka-3x", _overload, load=3.0, source="kafka", work="digest", duration_s=110.0),
        _trial("kafka-10x", _overload, load=10.0, source="kafka", work="digest", duration_s=200.0),
        _trial("files-3x", _overload, load=3.0, work="digest", duration_s=110.0),
        _trial("files-10x", _overload, load=10.0, work="digest", duration_s=200.0),
        _trial("fixed-cost", _nothing, load=0.0, rows_per_s=100.0, work="slow-sink", bound_s=3.0),
        _trial("clock-2s-behind", _nothing, arrival_behind_s=2.0),
        _trial("clock-1h-behind", _nothing, arrival_behind_s=3600.0),
        _trial("one-row-from-1970", _nothing, wild_one_in=30_000),
        _trial("costly-rows", _overload, load=3.0, work="function", bound_s=6.0, duration_s=110.0),
    )
}
"""The cases by name, in the order in which they run."""


def _result(
    case: Case,
    what: str,
    value: float,
    records: Sequence[Record],
    *,
    unit: str = "of the rows",
    at_most: float | None = None,
    at_least: float | None = None,
    **config: float,
) -> Result:
    about = {
        "source": case.source,
        "work": case.work,
        "bound_s": case.bound_s,
        "rows_per_s": round(case.phases[0].rows_per_s),
        "batches": len(records) - 1,
        "dropped": sum(batch.get("seen", 0) - batch.get("kept", 0) for batch in records[1:]),
        "feed_late_s": round(records[0]["feed_late_s"], 2),
        "load_average": round(records[0]["load_average"], 1),
    }
    name = f"{case.name}: {what}"
    return Result(name, value, unit, at_most=at_most, at_least=at_least, config=about | config, required=True)


def harm(console: Console, only: str | None = None) -> Iterator[list[Result]]:
    """Run all trials, or one, and yield each one's results as they come."""
    if only is not None and only not in TRIALS:
        hint = did_you_mean(only, list(TRIALS), otherwise="leave --only out to run all of them")
        raise InvalidSetting(explain(f"a case out of {', '.join(TRIALS)}", repr(only), hint=hint))
    java.require_java()
    trials = [trial for name, trial in TRIALS.items() if only in (None, name)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jettison-harm-")))
        address = None
        if any(trial.case.source == "kafka" for trial in trials):
            try:
                jars(CONNECTOR)
                address = stack.enter_context(broker())
            except Unsupported as problem:
                if only is not None:
                    raise
                console.print(f"The cases on Kafka are left out: {problem}", highlight=False)
                trials = [trial for trial in trials if trial.case.source != "kafka"]

        @cache
        def capacity(source: Source, work: Work, load: float) -> float:
            case = saturated(source, work, load)
            measured = rows_per_s(measure_warm(case, folder / "records", address=address))
            console.print(
                f"  {work} on {source}, warm, beside a feed of {load:g} times that: {measured:,.0f} rows/s",
                highlight=False,
            )
            return measured

        for trial in trials:
            case, ideal = trial.case, 1.0
            try:
                if trial.load:
                    each_s = trial.load * capacity(case.source, case.work, max(trial.load, _SATURATED))
                    case = replace(case, phases=tuple(replace(phase, rows_per_s=each_s) for phase in case.phases))
                    ideal = min(1.0 / trial.load, 1.0)
                console.print(f"  {case.name} ...", highlight=False)
                records = run_cold(case, folder / "records", address=address)
            except (JettisonError, TimeoutExpired) as error:  # the other cases have something to say all the same
                console.print(f"    {error}", highlight=False)
                yield [Result(f"{case.name}: runs to its end", 0.0, "", at_least=1.0, required=True)]
            else:
                yield trial.judge(case, records, ideal)
