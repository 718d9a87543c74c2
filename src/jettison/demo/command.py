"""`jettison demo`: an overloaded taxi stream on local Spark, plain and then shed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from jettison.control import ControlSettings
from jettison.demo import report, verdict
from jettison.demo.capacity import measure_capacity
from jettison.demo.cold import first_minute, run_in_fresh_process
from jettison.demo.defaults import BOUND_S, LOADS, PICTURE, SECONDS
from jettison.demo.experiment import run_plain, run_shed
from jettison.demo.live import View
from jettison.demo.schedule import Phase
from jettison.spark.session import local_session

_PLAIN, _SHED = "1. Plain Spark", "2. The same query, guarded by Jettison"
# A row waits for one batch and is processed in the next, and the controller leaves some of the bound to noise.
_TARGET_SHARE = ControlSettings(latency_bound_s=BOUND_S).headroom / 2


def run_demo(
    console: Console,
    *,
    bound_s: float = BOUND_S,
    seconds: Sequence[float] = SECONDS,
    json_path: Path | None = None,
    picture_path: Path = PICTURE,
    cold: bool = False,
) -> dict[str, Any]:
    """Measure the capacity, run plain and shed over the same arrivals, and report.

    With `cold` each run has a fresh process, in which nothing has run before, and its first minute is reported too.
    Returns the document that `--json` writes.
    """
    began = time.monotonic()
    overload = LOADS[verdict.OVERLOAD_PHASE]
    with tempfile.TemporaryDirectory(prefix="jettison-demo-") as scratch, local_session("jettison demo") as spark:
        folder = Path(scratch)
        console.print("Measuring what the plain query can process on this machine ...", highlight=False)
        capacity = measure_capacity(spark, folder / "capacity", batch_s=_TARGET_SHARE * bound_s, overload=overload)
        phases = [Phase(duration, load * capacity) for duration, load in zip(seconds, LOADS, strict=True)]
        console.print(
            f"Capacity: {capacity:,.0f} rides/s. They will arrive at {', '.join(f'{x:g}' for x in LOADS)} times that, "
            f"for {', '.join(f'{x:g}' for x in seconds)} s; the latency bound is {bound_s:g} s.",
            highlight=False,
        )
        if cold:
            plain = run_in_fresh_process(folder / "plain", phases, bound_s, _PLAIN, guarded=False)
            shed = run_in_fresh_process(folder / "shed", phases, bound_s, _SHED, guarded=True)
        else:
            with View(console, _PLAIN, bound_s) as view:
                plain = run_plain(spark, folder / "plain", phases, view.show)
            with View(console, _SHED, bound_s) as view:
                shed = run_shed(spark, folder / "shed", phases, bound_s, view.show)
        document = report.to_document(
            bound_s=bound_s,
            capacity_rows_per_s=capacity,
            overload=overload,
            plain=verdict.latency(plain, phases),
            shed=verdict.latency(shed, phases),
            kept_fraction=verdict.kept_fraction(shed, phases),
            kept_fraction_variation=verdict.kept_fraction_variation(shed, phases),
            batches_not_counted=verdict.batches_not_counted(shed),
            answers=verdict.answers(spark, shed, folder / "shed" / "out"),
        )
    if cold:
        document["first_minute"] = {run.name: asdict(first_minute(run, phases)) for run in (plain, shed)}
    report.summary(document, console)
    if json_path is not None:
        report.save(document, json_path)
        console.print(f"Figures: {json_path}.", highlight=False)
    report.picture((plain, shed), phases, bound_s, picture_path)  # last: should it fail, the figures are there
    console.print(f"Picture: {picture_path}. It took {time.monotonic() - began:.0f} s.", highlight=False)
    return document
