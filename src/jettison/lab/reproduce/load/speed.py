"""What learning and deciding cost a row."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.costs.drop_choice import drop_costliest_first
from jettison.costs.sketch import CostSketch, FloatArray
from jettison.lab.reproduce.claims import judge
from jettison.lab.reproduce.report import Judged, RunSettings, Section, table

BATCH, REPETITIONS = 10_000, 30


def speed(settings: RunSettings) -> Judged:
    """Fastest of several batches of 10,000 rows, from keys as they come to costs learned, for keys of two types."""
    draw = np.random.default_rng([settings.seed, 3])
    sketch = CostSketch(SharedHashes(rows=4, columns=55, seed=settings.seed))
    numbers, costs = draw.integers(0, 4096, BATCH), draw.uniform(0.1, 6.4, BATCH)
    keys = {"numbers": pa.array(numbers), "texts": pa.array([f"@mention_{number}" for number in numbers])}
    starts = {"nothing shed": np.full(BATCH, np.inf), "half the load shed": np.arange(BATCH) * costs.mean() / 2}
    for column in keys.values():
        sketch.learn(fingerprints(column), costs)
    figures = {
        (case, kind): _fastest_us(sketch, column, costs, latest)
        for case, latest in starts.items()
        for kind, column in keys.items()
    }
    rows = [[case, kind, figure] for (case, kind), figure in figures.items()]
    section = Section("Time of a decision and an update together", table(["case", "keys", "microseconds a row"], rows))
    config = {"rows": 4, "columns": 55, "batch": BATCH}
    return [section], judge("load", {"decision-and-update": max(figures.values())}, config)


def _fastest_us(sketch: CostSketch, keys: pa.Array, costs: FloatArray, starts: FloatArray) -> float:
    times = []
    for _ in range(REPETITIONS):
        started = time.perf_counter()
        cells = sketch.hashes.cells(fingerprints(keys))
        kept = drop_costliest_first(sketch.estimate_cells(cells).cost, starts)
        sketch.learn_cells(cells[:, kept], costs[kept])
        times.append(time.perf_counter() - started)
    return 1e6 * min(times) / BATCH
