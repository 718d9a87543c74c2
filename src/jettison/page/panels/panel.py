"""A panel of the page, as plain data; and who makes panels of settings: a drawing, registered by their kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from msgspec import Struct, field

from jettison.core.setting import Setting


class Panel(Struct, kw_only=True, tag_field="panel"):
    """Something to show; its tag says which function of the page draws it, and what the page does not know is a table."""

    note: str = ""


class TablePanel(Panel, kw_only=True, tag="table"):
    """A text, and a table where there are rows: what the page and the terminal show of anything."""

    title: str
    text: str = ""
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


class Drawing(ABC):
    """Makes panels of the settings of some kinds; one for each query that is looked at."""

    of_one_plan: ClassVar[bool] = True
    """Whether it shows the settings of one plan, rather than what many plans have said."""

    def take(self, record: Mapping[str, Any]) -> None:
        """Take note of a record of the ledger; each is shown once, the oldest first."""
        return

    @abstractmethod
    def panels(self, settings: Mapping[str, Setting], outline: Mapping[str, Any]) -> Iterator[Panel]:
        """What there is to show of the newest settings of its kinds, by drop point; what cannot be read is left out.

        `outline` is what the policy has said of its plans (`Policy.outline`).
        """
