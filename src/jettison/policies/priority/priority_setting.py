"""Drop rows by priority: each level of rows has a probability of its own, late rows one of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jettison.core.decision import Candidates, Decision, by_share, everything
from jettison.core.documents import Seconds, Share
from jettison.core.setting import Setting, check_together
from jettison.core.spec import Spec
from jettison.errors import refuse


@dataclass(frozen=True, slots=True)
class LevelDrop(Setting):
    """Keep each row with the probability of its level, decided by a hash of its identity.

    A level whose share is 1 is protected; one level is a `RandomDrop`.

    Parameters
    ----------
    keep_fraction, late_keep_fraction
        Share expected to be kept of all rows, and of late ones.
    keeps, late_keeps
        The same by level, the highest priority first; rows that no predicate takes are the last one.
    late_after_s
        Age in seconds from which a row counts as late.

    Examples
    --------
    >>> LevelDrop(0.4, (1.0, 0.25)).keeps_everything
    False
    """

    keep_fraction: Share = 1.0
    keeps: tuple[Share, ...] = (1.0,)
    late_keep_fraction: Share | None = None
    late_keeps: tuple[Share, ...] | None = None
    late_after_s: Seconds | None = None

    kind: ClassVar[str] = "priority"

    def check(self) -> None:
        """Late rows have all of their settings, or none, and as many levels."""
        late = {"late_keep_fraction": self.late_keep_fraction, "late_keeps": self.late_keeps}
        check_together(**late, late_after_s=self.late_after_s)
        if not self.keeps or (self.late_keeps is not None and len(self.late_keeps) != len(self.keeps)):
            hint = "give each level its share"
            refuse(
                "`keeps` and `late_keeps` must have one share a level", f"{self.keeps}, {self.late_keeps}", hint=hint
            )

    @property
    def keep_fraction_of_late(self) -> float:
        return self.keep_fraction if self.late_keep_fraction is None else self.late_keep_fraction

    @property
    def keeps_everything(self) -> bool:
        """Whether no row at all is dropped, late or not."""
        return min(self.keeps) >= 1.0 and min(self.late_keeps or (1.0,)) >= 1.0

    def decide(self, spec: Spec, rows: Candidates) -> Decision:
        """By the hash of the identity; while everything is kept, without it. Column: `level`, from 0."""
        if self.keeps_everything:
            return everything(rows)
        level = np.asarray(rows.columns["level"], int)
        late = np.array(self.keeps if self.late_keeps is None else self.late_keeps)
        return by_share(rows.in_time(np.array(self.keeps)[level], late[level]), rows.hashes)


@dataclass(frozen=True, slots=True)
class LevelSpec(Spec):
    """Which rows are of which level: SQL predicates, the highest first; all that none of them takes are the last."""

    levels: tuple[str, ...]

    kind: ClassVar[str] = LevelDrop.kind
