"""What a micro-batch took from its sources: enough to read the same rows again."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from jettison.core.documents import Natural


class SourceStretch(Struct, frozen=True, kw_only=True):
    """What one source gave: rows after the offset `start`, null at the beginning, up to `end`, in the source's own terms."""

    rows: Natural
    start: Any = None
    end: Any = None


class Taken(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a batch took from its sources, in the order in which the query names them.

    Times are microseconds since the epoch. `oldest_us` and `newest_us` enclose the event times of all rows that reached
    the watermark, and are `None` where there were none or, in a query with several watermarks, where that is not known;
    `watermark_us` is where it stood in this batch, `None` in a query without one.
    """

    sources: tuple[SourceStretch, ...] = ()
    oldest_us: int | None = None
    newest_us: int | None = None
    watermark_us: int | None = None
