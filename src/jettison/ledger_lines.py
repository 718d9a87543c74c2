"""Lines of a ledger: which of them are records. A line that is damaged, in whatever way, is none and harms nobody."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

Record = dict[str, Any]
_LARGEST = 2**63 - 1


def parse(content: bytes) -> tuple[list[Record], int]:
    """The records in the content of a file, and how many of its lines are damaged.

    What follows the last newline is still being written, or was when the driver was killed: it counts for nothing.
    """
    whole, _, _ = content.rpartition(b"\n")
    lines = [line for line in whole.splitlines() if line.strip()]
    records = [record for line in lines if (record := _record(line)) is not None]
    return records, len(lines) - len(records)


def _record(line: bytes) -> Record | None:
    try:
        record = json.loads(line, parse_constant=_refuse)
        return record if isinstance(record, dict) and _is_record(record) else None
    except (ValueError, TypeError, RecursionError):  # no JSON, a number that JSON does not know, or nested without end
        return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _is_record(record: Record) -> bool:
    kind = record.get("record")
    if not isinstance(kind, str) or not _is_number(record.get("at_s")):
        return False
    if not all(isinstance(name, str) for name in record.get("entrance", ())):
        return False
    return all(name in record and right(record[name]) for name, right in _FIELDS.get(kind, {}).items())


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= _LARGEST


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _or_null(right: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or right(value)


def _are_counts(points: object) -> bool:
    return isinstance(points, dict) and all(isinstance(counts, dict) and _add_up(counts) for counts in points.values())


def _add_up(counts: Mapping[str, Any]) -> bool:
    seen, kept = counts.get("seen"), counts.get("kept")
    return _is_count(seen) and _is_count(kept) and counts.get("dropped") == seen - kept >= 0  # type: ignore[operator]


_FIELDS: Mapping[str, Mapping[str, Callable[[object], bool]]] = {
    "plan": {"version": _is_count, "points": _is_object, "cause": _is_text},
    "batch": {
        "batch_id": _is_count,
        "plan_version": _or_null(_is_count),
        "started_s": _is_number,
        "duration_s": _is_number,
        "latency_s": _or_null(_is_number),
        "points": _are_counts,
    },
    "function": {"batch_id": lambda value: _is_count(value, least=-1), "points": _are_counts},
    "fault": {"kind": _is_text, "detail": _is_text},
}
"""What readers rely on, by kind of record."""
