"""What a closed part of the ledger held, in short: so that it need not be read again, and may go."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jettison.ledger_lines import Record

_PLANS = 2


class Ranges:
    """Whole numbers, kept as the stretches that they form: what is on record is mostly one stretch.

    >>> ranges = Ranges([3, 1, 2, 7])
    >>> list(ranges), 2 in ranges, 4 in ranges, ranges.missing(0)
    ([[1, 3], [7, 7]], True, False, [0, 4, 5, 6])
    """

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._stretches: list[list[int]] = []
        for number in numbers:
            self.add(number)

    def __iter__(self) -> Any:
        return iter(self._stretches)

    def __contains__(self, number: int) -> bool:
        place = bisect.bisect_right(self._stretches, number, key=lambda stretch: stretch[0])
        return place > 0 and number <= self._stretches[place - 1][1]

    def add(self, first: int, last: int | None = None) -> None:
        """Take in a number, or all from `first` to `last`."""
        last = first if last is None else last
        low = bisect.bisect_left(self._stretches, first - 1, key=lambda stretch: stretch[1])
        high = bisect.bisect_right(self._stretches, last + 1, key=lambda stretch: stretch[0])
        touched = self._stretches[low:high]
        if touched:
            first, last = min(first, touched[0][0]), max(last, touched[-1][1])
        self._stretches[low:high] = [[first, last]]

    def update(self, other: Iterable[Sequence[int]]) -> None:
        """Take in all stretches of another one."""
        for first, last in other:
            self.add(first, last)

    def missing(self, first: int) -> list[int]:
        """Numbers from `first` up to the largest that are not there."""
        gaps: list[int] = []
        expected = first
        for start, end in self._stretches:
            gaps.extend(range(expected, start))
            expected = max(expected, end + 1)
        return gaps


@dataclass(slots=True)
class Count:
    """Rows over some batches, and in how many of them they are estimates."""

    batches: int = 0
    seen: int = 0
    kept: int = 0
    estimated: int = 0

    def add(self, other: Count) -> None:
        """Take in the rows of other batches."""
        self.batches += other.batches
        self.seen += other.seen
        self.kept += other.kept
        self.estimated += other.estimated


@dataclass(slots=True)
class Summary:
    """All that a writer or a reader of totals needs to know of some records, and that can be added up.

    Parameters
    ----------
    totals
        Rows by kind of record, at the entrance.
    points
        Rows by kind of record and drop point.
    on_record
        Batches that are there, by what no two records share beside the batch: the kind, and for functions which one.
    plans
        The last plans, oldest first.
    damaged
        Lines that are no records.
    """

    totals: dict[str, Count] = field(default_factory=dict)
    points: dict[str, dict[str, Count]] = field(default_factory=dict)
    on_record: dict[str, Ranges] = field(default_factory=dict)
    plans: list[Record] = field(default_factory=list)
    damaged: int = 0

    def has(self, record: Mapping[str, Any]) -> bool:
        """Whether a record of the same batch is there."""
        batches = self.on_record.get(_series(record))
        return batches is not None and record["batch_id"] in batches

    def take(self, record: Record) -> None:
        """Take in one record; a batch that is there already is not counted again."""
        kind = record["record"]
        if kind == "plan":
            self._keep_plans([record])
        if "batch_id" not in record or "points" not in record or self.has(record):
            return
        self.on_record.setdefault(_series(record), Ranges()).add(record["batch_id"])
        points = record["points"]
        guessed = int(not all(point.get("exact", True) for point in points.values()))
        entrance = [points[name] for name in record.get("entrance") or points if name in points]
        seen, kept = (sum(point[name] for point in entrance) for name in ("seen", "kept"))
        self.totals.setdefault(kind, Count()).add(Count(1, seen, kept, guessed))
        by_point = self.points.setdefault(kind, {})
        for name, point in points.items():
            one = Count(1, point["seen"], point["kept"], int(not point.get("exact", True)))
            by_point.setdefault(name, Count()).add(one)

    def add(self, other: Summary) -> None:
        """Take in what other records came to."""
        for kind, count in other.totals.items():
            self.totals.setdefault(kind, Count()).add(count)
        for kind, by_point in other.points.items():
            for name, count in by_point.items():
                self.points.setdefault(kind, {}).setdefault(name, Count()).add(count)
        for series, batches in other.on_record.items():
            self.on_record.setdefault(series, Ranges()).update(batches)
        self._keep_plans(other.plans)
        self.damaged += other.damaged

    def to_json(self) -> str:
        """One line of JSON, from which `from_json` restores it."""
        return json.dumps(
            {
                "totals": {kind: _numbers(count) for kind, count in self.totals.items()},
                "points": {
                    kind: {name: _numbers(count) for name, count in by_point.items()}
                    for kind, by_point in self.points.items()
                },
                "on_record": {series: list(batches) for series, batches in self.on_record.items()},
                "plans": self.plans,
                "damaged": self.damaged,
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Summary:
        """Restore what `to_json` gave; raises `ValueError` where it cannot."""
        try:
            document = json.loads(text)
            summary = cls(damaged=int(document["damaged"]), plans=list(document["plans"]))
            summary.totals = {kind: _count(numbers) for kind, numbers in document["totals"].items()}
            for kind, by_point in document["points"].items():
                summary.points[kind] = {name: _count(numbers) for name, numbers in by_point.items()}
            for series, stretches in document["on_record"].items():
                summary.on_record[series] = Ranges()
                summary.on_record[series].update((int(first), int(last)) for first, last in stretches)
            if not all(isinstance(plan["version"], int) for plan in summary.plans):
                raise ValueError("a plan without a version")
        except (AttributeError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"no summary of a ledger: {error!r}") from error
        return summary

    def _keep_plans(self, more: Iterable[Record]) -> None:
        self.plans = sorted([*self.plans, *more], key=lambda plan: plan["version"])[-_PLANS:]


def _series(record: Mapping[str, Any]) -> str:
    """What no two records of a batch share: the kind, and for functions also which one."""
    return ":".join([record["record"], *(record["points"] if record["record"] == "function" else ())])


def _numbers(count: Count) -> list[int]:
    return [count.batches, count.seen, count.kept, count.estimated]


def _count(numbers: Sequence[int]) -> Count:
    if len(numbers) != 4 or not all(type(number) is int for number in numbers):
        raise ValueError(f"four counts expected, got {numbers!r}")
    return Count(*numbers)
