"""Which mechanism executes the plans of which policy. Starts no Spark session."""

from __future__ import annotations

from jettison.policies import ConceptDrop, UniformDrop
from jettison.spark.mechanisms import GroupMechanism, RandomMechanism, mechanism_for


def test_uniform_drops_are_random():
    assert isinstance(mechanism_for(UniformDrop().spec), RandomMechanism)


def test_drops_by_group_have_their_own():
    assert isinstance(mechanism_for(ConceptDrop("route", "time", "10 minutes").spec), GroupMechanism)
