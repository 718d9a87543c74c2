"""The ledger: an append-only account of what was dropped, when and why.

One JSON object a line, in `jettison/ledger/` under the query's checkpoint; each run of the query opens a file of its
own, so that nothing written is ever rewritten. It can be read while the query runs. `docs/ledger.md` describes the
records. No answer depends on it.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jettison.concept.book import ClosedPane
from jettison.plan import DropPlan
from jettison.stats import Stats
from jettison.storage import Folder

SCHEMA_VERSION = 1
Once = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Totals:
    """Rows over all batches of the ledger. `seen == kept + dropped` always holds."""

    batches: int
    seen: int
    kept: int

    @property
    def dropped(self) -> int:
        """Rows that were dropped."""
        return self.seen - self.kept


class Ledger:
    """Append records to, or read them from, the ledger in `folder`.

    A batch is recorded at most once over the life of the checkpoint, however often the query restarts.

    Examples
    --------
    >>> import tempfile
    >>> from jettison.stats import PointStats, Stats
    >>> ledger = Ledger(Folder(tempfile.mkdtemp()), run="a")
    >>> batch = Stats(0, 1e9, 1.0, {"rides": PointStats(10, 4)}, plan_version=1)
    >>> ledger.batch(batch, latency_s=1.2), ledger.batch(batch, latency_s=1.2)
    (True, False)
    >>> ledger.totals()
    Totals(batches=1, seen=10, kept=4)
    """

    def __init__(self, folder: Folder | str | Path, *, run: str = "") -> None:
        self._folder = folder if isinstance(folder, Folder) else Folder(folder)
        self._file = f"{run or 'reader'}.jsonl"
        self._lock = threading.RLock()
        self._torn = False
        # Only a writer needs to know what is on record; a reader should not read everything twice.
        self._recorded = {_once(record) for record in self.records() if "batch_id" in record} if run else set[Once]()

    @classmethod
    def open(cls, folder: Folder, *, writer: str = "run") -> Ledger:
        """Open the ledger in `folder` for writing, in a new file after those of earlier runs.

        Each `writer` has files of its own, so that two can write at the same time.
        """
        numbered = re.compile(rf"{re.escape(writer)}-(\d+)")
        runs = [int(match[1]) for name in folder.names() if (match := numbered.match(name))]
        return cls(folder, run=f"{writer}-{max(runs, default=0) + 1:06d}")

    def start(self, at_s: float, **facts: Any) -> None:
        """Record that a run of the query began."""
        self._append({"record": "start", "at_s": at_s, "schema": SCHEMA_VERSION, **facts})

    def plan(self, at_s: float, plan: DropPlan) -> None:
        """Record a plan, with its cause, before it is used."""
        self._append({"record": "plan", "at_s": at_s, **plan.on_record()})

    def batch(self, stats: Stats, *, latency_s: float | None) -> bool:
        """Record one micro-batch; return whether it was new to the ledger."""
        record = {
            "record": "batch",
            "at_s": stats.committed_s,
            "batch_id": stats.batch_id,
            "plan_version": stats.plan_version,
            "started_s": stats.started_s,
            "duration_s": stats.duration_s,
            "latency_s": latency_s,
            "points": {
                name: {"seen": p.seen, "kept": p.kept, "dropped": p.dropped, "exact": p.exact}
                for name, p in stats.points.items()
            },
        }
        return self._append_once(record)

    def function(self, at_s: float, batch_id: int, name: str, seen: int, kept: int, **facts: Any) -> bool:
        """Record what a function under load-aware shedding did in one micro-batch; return whether it was new."""
        points = {name: {"seen": seen, "kept": kept, "dropped": seen - kept, "exact": True}}
        return self._append_once({"record": "function", "at_s": at_s, "batch_id": batch_id, "points": points, **facts})

    def concept(self, at_s: float, point: str, pane: ClosedPane) -> None:
        """Record which groups a pane held, and how far they lie from those of the pane before."""
        record = {"record": "concept", "at_s": at_s, "point": point, **pane.summary()}
        self._append(record | ({} if pane.shift is None else asdict(pane.shift)))

    def fault(self, at_s: float, kind: str, detail: str) -> None:
        """Record that something failed and every row was kept, or that a count is missing."""
        self._append({"record": "fault", "at_s": at_s, "kind": kind, "detail": detail})

    def stop(self, at_s: float, **facts: Any) -> None:
        """Record that a run of the query ended."""
        self._append({"record": "stop", "at_s": at_s, **facts})

    def records(self, kind: str | None = None) -> Iterator[dict[str, Any]]:
        """All records in the order of writing, or those of one kind."""
        for name in self._folder.names():
            if name.endswith(".jsonl"):
                for record in _parse(self._folder.read(name) or b""):
                    if kind is None or record["record"] == kind:
                        yield record

    def totals(self, kind: str = "batch") -> Totals:
        """Rows seen and kept over all recorded batches: by the guards, or with `"function"` by functions."""
        batches = {_once(record): record["points"] for record in self.records(kind)}
        return Totals(len(batches), _total(batches, "seen"), _total(batches, "kept"))

    def gaps(self) -> list[int]:
        """Batches that ran but are not on record, because the driver died between their commit and their record."""
        recorded = {record["batch_id"] for record in self.records("batch")}
        return sorted(set(range(min(recorded), max(recorded) + 1)) - recorded) if recorded else []

    def _append_once(self, record: Mapping[str, Any]) -> bool:
        with self._lock:
            if _once(record) in self._recorded:
                return False
            self._append(record)
            self._recorded.add(_once(record))
        return True

    def _append(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record, allow_nan=False) + "\n"
        with self._lock:
            # A write that failed may have left part of a line behind; the next record must not be joined to it.
            start = "\n" if self._torn else ""
            self._torn = True
            self._folder.append(self._file, (start + line).encode())
            self._torn = False


def _parse(content: bytes) -> Iterator[dict[str, Any]]:
    # A line that a killed driver left half written has no newline; it was never a record. Nor was one that a full
    # disk cut short: it must not make the rest unreadable, and a batch lost that way appears in `gaps`.
    whole, _, _ = content.rpartition(b"\n")
    for line in whole.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and "record" in record:
            yield record


def _once(record: Mapping[str, Any]) -> Once:
    """What no two records share: the batch, and for functions also which one."""
    points = record.get("points", ()) if record["record"] == "function" else ()
    return record["record"], record["batch_id"], *points


def _total(batches: Mapping[Once, Mapping[str, Mapping[str, int]]], field: str) -> int:
    return sum(point[field] for points in batches.values() for point in points.values())
