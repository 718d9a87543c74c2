"""How each kind of setting is executed by Spark. One mechanism per file, found by the kind of a policy's spec."""

from collections.abc import Callable
from typing import Any

from jettison.core.spec import Spec
from jettison.errors import Unsupported, refuse
from jettison.policies import GroupDrop, LevelDrop, RandomDrop, RangeDrop, RegionDrop, WindowMarks
from jettison.spark.drop_point import DropPoint
from jettison.spark.mechanisms.group_mechanism import GroupMechanism, JoinMechanism
from jettison.spark.mechanisms.mechanism import Mechanism
from jettison.spark.mechanisms.priority_mechanism import PriorityMechanism
from jettison.spark.mechanisms.random_mechanism import RandomMechanism
from jettison.spark.mechanisms.range_mechanism import RangeMechanism
from jettison.spark.mechanisms.region_mechanism import RegionMechanism
from jettison.spark.mechanisms.window_mechanism import WindowMechanism

__all__ = [
    "DropPoint",
    "GroupMechanism",
    "JoinMechanism",
    "Mechanism",
    "PriorityMechanism",
    "RandomMechanism",
    "RangeMechanism",
    "RegionMechanism",
    "WindowMechanism",
    "mechanism_for",
    "register",
]

_by_kind: dict[str, Callable[[Any], Mechanism]] = {
    GroupDrop.kind: lambda spec: JoinMechanism(spec) if spec.whole else GroupMechanism(spec),
    LevelDrop.kind: PriorityMechanism,
    RandomDrop.kind: lambda spec: RandomMechanism(),
    RangeDrop.kind: lambda spec: RangeMechanism(spec.column),
    RegionDrop.kind: lambda spec: RegionMechanism(spec.space, spec.sample_every),
    WindowMarks.kind: WindowMechanism,
}


def register(kind: str, mechanism: Callable[[Any], Mechanism]) -> None:
    """Execute settings of a kind by what `mechanism` makes of a policy's spec; a kind has one mechanism."""
    if _by_kind.get(kind, mechanism) is not mechanism:
        refuse("a kind of setting that has no mechanism yet", repr(kind), hint="choose another name for the kind")
    _by_kind[kind] = mechanism


def mechanism_for(spec: Spec) -> Mechanism:
    """The mechanism that executes settings as `spec` states them; raises `Unsupported` for a kind that nobody registered."""
    if spec.kind not in _by_kind:
        hint = "register how it is executed: jettison.spark.mechanisms.register(kind, mechanism)"
        expected = f"settings of a kind that Spark can execute: {', '.join(sorted(_by_kind))}"
        refuse(expected, repr(spec.kind), hint=hint, error=Unsupported)
    return _by_kind[spec.kind](spec)
