"""The contract of a policy. `checks.py` holds what every implementation must satisfy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from jettison.core.plan import PLAN_BYTES, DropPlan
from jettison.core.setting import Setting
from jettison.core.spec import Spec
from jettison.core.stats import Budget, EventTimes, Stats
from jettison.errors import refuse

ColumnOrSql: TypeAlias = Any
"""Name of a column, SQL over the row, or a backend's own column, as a `Column` of Spark: only a backend looks inside."""


def listed(columns: ColumnOrSql | Sequence[ColumnOrSql], argument: str) -> tuple[ColumnOrSql, ...]:
    """One column or several, as a tuple; refused where there is none.

    >>> listed("route", "group"), listed(["city", "hour"], "group")
    (('route',), ('city', 'hour'))
    """
    found = tuple(columns) if isinstance(columns, list | tuple) else (columns,)
    if not found or any(one is None or (isinstance(one, str) and not one) for one in found):
        refuse(f"`{argument}` must name a column", repr(columns), hint="pass the column, or SQL, that the query uses")
    return found


STATE_BYTES = 4 * 2**20
"""Most bytes that the state of a policy may take as text; what takes more is not saved."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a policy is told of a batch: once when it has ended, and once more when its rows have been counted.

    Parameters
    ----------
    batch_id
        Number of the micro-batch.
    plan
        The one that it ran under; `None` where it found none and kept everything.
    observed
        By drop point, what the mechanism has observed for the policy: nobody else looks at it. Empty the second time.
    event_times
        Times that the rows carry; `None` where the query has no watermark, or the batch no rows.
    counted
        The second time, exact counts of rows; else `None`.
    dry_run
        The counts say what would have been kept, while every row was.
    """

    batch_id: int
    plan: DropPlan | None = None
    observed: Mapping[str, Any] = field(default_factory=dict)
    event_times: EventTimes | None = None
    counted: Stats | None = None
    dry_run: bool = False


class Policy(ABC):
    """Decides *what* to drop; the controller has decided when and how much.

    An implementation reads no clock, draws no global random number and knows no backend: what it has been taught, the
    statistics and the budget decide. It belongs to one query.
    """

    __slots__ = ()

    takes_protected: ClassVar[bool] = True
    """Whether some rows may be excepted from all plans."""

    state_type: ClassVar[Any] = None
    """Type of the document that holds what it has learned; `None` where plans depend on nothing that it learns."""

    @property
    @abstractmethod
    def spec(self) -> Spec:
        """What a backend must know when the query is compiled: the kind of settings, and what of them never changes."""

    @property
    def points(self) -> tuple[str, ...] | None:
        """Names of the drop points that it plans for; `None` where any will do."""
        return None

    @property
    def plan_bytes(self) -> int:
        """Bytes that its next plan would like to take as text; `Stats.plan_bytes` says how many it may."""
        return PLAN_BYTES

    @property
    def unavoidable_share(self) -> float:
        """Share of the unprotected rows, or of the load, that no plan goes below whatever the budget."""
        return 0.0

    def outline(self) -> Mapping[str, Any]:
        """What of its plans never changes, in the terms of JSON, for whoever looks at them: written with each start."""
        return {}

    @abstractmethod
    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """Spend `budget` on the drop points that `stats` names.

        The version of the returned plan is 0; whoever publishes it numbers it.
        """

    def continued(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        """Spend `budget` without going back on what `previous` has decided, where plans build on each other.

        `previous` is the plan in force or, after a restart, the last one on record: the plan itself is the state.
        """
        return self.plan(stats, budget)

    def spare(self, predicates: Sequence[str]) -> None:
        """Drop no row that one of these takes, from the next plan on, in place of those spared before.

        Raises `InvalidSetting`, and changes nothing, where plans cannot tell such rows from others.
        """
        if predicates:
            hint = "Spark compiles predicates when the query starts: give it to `guard(protect=...)`, and start again"
            refuse("predicates that the query was started with", ", ".join(map(repr, predicates)), hint=hint)

    def learn(self, lesson: Lesson) -> None:
        """Take note of a batch; plans made from now on may differ."""
        return

    def state(self) -> Any:
        """What it has learned and what is still true after a restart, as `state_type`; `restore` goes on from there.

        Saved after every batch, in at most `STATE_BYTES`. Restored only under a policy of the same class and spec.
        """
        return None

    def restore(self, state: Any) -> None:
        """Know what `state` says, in place of all that was learned; raises `ValueError` where it cannot be true."""
        return

    def expected_share(self, setting: Setting, times: EventTimes) -> float:
        """Share of one micro-batch's rows that `setting` is expected to have kept, from the times that they carry."""
        return setting.keep_fraction

    def workload(self, stats: Stats, plan: DropPlan | None) -> Stats:
        """`stats` with rows seen and kept in terms of work: kept over seen is the share of the full load.

        `plan` is the one that the batch ran under; `None` where it kept everything.
        """
        return stats

    def input_share(self, point: str) -> float | None:
        """Part of all input rows that is expected to reach a drop point while nothing is dropped; `None` if unknown."""
        return None

    def take_records(self) -> Sequence[Mapping[str, Any]]:
        """For the ledger: what the policy has found out since this was last asked, each with its kind under `record`."""
        return ()
