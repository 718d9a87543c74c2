"""Run a stream of rows that cost time through Spark under one way of shedding, and see how long each row waited."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from jettison.costs.book import CostBook
from jettison.costs.hashing import SharedHashes, fingerprints
from jettison.costs.sketch import CostSketch, FloatArray
from jettison.costs.status import CostStatus
from jettison.reproduce.load.feed import RESULT, SCHEMA, Feed, busy_wait
from jettison.reproduce.load.paper_rule import Function, PaperRule
from jettison.reproduce.load.sweep import FULL_KNOWLEDGE, LAS, OURS, STRAW_MAN
from jettison.sim.load.workload import IntArray
from jettison.spark.load_aware import HASH_SEED, LoadAware, costs_folder, load_aware, write_costs

NOTHING = "no shedding"
IN_TURN = "load_aware in turn, the paper's sketch"
"""Our pacing of a micro-batch, but rows go in turn, as under the paper's CHECK, and costs come from its small sketch."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of shedding, in terms of `load_aware`.

    Parameters
    ----------
    key
        Column of the key; Full Knowledge is told the cost itself.
    sketch
        Rows and columns.
    rule
        Which rows go.
    taught
        Keys and costs in seconds that are known beforehand, and then never learned.
    """

    key: str = "key"
    sketch: tuple[int, int] = (2, 2048)
    rule: Literal["fewest", "in turn"] = "fewest"
    taught: tuple[tuple[int, float], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Paper:
    """The paper's own shedder and operator, with the rows that they have seen before the start."""

    keys: tuple[int, ...]
    costs_s: tuple[float, ...]


def ways(costs_us: IntArray, past_us: IntArray, past_keys: IntArray) -> dict[str, Way | Paper]:
    """The paper's and ours, for rows of these costs; Straw-Man takes the mean of the past for all of them."""
    known = tuple((int(cost), cost / 1e6) for cost in np.unique(costs_us))
    mean = ((-1, float(past_us.mean()) / 1e6),)  # no row has this key, so all are unknown and cost the mean
    return {
        LAS: Paper(tuple(past_keys.tolist()), tuple((past_us / 1e6).tolist())),
        IN_TURN: Way(sketch=(4, 55), rule="in turn"),
        OURS: Way(),
        STRAW_MAN: Way(rule="in turn", taught=mean),
        FULL_KNOWLEDGE: Way(key="cost_us", sketch=(4, 4096), rule="in turn", taught=known),
    }


@dataclass(frozen=True, slots=True)
class SparkOutcome:
    """What happened to each row.

    Parameters
    ----------
    kept
        Whether the function got it.
    waits_s
        From arrival until the function got it; 0 for dropped rows.
    status
        What `load_aware` said of itself; `None` without it.
    """

    kept: NDArray[np.bool_]
    waits_s: FloatArray
    status: CostStatus | None

    def mean_wait_s(self, rows: slice = slice(None)) -> float:
        """Mean wait of the rows kept among these; NaN where none was, so that dropping everything holds no bound."""
        kept = int(self.kept[rows].sum())
        return float(self.waits_s[rows].sum() / kept) if kept else float("nan")

    def drop_share(self, rows: slice = slice(None)) -> float:
        """Share of these rows that was dropped."""
        return 1.0 - float(self.kept[rows].mean())


def run_on_spark(
    spark: SparkSession, feed: Feed, way: Way | Paper | None, bound_s: float, folder: Path
) -> SparkOutcome:
    """Start the query, run some rows through it so that its workers are up, then the stream; end when all is processed."""
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir(parents=True)
    feed.folder.mkdir(parents=True, exist_ok=True)
    wrapped: LoadAware | None = None
    function: Function = busy_wait
    if isinstance(way, Paper):
        function = PaperRule(busy_wait, bound_s, str(folder), way.keys, way.costs_s)
    elif way is not None:
        if way.taught:
            _teach(checkpoint, way, bound_s)
        wrapped = load_aware(
            busy_wait,
            key=way.key,
            latency=bound_s,
            arrival="at",
            checkpoint=checkpoint,
            sketch=way.sketch,
            rule=way.rule,
            learn=not way.taught,
        )
        function = wrapped
    rows = spark.readStream.schema(SCHEMA).parquet(str(feed.folder))
    query = (
        rows.mapInArrow(function, RESULT)
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    try:
        feed.warm_up()
        query.processAllAvailable()
        feed.start()
        feed.join()
        query.processAllAvailable()
    finally:
        query.stop()
        if wrapped is not None:
            wrapped.close()
    return _outcome(feed, folder / "out", None if wrapped is None else wrapped.status())


def _teach(checkpoint: Path, way: Way, bound_s: float) -> None:
    keys, costs = zip(*way.taught, strict=True)
    sketch = CostSketch(SharedHashes(*way.sketch, seed=HASH_SEED))
    sketch.learn(fingerprints(np.array(keys)), np.array(costs))
    write_costs(costs_folder(checkpoint), CostBook(sketch, version=1), bound_s)


def _outcome(feed: Feed, out: Path, status: CostStatus | None) -> SparkOutcome:
    results = pq.read_table(out, columns=["row", "started"])
    results = results.filter(pc.greater_equal(results["row"], 0))
    numbers, started = results["row"].to_numpy(), results["started"].to_numpy()
    kept, waits = np.zeros(len(feed.keys), dtype=bool), np.zeros(len(feed.keys))
    kept[numbers] = True
    waits[numbers] = started - feed.arrivals_s()[numbers]
    return SparkOutcome(kept, waits, status)
