"""The drop plan: what to drop, as an immutable value that every backend obeys.

A policy makes a `DropPlan` from statistics; a backend (Spark, or the simulator) executes it. The plan holds numbers
and names only, so that it can travel as text into every micro-batch and be compared, stored and replayed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from jettison.errors import DamagedPlan, InvalidSetting, explain
from jettison.settings import SETTING_BY_KIND, Setting


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
    >>> from jettison.settings import RandomDrop
    >>> plan = DropPlan(3, {"rides": RandomDrop(0.5)}, cause="3.1 times more rows arrive than can be processed")
    >>> DropPlan.from_json(plan.to_json()) == plan
    True
    """

    version: int
    points: Mapping[str, Setting] = field(default_factory=dict)
    cause: str = ""

    def __post_init__(self) -> None:
        if self.version < 0:
            raise InvalidSetting(
                explain(
                    "a plan's `version` must not be negative",
                    str(self.version),
                    hint="begin with 0 and let every plan count one up from the one before",
                )
            )
        object.__setattr__(self, "points", MappingProxyType(dict(self.points)))

    @property
    def keeps_everything(self) -> bool:
        """Whether no drop point drops anything."""
        return all(setting.keeps_everything for setting in self.points.values())

    @property
    def leaves_partial_answers(self) -> bool:
        """Whether rows are dropped from answers that are delivered all the same.

        A setting says by a property `whole_answers` that what it drops spares every answer that is delivered.
        """
        return any(
            not setting.keeps_everything and not getattr(setting, "whole_answers", False)
            for setting in self.points.values()
        )

    def same_settings(self, other: DropPlan) -> bool:
        """Whether both plans drop the same rows, whatever their versions and causes."""
        return self.points == other.points

    def released(self, version: int, cause: str) -> DropPlan:
        """The plan that keeps everything, but for what cannot be taken back: windows that have lost rows stay dropped.

        A setting says what that is by a property `when_released`; most have none, and nothing of them remains.
        """
        remaining = {name: getattr(setting, "when_released", None) for name, setting in self.points.items()}
        return DropPlan(version, {name: setting for name, setting in remaining.items() if setting is not None}, cause)

    def on_record(self) -> dict[str, Any]:
        """The plan as the ledger keeps it, from which `from_json` restores one: long settings are abridged.

        A setting says by a property `abridged` what is left of it and what it was in brief; most have none.
        """
        short = {name: found for name, setting in self.points.items() if (found := getattr(setting, "abridged", None))}
        kept = {name: short[name][0] if name in short else setting for name, setting in self.points.items()}
        record = DropPlan(self.version, kept, self.cause).to_document()
        return record | ({"abridged": {name: brief for name, (_, brief) in short.items()}} if short else {})

    def to_document(self) -> dict[str, Any]:
        """The plan in the terms of JSON; `from_document` restores an equal one."""
        points = {name: _setting_to_dict(setting) for name, setting in self.points.items()}
        return {"version": self.version, "points": points, "cause": self.cause}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> DropPlan:
        """Restore a plan; raises what its parts raise where they are wrong."""
        points = {name: _setting_from_dict(setting) for name, setting in document["points"].items()}
        return cls(int(document["version"]), points, str(document["cause"]))

    def to_json(self) -> str:
        """Serialise; `from_json` restores an equal plan."""
        return json.dumps(self.to_document(), allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> DropPlan:
        """Restore a plan, or raise `DamagedPlan` saying what is wrong with the text."""
        try:
            return cls.from_document(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise DamagedPlan(
                explain(
                    "a drop plan as JSON",
                    f"{text[:80]!r} ({error})",
                    hint="write plans with `to_json`; the next plan replaces a damaged file, until then every row is kept",
                )
            ) from error


def _setting_to_dict(setting: Setting) -> dict[str, Any]:
    return {"kind": setting.kind} | {name: getattr(setting, name) for name in setting.__dataclass_fields__}


def _setting_from_dict(document: Mapping[str, Any]) -> Setting:
    kind = document["kind"]
    if kind not in SETTING_BY_KIND:
        raise InvalidSetting(
            explain(
                f"`kind` must be one of {sorted(SETTING_BY_KIND)}",
                repr(kind),
                hint="was it written by a newer release, or does a new setting still miss in SETTING_BY_KIND?",
            )
        )
    return SETTING_BY_KIND[kind](**{name: value for name, value in document.items() if name != "kind"})
