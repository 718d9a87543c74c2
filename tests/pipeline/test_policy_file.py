from __future__ import annotations

import inspect
from typing import Any

import pytest

from jettison.pipeline.policy_file import KINDS
from jettison.policies import ConceptDrop, UniformDrop, WindowDrop
from jettison.policies.network.network_drop import NetworkDrop
from jettison.policies.priority.priority_drop import PriorityDrop
from jettison.policies.regions.queries import RangeQueries
from jettison.policies.regions.sifter import Sifter

# What a file says in another way, or not: nested windows, and the graph, which is the file itself.
ELSEWHERE: dict[str, set[str]] = {
    "window": {"queries"},
    "sifter": {"expressions"},
    "network": {"graph", "column"},
}
OWN: dict[str, set[str]] = {"network": {"value", "integral_values"}}
CLASSES: dict[str, list[Any]] = {
    "uniform": [UniformDrop],
    "window": [WindowDrop],
    "concept": [ConceptDrop],
    "priority": [PriorityDrop],
    "sifter": [Sifter, RangeQueries],
    "network": [NetworkDrop],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_can_say_of_a_policy_what_python_can(kind: str) -> None:
    parameters = {name for one in CLASSES[kind] for name in inspect.signature(one).parameters}
    assert set(KINDS[kind].__struct_fields__) - OWN.get(kind, set()) == parameters - ELSEWHERE.get(kind, set())
