"""Which folders the guarded streams of a query read, as Spark's plans say, and how many rows have come to them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame

from jettison.core.storage import Folder
from jettison.spark.explained import analyzed_plan, explained
from jettison.spark.folder_rows import FolderRows

_STREAM = re.compile(r"~?Streaming\w* ")
# Spark 4.0 prints the options of the source first.
_FOLDER = re.compile(_STREAM.pattern + r"(?:DataSource\(.*\), )?FileSource\[([^\[\]{}*?]+)\], \[")


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
        operators = [node.text for node in analyzed_plan(explained(stream.explain))]
        sources = [_FOLDER.match(text) for text in operators if _STREAM.match(text)]
        if not sources or None in sources:
            return []
        found |= {source[1] for source in sources if source is not None}
    return sorted(found)
