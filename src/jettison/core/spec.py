"""What a backend must know of a kind of settings when a query is compiled; what changes while it runs is the setting."""

from __future__ import annotations

from typing import ClassVar


class Spec:
    """States which kind of settings plans will hold, and whatever of them never changes: columns, windows, regions.

    A policy states one; a backend finds by its kind how such settings are executed. A frozen dataclass for each kind.
    """

    __slots__ = ()

    kind: ClassVar[str]
    """Kind of the settings."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds that a plan may hold, where others are understood too."""
        return (self.kind,)
