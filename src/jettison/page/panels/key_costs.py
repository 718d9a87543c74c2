"""What functions that shed by the cost of keys say of themselves, and how their batches went."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from jettison.core.storage import Folder
from jettison.page.panels.panel import TablePanel
from jettison.runtime.companion import CompanionReport, reports

_MOST_BATCHES, _MOST_SHOWN, _MOST_KEYS = 5_000, 400, 20


class KeyCosts(TablePanel, kw_only=True, tag="keys"):
    """A function that sheds by cost: its own words and table, and its batches."""

    bound_s: float | None
    at_s: list[float]
    busy_s: list[float | None]
    spared_s: list[float | None]
    longest_wait_s: list[float | None]
    dropped_keys: dict[str, int]


class KeyPanels:
    """A panel for each function in a query, of what it left beside the checkpoint and of the ledger."""

    def __init__(self, home: Folder) -> None:
        self._home = home
        self._batches: deque[Mapping[str, Any]] = deque(maxlen=_MOST_BATCHES)

    def take(self, record: Mapping[str, Any]) -> None:
        """Take note of a record of the ledger."""
        if record["record"] == "function":
            self._batches.append(record)

    def panels(self) -> Iterator[KeyCosts]:
        """What there is to show."""
        for report in reports(self._home):
            yield self._costs(report)

    def _costs(self, report: CompanionReport) -> KeyCosts:
        batches = [one for one in self._batches if report.name in one["points"]]
        dropped: dict[str, int] = {}
        for batch in batches:
            for key, rows in (batch.get("dropped_keys") or {}).items():
                dropped[key] = dropped.get(key, 0) + rows
        most = sorted(dropped.items(), key=lambda item: -item[1])[:_MOST_KEYS]
        shown = batches[-_MOST_SHOWN:]
        return KeyCosts(
            title=report.name,
            text=report.status,
            columns=list(report.columns),
            rows=[list(row) for row in report.rows],
            bound_s=shown[-1].get("bound_s") if shown else None,
            at_s=[one["at_s"] for one in shown],
            busy_s=[one.get("busy_s") for one in shown],
            spared_s=[one.get("spared_s") for one in shown],
            longest_wait_s=[one.get("longest_wait_s") for one in shown],
            dropped_keys=dict(most),
        )
