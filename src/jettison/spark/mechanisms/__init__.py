"""How each kind of setting is executed by Spark. One kind per file."""

from functools import singledispatch

from jettison.policies import Policy
from jettison.policies.sifter import Sifter
from jettison.spark.mechanisms.base import Mechanism
from jettison.spark.mechanisms.random_drop import RandomMechanism
from jettison.spark.mechanisms.region_drop import RegionMechanism

__all__ = ["Mechanism", "RandomMechanism", "RegionMechanism", "mechanism_for"]


@singledispatch
def mechanism_for(policy: Policy) -> Mechanism:
    """The mechanism that executes the plans of `policy`. A policy with settings of another kind registers its own."""
    return RandomMechanism()


@mechanism_for.register
def _(policy: Sifter) -> Mechanism:
    return RegionMechanism(policy.queries.space)
