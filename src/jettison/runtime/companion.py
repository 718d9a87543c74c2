"""What a guarded query knows of something else that drops rows in it, by rules and on records of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

import msgspec

from jettison.core.storage import Folder

_FOLDER = "companions"


class Companion(Protocol):
    """Drops rows of a query beside its guards. `Shedder.attach` takes it; nothing below it knows what it is.

    It keeps its own counts, puts them on record by `Ledger.counted`, and lays down a `CompanionReport` for `jettison top`.
    """

    @property
    def name(self) -> str:
        """Key of its status in `Status.companions`."""

    @property
    def operator(self) -> str:
        """How the text of a query's plan shows it."""

    @property
    def keeps_answers_exact(self) -> bool:
        """Whether an answer of the query can be called exact while it drops rows."""

    @property
    def least_latency_s(self) -> float:
        """A tighter bound on the query's latency would work against it."""

    def status(self) -> object:
        """How it is doing; its text is shown."""

    def close(self) -> None:
        """Put the last batch on record: the query has ended."""


class CompanionReport(msgspec.Struct, frozen=True):
    """How a companion is doing, for whoever reads it beside the checkpoint: one file each in `jettison/companions/`.

    Parameters
    ----------
    name
        The companion's `name`.
    status
        In words.
    columns, rows
        A table for people, if there is one: the header, and the cells of each row.
    format
        Version of the file.
    """

    name: str
    status: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    format: Literal[1] = 1

    def lay_down(self, home: Folder, file: str) -> None:
        """Write it beside the checkpoint, in place of the one before."""
        (home / _FOLDER).replace(f"{file}.json", msgspec.json.encode(self))


def reports(home: Folder) -> Iterator[CompanionReport]:
    """What companions have laid down beside a checkpoint; of a file that cannot be read, that it cannot."""
    folder = home / _FOLDER
    for file in folder.names():
        if file.endswith(".json") and (content := folder.read(file)) is not None:
            try:
                yield msgspec.json.decode(content, type=CompanionReport)
            except msgspec.DecodeError as error:
                yield CompanionReport(file.removesuffix(".json"), f"its report cannot be read ({error})")
