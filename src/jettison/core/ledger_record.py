"""What all records of the ledger have in common: each kind is a type, so that readers know what a line must hold.

A kind is a subclass with a `tag`, its name; with that its lines are checked when they are written and read, and it is in
the ledger's schema. Records are written and handed out as they stand in the file: what a newer release adds to them, or
kinds that it adds, pass through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Union

import msgspec
from msgspec import UNSET, Struct, UnsetType

from jettison.core.documents import Natural, Number, convert
from jettison.core.kinds import load_kinds

BatchId = Annotated[int, msgspec.Meta(ge=-1, le=2**63 - 1)]
"""Spark's number of a micro-batch; -1 in a query that is no stream."""


class LedgerRecord(Struct, kw_only=True, tag_field="record", tag="any"):
    """A line of the ledger: its kind, under `record`, and when it happened, in seconds since the epoch."""

    at_s: Number


class Counts(Struct):
    """Rows that reached a drop point, and what became of them; `exact` is false where they are estimates."""

    seen: Natural
    kept: Natural
    dropped: Natural
    exact: bool = True

    def __post_init__(self) -> None:
        if self.seen != self.kept + self.dropped:
            raise ValueError("rows do not add up")


class CountedRecord(LedgerRecord, kw_only=True, tag="counted"):
    """A record of one micro-batch, with its rows by drop point; the ledger holds at most one of a kind.

    `entrance` names the drop points at which rows count for totals, where that are not all of them.
    """

    batch_id: BatchId
    points: dict[str, Counts]
    entrance: tuple[str, ...] | UnsetType = UNSET


def kind_of(record: type[LedgerRecord]) -> str:
    """The name of a kind, as lines have it under `record`."""
    return str(record.__struct_config__.tag)


def known_kinds() -> dict[str, type[LedgerRecord]]:
    """All kinds whose modules were imported, by their names; those that come with jettison are."""
    load_kinds()
    found = [*_subclasses(LedgerRecord)]
    return {kind_of(each): each for each in found if each is not CountedRecord}


def read(document: Any, kinds: dict[str, type[LedgerRecord]]) -> LedgerRecord:
    """A line as its type has it; raises `ValueError` where it is none. Of kinds not known, what all have in common."""
    kind = document.get("record") if isinstance(document, dict) else None
    if not isinstance(kind, str):
        raise ValueError("a record names its kind")
    if kind in kinds:
        return convert(document, kinds[kind])
    counted = {"batch_id", "points"} <= document.keys()
    return convert(document | {"record": "counted" if counted else "any"}, CountedRecord if counted else LedgerRecord)


def schema() -> dict[str, Any]:
    """The JSON schema of a line, of all kinds that are known."""
    return msgspec.json.schema(Union[tuple(known_kinds().values())])  # noqa: UP007  # made of a list


def _subclasses(record: type[LedgerRecord]) -> Iterator[type[LedgerRecord]]:
    for each in record.__subclasses__():
        yield each
        yield from _subclasses(each)
