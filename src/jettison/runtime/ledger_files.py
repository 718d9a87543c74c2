"""Which files of a ledger's folder belong together: a segment is one file, or one for each record of an object store."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_FILE = re.compile(r"(?P<segment>(?P<writer>.+)-\d{6,}(?:\.\d{4,})?)(?:-\d{20}-[0-9a-f]{32})?\.jsonl")


def writer_of(segment: str) -> str:
    """Who has written a segment.

    >>> writer_of("run-000012.0003")
    'run'
    """
    return re.sub(r"-\d{6,}(\.\d{4,})?$", "", segment)


def size(sizes: Mapping[str, int], files: Sequence[str]) -> int:
    """Bytes of these files."""
    return sum(sizes[name] for name in files)


def segments_of(names: Mapping[str, int], writer: str | None = None) -> dict[str, list[str]]:
    """The files of each segment, oldest first; where nothing can be appended to, a segment has a file for each record."""
    found: dict[str, list[str]] = {}
    for name in names:
        match = _FILE.fullmatch(name)
        if match and writer in (None, match["writer"]):
            found.setdefault(match["segment"], []).append(name)
        elif name.endswith(".jsonl") and not match and writer is None:
            found.setdefault(name.removesuffix(".jsonl"), []).append(name)
    return found
