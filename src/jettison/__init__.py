"""Load shedding for stream processing: hold the latency, know the error.

Importing this package does not import pyspark; the names that need it are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jettison.ledger import Ledger
from jettison.plan import DropPlan
from jettison.policies import ConceptDrop, Policy, UniformDrop
from jettison.settings import GroupDrop, RandomDrop
from jettison.stats import Budget, PointStats, Stats
from jettison.status import Status

if TYPE_CHECKING:
    from jettison.spark.aggregates import avg, count, stddev, sum, variance
    from jettison.spark.shedder import Shedder

__version__ = "0.1.0"

_ON_SPARK = {
    "Shedder": "jettison.spark.shedder",
    "avg": "jettison.spark.aggregates",
    "count": "jettison.spark.aggregates",
    "stddev": "jettison.spark.aggregates",
    "sum": "jettison.spark.aggregates",
    "variance": "jettison.spark.aggregates",
}

__all__ = [
    "Budget",
    "ConceptDrop",
    "DropPlan",
    "GroupDrop",
    "Ledger",
    "PointStats",
    "Policy",
    "RandomDrop",
    "Shedder",
    "Stats",
    "Status",
    "UniformDrop",
    "avg",
    "count",
    "stddev",
    "sum",
    "variance",
]


def __getattr__(name: str) -> Any:
    if name not in _ON_SPARK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_ON_SPARK[name]), name)
