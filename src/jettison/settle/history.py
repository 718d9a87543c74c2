"""What the ledger knows of a query's batches: what each took from its sources, and whether rows of it may have gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jettison.core.documents import convert
from jettison.core.taken import SourceStretch, Taken

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
        `None` where there were none.
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


@dataclass(frozen=True, slots=True)
class History:
    """All batches up to the last one on record.

    Parameters
    ----------
    spans
        In the order of their numbers, without a gap.
    policy
        What dropped the rows, by the name of its class.
    """

    spans: tuple[Span, ...]
    policy: str = ""

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

        Not before the watermark, or the row came too late. Not beyond the newest time known once a batch has kept
        everything, plus the watermark's delay: no row is newer than a later one by more than that.
        """
        newest_us = BEGINNING_US
        for each in self.spans:
            newest_us = max(newest_us, BEGINNING_US if each.newest_us is None else each.newest_us)
            if each.first > span.last and not each.shed and each.newest_us is not None:
                return span.watermark_us or BEGINNING_US, newest_us + delay_us
        return span.watermark_us or BEGINNING_US, END_US

    def in_order_us(self, delay_us: int) -> dict[int, tuple[int, int]]:
        """By first batch, between which event times rows of shed batches lie, in a stream that keeps to its watermark.

        Not before the watermark, or the row came too late. Not beyond the oldest of all later rows, plus the watermark's
        delay: no row is newer than a later one by more than that. Batches of which one of these is not known are left out.
        """
        found: dict[int, tuple[int, int]] = {}
        oldest_us = END_US
        for span in reversed(self.spans):
            if span.shed and oldest_us < END_US and span.watermark_us:  # at first it stands at 0
                found[span.first] = span.watermark_us, oldest_us + delay_us
            if span.oldest_us is not None:  # a row that came too late counts as one that came just in time
                oldest_us = min(oldest_us, max(span.oldest_us, span.watermark_us or span.oldest_us))
        return found


def history(records: Iterable[dict[str, Any]]) -> History:
    """The history that the records of a ledger tell, in the order in which they were written."""
    found: dict[int, Span] = {}
    dropped_elsewhere: set[int] = set()
    dry_run, policy = False, ""
    for record in records:
        kind = record["record"]
        if kind == "start":
            dry_run, policy = bool(record.get("dry_run")), str(record.get("policy") or policy)
        elif kind == "batch":
            if record.get("taken", {}).get("sources"):  # otherwise it is as good as not on record
                found[record["batch_id"]] = _span(record, dry_run)
        elif "points" in record and "batch_id" in record and _dropped(record):  # what a companion did
            dropped_elsewhere.add(record["batch_id"])
    spans = [replace(span, shed=True) if span.first in dropped_elsewhere else span for span in found.values()]
    return History(_without_gaps(sorted(spans, key=lambda span: span.first)), policy)


def _span(record: dict[str, Any], dry_run: bool) -> Span:
    taken = convert(record["taken"], Taken)
    return Span(
        first=record["batch_id"],
        last=record["batch_id"],
        shed=_dropped(record) and not dry_run,
        sources=taken.sources,
        oldest_us=taken.oldest_us,
        newest_us=taken.newest_us,
        watermark_us=taken.watermark_us,
    )


def _dropped(record: dict[str, Any]) -> bool:
    return any(point["dropped"] or not point.get("exact", True) for point in record["points"].values())


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
