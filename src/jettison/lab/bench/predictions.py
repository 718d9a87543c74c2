"""`jettison bench predictions`: what a dry run foresees of bounds and errors, beside those of the same query when it sheds.

On the demo's rides and on the real streams of `jettison bench audit`, under shares kept that change from batch to batch.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

import jettison as jt
from jettison.answers.answer_status import BOUNDED
from jettison.lab.bench.audits import Stream, streams
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.result import Result
from jettison.lab.bench.scripted import keep
from jettison.spark.network_rows import union_all
from jettison.spark.session import local_session

_SHARES = (0.5, 0.2, 0.1)
_NEAR, _FAR = 0.8, 1.2
_ENOUGH = 200
"""Bounded answers below which the 95th percentile of their errors says too little to be judged."""
_FORESEEN = "foreseen_"


def predictions(console: Console, only: str | None = None) -> Iterator[list[Result]]:
    """Stream by stream and policy by policy; those that are not there are left out."""
    with local_session("jettison bench") as spark:
        for name, stream in chosen(streams(), only).items():
            with tempfile.TemporaryDirectory(prefix="jettison-bench-") as scratch:
                try:
                    stream.land(Path(scratch) / "in")
                except FileNotFoundError:
                    console.print(f"  {name}: not there, JETTISON_DATA names no folder with it", highlight=False)
                    continue
                for policy in stream.policies:
                    console.print(f"  {name}, {policy} ...", highlight=False)
                    yield beside(spark, Path(scratch), stream, policy, f"{name}, {policy}")


def beside(spark: SparkSession, folder: Path, stream: Stream, policy: str, name: str) -> list[Result]:
    """One dry run over the rows in `in`, and as many that shed them as the stream has runs; shed again, other rows go."""
    dry = _run(spark, folder, stream, policy, "dry", dry_run=True)
    shed = union_all(*(_run(spark, folder, stream, policy, f"shed-{number}") for number in range(stream.runs)))
    answers = [column.removeprefix(_FORESEEN) for column in dry.columns if column.startswith(_FORESEEN)]
    joined = dry.alias("dry").join(shed.alias("shed"), ["window", stream.key])
    (found,) = joined.agg(*(_figures(answer).alias(answer) for answer in answers)).collect()
    return [one for answer in answers for one in _results(f"{name}: {answer}", found[answer], stream.runs)]


def _run(
    spark: SparkSession, folder: Path, stream: Stream, policy: str, run: str, *, dry_run: bool = False
) -> DataFrame:
    def answers(rows: DataFrame) -> DataFrame:
        made = stream.answers(rows)
        watched = [field.name for field in made.schema if "foreseen" in getattr(field.dataType, "names", ())]
        return (
            made.withColumns({f"{_FORESEEN}{name}": F.col(name)["foreseen"] for name in watched}) if watched else made
        )

    made = stream.policies[policy](lambda batch: keep(_SHARES[batch % len(_SHARES)]))
    home = folder / policy / run
    shedder = jt.Shedder(latency="1 hour", checkpoint=home / "checkpoint", policy=made, dry_run=dry_run)
    rows = shedder.guard(stream.source(spark.readStream).load(str(folder / "in")), row_id=list(stream.row_id))
    writer = shedder.watch(rows, answers).writeStream.format("parquet").option("path", str(home / "out"))
    shedder.start(writer.trigger(availableNow=True)).awaitTermination()
    shedder.await_books()
    return spark.read.parquet(str(home / "out"))


def _figures(answer: str) -> Any:
    """Over all groups and windows: half widths foreseen and given, and errors relative to what was foreseen."""
    foreseen, truth, given = F.col(f"{_FORESEEN}{answer}"), F.col(f"dry.{answer}.value"), F.col(f"shed.{answer}")
    bounded = given["status"] == BOUNDED
    width = F.try_divide((given["upper"] - given["lower"]) / 2.0, F.abs(given["value"]))
    error = F.abs(given["value"] - truth)
    of_foreseen = F.try_divide(error, F.abs(truth) * foreseen["width"])
    of_given = F.try_divide(error, (given["upper"] - given["lower"]) / 2.0)
    both = bounded & foreseen["enough"]
    return F.struct(
        F.count_if(foreseen["enough"]).alias("foreseen"),
        F.count_if(bounded).alias("given"),
        F.percentile(F.when(foreseen["enough"], foreseen["width"]), [0.5, 0.95]).alias("foreseen_widths"),
        F.percentile(F.when(bounded, width), [0.5, 0.95]).alias("given_widths"),
        F.percentile(F.when(both, of_foreseen), 0.95).alias("error"),
        F.percentile(F.when(both, of_given), 0.95).alias("error_of_given"),
    )


def _results(name: str, found: Row, runs: int) -> Iterator[Result]:
    config = {"foreseen": found["foreseen"] // runs, "given": found["given"], "runs": runs}
    (foreseen, foreseen_p95), (given, given_p95) = _pair(found["foreseen_widths"]), _pair(found["given_widths"])
    label, unit = f"{name}, bound foreseen over given", "of the answer"
    bar: dict[str, Any] = {"at_least": _NEAR, "at_most": _FAR}
    yield Result(f"{label}, median", foreseen, unit, given, foreseen / given, config=config, required=True, **bar)
    yield Result(f"{label}, 95th percentile", foreseen_p95, unit, given_p95, foreseen_p95 / given_p95, config=config)
    over_errors, given_over_errors = (1.0 / (found[one] or math.nan) for one in ("error", "error_of_given"))
    judged = bar if found["given"] >= _ENOUGH else {}
    # Bounds that allow for a tail lie further out on its side than errors do.
    yield Result(
        f"{name}, bound foreseen over 95 % of errors",
        over_errors,
        "times",
        config=config | {"given_over_errors": given_over_errors},
        **judged,
    )


def _pair(widths: Sequence[float] | None) -> tuple[float, float]:
    return (math.nan, math.nan) if not widths or None in widths else (widths[0], widths[1])
