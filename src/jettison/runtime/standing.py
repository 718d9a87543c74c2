"""What stands in a ledger however long ago it was said: kept once more beside files that may go, or that nobody reads."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from jettison.core.documents import encode
from jettison.core.ledger_record import kind_of
from jettison.core.storage import Folder
from jettison.runtime.records import Order, Plan, Start, lines

KINDS = tuple(kind_of(kind) for kind in (Start, Order, Plan))
_SUFFIX = ".standing.json"
_EVERY = 500  # records, each of which may be a file: readers look at no more than the newest 2,000


class Standing:
    """The last record of each kind that holds until the next one, in a file of its own beside a writer's segments.

    The file is renewed before a segment is closed, and so before one may go, and every 500 records: what it lacks stands
    in the newest records. Those of a run that was the last before a restart are caught up with there.

    Examples
    --------
    >>> import tempfile
    >>> folder = Folder(tempfile.mkdtemp())
    >>> Standing(folder, "run").take("order", '{"record":"order","at_s":1,"text":"","latency_bound_s":2,"orders":{}}')
    >>> standing(folder)
    []
    >>> said = Standing(folder, "run")
    >>> said.take("order", '{"record":"order","at_s":1,"text":"","latency_bound_s":2,"orders":{}}')
    >>> said.save()
    >>> [record["record"] for record in standing(folder)]
    ['order']
    """

    def __init__(self, folder: Folder, writer: str) -> None:
        self._folder, self._file = folder, writer + _SUFFIX
        before = _in_file(folder, self._file) if writer else ()  # a ledger that is only read has none
        self._lines = {record["record"]: encode(record) for record in before}
        self._untold = 0

    def take(self, kind: str, line: str) -> None:
        """Take note of a record that has been written."""
        if kind in KINDS:
            self._note(kind, line.strip())
        self._untold += 1
        if self._untold >= _EVERY:
            with suppress(OSError):  # the next record brings it here again
                self.save()

    def catch_up(self, records: Iterable[dict[str, Any]]) -> None:
        """Take note of records that an earlier run has written, after all that it has saved."""
        for record in records:
            if record["record"] in KINDS:
                self._note(record["record"], encode(record))

    def save(self) -> None:
        """Write down what stands, if anything does."""
        if self._lines:
            self._folder.replace(self._file, "".join(f"{line}\n" for line in self._lines.values()).encode())
        self._untold = 0

    def _note(self, kind: str, line: str) -> None:
        self._lines.pop(kind, None)  # so that they stay in the order of writing
        self._lines[kind] = line


def standing(folder: Folder) -> list[dict[str, Any]]:
    """What stood when it was written down last, in the order of writing; what is damaged is left out."""
    return [record for name in folder.names() if name.endswith(_SUFFIX) for record in _in_file(folder, name)]


def _in_file(folder: Folder, name: str) -> list[dict[str, Any]]:
    found, _ = lines(folder.read(name) or b"")
    return [line.document for line in found if line.document["record"] in KINDS]
