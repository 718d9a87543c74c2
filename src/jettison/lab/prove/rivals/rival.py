"""What a rival is: how it puts rows before the query, and what its one setting follows from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jettison as jt
from jettison.lab.bench.streams import KeepShare
from jettison.lab.demo.pipeline import POINT, Runner
from jettison.lab.prove.loads import Load
from jettison.lab.prove.prepared import rows_in
from jettison.lab.prove.vocabulary import WEIGHT, Bounded, Plain, Vocabulary, Weighted
from jettison.lab.prove.workload import Workload
from jettison.policies.base import Policy

SAFE = 0.85
"""Share of its own capacity that a rival is set to: batches vary, and a row that is dropped costs something too."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where one run takes place; rivals that have a setting are told the load to come and what they can process themselves.

    Parameters
    ----------
    spark, folder
        The session; rows arrive in `in`, checkpoint and answers lie beside.
    workload, load, bound_s, capacity_rows_per_s
        What runs, under which load and bound, and what plain Spark processes.
    setting
        The rival's one figure, where it has one: rows a second, or seconds of the capacity in a batch.
    files_per_batch
        Cap on a batch, where rows are not to be taken as they come.
    """

    spark: SparkSession
    folder: Path
    workload: Workload
    load: Load
    bound_s: float
    capacity_rows_per_s: float
    setting: float | None = None
    files_per_batch: int | None = None

    def rows(self) -> DataFrame:
        """The stream as it arrives."""
        return rows_in(self.spark, self.folder / "in", files_per_batch=self.files_per_batch)

    @property
    def tuned(self) -> float:
        """The setting, where there must be one."""
        assert self.setting is not None
        return self.setting

    def under(
        self, policy: Policy, say: Vocabulary | None = None, *, capacity_rows_per_s: float | None = None
    ) -> Entry:
        """Rows behind one of Jettison's guards. Another's policy says its answers without bounds, which are Jettison's."""
        shedder = jt.Shedder(
            latency=self.bound_s,
            checkpoint=self.folder / "checkpoint",
            policy=policy,
            capacity_rows_per_s=capacity_rows_per_s,
        )
        rows = shedder.guard(self.rows(), row_id="offset", arrival="timestamp", name=POINT)
        return Entry(rows, say or Bounded(), shedder)

    def bare(self, rows: DataFrame, say: Vocabulary | None = None) -> Entry:
        """Rows that nothing of Jettison touches."""
        return Entry(rows, say or Plain(), self.folder / "checkpoint")


@dataclass(frozen=True, slots=True)
class Entry:
    """Rows for the query, the vocabulary that fits them, and what starts it."""

    rows: DataFrame
    say: Vocabulary
    runner: Runner


Enter = Callable[[Stage], Entry]


def weighted(stage: Stage) -> Entry:
    """All rows, each of weight 1, in the vocabulary of weights: what such a rival processes while it drops nothing."""
    return stage.bare(stage.rows().withColumn(WEIGHT, F.lit(1.0)), Weighted())


def guarded(stage: Stage) -> Entry:
    """The same behind a guard that keeps all rows."""
    return stage.under(KeepShare(1.0), Weighted())


@dataclass(frozen=True, slots=True)
class Rival:
    """One way to meet more rows than fit.

    Parameters
    ----------
    name, what
        As the command and the page call it.
    enter
        Puts rows before the query.
    unshed
        The same with all rows kept. What it processes then sets the rate of a rival that must be given one.
    of_own
        Share of that which it is set to.
    sizes
        Settings, in seconds of the capacity, of which that of the best throughput is taken.
    delays
        Whether it delays rows and drops none.
    fits
        Whether it can run on a workload.
    """

    name: str
    what: str
    enter: Enter
    unshed: Enter | None = None
    of_own: float = SAFE
    sizes: tuple[float, ...] = ()
    delays: bool = False
    fits: Callable[[Workload], bool] = lambda workload: True

    @property
    def is_set(self) -> bool:
        """Whether it has a setting."""
        return self.unshed is not None or bool(self.sizes)

    def is_hopeless(self, load: Load, capacity_rows_per_s: float) -> bool:
        """Whether rows can only pile up: a few runs show it."""
        return self.delays and load.peak_rows_per_s > capacity_rows_per_s
