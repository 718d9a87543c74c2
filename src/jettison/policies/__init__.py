"""Policies: each turns statistics and a budget into a drop plan. One folder each, with the setting that its plans hold."""

from jettison.policies.base import Policy
from jettison.policies.groups.concept_drop import ConceptDrop
from jettison.policies.groups.group_setting import GroupDrop
from jettison.policies.network.range_setting import RangeDrop
from jettison.policies.priority.priority_setting import LevelDrop
from jettison.policies.regions.region_setting import RegionDrop
from jettison.policies.uniform.random_setting import RandomDrop
from jettison.policies.uniform.uniform_drop import UniformDrop
from jettison.policies.window.window_drop import WindowDrop
from jettison.policies.window.window_marks import WindowMarks

# All settings, also of policies that are loaded when they are used: whoever reads plans must know them.
__all__ = [
    "ConceptDrop",
    "GroupDrop",
    "LevelDrop",
    "Policy",
    "RandomDrop",
    "RangeDrop",
    "RegionDrop",
    "UniformDrop",
    "WindowDrop",
    "WindowMarks",
]
