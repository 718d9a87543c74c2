"""How many rows the files of a folder hold, by their sizes and a look into some: what waits is known before a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pyarrow.orc as orc
import pyarrow.parquet as pq
from pyarrow import fs

from jettison.core.storage import Folder

_LOOKED_INTO = 4  # new files, each time
_REMEMBERED = 32  # files whose bytes a row are averaged over
_HEAD_BYTES = 1 << 16
_HIDDEN = ("_", ".")


class FolderRows:
    r"""Rows of all files that have come to a folder since the first question, files in folders below it included.

    A file counts when it is first seen, and what it grows by later; files that are deleted or moved away have come all
    the same. Hidden ones do not count, as for Spark. How many rows its bytes hold is told by the newest files: by the
    footers of Parquet and ORC, by the lines of text, JSON and CSV. Of other files, such as compressed text, that is
    not known, and the answer is `None`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = FolderRows(Folder(folder))
    >>> rows()
    0.0
    >>> _ = (folder / "a.json").write_text('{"fare": 1}\n' * 70), (folder / "_spare.json").write_text("{}")
    >>> rows()
    70.0
    """

    def __init__(self, folder: Folder) -> None:
        self._filesystem, self._path = folder.located
        self._sizes: dict[str, int] | None = None
        self._looked: deque[tuple[float, int]] = deque(maxlen=_REMEMBERED)
        self._rows = 0.0
        self._unread = 0

    def __call__(self) -> float | None:
        """Rows so far, from 0 at the first question; `None` where the files do not tell."""
        sizes = self._listed()
        before, self._sizes = self._sizes, sizes
        if before is None:
            self._look_into(sizes)
            return 0.0
        grown = {path: size - before.get(path, 0) for path, size in sizes.items() if size > before.get(path, 0)}
        self._look_into({path: sizes[path] for path in grown})
        self._unread += sum(grown.values())
        known = sum(size for _, size in self._looked)
        if known == 0:
            return None if self._unread else self._rows
        self._rows += self._unread * sum(rows for rows, _ in self._looked) / known
        self._unread = 0
        return self._rows

    def _listed(self) -> dict[str, int]:
        found = self._filesystem.get_file_info(fs.FileSelector(self._path, recursive=True, allow_not_found=True))
        return {
            each.path: each.size or 0
            for each in found
            if each.is_file and not any(part.startswith(_HIDDEN) for part in self._below(each.path))
        }

    def _below(self, path: str) -> list[str]:
        # A folder of a partition may begin so: `_year=2026`.
        parts = path.removeprefix(self._path).strip("/").split("/")
        return [part for part in parts if not (part.startswith("_") and "=" in part)]

    def _look_into(self, sizes: dict[str, int]) -> None:
        for path in sorted(sizes)[-_LOOKED_INTO:]:
            if (found := _rows_and_bytes(self._filesystem, path, sizes[path])) is not None:
                self._looked.append(found)


def _rows_and_bytes(filesystem: fs.FileSystem, path: str, size: int) -> tuple[float, int] | None:
    """Rows, and the bytes that hold them, of a file or its beginning; `None` where it does not tell."""
    try:
        with filesystem.open_input_file(path) as file:
            head = file.read(_HEAD_BYTES)
            for mark, rows in _FOOTERS.items():
                if head.startswith(mark):
                    return float(rows(file)), size
    except (OSError, ValueError):  # it is gone, or not written yet
        return None
    if b"\x00" in head or head.startswith(b"\x1f\x8b"):
        return None
    whole = head[: head.rfind(b"\n") + 1] if len(head) < size else head
    lines = whole.count(b"\n") + (not whole.endswith(b"\n"))
    return (float(lines), len(whole)) if whole else None


_FOOTERS: dict[bytes, Callable[[fs.FileSystem], int]] = {
    b"PAR1": lambda file: pq.ParquetFile(file).metadata.num_rows,
    b"ORC": lambda file: orc.ORCFile(file).nrows,
}
