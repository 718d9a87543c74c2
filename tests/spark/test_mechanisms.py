"""Which mechanism executes which policy. Starts no Spark session."""

from __future__ import annotations

import pytest

from jettison.errors import Unsupported
from jettison.policies import ConceptDrop, UniformDrop
from jettison.spark.mechanisms import RandomMechanism, mechanism_for


def test_uniform_drops_are_random():
    assert isinstance(mechanism_for(UniformDrop()), RandomMechanism)


def test_drops_by_group_are_refused_rather_than_executed_as_random_ones():
    with pytest.raises(Unsupported, match="ConceptDrop"):
        mechanism_for(ConceptDrop("route", "time", "10 minutes"))
