"""`jettison bench predictions`: what a dry run foresees of bounds and errors, beside those of the same query when it sheds.

On the demo's rides and on real streams, under shares kept that change from batch to batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

import jettison as jt
from jettison.answers.answer_status import BOUNDED
from jettison.lab.bench.result import Result
from jettison.lab.bench.shed_streams import Stream, landed
from jettison.lab.recorded_session import recorded_session

_NEAR, _FAR = 0.8, 1.2
_ENOUGH = {"median": 200, "95th percentile": 1000}
"""Bounded answers of a run from which a figure is judged: with fewer, chance alone moves it by more than half the bar."""
_FORESEEN = "foreseen_"
_NONE = (math.nan, math.nan)


def predictions(console: Console, only: str | None = None) -> Iterator[list[Result]]:
    """Stream by stream and policy by policy; those that are not there are left out."""
    with recorded_session("jettison bench") as spark:
        for one in landed(console, only):
            yield beside(spark, one.folder, one.stream, one.policy, one.name)


def beside(spark: SparkSession, folder: Path, stream: Stream, policy: str, name: str) -> list[Result]:
    """A dry run over the rows in `in`, and one that sheds them: each draws for itself which rows go."""
    dry = _run(spark, folder, stream, policy, "dry", dry_run=True)
    shed = _run(spark, folder, stream, policy, "shed")
    answers = [column.removeprefix(_FORESEEN) for column in dry.columns if column.startswith(_FORESEEN)]
    joined = dry.alias("dry").join(shed.alias("shed"), ["window", stream.key])
    (found,) = joined.agg(*(_figures(answer).alias(answer) for answer in answers)).collect()
    return [one for answer in answers for one in _results(f"{name}: {answer}", found[answer])]


def _run(
    spark: SparkSession, folder: Path, stream: Stream, policy: str, run: str, *, dry_run: bool = False
) -> DataFrame:
    def answers(rows: DataFrame) -> DataFrame:
        made = stream.answers(rows)
        watched = [field.name for field in made.schema if "foreseen" in getattr(field.dataType, "names", ())]
        # Wrapped, so that it is not watched as an answer of its own.
        aside = {f"{_FORESEEN}{name}": F.struct(F.col(name)["foreseen"].alias("answer")) for name in watched}
        return made.withColumns(aside) if aside else made

    home = folder / policy / run
    shedder = jt.Shedder(
        latency="1 hour", checkpoint=home / "checkpoint", policy=stream.policy(policy), dry_run=dry_run
    )
    rows = shedder.guard(stream.source(spark.readStream).load(str(folder / "in")), row_id=list(stream.row_id))
    writer = shedder.watch(rows, answers).writeStream.format("parquet").option("path", str(home / "out"))
    shedder.start(writer.trigger(availableNow=True)).awaitTermination()
    shedder.await_books()
    return spark.read.parquet(str(home / "out"))


def _figures(answer: str) -> Any:
    """Over all groups and windows: bounds and errors foreseen and given, relative to the answer."""
    truth = F.col(f"dry.{answer}.value")

    def of(one: Column) -> Column:
        bounded = one["status"] == BOUNDED
        width = F.try_divide((one["upper"] - one["lower"]) / 2.0, F.abs(one["value"]))
        error = F.try_divide(F.abs(one["value"] - truth), F.abs(truth))
        of_both = [F.percentile(F.when(bounded, part), [0.5, 0.95]) for part in (width, error)]
        return F.struct(F.count_if(bounded).alias("rows"), of_both[0].alias("bound"), of_both[1].alias("error"))

    return F.struct(
        of(F.col(f"{_FORESEEN}{answer}.answer")).alias("foreseen"), of(F.col(f"shed.{answer}")).alias("given")
    )


def _results(name: str, found: Row) -> Iterator[Result]:
    foreseen, given = found["foreseen"], found["given"]
    config = {"foreseen": foreseen["rows"], "given": given["rows"]}
    for what in ("bound", "error"):
        for share, mine, other in zip(
            ("median", "95th percentile"), foreseen[what] or _NONE, given[what] or _NONE, strict=True
        ):
            judged = foreseen["rows"] >= _ENOUGH[share]
            bar: dict[str, Any] = {"at_least": _NEAR, "at_most": _FAR, "required": True} if judged else {}
            ratio = mine / (other or math.nan)
            label = f"{name}, {share} of its {what}s, foreseen over given"
            yield Result(label, mine, "of the answer", other, ratio, config=config, **bar)
