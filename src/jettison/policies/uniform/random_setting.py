"""Drop rows at random: every row with the same probability, late ones with one of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jettison.core.decision import Candidates, Decision, by_share, everything
from jettison.core.documents import Seconds, Share
from jettison.core.setting import Setting, check_together
from jettison.core.spec import Spec


@dataclass(frozen=True, slots=True)
class RandomDrop(Setting):
    """Keep each row with a fixed probability, decided by a hash of its identity.

    A row that is kept at some `keep_fraction` is kept at every larger one.

    Parameters
    ----------
    keep_fraction
        Share of rows to keep, in [0, 1].
    late_keep_fraction
        Share to keep of the rows that are already older than `late_after_s` when their micro-batch starts. Such
        rows miss the latency bound whatever happens to them, so a backlog can be thinned harder than fresh rows.
        `None` treats them like all others.
    late_after_s
        Age in seconds from which a row counts as late.

    Examples
    --------
    >>> RandomDrop(keep_fraction=0.25).keeps_everything
    False
    """

    keep_fraction: Share = 1.0
    late_keep_fraction: Share | None = None
    late_after_s: Seconds | None = None

    kind: ClassVar[str] = "random"

    def check(self) -> None:
        """Late rows have both of their settings, or none."""
        check_together(late_keep_fraction=self.late_keep_fraction, late_after_s=self.late_after_s)

    @property
    def keep_fraction_of_late(self) -> float:
        return self.keep_fraction if self.late_keep_fraction is None else self.late_keep_fraction

    @property
    def keeps_everything(self) -> bool:
        """Whether no row at all is dropped, late or not."""
        return self.keep_fraction >= 1.0 and (self.late_keep_fraction is None or self.late_keep_fraction >= 1.0)

    @property
    def keeps_a_share(self) -> bool:
        return True

    def decide(self, spec: Spec, rows: Candidates) -> Decision:
        """By the hash of the identity; while everything is kept, without it."""
        if self.keeps_everything:
            return everything(rows)
        return by_share(rows.in_time(self.keep_fraction, self.keep_fraction_of_late), rows.hashes)


@dataclass(frozen=True, slots=True)
class RandomSpec(Spec):
    """Nothing beside the identity of rows need be known."""

    kind: ClassVar[str] = RandomDrop.kind
