"""What samplers by key have in common: rates from the counts of earlier batches, executed as Jettison executes group drops.

The rows pass through Jettison's guard, which is native, counts keys for free and weighs rows: all in the rival's favour.
Its controller is not asked: the rates are the sampler's own.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from jettison.core.plan import DropPlan
from jettison.core.stats import Budget, Stats
from jettison.policies.base import Lesson, Policy
from jettison.policies.groups.group_keys import unpacked
from jettison.policies.groups.group_setting import GroupDrop, GroupSpec, keep_shares
from jettison.policies.groups.pane_book import IDLE_SAMPLE, KeptGroups

_DAY_US = 86_400 * 10**6
"""One pane for the whole run, on the clock of arrivals: these samplers know no windows."""

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]


class KeySampler(Policy):
    """A sampler with a rate for each key; keys that it has not counted are kept at `unknown`.

    Parameters
    ----------
    group
        SQL of a row's key.
    rows_per_s
        Rows a second to keep, about.
    """

    state_type: ClassVar[Any] = None

    def __init__(self, group: str, rows_per_s: float) -> None:
        self._group, self.rows_per_s = group, rows_per_s
        self._keys: Keys = np.empty(0, np.int64)
        self._rates: Floats = np.empty(0)
        self._day_us = 0
        self._newest_us: int | None = None
        self.unknown = 1.0

    @property
    def spec(self) -> GroupSpec:
        return GroupSpec((self._group,), "arrived", _DAY_US)

    @abstractmethod
    def rates(self, keys: Keys, rows: Floats, seconds: float) -> tuple[Keys, Floats]:
        """The share to keep of each key, after so many rows of each in so many seconds of the stream."""

    def learn(self, lesson: Lesson) -> None:
        """Count the keys of a batch; a kept row stands for as many as it weighs."""
        for point, seen in lesson.observed.items():
            if isinstance(seen, KeptGroups) and len(seen.keys):
                self._count(seen, lesson.plan.points.get(point) if lesson.plan else None)

    def _count(self, seen: KeptGroups, setting: Any) -> None:
        pane = seen.newest_us // _DAY_US
        groups, panes = unpacked(seen.keys, pane)
        kept, whole = np.asarray(seen.kept, float), setting is None or setting.keeps_everything
        shares = np.full(len(kept), IDLE_SAMPLE) if whole else keep_shares(setting, panes * _DAY_US, groups)
        keys, place = np.unique(groups, return_inverse=True)
        rows = np.bincount(place, weights=kept / np.maximum(shares, 1e-9), minlength=len(keys)).astype(float)
        if self._newest_us is not None and (seconds := (seen.newest_us - self._newest_us) / 1e6) > 0.0:
            self._keys, self._rates = self.rates(keys, rows, seconds)
        self._day_us, self._newest_us = pane * _DAY_US, max(seen.newest_us, self._newest_us or 0)

    def plan(self, stats: Stats, budget: Budget) -> DropPlan:
        """The sampler's rates, whatever the budget."""
        named = [(self._day_us, self.unknown, self._keys, self._rates)] if len(self._keys) else []
        whole = GroupDrop().naming(_DAY_US, named, keep_fraction=1.0, new=self.unknown)
        return DropPlan(0, dict.fromkeys(stats.points, whole), cause=f"rates of {len(self._keys)} keys")
