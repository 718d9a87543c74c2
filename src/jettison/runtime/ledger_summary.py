"""What a closed part of the ledger held, in short: so that it need not be read again, and may go."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from itertools import chain, islice

from msgspec import UNSET, Struct, field

from jettison.core.documents import Natural
from jettison.core.ledger_record import CountedRecord, LedgerRecord, kind_of
from jettison.runtime.records import Batch, Plan

_PLANS = 2
MOST_GAPS = 10_000


class Ranges(Struct, array_like=True):
    """Whole numbers, kept as the stretches that they form: what is on record is mostly one stretch.

    >>> ranges = Ranges.of([3, 1, 2, 7])
    >>> ranges.stretches, 2 in ranges, 4 in ranges, ranges.missing(0)
    ([(1, 3), (7, 7)], True, False, [0, 4, 5, 6])
    >>> ranges.meet(4, 6), ranges.meet(0, 1), ranges.cover(0, 1), ranges.cover(2, 3)
    (False, True, False, True)
    """

    stretches: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Ranges:
        ranges = cls()
        ranges.update((number, number) for number in numbers)
        return ranges

    def __contains__(self, number: int) -> bool:
        place = bisect.bisect_right(self.stretches, number, key=lambda stretch: stretch[0])
        return place > 0 and number <= self.stretches[place - 1][1]

    def meet(self, first: int, last: int) -> bool:
        """Whether any number from the first to the last is there."""
        place = bisect.bisect_right(self.stretches, last, key=lambda stretch: stretch[0])
        return place > 0 and first <= self.stretches[place - 1][1]

    def cover(self, first: int, last: int) -> bool:
        """Whether all numbers from the first to the last are there."""
        place = bisect.bisect_right(self.stretches, first, key=lambda stretch: stretch[0])
        return place > 0 and last <= self.stretches[place - 1][1]

    def update(self, more: Iterable[tuple[int, int]]) -> None:
        """Take in stretches, each from its first to its last number."""
        for first, last in more:
            low = bisect.bisect_left(self.stretches, first - 1, key=lambda stretch: stretch[1])
            high = bisect.bisect_right(self.stretches, last + 1, key=lambda stretch: stretch[0])
            joined = [(first, last), *self.stretches[low:high]]
            self.stretches[low:high] = [(min(start for start, _ in joined), max(end for _, end in joined))]

    def missing(self, first: int) -> list[int]:
        """Numbers from `first` up to the largest that are not there; the lowest `MOST_GAPS` of them.

        Without a bound, one number that a damaged line has wrong would make more of them than memory holds.
        """
        starts = (start for start, _ in self.stretches)
        ends = (end + 1 for _, end in self.stretches)
        between = (range(max(first, low), high) for low, high in zip(chain((first,), ends), starts, strict=False))
        return list(islice(chain.from_iterable(between), MOST_GAPS))


class Totals(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Rows over some batches. `seen == kept + dropped` always holds.

    Where drop points follow one another, rows are counted once, at the entrance. In `estimated` of the batches some
    counts are estimates.
    """

    batches: Natural
    seen: Natural
    kept: Natural
    estimated: Natural = 0

    @property
    def dropped(self) -> int:
        return self.seen - self.kept

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.batches + other.batches,
            self.seen + other.seen,
            self.kept + other.kept,
            self.estimated + other.estimated,
        )


NOTHING = Totals(0, 0, 0)


class Summary(Struct):
    """All that a writer or a reader of totals needs to know of some records, and that can be added up.

    Parameters
    ----------
    totals
        Rows by kind of record, at the entrance.
    points
        Rows by kind of record and drop point.
    on_record
        Batches that are there, by what no two records of one share.
    plans
        The last plans, oldest first.
    damaged
        Lines that are no records.
    """

    totals: dict[str, Totals] = field(default_factory=dict)
    points: dict[str, dict[str, Totals]] = field(default_factory=dict)
    on_record: dict[str, Ranges] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    damaged: Natural = 0

    def has(self, kind: str, record: CountedRecord) -> bool:
        batches = self.on_record.get(_series(kind, record))
        return batches is not None and record.batch_id in batches

    def take(self, kind: str, record: LedgerRecord) -> None:
        """Take in one record; a batch that is there already is not counted again."""
        if isinstance(record, Plan):
            self._keep_plans([record])
        if not isinstance(record, CountedRecord) or self.has(kind, record):
            return
        by_point = {
            name: Totals(1, point.seen, point.kept, int(not point.exact)) for name, point in record.points.items()
        }
        names = by_point if record.entrance is UNSET else [name for name in record.entrance if name in by_point]
        at_entrance = sum((by_point[name] for name in names), NOTHING)
        estimated = int(any(point.estimated for point in by_point.values()))
        total = Totals(1, at_entrance.seen, at_entrance.kept, estimated)
        batch = Ranges.of([record.batch_id])
        self.add(Summary({kind: total}, {kind: by_point}, {_series(kind, record): batch}))

    def add(self, other: Summary) -> None:
        """Take in what other records came to."""
        for kind, count in other.totals.items():
            self.totals[kind] = self.totals.get(kind, NOTHING) + count
        for kind, by_point in other.points.items():
            mine = self.points.setdefault(kind, {})
            mine.update({name: mine.get(name, NOTHING) + count for name, count in by_point.items()})
        for series, batches in other.on_record.items():
            self.on_record.setdefault(series, Ranges()).update(batches.stretches)
        self._keep_plans(other.plans)
        self.damaged += other.damaged

    def _keep_plans(self, more: Iterable[Plan]) -> None:
        self.plans = sorted([*self.plans, *more], key=lambda plan: plan.version)[-_PLANS:]


class Closed(Struct):
    """A summary, and how many bytes of its segment it covers."""

    bytes: Natural
    summary: Summary


def _series(kind: str, record: CountedRecord) -> str:
    """What no two records of a batch share: the kind, and beside the guards also whose counts they are."""
    return ":".join([kind, *(() if kind == kind_of(Batch) else record.points)])
