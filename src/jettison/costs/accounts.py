"""Put on record, batch by batch, what a function under load-aware shedding dropped, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from jettison.core.ledger_record import kind_of
from jettison.core.storage import Folder
from jettison.costs.function_record import FunctionRecord
from jettison.costs.task_report import TaskReport
from jettison.runtime.ledger import Ledger


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
            facts = {
                "bound_s": self.bound_s,
                "costs_version": costs_version,
                "late": account.late,
                "over": account.over,
                "mean_wait_s": account.mean_wait_s,
                "longest_wait_s": account.longest_wait_s,
                "busy_s": account.busy_s,
                "spared_s": account.spared_s,
                "dropped_keys": {key: int(rows) for key, (rows, _) in account.dropped_keys.items()},
                "cause": account.cause(self.bound_s),
            }
            kind, seen, kept = kind_of(FunctionRecord), account.seen, account.kept
            self._ledger.counted(kind, at_s, batch_id, self.name, seen, kept, **facts)
            self._recorded.add(batch_id)

    def _committed(self, batch_id: int) -> bool:
        committed = [] if self.commits is None else self.commits.names()
        return not committed or batch_id < 0 or str(batch_id) in committed
