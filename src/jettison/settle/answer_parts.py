"""Where exact answers lie: each part in a folder of its own, which readers see once its rows are proven."""

from __future__ import annotations

from jettison.core.storage import Folder

_UNPROVEN = "_unproven"  # Spark's readers pass over names that begin so


class AnswerParts:
    """The folders of parts, by number, below one folder.

    A part appears all at once, but on object stores, where one file after another is moved.
    """

    def __init__(self, to: str) -> None:
        self._to = Folder(to)

    def folder(self, number: int) -> str:
        """Where a part lies once it is proven."""
        return self._shown(number).uri

    def unproven(self, number: int) -> str:
        """Where it is written."""
        return self._written(number).uri

    def show(self, number: int) -> None:
        """Put a part that is proven where readers find it."""
        source = self._written(number)
        (filesystem, path), (_, target) = source.located, self._shown(number).located
        if not source.is_object_store:
            filesystem.move(path, target)
            return
        for name in source.names():
            filesystem.move(f"{path}/{name}", f"{target}/{name}")

    def remove(self, number: int) -> None:
        """Remove a part, wherever it lies."""
        for folder in (self._written(number), self._shown(number)):
            for name in folder.names():
                folder.delete(name)

    def _shown(self, number: int) -> Folder:
        return self._to / f"settlement={number}"

    def _written(self, number: int) -> Folder:
        return self._to / _UNPROVEN / f"settlement={number}"
