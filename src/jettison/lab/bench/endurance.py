"""`jettison bench endurance`: an hour on Kafka at the rates of a real site, and what of the driver grows meanwhile.

The rates are those of the busiest day of the 1998 World Cup's site, where the folder that `JETTISON_DATA` names holds
them, else a sine; the highest is three times what the plain query processes.
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console
from scipy import stats

from jettison.lab.bench.cases import chosen
from jettison.lab.bench.driver_process import bytes_below, jvm_of, looking, resident_bytes, threads
from jettison.lab.bench.harm_run import Case, capacity, run_in
from jettison.lab.bench.kafka import broker
from jettison.lab.bench.kafka_feed import with_connector
from jettison.lab.bench.result import Result
from jettison.lab.bench.streams import driver_metrics
from jettison.lab.demo.experiment import Run
from jettison.lab.demo.verdict import row_latencies
from jettison.lab.fresh_process import in_fresh_process
from jettison.lab.intervals import Interval
from jettison.lab.prove.loads import sine
from jettison.lab.prove.workloads.real import match_day, missing
from jettison.runtime.ledger import KEEP_BYTES, SEGMENT_BYTES
from jettison.spark.session import local_session

_PEAK, _BOUND_S = 3.0, 5.0
_MINUTE_S, _LOOK_EVERY_S, _SLACK_S = 60.0, 5.0, 300.0
_WARM_S = 600.0
"""Judged from here on; of shorter runs from a third of their length on."""
_UNSEEN_S = 60.0
"""What happens between two looks that are further apart, nobody knows."""
_STRETCHES = 6
_LOW_WATER_S = 60.0
"""What of the heap lives is what is used after a collection: the least in so long."""
_BESIDE_BYTES = KEEP_BYTES + 2 * SEGMENT_BYTES
"""What the ledger keeps, the segment that is written, and as much for plan and state."""
LENGTHS: Mapping[str, float] = {"hour": 3600.0, "ten-minutes": 600.0}


@dataclass(frozen=True, slots=True)
class Look:
    """The driver at a moment: what it holds, and what lies beside the checkpoint."""

    at_s: float
    heap_bytes: float
    jvm_bytes: float
    python_bytes: float
    jvm_threads: int
    python_threads: int
    beside_bytes: int


def endurance(console: Console, only: str | None = None) -> Iterator[list[Result]]:
    """Run one length, or the hour."""
    (length_s,) = chosen(LENGTHS, only or "hour").values()
    with broker() as address:
        rate = capacity("kafka", "digest", _PEAK, address)
        console.print(f"  warm, plain, beside a feed of {_PEAK:g} times that: {rate:,.0f} rows/s", highlight=False)
        phases = (sine(_PEAK) if missing() else match_day(_PEAK))(rate, length_s).phases
        case = Case("endurance", "kafka", "digest", duration_s=length_s, bound_s=_BOUND_S, phases=phases)
        run, looks = in_fresh_process(length_s + _SLACK_S, _watched, case, address)
    about = {"minutes": length_s / _MINUTE_S, "capacity_rows_per_s": round(rate)}
    yield [replace(one, config=about | dict(one.config)) for one in judged(run, looks, length_s)]


def judged(run: Run, looks: Sequence[Look], length_s: float) -> list[Result]:
    """99 % of minutes within the bound, memory growing by less than 1 % an hour, no more threads, files within limits."""
    held = minutes_held(run, length_s)
    kept = [batch.kept_fraction for batch in run.batches if batch.counted]
    about = {"batches": len(run.batches), "rows": run.landed, "least_kept": round(min(kept, default=math.nan), 3)}
    known, yes = len(held) - held.count(None), held.count(True)
    share, within = yes / known if known else math.nan, (yes / len(held), 1.0 - held.count(False) / len(held))
    found = [Result("minutes within the bound", share, "of them", at_least=0.99, config=about, interval=within)]
    found.append(Result("longest time without a look at the driver", unseen_s(looks, length_s), "s", at_most=_UNSEEN_S))
    warm = [look for look in looks if look.at_s >= min(_WARM_S, length_s / 3)]
    if len(warm) < 2:
        return [replace(one, required=True) for one in found]
    for name, (at_s, held_bytes) in (
        ("heap that lives", low_water(warm)),
        ("memory of the JVM", _of(warm, lambda look: look.jvm_bytes)),
        ("memory of Python", _of(warm, lambda look: look.python_bytes)),
    ):
        growth, about = growth_an_hour(at_s, held_bytes), {"mean_bytes": round(float(np.mean(held_bytes)))}
        within = (growth.lower, growth.upper)
        grows = Result(f"{name}: growth an hour", growth.value, "of it", at_most=0.01, config=about, interval=within)
        found.append(grows)
    half = len(warm) // 2
    for name, at_most, value in (
        ("threads of the JVM", 1.02, lambda look: look.jvm_threads),
        ("threads of Python", 1.0, lambda look: look.python_threads),
    ):
        first, last = (float(max(map(value, part))) for part in (warm[:half], warm[half:]))
        more = f"{name}: most in the second half, over the first"
        found.append(Result(more, last, "", first, last / first, at_most=at_most))
    most = float(max(look.beside_bytes for look in looks))
    bounded = Result(
        "most bytes beside the checkpoint", most, "bytes", _BESIDE_BYTES, most / _BESIDE_BYTES, at_most=1.0
    )
    return [replace(one, required=True) for one in (*found, bounded)]


def unseen_s(looks: Sequence[Look], length_s: float) -> float:
    """The longest time of a run in which nobody looked, its beginning and its end included."""
    return max(b - a for a, b in pairwise([0.0, *(look.at_s for look in looks), max(length_s, 0.0)]))


def minutes_held(run: Run, length_s: float) -> list[bool | None]:
    """Of each minute of the feed, whether 95 % of the rows that arrived in it were answered within the bound.

    `None` of a minute of which no row was looked at.
    """
    rows, held = row_latencies(run, run.batches), list[bool | None]()
    for minute in range(math.ceil(length_s / _MINUTE_S)):
        begin_s = run.started_s + minute * _MINUTE_S
        latency_s = rows.between(begin_s, begin_s + _MINUTE_S).quantile(0.95)
        held.append(None if latency_s is None else latency_s <= _BOUND_S)
    return held


def low_water(looks: Sequence[Look]) -> tuple[list[float], list[float]]:
    """Times, and the least of the heap that was used around them."""
    minutes: dict[int, Look] = {}
    for look in looks:
        minute = int(look.at_s // _LOW_WATER_S)
        minutes[minute] = min(minutes.get(minute, look), look, key=lambda each: each.heap_bytes)
    return _of(list(minutes.values()), lambda look: look.heap_bytes)


def growth_an_hour(at_s: Sequence[float], values: Sequence[float]) -> Interval:
    """Slope of a line through the values over their mean, in an hour.

    It goes through the means of some stretches, because values that follow each other are alike.

    >>> str(growth_an_hour([600.0 * place for place in range(7)], [100, 101, 100, 102, 101, 103, 102]))
    '0.02 (-0.01 to 0.06)'
    """
    stretches = min(_STRETCHES, len(values))
    if stretches < 3:
        return Interval(math.nan, -math.inf, math.inf)
    times, means = (
        [float(part.mean()) for part in np.array_split(np.asarray(each), stretches)] for each in (at_s, values)
    )
    line = stats.linregress(times, means)
    # What never changes is known exactly; the fit says NaN of it.
    half = float(stats.t.ppf(0.975, stretches - 2) * line.stderr) if np.ptp(means) else 0.0
    slope = float(line.slope)
    return Interval(*(each * 3600.0 / float(np.mean(values)) for each in (slope, slope - half, slope + half)))


def _of(looks: Sequence[Look], value: Callable[[Look], float]) -> tuple[list[float], list[float]]:
    return [look.at_s for look in looks], [float(value(look)) for look in looks]


def _watched(case: Case, address: str) -> tuple[Run, list[Look]]:
    with_connector()
    looks: list[Look] = []
    with (
        local_session("jettison endurance") as spark,
        tempfile.TemporaryDirectory(prefix="jettison-endurance-") as scratch,
    ):
        beside, started_s = Path(scratch) / "checkpoint" / "jettison", time.monotonic()
        with looking(lambda: looks.append(_look(spark, beside, started_s)), _LOOK_EVERY_S):
            return run_in(spark, case, Path(scratch), address), looks


def _look(spark: SparkSession, beside: Path, started_s: float) -> Look:
    own = os.getpid()
    jvm = jvm_of(own)
    return Look(
        at_s=time.monotonic() - started_s,
        heap_bytes=_heap_bytes(spark),
        jvm_bytes=resident_bytes(jvm),
        python_bytes=resident_bytes(own),
        jvm_threads=len(threads(jvm)),
        python_threads=threading.active_count(),
        beside_bytes=bytes_below(beside),
    )


def _heap_bytes(spark: SparkSession) -> float:
    gauges = driver_metrics(spark)["gauges"]
    return float(next(one["value"] for name, one in gauges.items() if name.endswith("ExecutorMetrics.JVMHeapMemory")))
