"""`jettison demo`: an overloaded taxi stream on local Spark, plain and then shed."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console

from jettison.control.controller import ControlSettings
from jettison.lab.bench.harm_run import plain_capacity
from jettison.lab.bench.kafka import broker
from jettison.lab.bench.kafka_feed import with_connector
from jettison.lab.demo import report, verdict
from jettison.lab.demo.capacity import measure_capacity
from jettison.lab.demo.experiment import Run, run_fares
from jettison.lab.demo.live import shown
from jettison.lab.demo.schedule import Phase
from jettison.lab.fresh_process import in_fresh_process
from jettison.lab.recorded_session import recorded_session
from jettison.lab.time_left import time_left

LOADS = (0.5, 3.0, 0.5)
"""Arrival rates of the three phases, in capacities of the machine, unless told."""
_CAPACITY_S = 70.0
"""About how long it takes to measure the capacity, on two cores."""
_SLACK_S = 240.0
"""For a JVM to start and the books to close, on a busy machine."""


def run_demo(
    console: Console,
    *,
    bound_s: float,
    seconds: Sequence[float],
    picture_path: Path,
    loads: Sequence[float] = LOADS,
    capacity_known: bool = False,
    json_path: Path | None = None,
    cold: bool = False,
    kafka: bool = False,
) -> dict[str, Any]:
    """Measure the capacity, run plain and shed over the same arrivals, and report.

    With `kafka` the rides arrive at a broker on this machine. With `cold` each run has a fresh process, in which nothing
    has run before, and its first minute is reported too. With `capacity_known` the guard is told the capacity.
    Returns the document that `--json` writes.
    """
    began = time.monotonic()
    overload = loads[verdict.OVERLOAD_PHASE]
    # A row waits for one batch and is processed in the next, and the controller leaves some of the bound to noise.
    batch_s = ControlSettings(latency_bound_s=bound_s).headroom * bound_s / 2
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jettison-demo-")))
        address = None
        if kafka:
            address = stack.enter_context(broker())
            with_connector()
        spark = stack.enter_context(recorded_session("jettison demo"))
        console.print("Measuring what the plain query can process on this machine ...", highlight=False)
        with time_left(console, {"measuring the capacity": _CAPACITY_S, "both runs": 2 * sum(seconds)}) as begin:
            begin("measuring the capacity")
            if address is None:
                capacity = measure_capacity(spark, folder / "capacity", batch_s=batch_s, overload=overload)
            else:
                capacity = plain_capacity(spark, "kafka", "fares", overload, address)
        phases = [Phase(duration, load * capacity) for duration, load in zip(seconds, loads, strict=True)]
        console.print(
            f"Capacity: {capacity:,.0f} rides/s. They will arrive at {', '.join(f'{x:g}' for x in loads)} times that, "
            f"for {', '.join(f'{x:g}' for x in seconds)} s; the latency bound is {bound_s:g} s.",
            highlight=False,
        )
        known = capacity if capacity_known else None
        plain, shed = (
            in_fresh_process(sum(seconds) + _SLACK_S, side.run_cold) if cold else side.run(spark, console)
            for side in (
                Side(folder / "plain", phases, bound_s, address, guarded=False),
                Side(folder / "shed", phases, bound_s, address, guarded=True, known=known),
            )
        )
        document = report.to_document(
            capacity_rows_per_s=capacity,
            capacity_known=capacity_known,
            loads=loads,
            overload=overload,
            plain=verdict.latency(plain, phases, bound_s),
            shed=verdict.latency(shed, phases, bound_s),
            kept=verdict.kept(shed, phases),
            answers=verdict.answers(spark, shed, folder / "shed" / "out"),
        )
    if cold:
        document["first_minute"] = {run.name: asdict(verdict.first_minute(run, phases)) for run in (plain, shed)}
    report.summary(document, console)
    if json_path is not None:
        json_path.write_text(json.dumps(document, indent=2) + "\n")
        console.print(f"Figures: {json_path}.", highlight=False)
    report.picture((plain, shed), phases, bound_s, picture_path)  # last: should it fail, the figures are there
    console.print(f"Picture: {picture_path}. It took {time.monotonic() - began:.0f} s.", highlight=False)
    return document


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs: the guarded one, which may know the capacity, or the plain one."""

    folder: Path
    phases: Sequence[Phase]
    bound_s: float
    address: str | None
    guarded: bool
    known: float | None = None

    def run(self, spark: SparkSession, console: Console) -> Run:
        """Run the query, and show how it goes."""
        title = "2. The same query, guarded by Jettison" if self.guarded else "1. Plain Spark"
        with shown(console, title, self.bound_s) as watch:
            bound_s = self.bound_s if self.guarded else None
            return run_fares(spark, self.folder, self.phases, bound_s, watch, self.address, self.known)

    def run_cold(self) -> Run:
        """The same in a session that nothing has used before, for a process of its own."""
        with recorded_session("jettison demo, cold") as spark:
            return self.run(spark, Console())
