"""Which folders the guarded streams of a query read, as Spark's plans say, and how many rows have come to them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame

from jettison.core.storage import Folder
from jettison.spark.explained import explained
from jettison.spark.folder_rows import FolderRows

_ANALYZED = re.compile(r"== Analyzed Logical Plan ==(.*?)(?:\n== |\Z)", re.DOTALL)
_STREAM = re.compile(r"^[ :+-]*~?Streaming\w* (.*)$", re.MULTILINE)
_FOLDER = re.compile(r"FileSource\[([^\[\]{}*?]+)\], \[")


class ReadFiles:
    """Rows that have come to the folders of streams of files; `None` where any of them reads something else.

    Folders are looked up with the first question: that takes Spark a while, and nobody should wait for it.
    """

    def __init__(self, streams: Sequence[DataFrame]) -> None:
        self._streams: Sequence[DataFrame] = streams
        self._folders: list[FolderRows] | None = None

    def __call__(self) -> float | None:
        """Rows so far, of all folders together."""
        if self._folders is None:
            self._folders = [FolderRows(Folder(path)) for path in folders_read(self._streams)]
        rows = [known for folder in self._folders if (known := folder()) is not None]
        return sum(rows) if rows and len(rows) == len(self._folders) else None


def folders_read(streams: Sequence[DataFrame]) -> list[str]:
    """The folders that these streams read, each once; empty where not all of them read folders by name."""
    found: set[str] = set()
    for stream in streams:
        plan = _ANALYZED.search(explained(stream.explain))
        sources = [] if plan is None else [_FOLDER.match(source) for source in _STREAM.findall(plan[1])]
        if not sources or None in sources:
            return []
        found |= {source[1] for source in sources if source is not None}
    return sorted(found)
