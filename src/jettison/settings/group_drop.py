"""Drop rows by group: each group that a plan names is kept at a share of its own, window by window."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from jettison.errors import InvalidSetting, explain
from jettison.settings.base import check_fraction, check_late

_MOST_RECORDED = 50  # groups; a plan of 10,000 takes 200 kB, and there may be one a second
_SMALLEST_SHARE = 1e-15  # hashes have 64 bits: less cannot be told from nothing


@dataclass(frozen=True, slots=True)
class GroupDrop:
    """Keep each row with the probability of its group in its pane, decided by a hash of the row's identity.

    A *pane* is the time between two consecutive window starts; a row lies in one. The plan names panes by their start
    and, in each, the groups to thin by a 32-bit hash of their key, so that its size hangs on their number alone and
    not on what the keys look like. A row's probability is

    1. its group's, if the plan names the group in the row's pane;
    2. that of all other groups, if it names the pane;
    3. `new_keep_fraction`, if it does not;

    times `late_factor`, if the row is late. Two keys with one hash share a probability, which biases nothing: each
    row weighs the inverse of the probability that it had.

    Parameters
    ----------
    keep_fraction
        Share of rows that the plan is expected to keep, of the rows to come.
    pane_us
        Length of a pane in microseconds; 0 where the plan names none.
    starts_us
        Starts of the panes, in microseconds since the epoch.
    others
        For each pane, the share to keep of groups that are not named.
    groups, keeps
        For each pane, hashes of the groups to thin, ascending, and the share to keep of each.
    new_keep_fraction
        Share to keep of the rows in panes that are not named: nothing is known of them yet.
    late_factor, late_after_s
        Rows older than `late_after_s` when their batch starts are kept at this factor of their share. `None` treats
        them like all others.
    whole
        In panes that are named, rows of groups that are not are decided by a hash of their group and not of their own: they
        are kept or dropped together, and alike at all drop points. For joins, where the group is the join key.

    Examples
    --------
    >>> setting = GroupDrop(0.4, 600_000_000, (0,), (1.0,), ((-5, 77),), ((0.25, 0.01),))
    >>> setting.keeps_everything, setting.named_groups
    (False, 2)
    """

    keep_fraction: float = 1.0
    pane_us: int = 0
    starts_us: tuple[int, ...] = ()
    others: tuple[float, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    keeps: tuple[tuple[float, ...], ...] = ()
    new_keep_fraction: float = 1.0
    late_factor: float | None = None
    late_after_s: float | None = None
    whole: bool = False

    kind: ClassVar[str] = "group"

    def __post_init__(self) -> None:
        # JSON knows no tuples.
        object.__setattr__(self, "starts_us", tuple(self.starts_us))
        object.__setattr__(self, "others", tuple(self.others))
        object.__setattr__(self, "groups", tuple(map(tuple, self.groups)))
        object.__setattr__(self, "keeps", tuple(map(tuple, self.keeps)))
        check_fraction("keep_fraction", self.keep_fraction)
        check_fraction("new_keep_fraction", self.new_keep_fraction)
        self._check_panes()
        check_late(self.late_after_s, late_factor=self.late_factor)

    def _check_panes(self) -> None:
        lengths = {len(self.starts_us), len(self.others), len(self.groups), len(self.keeps)}
        if len(lengths) > 1:
            raise InvalidSetting(
                explain(
                    "each pane needs a start, others, groups and keeps",
                    f"{sorted(lengths)} of them",
                    hint="give all four the same length; a pane with nothing special has empty groups and keeps",
                )
            )
        if self.starts_us and self.pane_us <= 0:
            raise InvalidSetting(
                explain(
                    "`pane_us` must be positive",
                    repr(self.pane_us),
                    hint="pass the length of a pane in microseconds: 10 s are 10_000_000",
                )
            )
        if len(set(self.starts_us)) != len(self.starts_us):
            raise InvalidSetting(
                explain(
                    "a pane may be named once", repr(self.starts_us), hint="put all groups of a pane into one entry"
                )
            )
        for share in self.others:
            check_fraction("others", share)
        for groups, keeps in zip(self.groups, self.keeps, strict=True):
            if len(groups) != len(keeps):
                raise InvalidSetting(
                    explain(
                        "each group needs a share",
                        f"{len(groups)} groups and {len(keeps)} shares",
                        hint="give `keeps` one share for each group, in the same order",
                    )
                )
            if any(a >= b for a, b in pairwise(groups)):
                raise InvalidSetting(
                    explain(
                        "groups must ascend, each named once",
                        f"{groups[:5]!r} ...",
                        hint="sort them, and where two name one group keep the larger share",
                    )
                )
            if groups and not -(2**31) <= groups[0] <= groups[-1] < 2**31:
                raise InvalidSetting(
                    explain(
                        "a group is a 32-bit number",
                        f"{groups[0]} to {groups[-1]}",
                        hint="groups are named by the upper half of the signed 64-bit hash that Spark's xxhash64 gives",
                    )
                )
            for share in keeps:
                check_fraction("keeps", share)

    @property
    def named_groups(self) -> int:
        """Groups that have a share of their own, over all panes."""
        return sum(map(len, self.groups))

    @property
    def abridged(self) -> tuple[GroupDrop, dict[str, Any]] | None:
        """For records: the setting without its panes, and what those were in brief; `None` where it is short enough.

        Shares of groups change with every micro-batch, and nothing is ever restored from them: a pane of which a new run
        knows nothing is planned anew.
        """
        if self.named_groups <= _MOST_RECORDED:
            return None
        panes = (self.pane_us, self.starts_us, self.others, self.groups, self.keeps)
        digest = hashlib.sha256(json.dumps(panes, separators=(",", ":")).encode()).hexdigest()
        named = [len(groups) for groups in self.groups]
        left = replace(self, pane_us=0, starts_us=(), others=(), groups=(), keeps=())
        return left, {"starts_us": self.starts_us, "others": self.others, "named_groups": named, "sha256": digest}

    @property
    def keeps_everything(self) -> bool:
        """Whether no row at all is dropped."""
        shares = (self.new_keep_fraction, *self.others, *(share for keeps in self.keeps for share in keeps))
        return min(shares) >= 1.0 and (self.late_factor is None or self.late_factor >= 1.0)


def rounded_down(share: float, digits: int = 4) -> float:
    """A share with few digits, for a small plan; never more than it was, so that budgets hold.

    >>> rounded_down(0.0123456), rounded_down(1.0), rounded_down(0.0)
    (0.01234, 1.0, 0.0)
    """
    if share < _SMALLEST_SHARE:
        return 0.0
    if share >= 1.0:
        return 1.0
    place = digits - 1 - math.floor(math.log10(share))
    rounded = float(f"{math.floor(share * 10.0**place)}e-{place}")
    return rounded if rounded <= share else share
