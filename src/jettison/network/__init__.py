"""Networks of continuous queries that share work and have owners with different tolerance; all pure."""

from jettison.network.graph import Box, Input, Output, QueryGraph
from jettison.network.qos import LatencyUtility, LossTolerance, QoS, ValueUtility

__all__ = ["Box", "Input", "LatencyUtility", "LossTolerance", "Output", "QoS", "QueryGraph", "ValueUtility"]
