"""`jettison bench profile`: what a batch takes of the driver, part by part: plain, idle behind a guard, and shedding."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from jettison.lab.bench.cases import chosen
from jettison.lab.bench.result import Result
from jettison.lab.bench.steady import Steady, land_batches, steady_fares
from jettison.lab.bench.streams import in_turn
from jettison.lab.fresh_process import in_fresh_process
from jettison.lab.recorded_session import recorded_session

_WARM_UP, _BATCHES, _SPARE, _LARGEST = 10, 40, 20, 3
_WITHIN_S = 3600.0
SIZES: Mapping[str, int] = {"small": 2_000, "large": 100_000}
"""Rows a batch."""
SIDES: Mapping[str, float | None] = {"plain": None, "idle": 1.0, "shedding": 0.3}
"""The share that a guard keeps; none for the query without one."""


def profile(console: Console, only: str | None, pairs: int) -> Iterator[list[Result]]:
    """Print a table for small and one for large batches; there is no bar to meet."""
    for size, rows_per_batch in chosen(SIZES, only).items():
        console.print(f"{size} batches, {rows_per_batch:,} rows each:", highlight=False)
        parts = parts_of(in_fresh_process(_WITHIN_S, _in_this_process, rows_per_batch, pairs))
        for line in table(parts):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        config = {"rows_per_batch": rows_per_batch, "batches": _BATCHES, "repetitions": pairs}
        yield [
            Result(
                f"{size} batch, {side}: {part}", value=values[side], unit="ms", baseline=values["plain"], config=config
            )
            for part, values in parts.items()
            for side in SIDES
            if side != "plain"
        ]


Parts = Mapping[str, Mapping[str, float]]
"""By part, ms a batch of each side."""


def parts_of(found: Mapping[str, Sequence[Steady]]) -> Parts:
    """The median of the runs of each side, by part: time of the batch, CPU by kind of thread, time by step."""
    parts = {f"CPU: {kind}": partial(_cpu_ms, kind) for kind in found["plain"][0].cpu_ms}
    parts |= {f"time: {step}": partial(_step_ms, step) for step in found["plain"][0].step_ms}
    return {
        part: {side: statistics.median(map(measure, runs)) for side, runs in found.items()}
        for part, measure in parts.items()
    }


def table(parts: Parts) -> Iterator[str]:
    """Markdown, line by line, and which kinds of threads a guard adds most to."""
    yield f"| ms a batch | {' | '.join(SIDES)} |"
    yield f"|---|{'---|' * len(SIDES)}"
    for part, values in parts.items():
        yield f"| {part} | {' | '.join(f'{values[side]:.1f}' for side in SIDES)} |"
    for side in SIDES:
        if side != "plain":
            more = {part: values[side] - values["plain"] for part, values in parts.items() if part.startswith("CPU")}
            largest = sorted(more, key=more.__getitem__, reverse=True)[:_LARGEST]
            yield f"{side}, most beyond plain: " + ", ".join(f"{part[5:]} {more[part]:+.1f}" for part in largest)


def _cpu_ms(kind: str, run: Steady) -> float:
    return run.cpu_ms[kind]


def _step_ms(step: str, run: Steady) -> float:
    return run.step_ms[step]


def _in_this_process(rows_per_batch: int, pairs: int) -> dict[str, list[Steady]]:
    with (
        recorded_session("jettison bench profile") as spark,
        tempfile.TemporaryDirectory(prefix="jettison-profile-") as scratch,
    ):
        folder = Path(scratch)
        land_batches(folder / "in", _WARM_UP + _BATCHES + _SPARE, rows_per_batch)
        run = partial(steady_fares, spark, folder, warm_up=_WARM_UP, batches=_BATCHES)
        return in_turn({side: partial(run, share) for side, share in SIDES.items()}, pairs, warm_ups=1)
