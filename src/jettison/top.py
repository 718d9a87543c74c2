"""`jettison top CHECKPOINT`: how a query and the functions in it are doing, from what lies beside its checkpoint.

Nothing is asked of the running query, so it works from any process that reaches the checkpoint, also after the end.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
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
from jettison.owner import BEAT_S, last_sign
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
    parts = [*_query(home), *_function(home / "costs")]
    return Group(*parts) if parts else Text(f"nothing on record in {home.uri}")


def _query(home: Folder) -> list[RenderableType]:
    ledger = Ledger(home / "ledger")
    batch, plan = ledger.last("batch"), ledger.last("plan")
    if batch is None:
        return []
    latency_s = batch["latency_s"]
    lines = [
        *_end(ledger, home),
        f"query: batch {batch['batch_id']}, {_rows(batch)}",
        "latency: " + ("no rows" if latency_s is None else f"{latency_s:.2f} s"),
        *([] if plan is None else [f"plan {plan['version']}: {plan['cause']}"]),
    ]
    return [Text("\n".join(lines))]


def _end(ledger: Ledger, home: Folder) -> list[str]:
    """That the query has ended, or may have been killed; nothing while it runs."""
    last, sign_s = ledger.last("start", "stop"), last_sign(home)
    if last is not None and last["record"] == "stop":
        at = datetime.fromtimestamp(last["at_s"], UTC).isoformat(" ", "seconds")
        error = str(last.get("error") or "").strip().splitlines()
        return [f"the query has ended at {at}" + (f" by an error: {error[0]}" if error else "")]
    silent_s = 0.0 if sign_s is None else time.time() - sign_s
    return [f"no sign of life for {silent_s:.0f} s: the query may have been killed"] if silent_s > 3 * BEAT_S else []


def _rows(record: dict[str, Any]) -> str:
    points = record["points"]
    counted = [points[name] for name in record.get("entrance") or points]
    seen, kept = (sum(point[name] for point in counted) for name in ("seen", "kept"))
    about = "" if all(point.get("exact", True) for point in counted) else "about "
    return f"{about}{kept:,} of {seen:,} rows kept"


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
