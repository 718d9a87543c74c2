"""A claim and its verdict. The verdict is computed from what was measured; it cannot be typed in."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from jettison.errors import did_you_mean, refuse
from jettison.lab.bars import Bar


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence that a measurement confirms or refutes.

    Its `id` is unique within a paper and stays the same from version to version. `paper` is what the paper reports, in its
    words or figures, and empty where the claim is ours alone. It has one side of the bar or both; `config` tells how it was
    measured.

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
            refuse(
                "a claim needs a bar",
                "neither `at_most` nor `at_least`",
                where=self.id,
                hint="say what the figure is judged by, for instance at_least=0.9",
            )

    @property
    def holds(self) -> bool:
        """Whether the figure meets the bar. What could not be measured (NaN) meets none."""
        return self.bar.met_by(self.ours)

    @property
    def bar(self) -> Bar:
        return Bar(self.at_most, self.at_least)


Figure = float | tuple[float, Mapping[str, Any]]
"""What was measured for a claim, alone or with how it was measured."""


def judge(paper: str, figures: Mapping[str, Figure], config: Mapping[str, Any] | None = None) -> list[Claim]:
    """Hold figures, by the id of their claim, against what `claims.csv` in the paper's package states.

    A line of that file has the claim, the paper's figure, the bar, and what was settled after a look at figures, if
    anything. `config` says how all of them were measured.

    >>> (claim,) = judge("sifter", {"fig5-heavy-16": 0.24}, {"seeds": 60})
    >>> claim.paper, str(claim.bar), claim.holds
    ('25 %', '>= 0.25', False)
    """
    stated = claims_of(paper)
    made = []
    for name, figure in figures.items():
        if name not in stated:
            hint = did_you_mean(name, stated, otherwise="state it there, with its bar")
            refuse("a claim that claims.csv states", repr(name), hint=hint, where=paper)
        ours, more = figure if isinstance(figure, tuple) else (figure, {})
        made.append(replace(stated[name], ours=float(ours), config={**(config or {}), **more, **stated[name].config}))
    return made


def claims_of(paper: str) -> dict[str, Claim]:
    """The claims that a paper's `claims.csv` states, by id; none is measured yet."""
    stated = {}
    for line in _lines(paper):
        bar = {side: float(line[side]) for side in ("at_most", "at_least") if line[side]}
        after = {"after_a_look": line["after_a_look"]} if line["after_a_look"] else {}
        stated[line["id"]] = Claim(line["id"], line["claim"], line["paper"], math.nan, **bar, config=after)
    return stated


def in_brief(paper: str, claims: Sequence[Claim]) -> list[Claim]:
    """The same in fewer words and in the order of `claims.csv`, for a table in which they stand below each other."""
    found = {claim.id: claim for claim in claims}
    return [
        replace(found[id], claim=line.get("briefly") or line["claim"], paper=line.get("paper_briefly") or line["paper"])
        for line in _lines(paper)
        if (id := line["id"]) in found
    ]


def _lines(paper: str) -> Iterable[dict[str, str]]:
    text = resources.files(f"{__package__}.{paper}").joinpath("claims.csv").read_text(encoding="utf-8")
    return csv.DictReader(text.splitlines())


def save(claims: Sequence[Claim], path: Path) -> None:
    """Write claims as a JSON list, the ones that do not hold among them."""
    rows = [asdict(claim) | {"ours": _number(claim.ours), "holds": claim.holds} for claim in claims]
    path.write_text(json.dumps(rows, indent=2, allow_nan=False) + "\n")


def load(path: Path) -> list[Claim]:
    """The claims that `save` wrote."""
    names = [one.name for one in fields(Claim)]
    rows = [{name: row[name] for name in names} for row in json.loads(path.read_text())]
    return [Claim(**{**row, "ours": math.nan if row["ours"] is None else row["ours"]}) for row in rows]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None  # JSON has neither NaN nor infinity
