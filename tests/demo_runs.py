"""Made-up runs of the demo, whose latency is known beforehand. Nothing here starts Spark."""

from __future__ import annotations

import numpy as np

from jettison.lab.demo.experiment import Batch, Run
from jettison.lab.demo.landing import Landing
from jettison.lab.demo.rides import RideBook
from jettison.lab.demo.schedule import Phase, Schedule

PHASES = [Phase(10.0, 100), Phase(30.0, 600), Phase(10.0, 100)]
START_S = 1_000_000.0


def run_with(durations: list[float], *, name: str = "x", kept: float = 0.3, until_s: float = 50.0) -> Run:
    """Back-to-back batches that each take all rows that arrived before they start."""
    landing = Landing(Schedule.from_phases(PHASES, interval_s=0.1), RideBook(7), int(START_S * 1e6))
    arrivals = landing.arrival_of(np.arange(landing.schedule.rows))
    batches, now, taken = [], START_S + 0.5, 0
    for number, duration in enumerate(durations):
        if now + duration > START_S + until_s:
            break
        last = int(np.searchsorted(arrivals, now))
        batches.append(Batch(number, now, now + duration, taken, last, kept))
        now, taken = now + duration, last
    return Run(name, landing, START_S, START_S, START_S + until_s, batches, landed=landing.schedule.rows)
