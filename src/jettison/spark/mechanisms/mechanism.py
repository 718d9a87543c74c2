"""What a kind of setting must offer to be executed by Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from pyspark.sql import Column, DataFrame

from jettison.errors import refuse
from jettison.spark.drop_point import DropPoint


class Mechanism(ABC):
    """Compiles one kind of setting into native columns, once; afterwards only the plan changes.

    The work is divided between the micro-batch and the row: `plan_fields` runs once a batch, where the plan is
    read; `decision` runs on every row and finds the fields ready.
    """

    schema: ClassVar[str]
    """The setting's fields inside the plan's JSON, as the DDL of a struct."""

    outlives_lease: ClassVar[bool] = False
    """Whether a plan stays in force even when no controller renews it any more: for decisions that cannot be taken back.

    Such a plan must run out by itself.
    """

    drops_stretches: ClassVar[bool] = False
    """Whether all rows of a stretch of time may go: then those that are left do not tell when rows arrive."""

    holds_answers_back: ClassVar[bool] = False
    """Whether answers from which rows were dropped do not come out at all, so that those that do are whole."""

    def check(self, rows: DataFrame, point: DropPoint) -> None:
        """Raise an error where this mechanism cannot work on `rows`, or not with what `point` asks for."""
        return

    def check_before_start(self, *, where: str) -> None:
        """Raise an error where the query that was built behind the drop point would give wrong answers."""
        return

    def deliver(
        self, answers: DataFrame, window: Column | str, query: str | None, plan: Column, *, where: str
    ) -> DataFrame:
        """The answers that are whole, where the mechanism holds others back; `plan` is a subquery over the newest plan."""
        hint = "write the answers as they are: each carries its own bounds"
        refuse(
            "`deliver` needs a policy that holds answers back, such as WindowDrop",
            "one whose answers all come out",
            where=where,
            hint=hint,
        )

    @abstractmethod
    def plan_fields(self, setting: Column, now_us: Column) -> Mapping[str, Column]:
        """What the decision needs, computed from the setting and the batch's time in microseconds."""

    def helpers(self, rows: DataFrame, point: DropPoint, plan: Column) -> Sequence[Mapping[str, Column]]:
        """Columns that are computed first, each once a row, because the decision uses them several times.

        They come step by step: a step may use the columns of those before it. They are dropped again. Chance comes from
        hashes and not from `rand`: Spark gives that a new seed in every micro-batch and writes it into the code that it
        generates, which is then compiled again in every micro-batch and begins as slow as in the first.
        """
        return ()

    @abstractmethod
    def decision(self, rows: DataFrame, point: DropPoint, plan: Column) -> tuple[Column, Column]:
        """Whether a row is kept, and its weight if it is.

        `plan` is a struct of the fields above, null where no plan is valid: the decision must then come out true or
        null and the weight 1 or null, both of which the guard reads as "keep".
        """

    def sample(self, rows: DataFrame, point: DropPoint) -> Sampling | None:
        """Rows to show to the policy, or `None`. No plan may drop them, and they may depend on identity alone."""
        return None

    learns_from: ClassVar[Sequence[str]] = ()
    """Helper columns that `learned` looks at."""

    def learned(self, keep: Column) -> Mapping[str, Column]:
        """Aggregates over the rows for which `keep` is true, observed once a micro-batch: what the next plan can use."""
        return {}

    def read(self, observed: Mapping[str, Any]) -> Any:
        """What `sample` and `learned` have observed, as the policy wants it; `None` where there is nothing."""
        return None

    stays: Sequence[str] = ()
    """Columns that dropped rows keep, where they stay in the stream to be counted; none where dropped rows go."""

    def marks(self, plan: Column) -> Mapping[str, Column]:
        """Columns that kept rows get beside their weight. Without a valid plan they must not be null."""
        return {}


class Sampling(NamedTuple):
    """Some of the rows, for a policy to learn from.

    Parameters
    ----------
    order
        A number of every row that is one of them, null for all others.
    report
        Makes of that number, as a column, an aggregate of bounded size to observe: the rows as text, a list of lists
        of numbers.
    """

    order: Column
    report: Callable[[Column], Column]
