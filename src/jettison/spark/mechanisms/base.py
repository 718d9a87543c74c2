"""What a kind of setting must offer to be executed by Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from pyspark.sql import Column, DataFrame

from jettison.spark.drop_point import DropPoint


class Mechanism(Protocol):
    """Compiles one kind of setting into native columns, once; afterwards only the plan changes.

    A mechanism whose decisions cannot be taken back has `outlives_lease = True`: its plan is obeyed even when no
    controller renews it any more, so such a plan must run out by itself.

    The work is divided between the micro-batch and the row: `plan_fields` runs once a batch, inside the subquery
    that reads the plan; `decision` runs on every row and finds the fields ready.
    """

    schema: str
    """The setting's fields inside the plan's JSON, as the DDL of a struct."""

    def plan_fields(self, setting: Column, now_us: Column) -> Mapping[str, Column]:
        """What the decision needs, computed from the setting and the batch's time in microseconds."""
        ...

    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        """Whether a row is kept, and its weight if it is.

        `plan` is a struct of the fields above, null where no plan is valid: the decision must then come out true or
        null and the weight 1 or null, both of which the guard reads as "keep".
        """
        ...


@runtime_checkable
class WithHelpers(Protocol):
    """A mechanism that computes columns first, each once a row, because its decision uses them several times."""

    def helpers(self, rows: DataFrame, plan: Column) -> Sequence[Mapping[str, Column]]:
        """Helper columns, step by step: a step may use the columns of those before it. They are dropped again."""
        ...


@runtime_checkable
class Learns(Protocol):
    """A mechanism that wants to know something of the rows that were kept, so that the next plan can be better."""

    learns_from: Sequence[str]
    """Helper columns that it looks at."""

    def learned(self, keep: Column) -> Mapping[str, Column]:
        """Aggregates over the rows for which `keep` is true, observed once a micro-batch."""
        ...


@runtime_checkable
class Empties(Protocol):
    """A mechanism that can leave dropped rows in the stream without what they carry, so that they are still counted."""

    stays: Sequence[str]
    """Columns that dropped rows keep; none where dropped rows go."""


@runtime_checkable
class Marks(Protocol):
    """A mechanism that tells more of a kept row than its weight."""

    def marks(self, plan: Column) -> Mapping[str, Column]:
        """Columns that kept rows get beside their weight; without a valid plan they must not be null."""
        ...
