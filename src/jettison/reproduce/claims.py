"""A claim and its verdict. The verdict is computed from what was measured; it cannot be typed in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from jettison.bars import Bar
from jettison.errors import InvalidSetting, explain


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence that a measurement confirms or refutes.

    Parameters
    ----------
    id
        Unique within a paper; stays the same from version to version.
    claim
        The sentence.
    paper
        What the paper reports, in its words or figures; empty where the claim is ours alone.
    ours
        The figure that was measured.
    at_most, at_least
        The bar: at least one of them.
    config
        How it was measured: seeds, sizes, settings.

    Examples
    --------
    >>> Claim("gain", "sheds at least twice as well", paper="2.25", ours=2.4, at_least=2.0).holds
    True
    """

    id: str
    claim: str
    paper: str
    ours: float
    at_most: float | None = None
    at_least: float | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.bar:
            raise InvalidSetting(
                explain(
                    "a claim needs a bar",
                    "neither `at_most` nor `at_least`",
                    where=self.id,
                    hint="say what the figure is judged by, for instance at_least=0.9",
                )
            )

    @property
    def holds(self) -> bool:
        """Whether the figure meets the bar. What could not be measured (NaN) meets none."""
        return self.bar.met_by(self.ours)

    @property
    def bar(self) -> Bar:
        """What the figure must meet."""
        return Bar(self.at_most, self.at_least)


def noted(claims: Sequence[Claim], moved: Mapping[str, str]) -> list[Claim]:
    """The claims, where it is said beside the number what was settled after a look at figures; ids by their beginning."""
    return [
        replace(claim, config={**claim.config, "after_a_look": note})
        if (note := next((text for start, text in moved.items() if claim.id.startswith(start)), None))
        else claim
        for claim in claims
    ]


def save(claims: Sequence[Claim], path: Path) -> None:
    """Write claims as a JSON list, the ones that do not hold among them."""
    rows = [asdict(claim) | {"ours": _number(claim.ours), "holds": claim.holds} for claim in claims]
    path.write_text(json.dumps(rows, indent=2, allow_nan=False) + "\n")


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None  # JSON has neither NaN nor infinity
