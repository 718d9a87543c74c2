"""Settings of drop points: what a plan tells one of them to do. One kind per file."""

from collections.abc import Mapping
from types import MappingProxyType

from jettison.settings.group_drop import GroupDrop
from jettison.settings.random_drop import RandomDrop

Setting = RandomDrop | GroupDrop
"""Any of the settings; each further kind joins the union and the table below."""

_KINDS: tuple[type[Setting], ...] = (RandomDrop, GroupDrop)
SETTING_BY_KIND: Mapping[str, type[Setting]] = MappingProxyType({kind.kind: kind for kind in _KINDS})

__all__ = ["SETTING_BY_KIND", "GroupDrop", "RandomDrop", "Setting"]
