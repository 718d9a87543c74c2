"""The kinds of records that every ledger has, and how lines become records. `docs/ledger.md` describes them."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType

from jettison.control.budget_figures import BudgetFigures
from jettison.core.answer_bounds import AnswerBounds
from jettison.core.documents import Natural, Number, parse
from jettison.core.ledger_record import CountedRecord, LedgerRecord, known_kinds, read
from jettison.core.taken import Taken

SCHEMA_VERSION = 1


class Start(LedgerRecord, kw_only=True, tag="start"):
    """A run of the query begins; a backend may add facts of its own."""

    schema: Natural
    latency_bound_s: Number | UnsetType = UNSET
    points: tuple[str, ...] | UnsetType = UNSET
    trigger_s: Number | UnsetType = UNSET
    restored: bool | UnsetType = UNSET
    policy: str | UnsetType = UNSET
    policy_cause: str | UnsetType = UNSET
    outline: dict[str, Any] | UnsetType = UNSET
    dry_run: bool | UnsetType = UNSET
    session: dict[str, str] | UnsetType = UNSET


class Plan(LedgerRecord, kw_only=True, tag="plan"):
    """A plan is about to be used; `decision` is its cause in figures.

    `abridged` tells what is left out of settings that are too long to keep.
    """

    version: Natural
    points: dict[str, dict[str, Any]]
    cause: str
    decision: BudgetFigures | UnsetType | None = UNSET
    abridged: dict[str, dict[str, Any]] | UnsetType = UNSET


class Batch(CountedRecord, kw_only=True, tag="batch"):
    """A micro-batch has ended. Without a `plan_version` it kept every row; without rows it has no latency.

    `waiting_rows` is what the source had when it started and it did not take, by the source's offsets. `lag_rows` had come
    by its end and are in no batch that has ended; the oldest of them had waited for `lag_s`.
    """

    batch_id: Natural
    plan_version: Natural | None
    started_s: Number
    duration_s: Number
    latency_s: Number | None
    waiting_rows: Natural | UnsetType = UNSET
    lag_rows: Natural | UnsetType = UNSET
    lag_s: Number | UnsetType = UNSET
    taken: Taken | UnsetType = UNSET
    answers: dict[str, AnswerBounds] | UnsetType = UNSET


class Fault(LedgerRecord, kw_only=True, tag="fault"):
    """Something failed and every row was kept, or a count is missing."""

    kind: str
    detail: str


class Order(LedgerRecord, kw_only=True, tag="order"):
    """A person has set something while the query runs: what is new, in words, the bound now, and all orders that stand.

    `refused` is the mark of orders that the query cannot follow, and the text says why.
    """

    text: str
    latency_bound_s: Number
    orders: dict[str, Any]
    refused: str | UnsetType = UNSET


class Stop(LedgerRecord, kw_only=True, tag="stop"):
    """A run of the query has ended, by an error or not."""

    error: str | None
    faults: dict[str, Natural] | UnsetType = UNSET


class Line(NamedTuple):
    """A record as it stands in the file, with whatever else it says, and as its type has it."""

    document: dict[str, Any]
    record: LedgerRecord


def lines(content: bytes) -> tuple[list[Line], int]:
    """The records in the content of a file, and how many of its lines are damaged: those are none, and harm nobody.

    What follows the last newline is still being written, or was when the driver was killed: it counts for nothing.
    """
    whole, _, _ = content.rpartition(b"\n")
    kinds, found, damaged = known_kinds(), [], 0
    for line in whole.splitlines():
        if not line.strip():
            continue
        try:
            document = parse(line)
            found.append(Line(document, read(document, kinds)))
        except ValueError:
            damaged += 1
    return found, damaged
