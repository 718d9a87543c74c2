"""What a guard costs and keeps on a stream that does not wait: below the capacity, and at several times of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jettison.lab.bench.harm import SETTLED_S, kept_of_arrivals
from jettison.lab.bench.harm_run import Case, run_after_plain
from jettison.lab.bench.paired import Pairs, repeated
from jettison.lab.bench.result import Result
from jettison.lab.bench.streams import in_turn
from jettison.lab.demo.capacity import measure_capacity
from jettison.lab.demo.experiment import Run, run_fares
from jettison.lab.demo.schedule import Phase
from jettison.lab.demo.verdict import row_latencies

_PHASE_S, _STARTED_S, _BOUND_S, _LOAD = 15.0, 5.0, 10.0, 0.5


def first_phase(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """How long rows of the demo's first phase wait, which arrive at half the capacity: the median, once started."""
    capacity = measure_capacity(spark, folder / "capacity", batch_s=_BOUND_S / 2, overload=_LOAD)
    phases = [Phase(_PHASE_S, _LOAD * capacity)]
    count = iter(range(10_000))

    def wait_s(bound_s: float | None) -> float:
        run = run_fares(spark, folder / str(next(count)), phases, bound_s, lambda moment: None)
        return _latency_s(run, _STARTED_S, 0.5)

    found = in_turn({"plain": partial(wait_s, None), "guard": partial(wait_s, _BOUND_S)}, pairs, warm_ups=1)
    config = {"rows_per_s": round(phases[0].rows_per_s), "seconds": _PHASE_S, "left_out_s": _STARTED_S}
    beside = Pairs(found, config=config)
    return [beside.over("the demo's first phase: rows wait", "guard", float, "s", at_most=1.2)]


Figures = Iterator[tuple[str, float, str, dict[str, float]]]
"""What is judged of one run: name, value, unit and bar."""


def readme_3s(pairs: int) -> list[Result]:
    """README's example at 3 times the capacity, bound 3 s: rows kept, of a third."""
    return _overloaded(Case("README at 3x, 3 s", work="readme", bound_s=3.0, duration_s=60.0), 3.0, pairs, _kept(0.7))


def readme_5s(pairs: int) -> list[Result]:
    """The same with a bound of 5 s: rows kept, and the longest that a row waits."""

    def judged(case: Case, run: Run, ideal: float) -> Figures:
        yield from _kept(0.85)(case, run, ideal)
        yield "worst row once settled", _latency_s(run, SETTLED_S, 1.0), "s", {"at_most": case.bound_s or 0.0}

    return _overloaded(Case("README at 3x, 5 s", work="readme", bound_s=5.0, duration_s=60.0), 3.0, pairs, judged)


def overload_10x(pairs: int) -> list[Result]:
    """Ten times the capacity, bound 10 s: latency of 95 % of the rows, from the second batch on.

    Rows cost more than README's, because no feed on two cores brings ten times of those.
    """

    def judged(case: Case, run: Run, ideal: float) -> Figures:
        rows = row_latencies(run, run.batches[1:]).between(run.query_started_s)
        within_s = rows.quantile(0.95) if len(run.batches) > 1 else math.inf
        yield "95 % of rows from the second batch on", _number(within_s), "s", {"at_most": case.bound_s or 0.0}
        yield "rows in the largest batch, in seconds of the capacity", _largest_s(run, ideal), "s", {}

    case = Case("10x, 10 s", work="digest", bound_s=10.0, duration_s=60.0)
    return _overloaded(case, 10.0, pairs, judged)


def _kept(least: float) -> Callable[[Case, Run, float], Figures]:
    def judged(case: Case, run: Run, ideal: float) -> Figures:
        yield "kept of the ideal", kept_of_arrivals(run, SETTLED_S) / ideal, "", {"at_least": least}

    return judged


def _overloaded(case: Case, load: float, pairs: int, judge: Callable[[Case, Run, float], Figures]) -> list[Result]:
    """Plain's capacity and the guarded run that follows it in the same process, so many times, each judged by itself."""
    ran = [run_after_plain(case, load) for _ in range(pairs)]
    about: dict[str, Any] = {
        "bound_s": case.bound_s,
        "load": load,
        "plain_rows_per_s": [round(capacity) for capacity, _ in ran],
        "p95_s": [round(_latency_s(run, SETTLED_S, 0.95), 2) for _, run in ran],
        "worst_s": [round(_latency_s(run, SETTLED_S, 1.0), 2) for _, run in ran],
        "worst_of_all_s": [round(_latency_s(run, 0.0, 1.0), 2) for _, run in ran],
        "feed_late_s": [round(run.feed_late_s, 2) for _, run in ran],
    }
    figures = [list(judge(case, run, 1.0 / load)) for _, run in ran]
    return [
        repeated(f"{case.name}: {one[0][0]}", [value for _, value, _, _ in one], one[0][2], **one[0][3], config=about)
        for one in zip(*figures, strict=True)
    ]


def _latency_s(run: Run, from_s: float, share: float) -> float:
    """Latency that this share of the rows have at most, of those that arrive so long after the query's start."""
    return _number(row_latencies(run, run.batches).between(run.query_started_s + from_s).quantile(share))


def _largest_s(run: Run, ideal: float) -> float:
    rows_per_s = ideal * run.landed / run.landing.schedule.duration_s
    return max((batch.rows for batch in run.batches), default=0) / rows_per_s


def _number(latency_s: float | None) -> float:
    return math.nan if latency_s is None else latency_s
