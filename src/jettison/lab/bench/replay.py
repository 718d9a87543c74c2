"""`jettison bench replay`: batches interrupted and repeated under another plan keep the same rows, live on Spark."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

import jettison as jt
from jettison.core.stats import Budget
from jettison.lab.bench.result import Result
from jettison.lab.bench.scripted import keep, land
from jettison.lab.bench.scripted_queries import START, Order, by_policy

_GROUPS, _FILES = 1500, 8
_SHARES = ((0.3, 0.1), (0.7, 0.5), (1.0, 0.05), (0.05, 0.05), (1.0, 1.0))
"""Of all rows and of late ones: what the runs keep, one after the other."""


class Interrupted(RuntimeError):
    """The sink failed, so that the batch is not committed."""


@dataclass
class Attempts:
    """A sink that remembers what each attempt at a batch brought, and fails at the first attempts at some batches.

    Parameters
    ----------
    interrupts
        Whether the first attempt at a batch with this number fails.
    """

    interrupts: Callable[[int], bool]
    by_batch: dict[int, list[dict[int, float]]] = field(default_factory=dict)
    merged: dict[int, float] = field(default_factory=dict)

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Take in the rows of a batch: by attempt, and merged by id."""
        kept = {row.id: row.jt_weight for row in batch.select("id", "jt_weight").collect()}
        attempts = self.by_batch.setdefault(number, [])
        attempts.append(kept)
        self.merged |= kept
        if len(attempts) == 1 and self.interrupts(number):
            raise Interrupted(f"batch {number}")

    @property
    def repeated(self) -> list[list[dict[int, float]]]:
        return [attempts for attempts in self.by_batch.values() if len(attempts) > 1]

    @property
    def differing(self) -> int:
        """Rows that not all attempts at their batch kept, or not with one weight."""
        return sum(len(first.items() ^ other.items()) for first, *others in self.repeated for other in others)


def replay(console: Console, only: str | None = None) -> Iterator[list[Result]]:
    """Rows that differ between two attempts at a batch, for each policy."""
    return by_policy(console, only, _result)


def _result(spark: SparkSession, folder: Path, policy: str) -> Result:
    sink = interrupted_runs(spark, folder, policy, groups=_GROUPS, files=_FILES)
    kept = sum(len(attempts[0]) for attempts in sink.repeated)
    dropped = jt.Ledger(folder / "checkpoint" / "jettison" / "ledger").totals().dropped
    # Batches of which all rows or none were kept would be the same under any plan.
    differing = sink.differing if kept and dropped else math.nan
    config = {"batches_repeated": len(sink.repeated), "their_rows_kept": kept, "rows_dropped": dropped}
    name = f"{policy}: rows that differ when a batch is repeated"
    return Result(name, differing, "rows", at_most=0.0, config=config, required=True)


def interrupted_runs(spark: SparkSession, folder: Path, policy: str, *, groups: int, files: int) -> Attempts:
    """Run a query to its end; every other batch is interrupted, and repeated by a new run that plans otherwise."""
    land(folder / "in", range(files), groups=groups)
    sink = Attempts(lambda batch: batch % 2 == 1)
    for run in range(files + 1):
        if ended_well(policy, Order(spark, folder, budgets(run), sink, answers=False)):
            break
    return sink


def ended_well(policy: str, order: Order) -> bool:
    """Run a query until there is nothing more, or until its sink is interrupted; either way its books are closed."""
    shedder, query = START[policy](order)
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        if Interrupted.__name__ not in str(error):
            raise
        return False
    finally:
        shedder.await_books()
    return True


def budgets(run: int) -> Callable[[int], Budget]:
    """What a run is told to keep after each batch: another share than the runs before it."""

    def budget(batch: int) -> Budget:
        """Of this run, and another after every batch."""
        return keep(*_SHARES[(run + max(batch, 0)) % len(_SHARES)])

    return budget
