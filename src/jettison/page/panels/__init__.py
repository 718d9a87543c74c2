"""What only one mechanism can show, and what is settled. One drawing per file, found by the kind of setting.

A kind for which nobody registered a drawing is shown as a table of what its settings say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jettison.core.redact import redacted
from jettison.core.setting import Setting
from jettison.core.storage import Folder
from jettison.errors import InvalidInput, refuse
from jettison.page.panels.group_shares import GroupPanels
from jettison.page.panels.key_costs import KeyPanels
from jettison.page.panels.network_picture import NetworkPictures
from jettison.page.panels.panel import Drawing, Panel, TablePanel
from jettison.page.panels.region_map import RegionMaps
from jettison.page.panels.window_strip import WindowStrips
from jettison.policies import GroupDrop, RandomDrop, RangeDrop, RegionDrop, WindowMarks
from jettison.settle.settled_record import load, stretches, summary

__all__ = ["Drawing", "Panel", "Panels", "TablePanel", "register"]

_by_kind: dict[str, type[Drawing]] = {
    WindowMarks.kind: WindowStrips,
    GroupDrop.kind: GroupPanels,
    RegionDrop.kind: RegionMaps,
    RandomDrop.kind: NetworkPictures,
    RangeDrop.kind: NetworkPictures,
}
_IN_EVERY_TABLE = {"kind", "keep_fraction", "late_keep_fraction", "late_after_s"}
_MOST_STRETCHES, _LONGEST = 20, 200


def register(kind: str, drawing: type[Drawing]) -> None:
    """Show settings of a kind by `drawing`; a kind has one."""
    if _by_kind.get(kind, drawing) is not drawing:
        refuse("a kind of setting that has no drawing yet", repr(kind), hint="choose another name for the kind")
    _by_kind[kind] = drawing


class Panels:
    """The panels of one query that is looked at again and again.

    Parameters
    ----------
    home
        Where everything of Jettison's lies beside its checkpoint.
    """

    def __init__(self, home: Folder) -> None:
        self._home = home
        self._keys = KeyPanels(home)
        self._drawings = {made: made() for made in dict.fromkeys(_by_kind.values())}

    def take(self, record: Mapping[str, Any]) -> None:
        """Take note of a record of the ledger."""
        self._keys.take(record)
        for drawing in self._drawings.values():
            drawing.take(record)

    def made(
        self,
        settings: Mapping[str, Setting],
        documents: Mapping[str, Mapping[str, Any]],
        outline: Mapping[str, Any],
        note: str = "",
    ) -> Iterator[Panel]:
        """All that there is to show of a plan: its settings, those of unknown kinds too as they stand in its text."""
        yield from _settled(self._home)
        for drawing in self._drawings.values():
            its = {name: one for name, one in settings.items() if _by_kind.get(one.kind) is type(drawing)}
            for panel in drawing.panels(its, outline):
                panel.note = note if drawing.of_one_plan else ""
                yield panel
        for point, document in documents.items():
            if document.get("kind") not in _by_kind:
                yield from _fields(point, document, outline, note)
        yield from self._keys.panels()


def _settled(home: Folder) -> Iterator[TablePanel]:
    """What `jettison reconcile` has made exact, and what is open or lost, once anybody has looked for it."""
    title = "Settled windows"
    try:
        record = load(home)
    except InvalidInput as error:
        yield TablePanel(title=title, text=redacted(str(error)))
    else:
        if status := summary(record):
            rows = [list(row) for row in stretches(record, _MOST_STRETCHES)]
            yield TablePanel(title=title, text=status, columns=["windows", "from", "until", "when, or why"], rows=rows)


def _fields(point: str, document: Mapping[str, Any], outline: Mapping[str, Any], note: str) -> Iterator[TablePanel]:
    """What a setting says beside what the table of drop points has of every kind, and what of it never changes."""
    fields = {name: value for name, value in document.items() if name not in _IN_EVERY_TABLE}
    if fields:
        rows = [[redacted(name), _in_words(value)] for name, value in {**outline, **fields}.items()]
        title = f"Setting of the kind {document.get('kind')} at {point}"
        yield TablePanel(title=title, columns=["field", "value"], rows=rows, note=note)


def _in_words(value: Any) -> str:
    """A value of a document, cut where it is long.

    >>> _in_words([0.25, None, "a"]), _in_words(None), _in_words("fare > 50")
    ('[0.25, null, "a"]', '-', 'fare > 50')
    """
    text = "-" if value is None else value if isinstance(value, str) else json.dumps(value)
    text = redacted(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
