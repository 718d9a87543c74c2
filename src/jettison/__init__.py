"""Load shedding for stream processing: hold the latency, know the error.

Each name is loaded when it is first used, so importing this package imports no pyspark, and producers that only use
`jettison.source` need nothing but numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jettison.ledger import Ledger
    from jettison.plan import DropPlan
    from jettison.policies import Policy, UniformDrop
    from jettison.policies.sifter import Sifter
    from jettison.settings import RandomDrop
    from jettison.sifter.queries import RangeQueries
    from jettison.sifter.space import Attribute
    from jettison.spark.aggregates import avg, count, stddev, sum, variance
    from jettison.spark.shedder import Shedder
    from jettison.stats import Budget, PointStats, Stats
    from jettison.status import Status

__version__ = "0.1.0"

_HOME = {
    "Attribute": "jettison.sifter.space",
    "Budget": "jettison.stats",
    "DropPlan": "jettison.plan",
    "Ledger": "jettison.ledger",
    "PointStats": "jettison.stats",
    "Policy": "jettison.policies",
    "RandomDrop": "jettison.settings",
    "RangeQueries": "jettison.sifter.queries",
    "Shedder": "jettison.spark.shedder",
    "Sifter": "jettison.policies.sifter",
    "Stats": "jettison.stats",
    "Status": "jettison.status",
    "UniformDrop": "jettison.policies",
    "avg": "jettison.spark.aggregates",
    "count": "jettison.spark.aggregates",
    "stddev": "jettison.spark.aggregates",
    "sum": "jettison.spark.aggregates",
    "variance": "jettison.spark.aggregates",
}

__all__ = [
    "Attribute",
    "Budget",
    "DropPlan",
    "Ledger",
    "PointStats",
    "Policy",
    "RandomDrop",
    "RangeQueries",
    "Shedder",
    "Sifter",
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
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
