"""The record of what is settled, beside the checkpoint: what a next run need not do again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from jettison.core.documents import Amount, Natural, Number, decode, encode
from jettison.core.storage import Folder
from jettison.errors import InvalidInput, refuse
from jettison.settle.touched_windows import Look, Lost, Window, all_windows, merged

FOLDER = "settle"
_FILE = "settled.json"


class Part(Struct, frozen=True, kw_only=True):
    """Windows whose answers lie together in one folder; `at_s` is when they were written, `None` before they are.

    `merged` names the Delta table in which they stand, too.
    """

    number: Natural
    windows: tuple[Window, ...]
    through: Natural
    rows_read: Natural = 0
    at_s: Number | None = None
    merged: str = ""


class Settled(Struct, frozen=True, kw_only=True):
    """What is known and done.

    Parameters
    ----------
    to, query
        Where the answers lie; a fingerprint of the query that made them.
    looks
        Windows that rows may have been dropped from.
    parts
        Windows that are settled; the last one may still be under way.
    lost
        What cannot be settled, and why.
    rows_per_s
        How fast the last run settled.
    numbered
        The last number that a part was given. None is given twice: whoever reads the answers may have read a part that
        was taken back.
    unrecorded
        The first and the last batch that have ended after the last one on record, if there are any.
    """

    to: str = ""
    query: str = ""
    looks: tuple[Look, ...] = ()
    parts: tuple[Part, ...] = ()
    lost: tuple[Lost, ...] = ()
    rows_per_s: Amount | None = None
    numbered: Natural = 0
    unrecorded: tuple[Natural, Natural] | None = None

    @property
    def settled(self) -> set[Window]:
        """Windows whose exact answers are written."""
        return {window for part in self.parts if part.at_s is not None for window in part.windows}

    @property
    def unsettled(self) -> set[Window]:
        """Windows that still may be settled, now or once they are closed."""
        left = all_windows(self.looks) - self.settled
        return {window for window in left if not self.is_lost(window)}

    @property
    def lost_windows(self) -> set[Window]:
        """Windows whose exact answers nobody can tell any more."""
        return {window for window in all_windows(self.looks) - self.settled if self.is_lost(window)}

    def is_lost(self, window: Window) -> bool:
        """Whether rows of the window may be lost."""
        return any(lost.takes(window) for lost in self.lost)

    def begun(self, to: str, query: str, *, in_order: bool) -> Settled:
        """The same, for a run of this query; refuses another query's, whose answers would not fit beside these.

        Unless rows are `in_order` what was assumed of them is forgotten, so that somebody looks.
        """
        if self.to and absolute(self.to) != to:
            hint = f"settle to {self.to} again, where the windows lie that are settled already"
            refuse("`to` must be where earlier answers lie", to, hint=hint)
        if self.query not in ("", query):
            hint = "settle with that query; to settle all windows again by this one, remove `jettison/settle`"
            refuse("the query must be the one that settled the windows before", "one that has changed since", hint=hint)
        looks = tuple(look for look in self.looks if in_order or not look.assumed)
        return self.saying(to=to, query=query, looks=looks)

    def saying(self, **changes: Any) -> Settled:
        """The record with other contents."""
        return msgspec.structs.replace(self, **changes)


def absolute(path: str) -> str:
    """A path as it is from any working directory; a URI as it stands.

    >>> absolute("s3://rides/exact"), absolute("/exact")
    ('s3://rides/exact', '/exact')
    """
    return path if len(urlsplit(path).scheme) > 1 else os.path.abspath(path)


def load(home: Folder) -> Settled:
    """What is on record beside a checkpoint; nothing where nothing was settled yet. Refuses a damaged record."""
    text = (home / FOLDER).read(_FILE)
    if text is None:
        return Settled()
    try:
        return decode(text, Settled)
    except ValueError as error:
        hint = "remove it and settle again, to another path"
        refuse(
            "the record of settled windows must be readable",
            str(error),
            where=f"{home.uri}/{FOLDER}/{_FILE}",
            hint=hint,
            error=InvalidInput,
            cause=error,
        )


def save(home: Folder, settled: Settled) -> None:
    """Put it on record, all at once."""
    (home / FOLDER).replace(_FILE, encode(settled).encode())


def summary(record: Settled) -> str | None:
    """How much of a query's windows is settled, and since when, in words; `None` where nobody has looked yet."""
    if not record.looks and not record.lost and record.unrecorded is None:
        return None
    touched, lost = len(all_windows(record.looks) | record.settled), len(record.lost_windows)
    done, left = len(record.settled), len(record.unsettled)
    last_s = max((part.at_s or 0.0 for part in record.parts), default=0.0)
    when = f"; exact by reconciliation since {time_of(round(last_s * 1e6))}" if last_s else ""
    also = "".join(f"; {words}" for words in _open_batches(record))
    words = f"of {touched:,} windows that rows were dropped from: {done:,} settled, {left:,} open, {lost:,} lost"
    return words + when + also


def _open_batches(record: Settled) -> list[str]:
    if record.unrecorded is None:
        return []
    first, last = record.unrecorded
    return [f"{f'batch {first}' if first == last else f'batches {first} to {last}'} not on record yet"]


def stretches(record: Settled, most: int) -> Iterator[tuple[str, str, str, str]]:
    """The times whose windows are settled, open and lost, with when or why: the newest of each, at most so many."""
    for part in [part for part in record.parts if part.at_s is not None][-most:]:
        for one in merged(part.windows)[-most:]:
            yield "settled", time_of(one.start_us), time_of(one.end_us), time_of(round((part.at_s or 0.0) * 1e6))
    for one in merged(record.unsettled)[-most:]:
        yield "open", time_of(one.start_us), time_of(one.end_us), ""
    for words in _open_batches(record):
        yield "open", "unknown", "unknown", words
    for lost in record.lost[-most:]:
        yield "lost", time_of(lost.from_us), time_of(lost.until_us), lost.reason


def time_of(at_us: int) -> str:
    """A time in words.

    >>> time_of(0), time_of(2**63 - 1)
    ('1970-01-01 00:00:00+00:00', 'the end')
    """
    try:
        return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(" ", "seconds")
    except (ValueError, OverflowError, OSError):  # before and after all times
        return "the end" if at_us > 0 else "the beginning"
