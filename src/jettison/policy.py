"""For authors of policies: what a policy is made of, what it is told, and what it must satisfy.

How Spark executes a new kind of setting is told by `jettison.spark.mechanisms.register`. Settings and policies of the
product are here too, to build on, and `Auto`, which leaves the choice of one to rules.
"""

from jettison.core.decision import Candidates, Decision, by_share
from jettison.core.plan import DropPlan
from jettison.core.setting import Setting
from jettison.core.spec import Spec
from jettison.core.stats import Budget, EventTimes, PointStats, Stats, beside_protected, with_protected
from jettison.policies import GroupDrop, LevelDrop, RandomDrop, RangeDrop, RegionDrop, WindowMarks
from jettison.policies.base import Lesson, Policy
from jettison.policies.checks import ALL_CHECKS
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.priority.priority_drop import PriorityDrop
from jettison.runtime.chooser import Auto

__all__ = [
    "ALL_CHECKS",
    "Auto",
    "Budget",
    "Candidates",
    "Decision",
    "DropPlan",
    "EventTimes",
    "GroupDrop",
    "Lesson",
    "LevelDrop",
    "NetworkDrop",
    "PointStats",
    "Policy",
    "PriorityDrop",
    "RandomDrop",
    "RangeDrop",
    "RegionDrop",
    "Setting",
    "Spec",
    "Stats",
    "WindowMarks",
    "beside_protected",
    "by_share",
    "with_protected",
]
