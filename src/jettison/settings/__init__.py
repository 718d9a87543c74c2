"""Settings of drop points: what a plan tells one of them to do. One kind per file."""

from collections.abc import Mapping
from types import MappingProxyType

from jettison.settings.cost_drop import CostDrop
from jettison.settings.random_drop import RandomDrop

Setting = CostDrop | RandomDrop
"""Any of the settings; each further kind joins the union and the table below."""

SETTING_BY_KIND: Mapping[str, type[Setting]] = MappingProxyType({kind.kind: kind for kind in (CostDrop, RandomDrop)})

__all__ = ["SETTING_BY_KIND", "CostDrop", "RandomDrop", "Setting"]
