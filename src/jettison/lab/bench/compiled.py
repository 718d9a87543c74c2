"""What a running query leaves behind in the driver from batch to batch: classes that are compiled, and threads."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jettison.lab.bench.driver_process import JIT
from jettison.lab.bench.paired import Pairs, repeated
from jettison.lab.bench.result import Result
from jettison.lab.bench.steady import Steady, land_batches, steady_fares
from jettison.lab.bench.streams import in_turn

_THREADS = "spark.sql.broadcastExchange.maxThreadThreshold"
_MOST_THREADS = 1.25
"""Times those of the plain query; set after a look at 1.14."""
_WARM_UP, _BATCHES, _SPARE, _ROWS = 30, 200, 20, 100


def growth(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """Classes that Spark compiles over 200 batches of the demo's query behind an idle guard, and without one.

    Spark writes the watermark into generated code, and so compiles it again, with a guard and without, whenever the
    watermark moves. So the bar is for batches in which it stands still. Threads are those left at the end, in this session,
    which has fewer of them for broadcasts than Spark's own setting.
    """
    speeds = {"still": 0.0, "moving": 10.0}
    still, moving = (_both_sides(spark, folder / name, speed, pairs) for name, speed in speeds.items())
    how = {"batches": _BATCHES, "left_out": _WARM_UP, "rows_per_batch": _ROWS}
    pairs_moving = Pairs(moving, config=how)
    return [
        _classes(still, "while the watermark stands still", 0.0, how),
        _classes(moving, "while it moves", None, how),
        pairs_moving.over("compile threads: CPU of a batch", "guard", lambda run: run.cpu_ms[JIT], "ms"),
        _threads(moving, how | {_THREADS: spark.conf.get(_THREADS)}),
    ]


def _both_sides(spark: SparkSession, folder: Path, event_speed: float, pairs: int) -> dict[str, list[Steady]]:
    land_batches(folder / "in", _WARM_UP + _BATCHES + _SPARE, _ROWS, event_speed=event_speed)
    run = partial(steady_fares, spark, folder, warm_up=_WARM_UP, batches=_BATCHES)
    return in_turn({"plain": partial(run, None), "guard": partial(run, 1.0)}, pairs)


def _classes(found: Mapping[str, Sequence[Steady]], when: str, most: float | None, how: Mapping[str, Any]) -> Result:
    name = f"classes compiled in {_BATCHES} idle batches {when}"
    guarded, plain = ([float(run.classes) for run in found[side]] for side in ("guard", "plain"))
    return repeated(name, guarded, "classes", baseline=statistics.median(plain), at_most=most, config=how)


def _threads(found: Mapping[str, Sequence[Steady]], how: Mapping[str, Any]) -> Result:
    threads = attrgetter("threads")
    return Pairs(found, config=how).over("threads of the driver", "guard", threads, "threads", at_most=_MOST_THREADS)
