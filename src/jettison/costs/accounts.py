"""Put on record, batch by batch, what a function under load-aware shedding dropped, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET, UnsetType

from jettison.core.documents import Natural, Number
from jettison.core.ledger_record import CountedRecord, kind_of
from jettison.core.storage import Folder
from jettison.costs.task_report import TaskReport
from jettison.runtime.ledger import Ledger


class FunctionRecord(CountedRecord, kw_only=True, tag="function"):
    """What a function under load-aware shedding did in a micro-batch, under its name in `points`.

    Rows that were `late` came over the bound already, those `over` it were kept all the same. `spared_s` is the time that
    the rows dropped were estimated at; `dropped_keys` are the ten of which most work was dropped.
    """

    bound_s: Number | UnsetType = UNSET
    costs_version: Natural | UnsetType = UNSET
    late: Natural | UnsetType = UNSET
    over: Natural | UnsetType = UNSET
    mean_wait_s: Number | UnsetType = UNSET
    longest_wait_s: Number | UnsetType = UNSET
    busy_s: Number | UnsetType = UNSET
    spared_s: Number | UnsetType = UNSET
    dropped_keys: dict[str, Natural] | UnsetType = UNSET
    cause: str | UnsetType = UNSET


_OF_ACCOUNT = ("late", "over", "mean_wait_s", "longest_wait_s", "busy_s", "spared_s")
"""Fields of the record that an `Account` has under the same names."""


@dataclass(slots=True)
class FunctionAccounts:
    """Writes one `function` record a micro-batch to the ledger, once over the life of the checkpoint.

    Reports come as a running total. A batch is complete, and goes on record, when tasks of a later one have reported, or
    when the query has ended and has committed it; one that was cut off is recorded when it has been repeated.

    Parameters
    ----------
    folder
        Of the ledger. Nothing is written before there is something to say.
    name
        Of the function.
    bound_s
        Longest wait that rows may have.
    commits
        Where the query leaves a file named by the number of each batch that it has committed: `commits` in its checkpoint.
        Where there is nothing, as in a query that is no stream, a query that has ended counts as complete.
    """

    folder: Folder
    name: str
    bound_s: float
    commits: Folder | None = None
    _ledger: Ledger | None = None
    _recorded: set[int] = field(default_factory=set)

    def record(self, total: TaskReport, costs_version: int, at_s: float, *, ended: bool = False) -> None:
        """Take what is new in a running total."""
        newest = max(total.batches, default=-1)
        for batch_id, account in sorted(total.batches.items()):
            if batch_id in self._recorded or (batch_id == newest and not (ended and self._committed(batch_id))):
                continue
            if self._ledger is None:
                self._ledger = Ledger.open(self.folder, writer="function")
            facts: dict[str, Any] = {name: getattr(account, name) for name in _OF_ACCOUNT} | {
                "bound_s": self.bound_s,
                "costs_version": costs_version,
                "dropped_keys": {key: int(rows) for key, (rows, _) in account.dropped_keys.items()},
                "cause": account.cause(self.bound_s),
            }
            kind, seen, kept = kind_of(FunctionRecord), account.seen, account.kept
            self._ledger.counted(kind, at_s, batch_id, self.name, seen, kept, **facts)
            self._recorded.add(batch_id)

    def _committed(self, batch_id: int) -> bool:
        committed = [] if self.commits is None else self.commits.names()
        return not committed or batch_id < 0 or str(batch_id) in committed
