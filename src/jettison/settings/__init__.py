"""Settings of drop points: what a plan tells one of them to do. One kind per file."""

from collections.abc import Mapping
from types import MappingProxyType

from jettison.settings.cost_drop import CostDrop
from jettison.settings.group_drop import GroupDrop
from jettison.settings.random_drop import RandomDrop
from jettison.settings.range_drop import RangeDrop
from jettison.settings.region_drop import RegionDrop
from jettison.settings.window_marks import WindowMarks

Setting = CostDrop | GroupDrop | RandomDrop | RangeDrop | RegionDrop | WindowMarks
"""Any of the settings; each further kind joins the union and the table below."""

_KINDS: tuple[type[Setting], ...] = (CostDrop, GroupDrop, RandomDrop, RangeDrop, RegionDrop, WindowMarks)
SETTING_BY_KIND: Mapping[str, type[Setting]] = MappingProxyType({kind.kind: kind for kind in _KINDS})

__all__ = [
    "SETTING_BY_KIND",
    "CostDrop",
    "GroupDrop",
    "RandomDrop",
    "RangeDrop",
    "RegionDrop",
    "Setting",
    "WindowMarks",
]
