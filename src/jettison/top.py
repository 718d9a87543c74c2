"""`jettison top CHECKPOINT`: how a query and its companions are doing, from what lies beside its checkpoint.

Nothing is asked of the running query, so it works from any process that reaches the checkpoint, also after the end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from jettison.core import storage
from jettison.core.storage import Folder
from jettison.errors import InvalidInput, refuse
from jettison.page.terminal import watch
from jettison.page.view import Query
from jettison.runtime.companion import CompanionReport, reports
from jettison.runtime.ledger import Ledger
from jettison.runtime.owner import BEAT_S, sign_of_life
from jettison.runtime.restart import present_cause
from jettison.runtime.status import reason
from jettison.settle.settled_record import summary


def run_top(console: Console, checkpoint: str, *, every_s: float | None = None) -> None:
    """Print the panel once, or show it on the whole screen, kept up to date, until q is typed or Ctrl-C."""
    if "://" not in checkpoint and not Path(checkpoint).is_dir():
        hint = "pass the `checkpoint` of a Shedder, or the query's checkpointLocation"
        refuse("`CHECKPOINT` must be the folder of a query's checkpoint", checkpoint, hint=hint, error=InvalidInput)
    home = storage.home(checkpoint)
    if every_s is None and not _is_known(home):
        hint = "pass the `checkpoint` of a Shedder that was started, the folder in which `jettison/` lies"
        refuse(
            "`CHECKPOINT` must be that of a query that has run under Jettison",
            checkpoint,
            hint=hint,
            error=InvalidInput,
        )
    if every_s is None:
        console.print(panel(home))
        return
    watch(console, Query(checkpoint), every_s)


def panel(home: Folder) -> RenderableType:
    """What the ledger and the companions in `home` say at this moment."""
    parts = [*_query(home), *chain.from_iterable(map(_companion, reports(home)))]
    return Group(*parts) if parts else Text(f"nothing on record in {home.uri}")


def _is_known(home: Folder) -> bool:
    """Whether any run is on record there."""
    return Ledger(home / "ledger").last("start", "plan", "batch", "stop") is not None or bool(list(reports(home)))


def _query(home: Folder) -> list[RenderableType]:
    ledger = Ledger(home / "ledger")
    batch, plan, start = ledger.last("batch"), ledger.last("plan"), ledger.last("start")
    if batch is None and ledger.last("start", "plan", "stop") is None:
        return []
    bound_s = None if start is None else start.get("latency_bound_s")
    bound = "" if bound_s is None else f" of {bound_s:g} s"
    lines = [*_end(ledger, home)]
    if batch is None:
        lines.append("query: no batch is on record")
    else:
        latency_s = batch["latency_s"]
        lines.append(f"query: batch {batch['batch_id']}, {_rows(batch)}")
        lines.append("latency: " + ("no rows" if latency_s is None else f"{latency_s:.2f} s{bound}"))
        totals = ledger.totals()
        about = "about " if totals.estimated else ""
        lines.append(f"in all {totals.batches:,} batches: {about}{totals.kept:,} of {totals.seen:,} rows kept")
    if plan is not None:
        unused = batch is None or batch["plan_version"] != plan["version"]
        yet = ", under which no batch on record has run yet" if unused else ""
        lines.append(f"plan {plan['version']}{yet}: {plan['cause']}")
        # The reason after the last batch may no longer be the one for which the plan was made.
        cause = present_cause(home)
        if batch is not None and cause and plan["at_s"] < batch["at_s"] and cause not in plan["cause"]:
            lines.append(f"it still stands: {cause}")
    lines += [settled] if (settled := summary(home)) else []
    return [Text("\n".join(lines))]


def _end(ledger: Ledger, home: Folder) -> list[str]:
    """That the query has ended, or may have been killed; nothing while it runs."""
    last, sign = ledger.last("start", "stop"), sign_of_life(home)
    if last is not None and last["record"] == "stop":
        at = datetime.fromtimestamp(last["at_s"], UTC).isoformat(" ", "seconds")
        error = str(last.get("error") or "")
        return [f"the query has ended at {at}" + (f" by an error: {reason(error)}" if error else "")]
    silent_s = 0.0 if sign is None or sign.at_s is None else time.time() - sign.at_s
    return [f"no sign of life for {silent_s:.0f} s: the query may have been killed"] if silent_s > 3 * BEAT_S else []


def _rows(record: dict[str, Any]) -> str:
    points = record["points"]
    counted = [points[name] for name in record.get("entrance") or points]
    seen, kept = (sum(point[name] for point in counted) for name in ("seen", "kept"))
    about = "" if all(point.get("exact", True) for point in counted) else "about "
    return f"{about}{kept:,} of {seen:,} rows kept"


def _companion(report: CompanionReport) -> Iterator[RenderableType]:
    yield Text(f"{report.name}: {report.status}")
    if report.columns:
        table = Table(*report.columns)
        for row in report.rows:
            table.add_row(*row)
        yield table
