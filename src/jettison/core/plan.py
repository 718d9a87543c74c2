"""The drop plan: what to drop, as an immutable value that every backend executes.

A policy makes a `DropPlan` from statistics; a backend (Spark, or the simulator) executes it. The plan holds numbers
and names only, so that it can travel as text into every micro-batch and be compared, stored and replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from jettison.core.documents import Natural, convert, encode, parse
from jettison.core.setting import Setting
from jettison.errors import DamagedPlan, refuse

PLAN_BYTES = 64 * 1024
"""Bytes that a plan may take as text, unless its policy asks for more: the sizes to ask for are these."""
LARGE_PLAN_BYTES = 2 * PLAN_BYTES
"""For plans that name some thousand keys or windows."""
HUGE_PLAN_BYTES = 4 * PLAN_BYTES
"""For plans that name ten thousand groups."""
MOST_PLAN_BYTES = 16 * PLAN_BYTES
"""The limit, whatever a policy asks for: all plans on file are read in every micro-batch."""


@dataclass(frozen=True, slots=True)
class DropPlan:
    """One version of the settings of all drop points.

    Parameters
    ----------
    version
        Grows by one with every plan of a query, across restarts.
    points
        Setting by name of the drop point.
    cause
        In words, why this plan replaced the one before it.

    Examples
    --------
    >>> from jettison.policies.uniform.random_setting import RandomDrop
    >>> plan = DropPlan(3, {"rides": RandomDrop(0.5)}, cause="3.1 times more rows arrive than can be processed")
    >>> DropPlan.from_json(plan.to_json()) == plan
    True
    """

    version: int
    points: Mapping[str, Setting] = field(default_factory=dict)
    cause: str = ""

    def __post_init__(self) -> None:
        if self.version < 0:
            refuse(
                "a plan's `version` must not be negative",
                str(self.version),
                hint="begin with 0 and let every plan count one up from the one before",
            )
        object.__setattr__(self, "points", MappingProxyType(dict(self.points)))

    @property
    def keeps_everything(self) -> bool:
        return all(setting.keeps_everything for setting in self.points.values())

    @property
    def leaves_partial_answers(self) -> bool:
        """Whether rows are dropped from answers that are delivered all the same."""
        return any(not (setting.keeps_everything or setting.whole_answers) for setting in self.points.values())

    def same_settings(self, other: DropPlan) -> bool:
        """Whether both plans drop the same rows, whatever their versions and causes."""
        return self.points == other.points

    def released(self, version: int, cause: str) -> DropPlan:
        """The plan that keeps everything, but for decisions that stand."""
        remaining = {name: setting.when_released for name, setting in self.points.items()}
        return DropPlan(version, {name: setting for name, setting in remaining.items() if setting is not None}, cause)

    def on_record(self) -> dict[str, Any]:
        """The plan as the ledger keeps it, from which `from_json` restores one: long settings are abridged."""
        short = {name: setting.abridged for name, setting in self.points.items() if setting.abridged}
        kept = {name: short[name][0] if name in short else setting for name, setting in self.points.items()}
        record = DropPlan(self.version, kept, self.cause).to_document()
        return record | ({"abridged": {name: brief for name, (_, brief) in short.items()}} if short else {})

    def to_document(self) -> dict[str, Any]:
        """The plan in the terms of JSON; `from_document` restores an equal one."""
        points = {name: setting.to_document() for name, setting in self.points.items()}
        return {"version": self.version, "points": points, "cause": self.cause}

    @classmethod
    def from_document(cls, document: object) -> DropPlan:
        """Restore a plan, or raise `DamagedPlan` naming the path to what is wrong."""
        place = "the plan"
        try:
            parts, points = convert(document, _Document), {}
            for name, setting in parts.points.items():
                place = f"points.{name}"
                points[name] = Setting.from_document(setting)
        except (ValueError, TypeError) as error:
            hint = "write plans with `to_json`; the next plan replaces a damaged file, until then every row is kept"
            refuse(
                "a drop plan",
                f"{str(document)[:80]!r} ({str(error).partition(' Hint: ')[0].removesuffix('.')})",
                where=place,
                hint=hint,
                error=DamagedPlan,
                cause=error,
            )
        return cls(parts.version, points, parts.cause)

    def to_json(self) -> str:
        """Serialise; `from_json` restores an equal plan."""
        return encode(self.to_document())

    @classmethod
    def from_json(cls, text: str) -> DropPlan:
        """Restore a plan, or raise `DamagedPlan` saying what is wrong with the text."""
        try:
            document = parse(text)
        except ValueError as error:
            hint = "nothing is lost: every row is kept until the next plan is written"
            refuse("a drop plan as JSON", f"{text[:80]!r} ({error})", hint=hint, error=DamagedPlan, cause=error)
        return cls.from_document(document)


class _Document(Struct):
    version: Natural
    points: dict[str, dict[str, Any]]
    cause: str
