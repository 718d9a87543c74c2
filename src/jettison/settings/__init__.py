"""Settings of drop points: what a plan tells one of them to do. One kind per file."""

from collections.abc import Mapping
from types import MappingProxyType

from jettison.settings.random_drop import RandomDrop
from jettison.settings.range_drop import RangeDrop

Setting = RandomDrop | RangeDrop
"""Any of the settings; each further kind joins the union and the table below."""

SETTING_BY_KIND: Mapping[str, type[Setting]] = MappingProxyType({kind.kind: kind for kind in (RandomDrop, RangeDrop)})

__all__ = ["SETTING_BY_KIND", "RandomDrop", "RangeDrop", "Setting"]
