"""Put on record, batch by batch, what a function under load-aware shedding dropped, and why."""

from __future__ import annotations

from jettison.costs.report import TaskReport
from jettison.ledger import Ledger
from jettison.storage import Folder


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
        Bound on the queuing latency.
    commits
        Where the query leaves a file named by the number of each batch that it has committed: `commits` in its checkpoint.
        Where there is nothing, as in a query that is no stream, a query that has ended counts as complete.
    """

    def __init__(self, folder: Folder, name: str, bound_s: float, commits: Folder | None = None) -> None:
        self._folder, self._name, self._bound_s, self._commits = folder, name, bound_s, commits
        self._ledger: Ledger | None = None
        self._recorded: set[int] = set()

    def record(self, total: TaskReport, costs_version: int, at_s: float, *, ended: bool = False) -> None:
        """Take what is new in a running total."""
        newest = max(total.batches, default=-1)
        for batch_id, account in sorted(total.batches.items()):
            if batch_id in self._recorded or (batch_id == newest and not (ended and self._committed(batch_id))):
                continue
            if self._ledger is None:
                self._ledger = Ledger.open(self._folder, writer="function")
            mean_wait_s = account.wait_s / account.kept if account.kept else 0.0
            self._ledger.function(
                at_s,
                batch_id,
                self._name,
                account.seen,
                account.kept,
                bound_s=self._bound_s,
                costs_version=costs_version,
                late=account.late,
                over=account.over,
                mean_wait_s=mean_wait_s,
                longest_wait_s=account.longest_wait_s,
                busy_s=account.busy_s,
                spared_s=account.spared_s,
                dropped_keys={key: int(rows) for key, (rows, _) in account.dropped_keys.items()},
                cause=account.cause(self._bound_s),
            )
            self._recorded.add(batch_id)

    def _committed(self, batch_id: int) -> bool:
        committed = [] if self._commits is None else self._commits.names()
        return not committed or batch_id < 0 or str(batch_id) in committed
