"""`jettison bench audit`: every bound that was given on the demo's rides and on real streams, held against the truth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

import jettison as jt
from jettison.lab.bench.result import Result
from jettison.lab.bench.shed_streams import Stream, landed
from jettison.lab.recorded_session import recorded_session
from jettison.settle.audited import Verdict, audit
from jettison.settle.settle_command import verdict_table
from jettison.settle.settlement import reconcile
from jettison.spark.network_rows import union_all

_ENOUGH_BOUNDS = 30


def audits(console: Console, only: str | None = None) -> Iterator[list[Result]]:
    """How many bounds hold, stream by stream, under shares kept that change from batch to batch."""
    with recorded_session("jettison bench") as spark:
        for one in landed(console, only):
            verdicts = judged(spark, one.folder, one.stream, one.policy)
            console.print(verdict_table([verdict for verdict in verdicts if not verdict.by.startswith("window ")]))
            answers = {verdict.answer: 0 for verdict in verdicts}
            yield [_result(one.name, verdicts, answer) for answer in answers] + [_wrong_exact(one.name, verdicts)]


def judged(spark: SparkSession, folder: Path, stream: Stream, policy: str) -> list[Verdict]:
    """Shed a stream that lies in `in`, settle it, and audit the answers; shed again, it drops other rows."""
    runs = [folder / f"{policy}-{number}" for number in range(stream.runs)]
    for run in runs:
        shedder = jt.Shedder(latency="1 hour", checkpoint=run / "checkpoint", policy=stream.policy(policy))
        rows = shedder.guard(stream.source(spark.readStream).load(str(folder / "in")), row_id=list(stream.row_id))
        writer = stream.answers(rows).writeStream.format("parquet").option("path", str(run / "out"))
        shedder.start(writer.trigger(availableNow=True)).awaitTermination()
        shedder.await_books()
    checkpoint = runs[0] / "checkpoint"
    reconcile(spark, checkpoint, stream.answers, folder / f"{policy}-settled", sources=stream.source)
    given = union_all(*(spark.read.parquet(str(run / "out")) for run in runs))
    return audit(spark, checkpoint, given, keys=[stream.key])


def _result(name: str, verdicts: Sequence[Verdict], answer: str) -> Result:
    """Of all answers of one kind; the share of bounds that hold by window, where there are enough, and by rows kept."""
    whole, *apart = [one for one in verdicts if one.answer == answer]
    held = {one.by: (one.bounded, one.coverage) for one in apart if one.coverage is not None}
    windows = [share for by, (bounds, share) in held.items() if by.startswith("window ") and bounds >= _ENOUGH_BOUNDS]
    config = {
        name: getattr(whole, name) for name in ("compared", "bounded", "median_error", "bias", "missing", "surplus")
    }
    config |= {name: getattr(whole, name) for name in ("few_rows", "few_coverage")}
    config |= {"windows": len(windows), "lowest_of_a_window": min(windows, default=None)}
    config["by_rows_kept"] = {by: figures for by, figures in held.items() if not by.startswith("window ")}
    covered = math.nan if whole.coverage is None else 100 * whole.coverage
    return Result(f"{name}: {answer} within bounds", covered, "%", at_least=93.0, config=config, required=True)


def _wrong_exact(name: str, verdicts: Sequence[Verdict]) -> Result:
    """Answers that were called exact and are not."""
    wrong = sum(one.wrong_exact for one in verdicts if one.by.startswith("window "))
    return Result(f"{name}: answers called exact that are wrong", wrong, "", at_most=0.0, required=True)
