"""Which files a batch took: Spark's log of a file source, in the checkpoint under `sources/`.

One text file for each time that new files were found, named by its number: a line with the version, then a JSON object
for each file. Now and then all of them are put together in one that ends in `.compact`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any
from urllib.parse import unquote

from pyarrow import fs

from jettison.core.storage import Folder
from jettison.errors import Unsupported, refuse

_NAME = re.compile(r"(\d+)(\.compact)?")


class FileLog:
    """The files of one source by their number in its log, as paths.

    Parameters
    ----------
    checkpoint
        Of the query.
    source
        Its place among the query's sources.
    """

    def __init__(self, checkpoint: Folder, source: int) -> None:
        folder = checkpoint / "sources" / str(source)
        numbered = {name: match for name in folder.names() if (match := _NAME.fullmatch(name))}
        compact = max((int(match[1]) for match in numbered.values() if match[2]), default=-1)
        self._files: dict[int, dict[str, int]] = {}
        for name, match in numbered.items():
            if int(match[1]) > compact or (match[2] and int(match[1]) == compact):
                for entry in _entries(folder.read(name) or b""):
                    files = self._files.setdefault(int(entry["batchId"]), {})
                    files[unquote(entry["path"])] = int(entry["timestamp"])
        self._listed: dict[str, dict[str, fs.FileInfo]] = {}

    def files(self, after: int, through: int) -> dict[str, int]:
        """The files of all numbers after the first and up to the second, in their order, and when each was last changed.

        In milliseconds since the epoch, as it was when Spark found the file.
        """
        numbers = range(after + 1, through + 1)
        return {path: changed_ms for number in numbers for path, changed_ms in self._files.get(number, {}).items()}

    def is_known(self, after: int, through: int) -> bool:
        """Whether the log still holds all these numbers."""
        return all(number in self._files for number in range(after + 1, through + 1))

    def now(self, path: str) -> fs.FileInfo | None:
        """A file as it is; `None` where it is gone. Each folder is listed once, until `look_again`."""
        parent, _, name = path.rpartition("/")
        if parent not in self._listed:
            filesystem, place = Folder(parent).located
            selected = fs.FileSelector(place, allow_not_found=True)
            self._listed[parent] = {info.base_name: info for info in filesystem.get_file_info(selected)}
        return self._listed[parent].get(name)

    def look_again(self) -> None:
        """From now on files are as they are then."""
        self._listed.clear()

    def is_changed(self, path: str, found_ms: int) -> bool:
        """Whether a file that is there is known to be another than the one that Spark found, last changed at that time."""
        info = self.now(path)
        if info is None or info.mtime_ns is None:
            return False
        now_ms = int(info.mtime_ns) // 10**6
        # Some filesystems tell the time in seconds.
        unit_ms = 1000 if now_ms % 1000 == 0 or found_ms % 1000 == 0 else 1
        return now_ms // unit_ms != found_ms // unit_ms


def base_path(paths: Iterable[str], columns: Iterable[str]) -> str | None:
    """The folder below which folders are named after columns, which Spark must be told to find the values of these.

    >>> base_path(["/rides/on=x/day=1/a.json", "/rides/on=x/day=2/b.json"], ["id", "day"])
    '/rides/on=x'
    >>> base_path(["/rides/day=1/a.json"], ["id"])
    """
    names = {column.lower() for column in columns}
    found = {_before_columns(path, names) for path in paths}
    if len(found) > 1:
        hint = "settle what lies in one of them, as a query with this source alone"
        got = ", ".join(sorted(path or "files outside of such folders" for path in found))
        refuse("folders that are named after columns must all lie in one folder", got, hint=hint, error=Unsupported)
    return found.pop() if found else None


def _before_columns(path: str, names: Collection[str]) -> str | None:
    folders = path.split("/")[:-1]
    named = (
        place for place, folder in enumerate(folders) if "=" in folder and folder.partition("=")[0].lower() in names
    )
    place = next(named, None)
    return None if place is None else "/".join(folders[:place])


def _entries(content: bytes) -> Iterable[dict[str, Any]]:
    _, _, lines = content.decode().partition("\n")  # first comes the version
    return [json.loads(line) for line in lines.splitlines() if line.strip()]
