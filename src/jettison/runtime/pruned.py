"""What stays known of records that were pruned from the ledger: what their batches took, in short, to be read again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from jettison.core.documents import Natural, convert
from jettison.core.taken import Taken
from jettison.runtime.ledger_summary import Ranges

MOST_SPANS = 1_000
_OF_START = ("dry_run", "policy", "session")


class TakenSpan(Struct, frozen=True, array_like=True):
    """What neighbouring batches took together, and whether rows of any of them may have been dropped."""

    first: Natural
    last: Natural
    shed: bool
    taken: Taken


class PrunedRecords(Struct):
    """What stays known of some records.

    Parameters
    ----------
    spans
        What their batches took, in the order of their numbers; the older, the more batches together.
    dropped
        Batches of which companions have dropped rows.
    start
        What the last run among them said of itself, as far as it matters for its batches.
    """

    spans: list[TakenSpan] = field(default_factory=list)
    dropped: Ranges = field(default_factory=Ranges)
    start: dict[str, Any] = field(default_factory=dict)

    def take(self, records: Iterable[dict[str, Any]]) -> None:
        """Take in records that follow those before."""
        for record in records:
            if record["record"] == "start":
                self.start = {name: record[name] for name in _OF_START if name in record}
            elif record["record"] == "batch":
                self._take_batch(record)
            elif "points" in record and "batch_id" in record and dropped(record):
                self.dropped.update([(record["batch_id"], record["batch_id"])])
        while len(self.spans) > MOST_SPANS and len(shorter := _in_pairs(self.spans)) < len(self.spans):
            self.spans = shorter

    def _take_batch(self, record: dict[str, Any]) -> None:
        number = record["batch_id"]
        if record.get("taken", {}).get("sources") and (not self.spans or number > self.spans[-1].last):
            shed = dropped(record) and not self.start.get("dry_run")
            self.spans.append(TakenSpan(number, number, shed, convert(record["taken"], Taken)))


def dropped(record: dict[str, Any]) -> bool:
    """Whether rows of a batch may have been dropped, by its record: of what was not counted, that is assumed."""
    return any(point["dropped"] or not point.get("exact", True) for point in record["points"].values())


def _in_pairs(spans: list[TakenSpan]) -> list[TakenSpan]:
    """Each two neighbours as one, where the one took on where the other had ended.

    Shed ones with shed ones and others with others, if that makes them fewer by a tenth: all windows of a span are settled
    in which a batch was shed.
    """
    alike = _joined(spans, alike=True)
    return alike if len(alike) <= 0.9 * len(spans) else _joined(spans, alike=False)


def _joined(spans: list[TakenSpan], *, alike: bool) -> list[TakenSpan]:
    found: list[TakenSpan] = []
    may_grow = False
    for span in spans:
        if may_grow and _follows(found[-1], span) and (not alike or found[-1].shed == span.shed):
            found[-1] = _as_one(found[-1], span)
            may_grow = False
        else:
            found.append(span)
            may_grow = True
    return found


def _follows(one: TakenSpan, other: TakenSpan) -> bool:
    if other.first != one.last + 1 or len(other.taken.sources) != len(one.taken.sources):
        return False
    return all(a.end == b.start for a, b in zip(one.taken.sources, other.taken.sources, strict=True))


def _as_one(one: TakenSpan, other: TakenSpan) -> TakenSpan:
    both = [span.taken for span in (one, other)]
    sources = tuple(
        replace(a, rows=a.rows + b.rows, end=b.end) for a, b in zip(both[0].sources, both[1].sources, strict=True)
    )
    shed = one.shed or other.shed
    unknown = not shed and any(each.oldest_us is None and any(source.rows for source in each.sources) for each in both)
    times = [] if unknown else [each for each in both if each.oldest_us is not None and each.newest_us is not None]
    return TakenSpan(
        one.first,
        other.last,
        shed,
        Taken(
            sources=sources,
            oldest_us=min((each.oldest_us or 0 for each in times), default=None),
            newest_us=max((each.newest_us or 0 for each in times), default=None),
            watermark_us=one.taken.watermark_us,
        ),
    )
