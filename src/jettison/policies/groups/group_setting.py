"""Drop rows by group: each group that a plan names is kept at a share of its own, window by window."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.core import hashing
from jettison.core.decision import Candidates, Decision, Floats, Mask, by_share
from jettison.core.documents import Seconds, Share, rule
from jettison.core.setting import Setting, check_together
from jettison.core.spec import Spec
from jettison.errors import refuse
from jettison.policies.base import ColumnOrSql
from jettison.policies.groups.group_keys import GROUP_BITS, looked_up

Group = Annotated[
    int,
    rule(
        "must name groups by 32-bit numbers",
        "they are the upper half of the signed 64-bit hash that Spark's xxhash64 gives",
        ge=-(2**31),
        lt=2**31,
    ),
]
NamedPane = tuple[int, float, NDArray[np.int64], NDArray[np.float64]]
"""Start of a pane, the share of its other groups, the groups that it names, and their shares."""
_MOST_RECORDED = 50  # groups; a plan of 10,000 takes 200 kB, and there may be one a second
_BYTES_A_GROUP, _BYTES_BESIDE = 24, 8 * 1024  # as text, with its share; and all else in a plan
_SMALLEST_SHARE = 1e-15  # hashes have 64 bits: less cannot be told from nothing

JOIN_SALT = "keys of a join"
"""Salts the hash of groups that are decided as a whole: the same at all drop points, so that a key has one fate."""


@dataclass(frozen=True, slots=True)
class GroupDrop(Setting):
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
        Share of the rows expected to be kept, as their groups were filled so far.
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

    keep_fraction: Share = 1.0
    pane_us: int = 0
    starts_us: tuple[int, ...] = ()
    others: tuple[Share, ...] = ()
    groups: tuple[tuple[Group, ...], ...] = ()
    keeps: tuple[tuple[Share, ...], ...] = ()
    new_keep_fraction: Share = 1.0
    late_factor: Share | None = None
    late_after_s: Seconds | None = None
    whole: bool = False

    kind: ClassVar[str] = "group"

    def check(self) -> None:
        """Panes and groups have all of their parts, and are named once; so have late rows."""
        check_together(late_factor=self.late_factor, late_after_s=self.late_after_s)
        lengths = {len(part) for part in (self.starts_us, set(self.starts_us), self.others, self.groups, self.keeps)}
        if len(lengths) > 1 or (self.starts_us and self.pane_us <= 0):
            expected = "each pane needs a start, others, groups and keeps, is named once, and has a positive `pane_us`"
            got = f"{sorted(lengths)} of them, from {self.starts_us!r}, of {self.pane_us!r} us"
            refuse(expected, got, hint="a pane with nothing special has empty groups and keeps")
        for groups, keeps in zip(self.groups, self.keeps, strict=True):
            if len(groups) != len(keeps) or any(a >= b for a, b in pairwise(groups)):
                got = f"{len(keeps)} shares for {len(groups)} groups, {groups[:5]!r} ..."
                hint = "sort them, and where two name one group keep the larger share"
                refuse("each group needs a share, and groups must ascend, each named once", got, hint=hint)

    @property
    def named_groups(self) -> int:
        """Groups that have a share of their own, over all panes."""
        return sum(map(len, self.groups))

    @property
    def abridged(self) -> tuple[GroupDrop, dict[str, Any]] | None:
        """For records: the setting without its panes, and what those were in brief; `None` where it is short enough.

        Shares of groups change with every micro-batch, and nothing is ever restored from them: a pane of which a new run
        knows nothing is planned from the start.
        """
        if self.named_groups <= _MOST_RECORDED:
            return None
        panes = (self.pane_us, self.starts_us, self.others, self.groups, self.keeps)
        digest = hashlib.sha256(json.dumps(panes, separators=(",", ":")).encode()).hexdigest()
        named = [len(groups) for groups in self.groups]
        left = replace(self, pane_us=0, starts_us=(), others=(), groups=(), keeps=())
        return left, {"starts_us": self.starts_us, "others": self.others, "named_groups": named, "sha256": digest}

    @property
    def keep_fraction_of_late(self) -> float:
        return self.keep_fraction * (1.0 if self.late_factor is None else self.late_factor)

    @property
    def keeps_everything(self) -> bool:
        shares = (self.new_keep_fraction, *self.others, *(share for keeps in self.keeps for share in keeps))
        return min(shares) >= 1.0 and (self.late_factor is None or self.late_factor >= 1.0)

    def naming(self, pane_us: int, panes: Sequence[NamedPane], *, keep_fraction: float, new: float) -> GroupDrop:
        """The setting with these panes, `new` the share of all others; shares are rounded down."""
        return replace(
            self,
            keep_fraction=keep_fraction,
            pane_us=pane_us if panes else 0,
            starts_us=tuple(start for start, _, _, _ in panes),
            others=tuple(rounded_down(other) for _, other, _, _ in panes),
            groups=tuple(tuple(groups.tolist()) for _, _, groups, _ in panes),
            keeps=tuple(tuple(map(rounded_down, keeps.tolist())) for _, _, _, keeps in panes),
            new_keep_fraction=rounded_down(new),
        )

    def decide(self, spec: Spec, rows: Candidates) -> Decision:
        """By the hash of the identity, against the share of the group in its pane.

        Where groups are decided as a whole, one that is not named in a pane that is goes by a hash of its own. Columns:
        `group`, the upper half of the group's hash, and `time_us`.
        """
        assert isinstance(spec, GroupSpec)
        group, time_us = (np.asarray(rows.columns[name], np.int64) for name in ("group", "time_us"))
        share = keep_shares(self, time_us, group)
        factor, hashes = 1.0 if self.late_factor is None else self.late_factor, rows.hashes
        if spec.whole:
            together = hashing.salted(JOIN_SALT, group << np.int64(GROUP_BITS), rows.token)
            hashes = np.where(_is_unnamed(self, time_us, group), together, hashes)
        return by_share(rows.in_time(share, share * factor), hashes)


def groups_within(plan_bytes: int) -> int:
    """How many groups a plan of that size can name."""
    return max(plan_bytes - _BYTES_BESIDE, 0) // _BYTES_A_GROUP


def bytes_of_groups(count: int) -> int:
    """Size of a plan that names so many groups.

    >>> groups_within(bytes_of_groups(20_000)) >= 20_000
    True
    """
    return _BYTES_A_GROUP * count + _BYTES_BESIDE


def rounded_down(share: float) -> float:
    """A share with four digits, for a small plan; never more than it was, so that budgets hold.

    >>> rounded_down(0.0123456), rounded_down(1.0), rounded_down(0.0)
    (0.01234, 1.0, 0.0)
    """
    if share < _SMALLEST_SHARE:
        return 0.0
    if share >= 1.0:
        return 1.0
    place = 3 - math.floor(math.log10(share))
    rounded = float(f"{math.floor(share * 10.0**place)}e-{place}")
    return rounded if rounded <= share else share


def keep_shares(setting: GroupDrop, times_us: ArrayLike, groups: ArrayLike) -> Floats:
    """Probability of each row to be kept, from its time and the hash of its group. A row that is not late.

    >>> setting = GroupDrop(0.4, 10, (0,), (0.9,), ((7,),), ((0.25,),), new_keep_fraction=0.5)
    >>> keep_shares(setting, [3, 3, 13], [7, 8, 7]).tolist()
    [0.25, 0.9, 0.5]
    """
    time, group = np.asarray(times_us, np.int64), np.asarray(groups, np.int64)
    share = np.full(time.shape, setting.new_keep_fraction)
    for start, other, named, keeps in zip(
        setting.starts_us, setting.others, setting.groups, setting.keeps, strict=True
    ):
        here = (time >= start) & (time < start + setting.pane_us)
        share[here] = looked_up(np.array(named, np.int64), np.array(keeps), group[here], other)
    return share


def other_share(setting: GroupDrop, start_us: int) -> float:
    """Probability of a row in the pane that starts then, if its group is not named.

    >>> other_share(GroupDrop(0.4, 10, (0,), (0.9,), ((),), ((),), new_keep_fraction=0.5), 10)
    0.5
    """
    if start_us in setting.starts_us:
        return setting.others[setting.starts_us.index(start_us)]
    return setting.new_keep_fraction


def _is_unnamed(setting: GroupDrop, time_us: NDArray[np.int64], group: NDArray[np.int64]) -> Mask:
    """Whether a row lies in a pane that the setting knows, and its group is not named there."""
    found = np.zeros(len(time_us), bool)
    for start, named in zip(setting.starts_us, setting.groups, strict=True):
        here = (time_us >= start) & (time_us < start + setting.pane_us)
        found[here] = ~np.isin(group[here], named)
    return found


@dataclass(frozen=True, slots=True)
class GroupSpec(Spec):
    """What a row's group and time are: names of columns, SQL over the row, or a backend's own columns.

    Parameters
    ----------
    columns
        Of the group.
    time, pane_us
        Of the event, and the length of the panes in which groups are counted.
    value
        What the query aggregates, where its variation is to be observed.
    dropped_rows_stay
        They keep the columns of group and time, to be counted.
    whole
        Groups that a plan does not name are decided as a whole, alike at all drop points.
    """

    columns: tuple[ColumnOrSql, ...]
    time: ColumnOrSql
    pane_us: int
    value: ColumnOrSql | None = None
    dropped_rows_stay: bool = False
    whole: bool = False

    kind: ClassVar[str] = GroupDrop.kind
