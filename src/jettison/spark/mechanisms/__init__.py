"""How each kind of setting is executed by Spark. One kind per file."""

from functools import singledispatch

from jettison.errors import Unsupported, explain
from jettison.policies import ConceptDrop, Policy
from jettison.spark.mechanisms.base import Mechanism
from jettison.spark.mechanisms.random_drop import RandomMechanism

__all__ = ["Mechanism", "RandomMechanism", "mechanism_for"]


@singledispatch
def mechanism_for(policy: Policy) -> Mechanism:
    """The mechanism that executes the plans of `policy`. A policy with settings of another kind registers its own."""
    return RandomMechanism()


@mechanism_for.register
def _by_group(policy: ConceptDrop) -> Mechanism:
    # Read as random drops, its plans would silently thin all groups alike.
    raise Unsupported(
        explain("a policy that the Spark guard can execute", "ConceptDrop", hint="use UniformDrop on Spark")
    )
