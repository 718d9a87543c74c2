"""What a micro-batch took from its sources, read from its progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress

from jettison.core.taken import SourceStretch, Taken

_MILLISECOND_US = 1000


def taken_by(progress: StreamingQueryProgress) -> Taken:
    """Offsets of all sources, and between which times the rows lay that reached the watermark."""
    sources = tuple(
        SourceStretch(rows=max(each.numInputRows, 0), start=_parsed(each.startOffset), end=_parsed(each.endOffset))
        for each in progress.sources
    )
    reported: Mapping[str, str] = progress.eventTime or {}
    times = {name: _epoch_us(reported[name]) for name in ("min", "max", "watermark") if name in reported}
    newest_us = times.get("max")
    return Taken(
        sources=sources,
        oldest_us=times.get("min"),
        newest_us=None if newest_us is None else newest_us + _MILLISECOND_US - 1,  # Spark rounds down
        watermark_us=times.get("watermark"),
    )


def _parsed(offset: str | None) -> Any:
    try:
        return None if offset is None else json.loads(offset)
    except ValueError:  # a source may write its offsets as it likes
        return offset


def _epoch_us(timestamp: str) -> int:
    return round(datetime.fromisoformat(timestamp).timestamp() * 1e3) * _MILLISECOND_US
