"""`jettison bench harm`: rows are dropped only where it helps. On Spark, each case from a cold process."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rich.console import Console

from jettison.errors import Unsupported
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.harm_run import Case, Source, Work, capacity, run_cold
from jettison.lab.bench.kafka import broker
from jettison.lab.bench.result import Result
from jettison.lab.demo.experiment import Run
from jettison.lab.demo.verdict import MINUTE_S, row_latencies

SETTLED_S = 20.0
"""Within this time after the start of an overload the bound must hold."""
_BELOW_S = MINUTE_S + 70.0
"""Below capacity: a first minute, and as long again of which it is said that none is dropped."""
_CONSTANT_BOUND_S = 5.0
"""What cases without a guard are judged by: the bound of those with one."""
_SATURATED = 1.5
"""Least load under which a capacity is measured."""

Figures = Iterator[tuple[str, float, dict[str, Any]]]
"""What is measured, its value, and how it goes into a result: unit, bar, or more to tell."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A case and how it is judged.

    Parameters
    ----------
    case
        What runs.
    judge
        Turns the run, and the ideal share kept, into figures.
    load
        Arrival rate in capacities of the plain query, measured beforehand; 0 leaves the case's rate as it is.
    known
        Whether the guard is told that capacity.
    """

    case: Case
    judge: Callable[[Case, Run, float], Figures]
    load: float = 0.5
    known: bool = False


def _below(case: Case, run: Run, ideal: float) -> Figures:
    """At most 2 % of the rows of the first minute are dropped, none afterwards."""
    yield "dropped in the first minute", dropped_share(run, to_s=MINUTE_S), {"at_most": 0.02}
    yield "dropped afterwards", dropped_share(run, from_s=MINUTE_S), {"at_most": 0.0}


def _nothing(case: Case, run: Run, ideal: float) -> Figures:
    """No row is dropped."""
    yield "dropped", dropped_share(run), {"at_most": 0.0}


def _clock(case: Case, run: Run, ideal: float) -> Figures:
    """No row is dropped, and 95 % of them are in time. What a clock may spoil shows in an overload: late rows go first."""
    yield from _nothing(case, run, ideal)
    settled = row_latencies(run, run.batches).between(run.query_started_s + SETTLED_S).quantile(0.95)
    yield (
        f"95 % of the rows from {SETTLED_S:.0f} s on",
        math.nan if settled is None else settled,
        {"unit": "s", "at_most": case.bound_s},
    )


def _overload(case: Case, run: Run, ideal: float) -> Figures:
    """The bound holds soon, and once it does and the start is over, nearly as much is kept as could be."""
    holds_s = bound_holds_from_s(run, case.bound_s or math.inf)
    worst_s = row_latencies(run, run.batches).between(run.query_started_s).quantile(1.0)
    kept = kept_of_arrivals(run, from_s=max(SETTLED_S, holds_s)) / ideal
    yield "bound holds from", holds_s, {"unit": "s", "at_most": SETTLED_S, "worst_s": worst_s}
    yield "kept of the ideal", kept, {"at_least": 0.8, "ideal": round(ideal, 3)}


def _network(case: Case, run: Run, ideal: float) -> Figures:
    """The bound holds soon; what of a network is best kept, its graphs say, so that has no bar."""
    (what, holds_s, how), (kept, share, _) = _overload(case, run, ideal)
    yield what, holds_s, how
    yield f"{kept}, delivered to the outputs that want all rows", share, {"ideal": round(ideal, 3)}


def _known_beforehand(case: Case, run: Run, ideal: float) -> Figures:
    """From when on the bound would hold, had somebody known the share from the first row on: what a bar is worth."""
    yield "bound holds from", bound_holds_from_s(run, _CONSTANT_BOUND_S), {"unit": "s"}


_TRIALS = (
    Trial(Case("kafka-below", "kafka", duration_s=_BELOW_S), _below),
    Trial(Case("files-below", duration_s=_BELOW_S), _below),
    Trial(Case("kafka-3x", "kafka", "digest", duration_s=110.0), _overload, load=3.0),
    Trial(Case("kafka-10x", "kafka", "digest", duration_s=200.0), _overload, load=10.0),
    Trial(Case("files-3x", "files", "digest", duration_s=110.0), _overload, load=3.0),
    Trial(Case("files-10x", "files", "digest", duration_s=200.0), _overload, load=10.0),
    Trial(Case("kafka-3x-known", "kafka", "digest", duration_s=110.0), _overload, load=3.0, known=True),
    Trial(Case("files-3x-known", "files", "digest", duration_s=110.0), _overload, load=3.0, known=True),
    Trial(Case("files-10x-known", "files", "digest", duration_s=110.0), _overload, load=10.0, known=True),
    *(
        Trial(
            Case(f"files-3x-constant-{of_ideal:g}", "files", "digest", bound_s=None, constant_share=of_ideal / 3.0),
            _known_beforehand,
            load=3.0,
        )
        for of_ideal in (0.6, 0.8)
    ),
    Trial(Case("fixed-cost", "files", "slow-sink", rows_per_s=100.0, bound_s=3.0), _nothing, load=0.0),
    Trial(Case("clock-4s-behind", arrival_behind_s=4.0), _clock),
    Trial(Case("clock-1h-behind", arrival_behind_s=3600.0), _clock),
    Trial(Case("one-row-from-1970", wild_one_in=30_000), _clock),
    Trial(
        Case("files-3x-1h-behind", "files", "digest", duration_s=110.0, arrival_behind_s=3600.0), _overload, load=3.0
    ),
    Trial(Case("files-3x-from-1970", "files", "digest", duration_s=110.0, wild_one_in=30_000), _overload, load=3.0),
    Trial(Case("costly-rows", "files", "function", bound_s=6.0, duration_s=110.0), _overload, load=3.0),
    Trial(Case("network-3x", "files", "network", bound_s=8.0, duration_s=110.0), _network, load=3.0),
)
TRIALS: Mapping[str, Trial] = {trial.case.name: trial for trial in _TRIALS}
"""The cases by name, in the order in which they run."""


def harm(console: Console, only: str | None = None) -> Iterator[list[Result]]:
    """Run all trials, or one, and yield each one's results as they come."""
    trials = list(chosen(TRIALS, only).values())
    with ExitStack() as stack:
        address: str | None = None
        if any(trial.case.source == "kafka" for trial in trials):
            try:
                address = stack.enter_context(broker())
            except Unsupported as problem:
                if only is not None:
                    raise
                console.print(f"The cases on Kafka are left out: {problem}", highlight=False)
                yield [_left_out(trial.case, problem) for trial in trials if trial.case.source == "kafka"]
                trials = [trial for trial in trials if trial.case.source != "kafka"]

        @cache
        def measured(source: Source, work: Work, load: float) -> float:
            found = capacity(source, work, load, address)
            said = f"  {work} on {source}, warm, beside a feed of {load:g} times that: {found:,.0f} rows/s"
            console.print(said, highlight=False)
            return found

        for trial in trials:
            case, ideal = trial.case, 1.0
            try:
                if trial.load:
                    rows_per_s = trial.load * measured(case.source, case.work, max(trial.load, _SATURATED))
                    capacity_known = rows_per_s / trial.load if trial.known else None
                    case = replace(case, rows_per_s=rows_per_s, capacity_rows_per_s=capacity_known)
                    ideal = min(1.0 / trial.load, 1.0)
                console.print(f"  {case.name} ...", highlight=False)
                run = run_cold(case, address)
            except Exception as error:  # whatever its process died of, the other cases have something to say
                console.print(f"    {error}", highlight=False)
                yield [Result(f"{case.name}: runs to its end", 0.0, "", at_least=1.0, required=True)]
            else:
                yield [_result(case, run, *figure) for figure in trial.judge(case, run, ideal)]


def _left_out(case: Case, why: Unsupported) -> Result:
    """What stands in the results of a case that did not run: neither value nor verdict."""
    return Result(f"{case.name}: not run", math.nan, "", config={"source": case.source, "left_out": str(why)})


def _result(case: Case, run: Run, what: str, value: float, how: dict[str, Any]) -> Result:
    bar = {name: how.pop(name, None) for name in ("at_most", "at_least")}
    unit = how.pop("unit", "of the rows")
    about = {
        "source": case.source,
        "work": case.work,
        "bound_s": case.bound_s,
        "rows_per_s": round(case.rows_per_s),
        "batches": len(run.batches),
        "dropped": sum(round(batch.rows * (1.0 - batch.kept_fraction)) for batch in run.batches if batch.counted),
        "feed_late_s": round(run.feed_late_s, 2),
        "load_average": round(run.load_average, 1),
    }
    return Result(f"{case.name}: {what}", value, unit, **bar, config=about | how, required=True)


def dropped_share(run: Run, *, from_s: float = 0.0, to_s: float = math.inf) -> float:
    """Share of the rows dropped, over batches that started between two times after the query's start.

    Not a number where a batch has no exact count on record, or there is no such batch: what is not known does not hold.
    """
    batches = [batch for batch in run.batches if from_s <= batch.started_s - run.query_started_s < to_s]
    rows = sum(batch.rows for batch in batches)
    return sum(batch.rows * (1.0 - batch.kept_fraction) for batch in batches) / rows if rows else math.nan


def kept_of_arrivals(run: Run, from_s: float) -> float:
    """Share kept of the rows that arrived from a time after the query's start on, which are those the bound is judged by.

    Not a number where such a row's batch has no exact count on record, or there is no such row.
    """
    if not math.isfinite(from_s):
        return math.nan
    from_s += run.query_started_s
    first = bisect_left(range(run.landed), from_s, key=lambda row: run.landing.arrival_of([row])[0])
    rows = {batch: batch.last - max(batch.first, first) for batch in run.batches if batch.last > first}
    return (
        sum(batch.kept_fraction * of_them for batch, of_them in rows.items()) / sum(rows.values()) if rows else math.nan
    )


def bound_holds_from_s(run: Run, bound_s: float) -> float:
    """Whole seconds after the query's start from which the 95 % latency of the rows to come is within the bound for good.

    Rows that still wait at the end count with their wait so far. Infinite where it never is.
    """
    rows, last_s = row_latencies(run, run.batches), math.ceil(run.landing.schedule.duration_s)
    latencies_s = [rows.between(run.query_started_s + at_s).quantile(0.95) for at_s in range(last_s)]
    broken = [at_s for at_s, latency_s in enumerate(latencies_s) if latency_s is not None and latency_s > bound_s]
    holds_s = broken[-1] + 1 if broken else 0
    return float(holds_s) if holds_s < last_s else math.inf
