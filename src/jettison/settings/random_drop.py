"""Drop rows at random: every row with the same probability, late ones with one of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jettison.settings.base import check_fraction, check_late


@dataclass(frozen=True, slots=True)
class RandomDrop:
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

    keep_fraction: float = 1.0
    late_keep_fraction: float | None = None
    late_after_s: float | None = None

    kind: ClassVar[str] = "random"

    def __post_init__(self) -> None:
        check_fraction("keep_fraction", self.keep_fraction)
        check_late(self.late_after_s, late_keep_fraction=self.late_keep_fraction)

    @property
    def keeps_everything(self) -> bool:
        """Whether no row at all is dropped, late or not."""
        return self.keep_fraction >= 1.0 and (self.late_keep_fraction is None or self.late_keep_fraction >= 1.0)
