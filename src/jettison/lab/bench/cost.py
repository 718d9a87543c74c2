"""`jettison bench cost`: what a guard costs while nothing is wrong, and what it keeps under overload, beside plain Spark.

Each case runs in a process of its own, both sides of a pair in the same one, in turn.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from jettison.lab.bench import compiled, concept, cost_live, overhead, sharing
from jettison.lab.bench.cases import chosen
from jettison.lab.bench.result import Result
from jettison.lab.fresh_process import in_fresh_process
from jettison.lab.recorded_session import recorded_session

OnSpark = Callable[[SparkSession, Path, int], list[Result]]
_PAIR_S, _SLACK_S = 600.0, 600.0
"""Far more than a pair takes on a busy machine, and the start and the warm-up."""

ON_SPARK: Mapping[str, OnSpark] = {
    "small-batch": overhead.small_batch,
    "small-batch-parts": overhead.small_batch_parts,
    "large-batch": overhead.large_batch,
    "empty-batch": overhead.empty_batch,
    "native": overhead.native,
    "watched": overhead.watched,
    "dropped-row": overhead.dropped_row,
    "compiled": compiled.growth,
    "sinks": sharing.side_by_side,
    "groups": concept.over_uniform,
    "first-phase": cost_live.first_phase,
}
"""Cases whose pairs share a session."""
LIVE: Mapping[str, Callable[[int], list[Result]]] = {
    "readme-3s": cost_live.readme_3s,
    "readme-5s": cost_live.readme_5s,
    "overload-10x": cost_live.overload_10x,
}
"""Cases whose pairs have a process each, because a query is only new to a JVM once."""
CASES = (*ON_SPARK, *LIVE)


def cost(console: Console, only: str | None, pairs: int) -> Iterator[list[Result]]:
    """Run all cases, or one, and yield each one's results as they come."""
    for name in chosen(dict.fromkeys(CASES), only):
        console.print(f"  {name} ...", highlight=False)
        try:
            if name in LIVE:
                found = LIVE[name](pairs)
            else:
                found = in_fresh_process(_SLACK_S + pairs * _PAIR_S, _in_this_process, name, pairs)
            yield [replace(one, config={"case": name, **one.config}) for one in found]
        except Exception as error:  # whatever its process died of, the other cases have something to say
            console.print(f"    {error}", highlight=False)
            yield [Result(f"{name}: runs to its end", 0.0, "", at_least=1.0, required=True)]


def _in_this_process(name: str, pairs: int) -> list[Result]:
    with (
        recorded_session("jettison bench cost") as spark,
        tempfile.TemporaryDirectory(prefix="jettison-cost-") as scratch,
    ):
        return ON_SPARK[name](spark, Path(scratch), pairs)
