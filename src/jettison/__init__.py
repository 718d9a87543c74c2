"""Load shedding for stream processing: hold the latency, know the error.

Each name is loaded when it is first used, so importing this package imports no pyspark, and producers that only use
`jettison.source` need nothing but numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jettison.borrowed import Borrower
    from jettison.control import row_cap
    from jettison.ledger import Ledger
    from jettison.network.qos import LatencyUtility, LossTolerance, QoS, ValueUtility
    from jettison.plan import DropPlan
    from jettison.policies import Policy, UniformDrop
    from jettison.policies.concept_drop import ConceptDrop
    from jettison.policies.join_drop import JoinDrop
    from jettison.policies.network_drop import NetworkDrop
    from jettison.policies.sifter import Sifter
    from jettison.policies.window_drop import WindowDrop
    from jettison.settings import GroupDrop, RandomDrop, RangeDrop, WindowMarks
    from jettison.sifter.queries import RangeQueries
    from jettison.sifter.space import Attribute
    from jettison.spark.aggregates import avg, count, evidence, percentile, stddev, sum, variance
    from jettison.spark.count_windows import count_windows
    from jettison.spark.joins import join_side, join_totals, pair_weight
    from jettison.spark.load_aware import load_aware
    from jettison.spark.network import Network
    from jettison.spark.shedder import Shedder
    from jettison.stats import Budget, PointStats, Stats
    from jettison.status import Status
    from jettison.windows.interpolate import interpolate

__version__ = "0.1.0"

_HOME = {
    "Attribute": "jettison.sifter.space",
    "Borrower": "jettison.borrowed",
    "Budget": "jettison.stats",
    "ConceptDrop": "jettison.policies.concept_drop",
    "DropPlan": "jettison.plan",
    "GroupDrop": "jettison.settings",
    "JoinDrop": "jettison.policies.join_drop",
    "LatencyUtility": "jettison.network.qos",
    "Ledger": "jettison.ledger",
    "LossTolerance": "jettison.network.qos",
    "Network": "jettison.spark.network",
    "NetworkDrop": "jettison.policies.network_drop",
    "PointStats": "jettison.stats",
    "Policy": "jettison.policies",
    "QoS": "jettison.network.qos",
    "RandomDrop": "jettison.settings",
    "RangeDrop": "jettison.settings",
    "RangeQueries": "jettison.sifter.queries",
    "Shedder": "jettison.spark.shedder",
    "Sifter": "jettison.policies.sifter",
    "Stats": "jettison.stats",
    "Status": "jettison.status",
    "UniformDrop": "jettison.policies",
    "ValueUtility": "jettison.network.qos",
    "WindowDrop": "jettison.policies.window_drop",
    "WindowMarks": "jettison.settings",
    "avg": "jettison.spark.aggregates",
    "count": "jettison.spark.aggregates",
    "count_windows": "jettison.spark.count_windows",
    "evidence": "jettison.spark.aggregates",
    "interpolate": "jettison.windows.interpolate",
    "join_side": "jettison.spark.joins",
    "join_totals": "jettison.spark.joins",
    "load_aware": "jettison.spark.load_aware",
    "pair_weight": "jettison.spark.joins",
    "percentile": "jettison.spark.aggregates",
    "row_cap": "jettison.control",
    "stddev": "jettison.spark.aggregates",
    "sum": "jettison.spark.aggregates",
    "variance": "jettison.spark.aggregates",
}

__all__ = [
    "Attribute",
    "Borrower",
    "Budget",
    "ConceptDrop",
    "DropPlan",
    "GroupDrop",
    "JoinDrop",
    "LatencyUtility",
    "Ledger",
    "LossTolerance",
    "Network",
    "NetworkDrop",
    "PointStats",
    "Policy",
    "QoS",
    "RandomDrop",
    "RangeDrop",
    "RangeQueries",
    "Shedder",
    "Sifter",
    "Stats",
    "Status",
    "UniformDrop",
    "ValueUtility",
    "WindowDrop",
    "WindowMarks",
    "avg",
    "count",
    "count_windows",
    "evidence",
    "interpolate",
    "join_side",
    "join_totals",
    "load_aware",
    "pair_weight",
    "percentile",
    "row_cap",
    "stddev",
    "sum",
    "variance",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
