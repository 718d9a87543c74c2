"""How each kind of setting is executed by Spark. One kind per file."""

from functools import singledispatch

from jettison.policies import Policy
from jettison.spark.mechanisms.base import Mechanism
from jettison.spark.mechanisms.random_drop import RandomMechanism

__all__ = ["Mechanism", "RandomMechanism", "mechanism_for"]


@singledispatch
def mechanism_for(policy: Policy) -> Mechanism:
    """The mechanism that executes the plans of `policy`. A policy with settings of another kind registers its own."""
    return RandomMechanism()
