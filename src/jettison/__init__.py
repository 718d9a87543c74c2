"""Load shedding for stream processing: hold the latency, know the error.

Importing this package does not import pyspark; the names that need it are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jettison.ledger import Ledger
from jettison.network.qos import LatencyUtility, LossTolerance, QoS, ValueUtility
from jettison.plan import DropPlan
from jettison.policies import Policy, UniformDrop, WindowDrop
from jettison.settings import RandomDrop, RangeDrop, WindowMarks
from jettison.stats import Budget, PointStats, Stats
from jettison.status import Status
from jettison.windows.interpolate import interpolate

if TYPE_CHECKING:
    from jettison.policies.network_drop import NetworkDrop
    from jettison.spark.aggregates import avg, count, stddev, sum, variance
    from jettison.spark.count_windows import count_windows
    from jettison.spark.network import Network
    from jettison.spark.shedder import Shedder

__version__ = "0.1.0"

_LATER = {
    "NetworkDrop": "jettison.policies.network_drop",  # scipy takes a while to import
    "Network": "jettison.spark.network",
    "Shedder": "jettison.spark.shedder",
    "avg": "jettison.spark.aggregates",
    "count": "jettison.spark.aggregates",
    "count_windows": "jettison.spark.count_windows",
    "stddev": "jettison.spark.aggregates",
    "sum": "jettison.spark.aggregates",
    "variance": "jettison.spark.aggregates",
}

__all__ = [
    "Budget",
    "DropPlan",
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
    "Shedder",
    "Stats",
    "Status",
    "UniformDrop",
    "ValueUtility",
    "WindowDrop",
    "WindowMarks",
    "avg",
    "count",
    "count_windows",
    "interpolate",
    "stddev",
    "sum",
    "variance",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
