"""`jettison bench`: all benchmarks, or one by name."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from jettison import java
from jettison.bench import concept, exactness, harm, overhead, pure, replay, sharing, sifter, sifter_pure
from jettison.bench.result import Result, save, show
from jettison.errors import InvalidSetting, did_you_mean, explain
from jettison.spark.session import local_session

OnSpark = Callable[[SparkSession, Path, int], list[Result]]

ON_SPARK: Mapping[str, OnSpark] = {
    "idle-json": overhead.idle_json,
    "idle-native": overhead.idle_native,
    "dropped-row": overhead.dropped_row,
    "plan-read": overhead.plan_read,
    "sharing": sharing.sharing,
    "concept-mean": concept.grouped_mean,
    "concept-median": concept.grouped_median,
    "sifter-lookup": sifter.lookup,
    "sifter-matching": sifter.matching,
    "sifter-completeness": sifter.live_completeness,
    "exactness": exactness.exactness,
    "replay": replay.replay,
}
PURE: Mapping[str, Callable[[], list[Result]]] = {
    "controller": pure.controller,
    "coverage": pure.coverage,
    "sifter": sifter_pure.sifter,
}
APART: Mapping[str, Callable[[Console, str | None], Iterator[list[Result]]]] = {"harm": harm.harm}
"""Those that start processes of their own, and can run one case alone."""


def run_bench(
    console: Console,
    *,
    name: str | None = None,
    repetitions: int = 5,
    json_path: Path | None = None,
    only: str | None = None,
) -> list[Result]:
    """Run one benchmark or all of them, print the results and save them."""
    known = [*ON_SPARK, *PURE, *APART]
    if name is not None and name not in known:
        raise InvalidSetting(
            explain(
                f"a benchmark out of {', '.join(known)}",
                repr(name),
                hint=did_you_mean(name, known, otherwise="leave the name out to run all of them"),
            )
        )
    if repetitions < 1:
        raise InvalidSetting(
            explain(
                "--repetitions must be at least 1",
                str(repetitions),
                hint="5 alternating runs of each side tell a difference from noise",
            )
        )
    if only is not None and name not in APART:
        hint = f"name one of these benchmarks: {', '.join(APART)}"
        raise InvalidSetting(explain("--only with a benchmark of several cases", repr(name), hint=hint))
    results: list[Result] = []
    on_spark = {key: value for key, value in ON_SPARK.items() if name in (None, key)}
    if on_spark:
        java.require_java()
        with local_session("jettison bench") as spark:
            for key, benchmark in on_spark.items():
                console.print(f"{key} ...", highlight=False)
                with tempfile.TemporaryDirectory(prefix="jettison-bench-") as scratch:
                    results += benchmark(spark, Path(scratch), repetitions)
                if json_path is not None:
                    save(results, json_path)  # what is measured is not lost should the next one fail
    for key, pure_benchmark in PURE.items():
        if name in (None, key):
            console.print(f"{key} ...", highlight=False)
            results += pure_benchmark()
    for key, cases in APART.items():
        if name in (None, key):
            console.print(f"{key} ...", highlight=False)
            for found in cases(console, only):
                results += found
                if json_path is not None:
                    save(results, json_path)
    show(results, console)
    if json_path is not None:
        save(results, json_path)
        console.print(f"Results: {json_path}.", highlight=False)
    return results
