"""What the ledger holds of a function that drops rows by their cost."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from jettison.core.documents import Natural, Number
from jettison.core.ledger_record import CountedRecord


class FunctionRecord(CountedRecord, kw_only=True, tag="function"):
    """What a function under load-aware shedding did in a micro-batch, under its name in `points`.

    Rows that were `late` came over the bound already, those `over` it were kept all the same. `spared_s` is the time that
    the rows dropped were estimated at; `dropped_keys` are the ten of which most work was dropped.
    """

    bound_s: Number | UnsetType = UNSET
    costs_version: Natural | UnsetType = UNSET
    late: Natural | UnsetType = UNSET
    over: Natural | UnsetType = UNSET
    mean_wait_s: Number | UnsetType = UNSET
    longest_wait_s: Number | UnsetType = UNSET
    busy_s: Number | UnsetType = UNSET
    spared_s: Number | UnsetType = UNSET
    dropped_keys: dict[str, Natural] | UnsetType = UNSET
    cause: str | UnsetType = UNSET
