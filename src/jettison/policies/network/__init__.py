"""Networks of continuous queries that share work and have owners with different tolerance; all pure."""

from jettison.policies.network.graph import Box, Input, Output, QueryGraph
from jettison.policies.network.qos import LossTolerance, QoS, ValueUtility

__all__ = ["Box", "Input", "LossTolerance", "Output", "QoS", "QueryGraph", "ValueUtility"]
