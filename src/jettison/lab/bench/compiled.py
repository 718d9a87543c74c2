"""What a running query leaves behind in the driver from batch to batch: classes that are compiled, and threads."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from jettison.lab.bench.paired import over
from jettison.lab.bench.result import Result
from jettison.lab.bench.steady import land_batches, steady_fares
from jettison.lab.bench.streams import in_turn

_WARM_UP, _BATCHES, _SPARE, _ROWS = 30, 200, 20, 100


def growth(spark: SparkSession, folder: Path, pairs: int) -> list[Result]:
    """Classes that Spark compiles over 200 batches of the demo's query behind an idle guard, and without one.

    The number of classes does not vary as times do: one run of each side tells it, whatever `pairs` says.
    """
    land_batches(folder / "in", _WARM_UP + _BATCHES + _SPARE, _ROWS)
    run = partial(steady_fares, spark, folder, warm_up=_WARM_UP, batches=_BATCHES)
    found = in_turn({"plain": partial(run, None), "guard": partial(run, 1.0)}, 1)
    (plain,), (guarded,) = found["plain"], found["guard"]
    how = {"batches": _BATCHES, "left_out": _WARM_UP, "rows_per_batch": _ROWS}
    return [
        Result(
            f"classes compiled in {_BATCHES} idle batches",
            value=guarded.classes,
            unit="classes",
            baseline=plain.classes,
            at_most=0.0,
            config=how,
            required=True,
        ),
        over(
            "compile threads: CPU of a batch", found, "guard", lambda run: run.cpu_ms["JIT compiler"], "ms", config=how
        ),
        over("threads of the driver", found, "guard", lambda run: float(run.threads), "threads", config=how),
    ]
