"""Groups that are thinned, and how far they lie from those of the pane before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from jettison.core.setting import Setting
from jettison.page.panels.panel import Drawing, Panel
from jettison.policies.groups.group_setting import GroupDrop

_MOST_GROUPS, _MOST_PANES = 100, 200


class Group(Struct):
    """A group that is thinned: the hash of its key, and the share kept."""

    hash: str
    keep_fraction: float


class GroupShares(Panel, kw_only=True, tag="groups"):
    """Groups of one drop point in the newest pane that a plan names; those thinned most come first."""

    point: str
    columns: list[str]
    pane_s: float | None
    start_s: float | None
    named: int
    others: float
    new: float
    groups: list[Group]
    at_s: list[float]
    distance: list[float | None]


class GroupPanels(Drawing):
    """The groups of each drop point."""

    def __init__(self) -> None:
        self._panes: deque[Mapping[str, Any]] = deque(maxlen=_MOST_PANES)

    def take(self, record: Mapping[str, Any]) -> None:
        """How the groups of a pane differ from those of the one before."""
        if record["record"] == "concept":
            self._panes.append(record)

    def panels(self, settings: Mapping[str, Setting], outline: Mapping[str, Any]) -> Iterator[GroupShares]:
        for point, setting in settings.items():
            if isinstance(setting, GroupDrop):
                yield self._shares(point, setting, outline)

    def _shares(self, point: str, setting: GroupDrop, outline: Mapping[str, Any]) -> GroupShares:
        named = [place for place in range(len(setting.groups)) if setting.groups[place]]
        newest = named[-1] if named else len(setting.groups) - 1
        shares: list[Group] = []
        if newest >= 0:
            pairs = zip(setting.groups[newest], setting.keeps[newest], strict=True)
            shares = [Group(f"{group & 0xFFFFFFFF:08x}", keep) for group, keep in pairs]
        panes = [pane for pane in self._panes if pane.get("point") == point]
        return GroupShares(
            point=point,
            columns=outline.get("group") or [],
            pane_s=setting.pane_us / 1e6 or None,
            start_s=setting.starts_us[newest] / 1e6 if newest >= 0 else None,
            named=len(shares),
            others=setting.others[newest] if newest >= 0 else setting.new_keep_fraction,
            new=setting.new_keep_fraction,
            groups=sorted(shares, key=lambda group: group.keep_fraction)[:_MOST_GROUPS],
            at_s=[pane["start_us"] / 1e6 for pane in panes],
            distance=[pane.get("distance") for pane in panes],
        )
