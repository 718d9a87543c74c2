"""`jettison top CHECKPOINT`: how a query and the functions in it are doing, from what lies beside its checkpoint.

Nothing is asked of the running query, so it works from any process that reaches the checkpoint, also after the end.
"""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jettison import storage
from jettison.costs.status import STATUS_FILE, CostStatus
from jettison.errors import InvalidInput, explain
from jettison.ledger import Ledger
from jettison.storage import Folder

_KEYS_SHOWN = 10


def run_top(console: Console, checkpoint: str, *, every_s: float | None = None) -> None:
    """Print the panel once, or keep it up to date every so many seconds until interrupted."""
    if "://" not in checkpoint and not Path(checkpoint).is_dir():
        hint = "pass the `checkpoint` of a Shedder, or the query's checkpointLocation"
        raise InvalidInput(explain("the folder of a query's checkpoint", checkpoint, hint=hint))
    home = storage.home(checkpoint)
    if every_s is None:
        console.print(panel(home))
        return
    with Live(panel(home), console=console, auto_refresh=False) as live:
        try:
            for _ in count():
                time.sleep(every_s)
                live.update(panel(home), refresh=True)
        except KeyboardInterrupt:
            return


def panel(home: Folder) -> RenderableType:
    """What the ledger and the learned costs in `home` say at this moment."""
    parts = [*_query(Ledger(home / "ledger")), *_function(home / "costs")]
    return Group(*parts) if parts else Text(f"nothing on record in {home.uri}")


def _query(ledger: Ledger) -> list[RenderableType]:
    records = list(ledger.records())
    batches = [one for one in records if one["record"] == "batch"]
    plans = [one for one in records if one["record"] == "plan"]
    if not batches:
        return []
    latency_s = batches[-1]["latency_s"]
    lines = [
        f"query: batch {batches[-1]['batch_id']}, {_rows(batches[-1])}",
        "latency: " + ("no rows" if latency_s is None else f"{latency_s:.2f} s"),
        *([f"plan {plans[-1]['version']}: {plans[-1]['cause']}"] if plans else []),
    ]
    return [Text("\n".join(lines))]


def _rows(record: dict[str, Any]) -> str:
    seen, kept = (sum(point[name] for point in record["points"].values()) for name in ("seen", "kept"))
    return f"{kept:,} of {seen:,} rows kept"


def _function(folder: Folder) -> list[RenderableType]:
    content = folder.read(STATUS_FILE)
    if content is None:
        return []
    try:
        status = CostStatus.from_json(content.decode())
    except ValueError as error:
        return [Text(f"function: {error}")]
    dropped = {one.key: one for one in status.most_dropped}
    keys = Table("costliest keys", "rows", "ms a row", "seconds in all", "rows dropped")
    for one in status.costliest[:_KEYS_SHOWN]:
        gone = dropped[one.key].rows if one.key in dropped else 0
        keys.add_row(
            one.key, f"{one.rows:,.0f}", f"{1e3 * one.mean_s:.3g}", f"{one.rows * one.mean_s:.3g}", f"{gone:,.0f}"
        )
    return [Text(f"function: {status}"), keys]
