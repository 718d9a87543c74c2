"""Where exact answers lie: each part in a folder of its own, which readers see once its rows are proven."""

from __future__ import annotations

from jettison.core.storage import Folder

_UNPROVEN = "_unproven"  # Spark's readers pass over names that begin so


class AnswerParts:
    """The folders of parts, by number, below one folder.

    A part appears all at once, but on object stores, where one file after another is moved.
    """

    def __init__(self, to: str) -> None:
        self._to = to

    def folder(self, number: int) -> str:
        """Where a part lies once it is proven."""
        return f"{self._to}/settlement={number}"

    def unproven(self, number: int) -> str:
        """Where it is written."""
        return f"{self._to}/{_UNPROVEN}/settlement={number}"

    def show(self, number: int) -> None:
        """Put a part that is proven where readers find it."""
        source, target = Folder(self.unproven(number)), Folder(self.folder(number))
        filesystem, path = source.located
        if source.keeps_readers:
            filesystem.move(path, target.located[1])
            return
        for name in source.names():
            filesystem.move(f"{path}/{name}", f"{target.located[1]}/{name}")

    def remove(self, number: int) -> None:
        """Remove a part, wherever it lies."""
        for folder in (Folder(self.unproven(number)), Folder(self.folder(number))):
            for name in folder.names():
                folder.delete(name)
