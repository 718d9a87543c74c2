"""Load shedding for stream processing: hold the latency, know the error.

Each name is loaded when it is first used, so importing this package imports no pyspark, and producers that only use
`jettison.source` need nothing but numpy. More aggregates are in `jettison.functions`, what authors of policies need in
`jettison.policy`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jettison.errors import JettisonError as JettisonError
    from jettison.policies import UniformDrop as UniformDrop
    from jettison.policies.groups.concept_drop import ConceptDrop as ConceptDrop
    from jettison.policies.groups.join_drop import JoinDrop as JoinDrop
    from jettison.policies.network.qos import LossTolerance as LossTolerance
    from jettison.policies.network.qos import QoS as QoS
    from jettison.policies.network.qos import ValueUtility as ValueUtility
    from jettison.policies.priority.priority_drop import PriorityDrop as PriorityDrop
    from jettison.policies.regions.queries import RangeQueries as RangeQueries
    from jettison.policies.regions.sifter import Sifter as Sifter
    from jettison.policies.window.window_drop import WindowDrop as WindowDrop
    from jettison.runtime.ledger import Ledger as Ledger
    from jettison.runtime.status import Status as Status
    from jettison.source.space import Attribute as Attribute
    from jettison.spark.aggregates import avg as avg
    from jettison.spark.aggregates import count as count
    from jettison.spark.aggregates import percentile as percentile
    from jettison.spark.aggregates import stddev as stddev
    from jettison.spark.aggregates import sum as sum
    from jettison.spark.aggregates import variance as variance
    from jettison.spark.kafka_ends import KafkaEnds as KafkaEnds
    from jettison.spark.load_aware import load_aware as load_aware
    from jettison.spark.network_query import Network as Network
    from jettison.spark.shedder import Shedder as Shedder

__version__ = "0.2.0.dev0"

_HOME = {
    "Attribute": "jettison.source.space",
    "ConceptDrop": "jettison.policies.groups.concept_drop",
    "JettisonError": "jettison.errors",
    "JoinDrop": "jettison.policies.groups.join_drop",
    "KafkaEnds": "jettison.spark.kafka_ends",
    "Ledger": "jettison.runtime.ledger",
    "LossTolerance": "jettison.policies.network.qos",
    "Network": "jettison.spark.network_query",
    "PriorityDrop": "jettison.policies.priority.priority_drop",
    "QoS": "jettison.policies.network.qos",
    "RangeQueries": "jettison.policies.regions.queries",
    "Shedder": "jettison.spark.shedder",
    "Sifter": "jettison.policies.regions.sifter",
    "Status": "jettison.runtime.status",
    "UniformDrop": "jettison.policies",
    "ValueUtility": "jettison.policies.network.qos",
    "WindowDrop": "jettison.policies.window.window_drop",
    "avg": "jettison.spark.aggregates",
    "count": "jettison.spark.aggregates",
    "load_aware": "jettison.spark.load_aware",
    "percentile": "jettison.spark.aggregates",
    "stddev": "jettison.spark.aggregates",
    "sum": "jettison.spark.aggregates",
    "variance": "jettison.spark.aggregates",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_HOME[name]), name)
    except ModuleNotFoundError:
        from jettison import extras

        extras.require("pyspark", where=f"`jettison.{name}`")
        raise


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
