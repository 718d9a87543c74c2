"""How each kind of setting is executed by Spark. One kind per file."""

from functools import singledispatch

from jettison.policies import ConceptDrop, Policy
from jettison.policies.join_drop import JoinDrop
from jettison.policies.network_drop import NetworkDrop
from jettison.policies.sifter import Sifter
from jettison.policies.window_drop import WindowDrop
from jettison.spark.mechanisms.base import Mechanism
from jettison.spark.mechanisms.group_drop import GroupMechanism
from jettison.spark.mechanisms.join_drop import JoinMechanism
from jettison.spark.mechanisms.random_drop import RandomMechanism
from jettison.spark.mechanisms.range_drop import RangeMechanism, network_mechanism
from jettison.spark.mechanisms.region_drop import RegionMechanism
from jettison.spark.mechanisms.window_marks import WindowMechanism

__all__ = [
    "GroupMechanism",
    "JoinMechanism",
    "Mechanism",
    "RandomMechanism",
    "RangeMechanism",
    "RegionMechanism",
    "WindowMechanism",
    "mechanism_for",
]


@singledispatch
def mechanism_for(policy: Policy) -> Mechanism:
    """The mechanism that executes the plans of `policy`. A policy with settings of another kind registers its own."""
    return RandomMechanism()


mechanism_for.register(ConceptDrop, GroupMechanism)
mechanism_for.register(JoinDrop, JoinMechanism)
mechanism_for.register(NetworkDrop, network_mechanism)
mechanism_for.register(Sifter, lambda policy: RegionMechanism(policy.queries.space, policy.sample_every))
mechanism_for.register(WindowDrop, WindowMechanism)
