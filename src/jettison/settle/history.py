"""What the ledger knows of a query's batches: what each took from its sources, and whether rows of it may have gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jettison.core.documents import convert
from jettison.core.storage import Folder
from jettison.core.taken import SourceStretch, Taken
from jettison.runtime.ledger_summary import Ranges
from jettison.runtime.pruned import PrunedRecords, dropped

BEGINNING_US, END_US = -(2**63), 2**63 - 1
"""Before and after all event times."""


@dataclass(frozen=True, slots=True)
class Span:
    """A batch, or neighbouring batches that are not on record.

    Parameters
    ----------
    first, last
        Numbers of the batches.
    shed
        Whether rows of it may have been dropped. Of what is not on record, and of what was not counted, that is assumed.
    sources
        What it took, source by source; empty where that is not on record.
    oldest_us, newest_us
        Between which event times its rows lay that reached the watermark: all rows that count, where none was dropped.
        `None` where there were none, or where it is not known.
    watermark_us
        Where the watermark stood; `None` where it is not known.
    """

    first: int
    last: int
    shed: bool
    sources: tuple[SourceStretch, ...] = ()
    oldest_us: int | None = None
    newest_us: int | None = None
    watermark_us: int | None = None
    counted: bool = True

    @property
    def rows(self) -> int:
        """Rows that it took, as far as that is on record."""
        return sum(source.rows for source in self.sources)

    def may_hold(self, from_us: int, until_us: int) -> bool:
        """Whether rows that reached the watermark may have times between the two, both included."""
        if self.oldest_us is None or self.newest_us is None:
            return self.rows > 0
        return self.oldest_us <= until_us and self.newest_us >= from_us


@dataclass(frozen=True, slots=True)
class History:
    """All batches up to the last one on record.

    Parameters
    ----------
    spans
        In the order of their numbers, without a gap.
    policy
        What dropped the rows, by the name of its class.
    session
        Settings of the last run's session, on which answers depend; empty where that is not on record.
    """

    spans: tuple[Span, ...]
    policy: str = ""
    session: Mapping[str, str] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """Number of the last batch; -1 where there is none."""
        return self.spans[-1].last if self.spans else -1

    @property
    def watermark_us(self) -> int | None:
        """Where the watermark stands: windows that end by then get no more rows. `None` in a query without one."""
        return next((span.watermark_us for span in reversed(self.spans) if span.watermark_us is not None), None)

    def doubtful_us(self, span: Span, delay_us: int) -> tuple[int, int]:
        """Between which event times rows of a shed batch lie that nobody can read, in a stream that keeps to its watermark.

        Not before the watermark of the batch before, or the row came too late. Not beyond the newest time known once a
        batch after the next one has kept everything, plus the watermark's delay.
        """
        place, newest_us = self.spans.index(span), BEGINNING_US
        for number, each in enumerate(self.spans):
            newest_us = max(newest_us, BEGINNING_US if each.newest_us is None else each.newest_us)
            if number > place + 1 and not each.shed and each.newest_us is not None:
                return self._late_us(place) or BEGINNING_US, newest_us + delay_us
        return self._late_us(place) or BEGINNING_US, END_US

    def in_order_us(self, delay_us: int) -> dict[int, tuple[int, int]]:
        """By first batch, between which event times rows of shed batches lie, in a stream that keeps to its watermark.

        Not before the watermark of the batch before, or the row came too late. Not beyond the oldest of all rows after
        the next batch, plus the watermark's delay: rows of the next one may be older still. In place of an oldest row
        that came too late stands the newest of its batch. Batches of which one of these is not known are left out.
        """
        found: dict[int, tuple[int, int]] = {}
        oldest_us = next_us = END_US
        for place in reversed(range(len(self.spans))):
            span, late_us = self.spans[place], self._late_us(place)
            if span.shed and oldest_us < END_US and late_us:  # at first it stands at 0
                found[span.first] = late_us, oldest_us + delay_us
            # What came too late tells nothing of others. The watermark of the batch before may be that before a gap.
            just_us, times_us = span.watermark_us or END_US, (span.oldest_us, span.newest_us)
            own_us = min((at_us for at_us in times_us if at_us is not None and at_us >= just_us), default=END_US)
            oldest_us, next_us = min(oldest_us, next_us), own_us
        return found

    def _late_us(self, place: int) -> int | None:
        """Before what time rows come too late for a batch: Spark drops them by the watermark of the batch before it."""
        return self.spans[place - 1].watermark_us if place else None


def history(records: Iterable[dict[str, Any]], gone: Sequence[PrunedRecords] = ()) -> History:
    """The history that the records of a ledger tell, in the order in which they were written, after those that are gone."""
    found: dict[int, Span] = {}
    dropped_elsewhere = Ranges()
    for each in gone:
        dropped_elsewhere.update(each.dropped.stretches)
    before = [span for each in gone for span in each.spans]
    last_gone = max((span.last for span in before), default=-1)
    start: dict[str, Any] = next((each.start for each in gone if each.start), {})
    dry_run, policy, session = bool(start.get("dry_run")), start.get("policy", ""), start.get("session", {})
    for record in records:
        kind = record["record"]
        if kind == "start":
            dry_run, policy = bool(record.get("dry_run")), str(record.get("policy") or policy)
            session = record.get("session") or session
        elif kind == "batch":
            if (
                record.get("taken", {}).get("sources") and record["batch_id"] > last_gone
            ):  # otherwise it is as good as not on record
                found[record["batch_id"]] = _span(record, dry_run)
        elif "points" in record and "batch_id" in record and dropped(record):  # what a companion did
            dropped_elsewhere.update([(record["batch_id"], record["batch_id"])])
    every = [*(_of(one.first, one.last, one.shed, one.taken) for one in before), *found.values()]
    spans = [replace(span, shed=True) if dropped_elsewhere.meet(span.first, span.last) else span for span in every]
    return History(_without_gaps(sorted(spans, key=lambda span: span.first)), policy, session)


def unrecorded(checkpoint: Folder, known: History) -> tuple[int, int] | None:
    """The first and the last batch that Spark has committed after the last one on record, if there are any.

    A driver that is killed leaves such behind: what they took is known once the query has run again.
    """
    committed = max((int(name) for name in (checkpoint / "commits").names() if name.isdecimal()), default=-1)
    return (known.last + 1, committed) if committed > known.last else None


def _span(record: dict[str, Any], dry_run: bool) -> Span:
    number = record["batch_id"]
    return _of(number, number, dropped(record) and not dry_run, convert(record["taken"], Taken))


def _of(first: int, last: int, shed: bool, taken: Taken) -> Span:
    return Span(
        first=first,
        last=last,
        shed=shed,
        sources=taken.sources,
        oldest_us=taken.oldest_us,
        newest_us=taken.newest_us,
        watermark_us=taken.watermark_us,
    )


def _without_gaps(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The batches with those between them that are not on record, which took what lies between their neighbours."""
    whole: list[Span] = []
    for span in spans:
        expected = whole[-1].last + 1 if whole else 0
        if span.first > expected:
            before = whole[-1].sources if whole else tuple(SourceStretch(rows=0) for _ in span.sources)
            sources = tuple(
                SourceStretch(rows=0, start=one.end, end=other.start)
                for one, other in zip(before, span.sources, strict=False)
            )
            at_us = whole[-1].watermark_us if whole else None
            whole.append(Span(expected, span.first - 1, True, sources, watermark_us=at_us, counted=False))
        whole.append(span)
    return tuple(whole)
