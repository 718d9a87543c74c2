"""Drop rows by priority: what weighs least goes first, and what weighs most goes last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

from jettison.core.documents import Positive, Share, checked
from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, PointStats, Stats, beside_protected, with_protected
from jettison.errors import InvalidInput, did_you_mean, refuse
from jettison.policies.base import Lesson, Policy
from jettison.policies.priority.priority_setting import LevelDrop, LevelSpec

_SMOOTHING = 0.5
_MOST_LEVELS = 16


class PriorityDrop(Policy):
    """Spend the budget on the rows that weigh most; the rest is thinned, lightest first, and no level vanishes.

    The expected share of rows processed equals the budget. Rows of a level are kept or dropped at random, with the
    weight that this gives them, so answers stay unbiased. `guard(protect=...)` stands above all levels.

    Parameters
    ----------
    priorities
        Weight by SQL predicate over the row. A row has the largest weight of those that take it, and 0 where none does.
        Predicates of one weight are one level.
    least
        Share of each level that is kept while the budget allows it, so that answers about it can still be given.

    Examples
    --------
    >>> policy = PriorityDrop({"tier = 'gold'": 2, "tier = 'silver'": 1}, least=0.05)
    >>> policy.learn(Lesson(4, observed={"rides": (100.0, 300.0, 600.0)}))
    >>> seen = Stats(batch_id=4, started_s=0.0, duration_s=1.0, points={"rides": PointStats(1000, 1000)})
    >>> budget = Budget(share=0.4, late_share=0.4, late_after_s=3.0, cause="twice too many rows")
    >>> [round(share, 3) for share in policy.plan(seen, budget).points["rides"].keeps]
    [1.0, 0.9, 0.05]
    """

    state_type: ClassVar[Any] = dict[str, list[Share]]

    def __init__(self, priorities: Mapping[str, float], *, least: float = 0.01) -> None:
        if not isinstance(priorities, Mapping) or not priorities or not all(isinstance(p, str) for p in priorities):
            hint = "pass weights by SQL text: {\"tier = 'gold'\": 2, \"tier = 'silver'\": 1}"
            refuse("`priorities` must give predicates their weights", repr(priorities), hint=hint, error=InvalidInput)
        weights = {sql: checked(f"priorities[{sql!r}]", weight, Positive) for sql, weight in priorities.items()}
        falling = sorted(weights, key=lambda sql: -weights[sql])
        alike = [list(each) for _, each in groupby(falling, key=lambda sql: weights[sql])]
        self._levels = tuple(" or ".join(f"({sql})" for sql in each) for each in alike)
        self._level_of = {sql: level for level, each in enumerate(alike) for sql in each}
        self._spared = 0  # levels, from the highest down, of which no row is dropped
        if len(self._levels) >= _MOST_LEVELS:
            hint = "give predicates that go together one weight"
            refuse(f"`priorities` must have fewer than {_MOST_LEVELS} weights", str(len(self._levels)), hint=hint)
        self._least: float = checked("least", least, Share)
        self._rows_by_level: dict[str, list[float]] = {}

    @property
    def spec(self) -> LevelSpec:
        return LevelSpec(self._levels)

    def outline(self) -> Mapping[str, Any]:
        """The levels, highest first."""
        return {"levels": list(self._levels)}

    def spare(self, predicates: Sequence[str]) -> None:
        """Drop no row that weighs as much as these predicates say, or more."""
        unknown = [sql for sql in predicates if sql not in self._level_of]
        if unknown:
            hint = did_you_mean(unknown[0], self._level_of, otherwise=f"one of {', '.join(map(repr, self._level_of))}")
            refuse("predicates that `PriorityDrop` was given", ", ".join(map(repr, unknown)), hint=hint)
        self._spared = max((self._level_of[sql] + 1 for sql in predicates), default=0)

    def learn(self, lesson: Lesson) -> None:
        """Take note of how many rows each level had."""
        for name, rows in lesson.observed.items():
            total = sum(rows)
            if len(rows) != len(self._levels) + 1 or total <= 0:
                continue
            known, now = self._rows_by_level.get(name), [count / total for count in rows]
            self._rows_by_level[name] = (
                now if known is None else [_blended(*pair) for pair in zip(known, now, strict=True)]
            )

    def state(self) -> dict[str, list[float]]:
        return self._rows_by_level

    def restore(self, state: dict[str, list[float]]) -> None:
        if any(len(shares) != len(self._levels) + 1 or sum(shares) <= 0 for shares in state.values()):
            raise ValueError("shares of other levels")
        self._rows_by_level = {name: list(shares) for name, shares in state.items()}

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """Give every drop point the shares that spend the budget, from the highest level down."""
        points = {name: self._setting(name, point, budget) for name, point in stats.points.items()}
        crowded = [name for name, setting in points.items() if budget.share > 0.0 and setting.keeps[-1] <= 0.0]
        cause = budget.cause
        if crowded and self._least > 0.0:
            cause += f"; protected rows alone exceed the budget at {', '.join(sorted(crowded))}"
        return DropPlan(0, points, cause)

    def _setting(self, name: str, point: PointStats, budget: Budget) -> LevelDrop:
        rows = self._rows_by_level.get(name)
        if budget.share >= 1.0 and budget.late_share >= 1.0:
            return LevelDrop(1.0, (1.0,) * (len(self._levels) + 1))
        share, late = (beside_protected(one, point.protected_share) for one in (budget.share, budget.late_share))
        spared = 0.0 if rows is None else sum(rows[: self._spared]) / sum(rows)
        kept, late_kept = (with_protected(beside_protected(one, spared), spared) for one in (share, late))
        return LevelDrop(kept, self._spent(share, rows), late_kept, self._spent(late, rows), budget.late_after_s)

    def _spent(self, share: float, rows: Sequence[float] | None) -> tuple[float, ...]:
        """The share of each level with which `share` of all is kept; one for all while nothing is known of the rows."""
        spared, others = (1.0,) * self._spared, len(self._levels) + 1 - self._spared
        if rows is None:
            return (*spared, *(share,) * others)
        of_others = sum(rows[self._spared :])
        share = beside_protected(share, 1.0 - of_others / sum(rows)) if self._spared else share
        least = min(self._least, share)
        left, more, keeps = share - least, 1.0 - least, []
        for part in (count / max(of_others, 1e-300) for count in rows[self._spared :]):
            more = min(more, left / part) if part > 0.0 else more  # a level without rows goes as the one above it
            left = max(left - part * more, 0.0)
            keeps.append(least + more)
        return (*spared, *keeps)


def _blended(known: float, now: float) -> float:
    return known + _SMOOTHING * (now - known)
