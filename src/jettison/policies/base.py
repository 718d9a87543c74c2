"""The contract of a policy. `checks.py` holds what every implementation must satisfy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from jettison.concept.book import PaneBook
from jettison.plan import DropPlan
from jettison.settings import Setting
from jettison.stats import Budget, EventTimes, Stats


@runtime_checkable
class Policy(Protocol):
    """Decides *what* to drop; the controller has decided when and how much.

    An implementation is pure: the same statistics and budget give the same plan. It reads no clock, draws no global
    random number and knows no backend.
    """

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """Spend `budget` on the drop points that `stats` names.

        The version of the returned plan is 0; whoever publishes it numbers it.
        """
        ...


@runtime_checkable
class ContinuingPolicy(Policy, Protocol):
    """A policy whose plans build on each other: what one plan has decided, the next must still hold.

    The plan itself is the state, so such a policy is as pure as any other, and its decisions survive a restart
    because plans do.
    """

    def continued(self, previous: DropPlan, stats: Stats, budget: Budget) -> DropPlan:
        """Spend `budget` without going back on anything that `previous` has decided.

        `previous` is the plan in force or, after a restart, the last one on record.
        """
        ...

    def share_kept(self, setting: Setting, times: EventTimes) -> float:
        """Share of one micro-batch's rows that `setting` is expected to have kept, from the times that they carry."""
        ...


@runtime_checkable
class WeighsLoad(Protocol):
    """A policy whose drop points stand at several depths, so that rows kept do not add up to the work done."""

    def workload(self, stats: Stats, plan: DropPlan | None) -> Stats:
        """`stats` with rows seen and kept in terms of work: kept over seen is the share of the full load.

        `plan` is the one that the batch ran under; `None` where it kept everything.
        """
        ...

    def input_share(self, point: str) -> float:
        """Part of all input rows that is expected to reach a drop point while nothing is dropped."""
        ...


@runtime_checkable
class LearnsFromCounts(Protocol):
    """A policy that keeps what it knows of the data current."""

    def learn_counts(self, stats: Stats) -> None:
        """Take note of a batch whose counts are exact; plans made from now on may differ."""
        ...


@runtime_checkable
class LearnsFromRows(Protocol):
    """A policy that is shown some of the rows themselves: a sample that no plan drops."""

    def learn_rows(self, batch_id: int, rows: Mapping[str, NDArray[np.float64]]) -> None:
        """Take note of the sampled rows of a batch, by drop point; plans made from now on may differ."""
        ...


@runtime_checkable
class LearnsFromPassRate(Protocol):
    """A policy that compares what a plan kept with what it was expected to keep."""

    def learn_pass_rate(self, stats: Stats, plan: DropPlan) -> None:
        """Take note of a batch whose counts are exact and of the plan it ran under; later plans may differ."""
        ...


@runtime_checkable
class CountsGroups(Protocol):
    """A policy that plans by group: it needs to know which groups the open windows hold."""

    def book(self) -> PaneBook:
        """An empty book for the groups of one drop point."""
        ...
