"""How many rows a second the plain query processes, warm, beside the feed that overloads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jettison.bench.harm_case import Case, Source, Work
from jettison.bench.harm_run import run, serve
from jettison.bench.harm_verdict import rows_per_s
from jettison.demo.schedule import Phase

_BATCH_S = 2.5
"""Batches pay a fixed cost each: one that has to hold a bound of 5 or 6 s cannot be longer than about half of it."""
_WARM_UP_S, _MEASURED_S = 22.0, 24.0
_LEAST_BATCHES = 4
_FIRST_GUESS: Mapping[Work, float] = {"fares": 60_000.0, "digest": 8_000.0, "function": 1_500.0}


def saturated(source: Source, work: Work, load: float) -> Case:
    """A plain query that gets `load` times what it is guessed to process."""
    case = Case(f"capacity-{work}-{load:g}x", source, work, (), least_batches=_LEAST_BATCHES)
    return _with_capacity(case, _WARM_UP_S, load, _FIRST_GUESS[work])


def _with_capacity(case: Case, duration_s: float, load: float, capacity: float) -> Case:
    return replace(
        case, phases=(Phase(duration_s, load * capacity),), rows_per_batch=max(round(capacity * _BATCH_S), 1)
    )


def measure(spark: SparkSession, case: Case, folder: Path, address: str | None) -> list[dict[str, Any]]:
    """Run a saturated query twice, the second time with what came of the first, and return the second's records."""
    load = case.phases[0].rows_per_s * _BATCH_S / case.rows_per_batch
    warm_up = run(spark, case, folder / "warm-up", address)
    again = _with_capacity(replace(case, name=f"{case.name}-again"), _MEASURED_S, load, rows_per_s(warm_up))
    return run(spark, again, folder / "measured", address)


def main() -> None:
    """Measure, in a process of its own."""
    serve(measure)
