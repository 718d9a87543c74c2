"""A box of a pipeline file: Spark SQL over the streams that it reads, or answers with bounds by group and window."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from jettison.core.durations import microseconds, signed_microseconds
from jettison.errors import did_you_mean, refuse
from jettison.pipeline.policy_file import Lengths, Names, each
from jettison.policies.network.graph import Box, Kind

Confidence = Annotated[float, Meta(gt=0, lt=1, description="share of answers between their bounds")]
NotNegative = Annotated[float, Meta(ge=0)]
Pairs = tuple[tuple[float, float], ...]
Triples = tuple[tuple[float, float, float], ...]
FUNCTIONS = ("avg", "count", "percentile", "stddev", "sum", "variance")
"""What makes answers with bounds."""
# Words of SQL that make a query depend on rows that are missing.
_LOOKS_FOR_ROWS = re.compile(
    r"\b(outer|anti|semi|except|minus|intersect|distinct|limit|(left|right|full)\s+join)\b"
    r"|\bnot\s+(in\s*\(\s*select|exists)\b",
    re.IGNORECASE,
)
_AGGREGATES = re.compile(r"\bgroup\s+by\b", re.IGNORECASE)
_FILTERS = re.compile(r"\b(where|having)\b", re.IGNORECASE)
_ANSWER = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_SHARE = re.compile(r"\d+(\.\d+)?|\.\d+")
_QUOTED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`""", re.DOTALL)


class BoxFile(Struct, forbid_unknown_fields=True, frozen=True):
    """A query over the streams that it reads, which are tables under their own names."""

    gone: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("weighted", "bounds", "monotone"), "leave it out: it is read from Spark's plan"
    )
    reads: Annotated[Names, Meta(description="an input or a box; [left, right] for a join or a union")]
    sql: Annotated[str, Meta(description="select ... from the streams that it reads; a union needs none")] = ""
    answers: Annotated[dict[str, str], Meta(description="instead of sql: {fare: avg(fare), rides: count(*)}")] = {}
    window: Annotated[
        dict[str, Lengths], Meta(description="of answers: {time: 5 seconds} or {time: [size, slide]}")
    ] = {}
    group: Annotated[Names, Meta(description="of answers: a column, SQL, or a list of them")] = ()
    confidence: Confidence = 0.95
    watermark: Annotated[dict[str, str], Meta(description="delay by column, {time: 10 seconds}")] = {}
    kind: Annotated[Kind | None, Meta(description="told from the SQL; a join or a union of streams must say it")] = None
    cost: Annotated[
        NotNegative | None, Meta(description="in networks: work a row in any unit that all boxes share; else measured")
    ] = None
    selectivity: Annotated[
        NotNegative | None, Meta(description="in networks: rows out for each row in, as 0.5; else measured")
    ] = None
    passes: Annotated[
        Pairs | None, Meta(description="in networks: values that a filter passes: [[lowest, highest], ...]")
    ] = None
    keeps_value: Annotated[bool, Meta(description="in networks: whether the value is the same behind the box")] = True
    values: Annotated[
        Triples, Meta(description="in networks: share by range of a new value: [[lowest, highest, share], ...]")
    ] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return each(self.reads)

    @property
    def keys(self) -> tuple[str, ...]:
        """What its answers are grouped by, beside the window."""
        return each(self.group)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with bounds: `function` of `column`, which is SQL; of a percentile, `percentage` of it."""

    function: str
    column: str
    percentage: float | None = None


def answer(text: str, *, where: str) -> Answer:
    """An answer as it is written in a file.

    >>> answer("percentile(fare / 100, 0.95)", where="boxes.fares.answers.p95")
    Answer(function='percentile', column='fare / 100', percentage=0.95)
    """
    match = _ANSWER.fullmatch(text)
    name, column = (match[1].lower(), match[2].strip()) if match and _is_closed(match[2]) else ("", "")
    if name not in FUNCTIONS or not column:
        hint = did_you_mean(name, FUNCTIONS, otherwise="other aggregates go into `sql`, without bounds")
        refuse(f"an answer must be one of {', '.join(FUNCTIONS)}, of a column", repr(text), where=where, hint=hint)
    if name != "percentile":
        return Answer(name, column)
    column, _, share = (part.strip() for part in column.rpartition(","))
    if not (column and _SHARE.fullmatch(share) and 0 <= float(share) <= 1):
        hint = "write percentile(fare, 0.95)"
        refuse("a percentile needs a column and a share in [0, 1]", repr(text), where=where, hint=hint)
    return Answer(name, column, float(share))


def lengths(window: Lengths) -> list[str]:
    """Size and slide of a window as Spark reads them."""
    given = window if isinstance(window, tuple) else (window,)
    found = [microseconds(one, name="window") for one in given]
    if len(found) not in (1, 2) or found[-1] > found[0]:
        hint = "write {time: 5 seconds}, or {time: [10 seconds, 5 seconds]}"
        got = ", ".join(map(str, given)) or "none"
        refuse("`window` must have a size, or a size and a slide that is no longer", got, hint=hint)
    return [f"{one} microseconds" for one in found]


def delay(given: str) -> str:
    """The delay of a watermark as Spark reads it; it may be 0."""
    found = signed_microseconds(given, name="watermark")
    if found < 0:
        hint = "it says by how much rows may be late; 0 seconds is the least"
        refuse("`watermark` must not be negative", repr(given), hint=hint)
    return f"{found} microseconds"


def _is_closed(text: str) -> bool:
    """Whether no parenthesis of the text belongs to one outside of it."""
    depth = 0
    for sign in re.findall(r"[()]", _QUOTED.sub("", text)):
        depth += 1 if sign == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def as_box(name: str, body: BoxFile) -> Box:
    """A box as planners see it; what it makes of missing rows is told from the words of its SQL."""
    where = f"boxes.{name}"
    _require_one_query(body, where)
    if len(body.sources) > 1 and body.sql and body.kind is None:
        hint = "a join matches rows of both inputs, a union passes on all rows of all; their load differs"
        refuse("`kind` must say join or union", "none beside `sql`", where=where, hint=hint)
    kind = body.kind or _kind(body)
    unsafe = _LOOKS_FOR_ROWS.search(body.sql)
    weighted = bool(body.answers) or "jt_weight" in body.sql.lower()
    ignores = kind == "aggregate" and not weighted
    usual = (0.0, 1.0) if kind == "union" else (1.0, 1.0)
    return Box(
        name,
        body.sources,
        kind,
        cost=usual[0] if body.cost is None else body.cost,
        selectivity=usual[1] if body.selectivity is None else body.selectivity,
        passes=body.passes,
        keeps_value=body.keeps_value,
        values=body.values,
        weighted=weighted,
        bounds=bool(body.answers),
        monotone=unsafe is None,
        because=f"its SQL says `{unsafe[0]}`" if unsafe else "its SQL does not use `jt_weight`" if ignores else "",
    )


def _kind(body: BoxFile) -> Kind:
    if body.answers or _AGGREGATES.search(body.sql):
        return "aggregate"
    if len(body.sources) > 1:
        return "union"
    return "map" if body.sql and body.passes is None and not _FILTERS.search(body.sql) else "filter"


def _require_one_query(body: BoxFile, where: str) -> None:
    if body.answers and body.sql:
        hint = "put what has no bounds into a box of its own"
        refuse("a box must have `sql` or `answers`", "both", where=where, hint=hint)
    for field in ("window", "group"):
        if getattr(body, field) and not body.answers:
            hint = "write answers: {fare: avg(fare)}, or the grouping into `sql`"
            refuse(f"`{field}` must stand beside `answers`", "none of them", where=where, hint=hint)
    if body.answers and (body.kind or "aggregate") != "aggregate":
        hint = "leave `kind` out"
        refuse("a box with `answers` must be an aggregate", repr(body.kind), where=where, hint=hint)
    if len(body.window) > 1:
        refuse("`window` must have one column", ", ".join(body.window), where=where, hint="write {time: 5 seconds}")
