"""The policy itself among the methods: planned by `ConceptDrop`, its counts learned from the rows it kept, as on an engine.

`methods.Strict` shows what the rule can do when the groups of dropped rows are counted too. This shows what a query gets.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jettison.concept.book import IDLE_SAMPLE, KeptGroups, PaneBook
from jettison.concept.keys import packed
from jettison.concept.obey import keep_shares
from jettison.policies.concept_drop import ConceptDrop
from jettison.reproduce.concept.methods import Kept, pieces
from jettison.reproduce.concept.streams import Window
from jettison.settings import GroupDrop
from jettison.stats import Budget, PointStats, Stats

_PANE_US = 600_000_000
_LISTED = 2_000  # groups of a micro-batch that the guard on Spark reports by name


@dataclass
class AsShipped:
    """`ConceptDrop` as it comes, a plan after every micro-batch and in force for the next one.

    By default a latency bound asks for the share in every micro-batch. With `strict` it is a budget of rows a window, and
    the first rows of a window are kept whole.

    Parameters
    ----------
    max_groups
        Groups that a plan has room for; the policy's own default, unless given.
    strict
        Whether it is `ConceptDrop(rows=..., strict=True)`.
    batches
        Micro-batches in a window.
    """

    name: str = "ConceptDrop itself"
    max_groups: int | None = None
    strict: bool = False
    batches: int = 60
    _pane: int = 0
    _book: PaneBook | None = None
    _setting: GroupDrop = field(default_factory=GroupDrop)

    def keep(self, window: Window, share: float, random: np.random.Generator) -> Kept:
        """One pane: keep by the plan in force, report what was kept, plan anew."""
        policy, budget = self._policy(window, share)
        book = self._book = self._book or policy.book()
        keep, weight = np.zeros(window.rows, bool), np.ones(window.rows)
        for number, piece in enumerate(pieces(window.rows, self.batches)):
            groups = window.groups[piece]
            shares = keep_shares(self._setting, np.full(len(groups), self._pane * _PANE_US), groups)
            mine = keep[piece] = random.random(len(groups)) < shares
            weight[piece] = 1.0 / shares  # never 0: every row has a chance
            newest_us = int((self._pane + (number + 1) / self.batches) * _PANE_US) - 1
            if self._setting.keeps_everything:
                mine = mine & (random.random(len(groups)) < IDLE_SAMPLE)
            book.learn(_report(groups[mine], self._pane, newest_us), self._setting)
            book.close(book.oldest_open_us or 0)
            point = PointStats(len(groups), int(keep[piece].sum()), windows=book.tallies)
            made = policy.plan(Stats(number, 0.0, 1.0, {"rows": point}), budget).points["rows"]
            assert isinstance(made, GroupDrop)
            self._setting = made
        self._pane += 1
        return keep, weight

    def _policy(self, window: Window, share: float) -> tuple[ConceptDrop, Budget]:
        rows = max(1, round(share * window.rows)) if self.strict else None
        latency = 1.0 if self.strict else share
        policy = ConceptDrop(group="group", time="time", window="10 minutes", rows=rows, strict=self.strict)
        if self.max_groups is not None:
            policy = ConceptDrop("group", "time", "10 minutes", rows, strict=self.strict, max_groups=self.max_groups)
        return policy, Budget(latency, latency, 3600.0, "so much can be processed")


def _report(groups: NDArray[np.int64], pane: int, newest_us: int) -> KeptGroups:
    found, kept = np.unique(groups, return_counts=True)
    largest = np.argsort(-kept, kind="stable")[:_LISTED]
    keys = packed(found[largest], np.full(len(largest), pane))
    return KeptGroups(tuple(keys.tolist()), tuple(kept[largest].tolist()), len(groups), newest_us)
