"""Run a stream of rows that cost time through Spark under one way of shedding, and see how long each row waited."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from jettison.costs.cost_book import HASH_SEED, CostBook, costs_folder
from jettison.costs.cost_hashing import SharedHashes, fingerprints
from jettison.costs.function_status import CostStatus
from jettison.costs.partition_settings import Rule
from jettison.costs.sketch import CostSketch, FloatArray
from jettison.lab.reproduce.load.feed import RESULT, SCHEMA, Feed, busy_wait
from jettison.lab.reproduce.load.paper_rule import Function, PaperRule
from jettison.lab.sim.load.algorithms import FULL_KNOWLEDGE, LAS, OURS, STRAW_MAN
from jettison.lab.sim.load.workload import IntArray
from jettison.spark.load_aware import LoadAware, load_aware

NOTHING = "no shedding"
TAIL_DROP = "load_aware, tail drop, the paper's sketch"
"""Our pacing of a micro-batch, but rows go in turn, as under the paper's CHECK, and costs come from its small sketch."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of shedding, in terms of `load_aware`. Full Knowledge is told the cost itself as key.

    `taught` are keys with costs in seconds that are known beforehand, and then never learned.
    """

    key: str = "key"
    sketch: tuple[int, int] = (2, 2048)
    rule: Rule = "costliest_first"
    taught: tuple[tuple[int, float], ...] = field(default=())


def ways(
    bound_s: float, costs_us: IntArray, past_us: IntArray, past_keys: IntArray
) -> dict[str, Way | PaperRule | None]:
    """The paper's and ours, for rows of these costs; Straw-Man takes the mean of the past for all of them."""
    known = tuple((int(cost), cost / 1e6) for cost in np.unique(costs_us))
    mean = ((-1, float(past_us.mean()) / 1e6),)  # no row has this key, so all are unknown and cost the mean
    return {
        LAS: PaperRule(busy_wait, bound_s, tuple(past_keys.tolist()), tuple((past_us / 1e6).tolist())),
        TAIL_DROP: Way(sketch=(4, 55), rule="tail_drop"),
        OURS: Way(),
        STRAW_MAN: Way(rule="tail_drop", taught=mean),
        FULL_KNOWLEDGE: Way(key="cost_us", sketch=(4, 4096), rule="tail_drop", taught=known),
    }


@dataclass(frozen=True, slots=True)
class SparkOutcome:
    """Whether the function got each row, how long after its arrival (0 for dropped ones), and what `load_aware` says."""

    kept: NDArray[np.bool_]
    waits_s: FloatArray
    status: CostStatus | None

    def mean_wait_s(self, rows: slice = slice(None)) -> float:
        """Mean wait of the rows kept among these; NaN where none was, so that dropping everything holds no bound."""
        kept = int(self.kept[rows].sum())
        return float(self.waits_s[rows].sum() / kept) if kept else float("nan")

    def drop_share(self, rows: slice = slice(None)) -> float:
        return 1.0 - float(self.kept[rows].mean())


def run_on_spark(
    spark: SparkSession, feed: Feed, way: Way | PaperRule | None, bound_s: float, folder: Path
) -> SparkOutcome:
    """Start the query, run some rows through it so that its workers are up, then the stream; end when all is processed."""
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir(parents=True)
    feed.folder.mkdir(parents=True, exist_ok=True)
    wrapped = _wrapped(way, bound_s, checkpoint) if isinstance(way, Way) else None
    function: Function = busy_wait if wrapped is None else wrapped
    if isinstance(way, PaperRule):
        function = replace(way, run=str(folder))
    rows = spark.readStream.schema(SCHEMA).parquet(str(feed.folder))
    writer = rows.mapInArrow(function, RESULT).writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(checkpoint)).start()
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
    results = pq.read_table(folder / "out", columns=["row", "started"])
    results = results.filter(pc.greater_equal(results["row"], 0))
    numbers, started = results["row"].to_numpy(), results["started"].to_numpy()
    kept, waits = np.zeros(len(feed.keys), dtype=bool), np.zeros(len(feed.keys))
    kept[numbers] = True
    waits[numbers] = started - feed.arrivals_s()[numbers]
    return SparkOutcome(kept, waits, None if wrapped is None else wrapped.status())


def _wrapped(way: Way, bound_s: float, checkpoint: Path) -> LoadAware:
    if way.taught:
        keys, costs = zip(*way.taught, strict=True)
        sketch = CostSketch(SharedHashes(*way.sketch, seed=HASH_SEED))
        sketch.learn(fingerprints(np.array(keys)), np.array(costs))
        CostBook(sketch, version=1).save(costs_folder(checkpoint))
    return load_aware(
        busy_wait,
        key=way.key,
        max_wait=bound_s,
        arrival="at",
        checkpoint=checkpoint,
        sketch=way.sketch,
        rule=way.rule,
        learn=not way.taught,
    )
