"""The drop plan: what to drop, as an immutable value that every backend obeys.

A policy makes a `DropPlan` from statistics; a backend (Spark, or the simulator) executes it. The plan holds numbers
and names only, so that it can travel as text into every micro-batch and be compared, stored and replayed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from jettison.errors import DamagedPlan, InvalidSetting, explain
from jettison.settings.range_drop import RangeDrop


@dataclass(frozen=True, slots=True)
class RandomDrop:
    """Keep each row with a fixed probability, decided by a hash of its identity.

    A row that is kept at some `keep_fraction` is kept at every larger one.

    Parameters
    ----------
    keep_fraction
        Share of rows to keep, in [0, 1].
    late_keep_fraction
        Share to keep of the rows that are already older than `late_after_s` when their micro-batch starts. Such
        rows miss the latency bound whatever happens to them, so a backlog can be thinned harder than fresh rows.
        `None` treats them like all others.
    late_after_s
        Age in seconds from which a row counts as late.

    Examples
    --------
    >>> RandomDrop(keep_fraction=0.25).keeps_everything
    False
    """

    keep_fraction: float = 1.0
    late_keep_fraction: float | None = None
    late_after_s: float | None = None

    kind = "random"

    def __post_init__(self) -> None:
        _check_fraction("keep_fraction", self.keep_fraction)
        if (self.late_keep_fraction is None) != (self.late_after_s is None):
            raise InvalidSetting(
                explain(
                    "`late_keep_fraction` and `late_after_s` go together",
                    f"{self.late_keep_fraction!r} and {self.late_after_s!r}",
                    hint="give both or neither",
                )
            )
        if self.late_keep_fraction is not None:
            _check_fraction("late_keep_fraction", self.late_keep_fraction)
        if self.late_after_s is not None and not (math.isfinite(self.late_after_s) and self.late_after_s > 0):
            raise InvalidSetting(explain("`late_after_s` must be positive", repr(self.late_after_s)))

    @property
    def keeps_everything(self) -> bool:
        """Whether no row at all is dropped, late or not."""
        return self.keep_fraction >= 1.0 and (self.late_keep_fraction is None or self.late_keep_fraction >= 1.0)


Setting = RandomDrop | RangeDrop
"""What a drop point does. Each further mechanism adds its own class, told apart by `kind`."""

_SETTING_BY_KIND: Mapping[str, type[Setting]] = MappingProxyType(
    {RandomDrop.kind: RandomDrop, RangeDrop.kind: RangeDrop}
)


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
    >>> plan = DropPlan(3, {"rides": RandomDrop(0.5)}, cause="3.1 times more rows arrive than can be processed")
    >>> DropPlan.from_json(plan.to_json()) == plan
    True
    """

    version: int
    points: Mapping[str, Setting] = field(default_factory=dict)
    cause: str = ""

    def __post_init__(self) -> None:
        if self.version < 0:
            raise InvalidSetting(explain("a plan's `version` must not be negative", str(self.version)))
        object.__setattr__(self, "points", MappingProxyType(dict(self.points)))

    @property
    def keeps_everything(self) -> bool:
        """Whether no drop point drops anything."""
        return all(setting.keeps_everything for setting in self.points.values())

    def same_settings(self, other: DropPlan) -> bool:
        """Whether both plans drop the same rows, whatever their versions and causes."""
        return self.points == other.points

    def to_json(self) -> str:
        """Serialise; `from_json` restores an equal plan."""
        points = {name: _setting_to_dict(setting) for name, setting in self.points.items()}
        return json.dumps({"version": self.version, "points": points, "cause": self.cause}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> DropPlan:
        """Restore a plan, or raise `DamagedPlan` saying what is wrong with the text."""
        try:
            document = json.loads(text)
            points = {name: _setting_from_dict(setting) for name, setting in document["points"].items()}
            return cls(int(document["version"]), points, str(document["cause"]))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise DamagedPlan(explain("a drop plan as JSON", f"{text[:80]!r} ({error})")) from error


def _setting_to_dict(setting: Setting) -> dict[str, Any]:
    return {"kind": setting.kind} | {name: getattr(setting, name) for name in setting.__dataclass_fields__}


def _setting_from_dict(document: Mapping[str, Any]) -> Setting:
    kind = document["kind"]
    if kind not in _SETTING_BY_KIND:
        raise InvalidSetting(explain(f"`kind` must be one of {sorted(_SETTING_BY_KIND)}", repr(kind)))
    return _SETTING_BY_KIND[kind](**{name: value for name, value in document.items() if name != "kind"})


def _check_fraction(name: str, value: float) -> None:
    if not (isinstance(value, (int, float)) and 0.0 <= value <= 1.0):
        raise InvalidSetting(
            explain(f"`{name}` must lie in [0, 1]", repr(value), hint="pass the share kept, not the share dropped")
        )
