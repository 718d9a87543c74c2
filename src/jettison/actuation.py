"""How many micro-batches pass between a plan and its effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jettison.stats import Stats

_LONGEST_LAG = 4
_PLANS_REMEMBERED = 16


class PlanHistory:
    """Which batch's statistics made which plan, and so how many batches later a plan takes effect."""

    def __init__(self) -> None:
        self._made_after: dict[int, int] = {}
        self._lags: list[int] = []

    @property
    def lag(self) -> int:
        """The longest of the last few; two until a plan has shown better, because the first one must not come late."""
        return max(self._lags, default=2)

    @property
    def shortest_lag(self) -> int:
        """The shortest of the last few."""
        return min(self._lags, default=1)

    def add(self, version: int, batch_id: int) -> None:
        """Note that plan `version` was made from the statistics of `batch_id`."""
        self._made_after.setdefault(version, batch_id)
        for old in sorted(self._made_after)[:-_PLANS_REMEMBERED]:
            del self._made_after[old]

    def observe(self, stats: Stats) -> None:
        """Learn from the version that a batch ran under."""
        made_after = self._made_after.get(stats.plan_version) if stats.plan_version is not None else None
        if made_after is None or made_after < 0:
            return
        # Only the first batch under a plan tells the lag; the entry has then served its purpose.
        self._made_after[stats.plan_version or 0] = -1
        lag = min(max(stats.batch_id - made_after, 1), _LONGEST_LAG)
        self._lags = [*self._lags[-3:], lag]

    def to_dict(self) -> dict[str, Any]:
        """All state, fit for JSON."""
        return {"made_after": sorted(self._made_after.items()), "lags": list(self._lags)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PlanHistory:
        """Restore what `to_dict` gave."""
        history = cls()
        history._made_after = {int(version): int(batch_id) for version, batch_id in document["made_after"]}
        history._lags = [int(lag) for lag in document["lags"]]
        return history
