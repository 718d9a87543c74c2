"""What a rival is: how it puts rows before the query, and which settings it is tuned over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import jettison as jt
from jettison.lab.demo.pipeline import POINT, Runner
from jettison.lab.prove.loads import Load
from jettison.lab.prove.prepared import rows_in
from jettison.lab.prove.vocabulary import Bounded, Plain, Vocabulary
from jettison.lab.prove.workload import Workload
from jettison.policies.base import Policy


@dataclass(frozen=True, slots=True)
class Stage:
    """Where one run takes place; rivals that are tuned are told the capacity and the load to come, and try settings.

    Parameters
    ----------
    spark, folder
        The session; rows arrive in `in`, checkpoint and answers lie beside.
    workload, load, bound_s, capacity_rows_per_s
        What runs, under which load and bound, and what plain Spark processes.
    setting
        The rival's one figure, where it has one.
    """

    spark: SparkSession
    folder: Path
    workload: Workload
    load: Load
    bound_s: float
    capacity_rows_per_s: float
    setting: float | None = None

    def rows(self, *, files_per_batch: int | None = None) -> DataFrame:
        """The stream as it arrives."""
        return rows_in(self.spark, self.folder / "in", files_per_batch=files_per_batch)

    @property
    def tuned(self) -> float:
        """The setting, where there must be one."""
        assert self.setting is not None
        return self.setting

    @property
    def rows_per_s(self) -> float:
        """Rows a second that a rival aims at whose setting is a share of the capacity."""
        return self.tuned * self.capacity_rows_per_s

    def under(self, policy: Policy) -> Entry:
        """Rows behind one of Jettison's guards; the policy may be another's."""
        shedder = jt.Shedder(latency=self.bound_s, checkpoint=self.folder / "checkpoint", policy=policy)
        rows = shedder.guard(self.rows(), row_id="offset", arrival="timestamp", name=POINT)
        return Entry(rows, Bounded(), shedder)

    def bare(self, rows: DataFrame, say: Vocabulary | None = None) -> Entry:
        """Rows that nothing of Jettison touches."""
        return Entry(rows, say or Plain(), self.folder / "checkpoint")


@dataclass(frozen=True, slots=True)
class Entry:
    """Rows for the query, the vocabulary that fits them, and what starts it."""

    rows: DataFrame
    say: Vocabulary
    runner: Runner


@dataclass(frozen=True, slots=True)
class Rival:
    """One way to meet more rows than fit.

    Parameters
    ----------
    name, what
        As the command and the page call it.
    enter
        Puts rows before the query.
    tries
        Settings to try before it is judged, the one that keeps most first.
    delays
        Whether it delays rows and drops none: then the setting of the least latency is taken. Else the first that holds the
        bound, or the last.
    fits
        Whether it can run on a workload.
    """

    name: str
    what: str
    enter: Callable[[Stage], Entry]
    tries: tuple[float, ...] = ()
    delays: bool = False
    fits: Callable[[Workload], bool] = lambda workload: True


OF_CAPACITY = (1.0, 0.85, 0.7, 0.55, 0.4)
"""Shares of the capacity to aim at, for rivals that are given what to process."""
