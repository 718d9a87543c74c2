"""Measure what the boxes of a network cost, and how many rows they let through, on a sample.

Each box runs by itself over rows that are already in memory. Its cost is the time of reading them and running the box,
minus the time of reading them alone, per row that enters. Both are measured in turns and the median difference counts;
`spread` is how far the differences lie apart, as a share of that median. What is not seen this way: the work of sinks,
and effects of boxes on each other's code generation.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jettison.errors import refuse
from jettison.policies.network.graph import arc_into
from jettison.spark.drop_point import WEIGHT
from jettison.spark.network_query import Network


@dataclass(frozen=True, slots=True)
class BoxCost:
    """What was measured of one box.

    Parameters
    ----------
    cost_us
        Microseconds per row that enters, on all cores of the session together.
    selectivity
        Rows out per row in.
    spread
        Range of the repeated measurements over their median.
    rows
        Rows that entered.
    """

    cost_us: float
    selectivity: float
    spread: float
    rows: int


def calibrate(network: Network, sample: Mapping[str, DataFrame], *, repetitions: int = 5) -> dict[str, BoxCost]:
    """Measure every box over a batch sample of each input, and put the results into the network.

    Parameters
    ----------
    network
        The network; its costs and selectivities are replaced.
    sample
        A batch DataFrame for each input, with the columns of the stream; some 100,000 rows make costs stand out.
    repetitions
        Runs of each box.
    """
    graph = network.graph
    if missing := sorted(set(graph.inputs) - set(sample)):
        refuse(
            "a sample of each input",
            f"none of {', '.join(missing)}",
            hint="pass sample={input: batch DataFrame}, such as the first 100,000 rows of its files",
        )
    streams = {name: sample[name].withColumn(WEIGHT, F.lit(1.0)).persist() for name in graph.inputs}
    found: dict[str, BoxCost] = {}
    try:
        for box in graph.boxes.values():
            entering = [streams[arc_into(box, port).source] for port in range(len(box.sources))]
            rows_in = sum(frame.count() for frame in entering)
            leaving = network.applied(graph, box, entering)
            differences = []
            for _ in range(repetitions + 1):
                alone = sum(_seconds(frame) for frame in entering)
                differences.append(_seconds(leaving) - alone)
            kept = sorted(differences[1:])  # the first run compiles
            middle = max(statistics.median(kept), 0.0)
            streams[box.name] = leaving.persist()
            rows_out = streams[box.name].count()
            found[box.name] = BoxCost(
                cost_us=1e6 * middle / max(rows_in, 1),
                selectivity=rows_out / max(rows_in, 1),
                spread=(kept[-1] - kept[0]) / middle if middle > 0 else float("inf"),
                rows=rows_in,
            )
    finally:
        for frame in streams.values():
            frame.unpersist()
    network.update({name: (measured.cost_us, measured.selectivity) for name, measured in found.items()})
    return found


def _seconds(rows: DataFrame) -> float:
    started = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started
