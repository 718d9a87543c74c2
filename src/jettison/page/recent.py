"""The newest records of a ledger, within a bound: read from the end, and later only what was added."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from jettison.core.setting import Setting
from jettison.core.storage import Folder
from jettison.runtime.records import lines
from jettison.runtime.standing import standing

MOST_BATCHES = 5_000
_MOST_PLANS, _MOST_EVENTS = 500, 200
_MOST_BYTES, _MOST_FILES = 12 * 2**20, 2_000

Record = dict[str, Any]


class Recent:
    """What a ledger has on record last: at most `most_batches` batches, and what happened meanwhile.

    However long the ledger is, a first look reads the newest files alone, up to a bound, and what stands from before them;
    each further look what was added.

    Parameters
    ----------
    folder
        Of the ledger.
    most_batches
        How many are kept in mind.
    tell
        Called with every record that is read.

    Examples
    --------
    >>> import tempfile
    >>> from jettison.core.stats import PointStats, Stats
    >>> from jettison.runtime.ledger import Ledger
    >>> folder = Folder(tempfile.mkdtemp())
    >>> ledger, recent = Ledger.open(folder), Recent(folder)
    >>> for number in range(3):
    ...     _ = ledger.batch(Stats(number, 1e9, 1.0, {"rides": PointStats(10, 4)}, plan_version=1), latency_s=1.2)
    >>> recent.look(), [batch["batch_id"] for batch in recent.batches], recent.look()
    (True, [0, 1, 2], False)
    """

    def __init__(
        self, folder: Folder, most_batches: int = MOST_BATCHES, tell: Callable[[Record], None] = lambda _: None
    ) -> None:
        self._folder = folder
        self._tell = tell
        self._read_to: dict[str, int] = {}
        self.batches: deque[Record] = deque(maxlen=most_batches)
        self.plans: deque[Record] = deque(maxlen=_MOST_PLANS)
        """Plans without their settings, which can be long; the shares kept stand in their place, under `shares`."""
        self.events: deque[Record] = deque(maxlen=_MOST_EVENTS)
        """Starts, stops, faults and orders."""
        self.start: Record | None = None
        self.order: Record | None = None
        """The last order since then."""
        self.end: Record | None = None
        """The last start or stop."""
        self.bounds: deque[tuple[float, float]] = deque(maxlen=_MOST_EVENTS)
        """Latency bounds, each with the time since when it has been in force."""
        self.newest_plan: Record | None = None
        self.dropping_plan: Record | None = None
        """The newest plan that drops anything, or whose settings cannot be read."""

    def look(self) -> bool:
        """Read what is new; return whether there was anything."""
        before = [] if self._read_to else standing(self._folder)  # first, so that nothing in it is newer than the files
        sizes = {name: size for name, size in self._folder.sizes().items() if name.endswith(".jsonl")}
        new = [name for name, size in sizes.items() if size > self._read_to.get(name, 0)]
        if not self._read_to:
            new = self._from_the_end(sizes)
            self._read_to = dict.fromkeys(sizes, 0) | {name: sizes[name] for name in sizes if name not in new}
        self._read_to = {name: self._read_to.get(name, 0) for name in sizes}
        added = [record for name in new for record in self._added(name)]
        for record in [*(one for one in before if one not in added), *added]:
            self._take(record)
        return bool(added)

    def _from_the_end(self, sizes: Mapping[str, int]) -> list[str]:
        """The newest files that together are small enough, oldest first; one at least."""
        chosen: list[str] = []
        total = 0
        for name in reversed(list(sizes)):
            total += sizes[name]
            if chosen and (total > _MOST_BYTES or len(chosen) >= _MOST_FILES):
                break
            chosen.append(name)
        return chosen[::-1]

    def _added(self, name: str) -> list[Record]:
        start = self._read_to[name]
        content = self._folder.read(name, start) or b""
        whole = content.rfind(b"\n") + 1  # what follows is still being written
        self._read_to[name] = start + whole
        return [line.document for line in lines(content[:whole])[0]]

    def _take(self, record: Record) -> None:
        self._tell(record)
        kind = record["record"]
        if kind == "batch":
            self.batches.append(record)
        elif kind == "plan":
            self._take_plan(record)
        elif kind in ("start", "stop", "fault", "order"):
            self.events.append(record)
            if kind == "start":
                self.start, self.order = record, None  # should an order stand, that is said again
            if kind == "order":
                self.order = record
            if (bound_s := record.get("latency_bound_s")) and (not self.bounds or self.bounds[-1][1] != bound_s):
                self.bounds.append((record["at_s"], bound_s))
            if kind in ("start", "stop"):
                self.end = record

    def bound_s(self, at_s: float) -> float | None:
        """The latency bound that was in force; `None` where that is not on record."""
        return next((bound_s for since_s, bound_s in reversed(self.bounds) if since_s <= at_s), None)

    def _take_plan(self, record: Record) -> None:
        self.newest_plan = record
        settings = {name: read_setting(setting) for name, setting in record["points"].items()}
        shares = {name: setting.keep_fraction for name, setting in settings.items() if setting is not None}
        late = {name: setting.keep_fraction_of_late for name, setting in settings.items() if setting is not None}
        if any(setting is None or not setting.keeps_everything for setting in settings.values()):
            self.dropping_plan = record
        short = {name: value for name, value in record.items() if name not in ("points", "abridged")}
        self.plans.append({**short, "shares": shares, "late_shares": late})


def read_setting(document: Mapping[str, Any]) -> Setting | None:
    """A setting as it stands in a plan on record; `None` where a newer release wrote it, or it is damaged."""
    try:
        return Setting.from_document(document)
    except (ValueError, TypeError):
        return None
