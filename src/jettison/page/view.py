"""One query as plain data to show, made of what lies beside its checkpoint and bounded in size."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from jettison.control.load_model import Costs
from jettison.core import storage
from jettison.core.redact import redacted
from jettison.core.setting import Setting
from jettison.errors import DamagedPlan
from jettison.page.panels import Panel, Panels
from jettison.page.recent import Recent, read_setting
from jettison.page.thinned import Series, thinned
from jettison.runtime import plan_file
from jettison.runtime.ledger import Ledger
from jettison.runtime.ledger_summary import Totals
from jettison.runtime.orders import Orders, on_record
from jettison.runtime.owner import SILENT_S, sign_of_life
from jettison.runtime.restart import present_cause
from jettison.runtime.schedule import NEVER_US, UNKNOWN_US, Schedule
from jettison.runtime.status import reason

_MOST_CAUSES = 200


class Point(Struct, kw_only=True):
    """A drop point: rows over all batches ever recorded, what the newest plan says, and the last batch."""

    name: str
    entrance: bool
    seen: int
    kept: int
    dropped: int
    exact: bool
    setting: str
    keep_fraction: float | None
    late_keep_fraction: float | None
    last_seen: int
    last_kept: int


class Change(Struct, kw_only=True):
    """Something that happened, in words: a plan, a start, a stop, a fault or an order."""

    at_s: float
    kind: str
    text: str
    version: int | None = None
    shares: dict[str, float] = {}


class Model(Struct, kw_only=True):
    """What the controller knew at each plan that rests on figures; the last entry is what it knew last."""

    at_s: list[float] = []
    arrival_per_s: list[float | None] = []
    capacity_per_s: list[float] = []
    expected_latency_s: list[float | None] = []
    fixed_s: list[float] = []
    per_seen_row_s: list[float] = []
    per_kept_row_s: list[float] = []
    noise: list[float | None] = []
    waiting_rows: list[int | None] = []


class QueryView(Struct, kw_only=True):
    """A query at one moment."""

    name: str
    checkpoint: str
    at_s: float
    state: str
    """`running`, `ended`, `failed`, `silent` or `unknown`."""
    state_text: str
    policy: str = ""
    dry_run: bool = False
    orders: list[str] = []
    """What a person has set, in words."""
    bound_s: float | None = None
    bounds: list[tuple[float, float]] = []
    """Bounds up to now, each with the time since when it has been in force."""
    latency_s: float | None = None
    running_batch_s: float | None = None
    """How long the batch that runs has taken so far; `None` where none does."""
    waiting_rows: int | None = None
    """Rows that the source had when the last batch started and that it did not take, where offsets tell."""
    lag_rows: int | None = None
    lag_s: float | None = None
    """Rows that were in no batch on record when the last one ended, and how long they had waited, where that is known."""
    last_batch: int | None = None
    batches: int = 0
    estimated_batches: int = 0
    batches_shown: int = 0
    seen: int = 0
    kept: int = 0
    dropped: int = 0
    plan_version: int | None = None
    plan_in_use: bool = False
    """Whether the last batch on record ran under it."""
    cause: str = ""
    answers: str = ""
    points: list[Point] = []
    series: Series | None = None
    model: Model | None = None
    changes: list[Change] = []
    faults: dict[str, int] = {}
    panels: list[Panel] = []

    def to_json(self) -> bytes:
        """As the page gets it."""
        return msgspec.json.encode(self)


class Query:
    """A query whose checkpoint is looked at again and again.

    Parameters
    ----------
    checkpoint
        Path or URI of the query's checkpoint.
    name
        What it is called; by default the checkpoint itself, without secrets.
    """

    def __init__(self, checkpoint: str, name: str | None = None) -> None:
        self.checkpoint = redacted(checkpoint)
        self.name = name or self.checkpoint
        self._home = storage.home(checkpoint)
        self._ledger = Ledger(self._home / "ledger")
        self._panels = Panels(self._home)
        self._recent = Recent(self._home / "ledger", tell=self._panels.take)
        self._totals: tuple[Totals, dict[str, Totals]] | None = None

    def view(self, now_s: float | None = None) -> QueryView:
        """How the query is doing by what is on record now."""
        recent = self._recent
        if recent.look() or self._totals is None:
            self._totals = self._ledger.totals(), self._ledger.totals_by_point()
        totals, by_point = self._totals
        now_s = time.time() if now_s is None else now_s
        start, newest, schedule = recent.start or {}, recent.newest_plan, self._schedule()
        last = recent.batches[-1] if recent.batches else None
        settings = _settings(newest, schedule)
        bound_s = (recent.order or start).get("latency_bound_s")
        orders = on_record(recent.order)
        state, state_text = self._state(now_s)
        running = self._running_batch(last) if state == "running" else None
        running_s = None if running is None else max(now_s - running[1], 0.0)
        if running is not None and running_s is not None and running_s > (bound_s or 0.0):
            state_text = f"running; batch {running[0]} has taken {running_s:.0f} s so far"
        with_rows = next((batch for batch in reversed(recent.batches) if batch["latency_s"] is not None), None)
        return QueryView(
            name=self.name,
            checkpoint=self.checkpoint,
            at_s=now_s,
            state=state,
            state_text=state_text,
            policy=start.get("policy", ""),
            dry_run=bool(start.get("dry_run") or orders.dry_run),
            orders=[redacted(one) for one in orders.words()],
            bound_s=bound_s,
            bounds=list(recent.bounds),
            latency_s=None if with_rows is None else with_rows["latency_s"],
            running_batch_s=running_s,
            **{name: (last or {}).get(name) for name in ("waiting_rows", "lag_rows", "lag_s")},
            last_batch=None if last is None else last["batch_id"],
            batches=totals.batches,
            estimated_batches=totals.estimated,
            batches_shown=len(recent.batches),
            seen=totals.seen,
            kept=totals.kept,
            dropped=totals.dropped,
            plan_version=None if newest is None else newest["version"],
            plan_in_use=newest is not None and last is not None and last["plan_version"] == newest["version"],
            cause=redacted(self._cause(newest, last, orders)),
            answers=_answers(schedule, recent.start is not None),
            points=_points(start, last, by_point, settings),
            series=thinned(list(recent.batches)) if recent.batches else None,
            model=_model(recent),
            changes=_changes(recent),
            faults=dict(Counter(event["kind"] for event in recent.events if event["record"] == "fault")),
            panels=self._shown_panels(settings),
        )

    def _running_batch(self, last: Mapping[str, Any] | None) -> tuple[int, float] | None:
        """Number and start of the batch that runs, by Spark's own logs: a restart may repeat one that is older."""
        found = storage.running_batch(self._home)
        if found is None or (last is not None and last["batch_id"] >= found[0]):
            return None
        return found[0], max(found[1] / 1e6, (self._recent.start or {}).get("at_s", 0.0))

    def _shown_panels(self, settings: Mapping[str, Setting]) -> list[Panel]:
        """Those of the newest plan or, where it drops nothing, of the last one that did."""
        newest, past, note = self._recent.newest_plan, self._recent.dropping_plan, ""
        if past is not None and newest is not None and past["version"] != newest["version"]:
            at = datetime.fromtimestamp(past["at_s"], UTC).isoformat(" ", "seconds")
            note = f"As plan {past['version']} of {at} had it, the last one that dropped rows."
            newest, settings = past, _settings(past, None)
        outline = (self._recent.start or {}).get("outline") or {}
        return list(self._panels.made(settings, {} if newest is None else newest["points"], outline, note))

    def _schedule(self) -> Schedule | None:
        """What was published last; `None` where nothing whole is on file."""
        with contextlib.suppress(DamagedPlan):
            found = plan_file.on_file(self._home)
            return None if found is None else found.schedule
        return None

    def _cause(self, plan: Mapping[str, Any] | None, last: Mapping[str, Any] | None, orders: Orders) -> str:
        """Why the newest plan stands: the reason after the last batch, where that came later."""
        if plan is None:
            return ""
        later = last is not None and plan["at_s"] < last["at_s"]
        present = present_cause(self._home) if later else None
        return str(plan["cause"]) if not present else orders.why_keep_all(present) or present

    def _state(self, now_s: float) -> tuple[str, str]:
        end = self._recent.end
        if end is not None and end["record"] == "stop":
            error = redacted(str(end.get("error") or ""))
            at = datetime.fromtimestamp(end["at_s"], UTC).isoformat(" ", "seconds")
            return ("failed", f"ended {at} by an error: {reason(error)}") if error else ("ended", f"ended {at}")
        sign = sign_of_life(self._home)
        if sign is None or sign.at_s is None:
            return "unknown", "no run holds the checkpoint" if end else "nothing is on record"
        silent_s = now_s - sign.at_s
        if silent_s > SILENT_S:
            return "silent", f"no sign of life for {silent_s:.0f} s: the query may have been killed"
        return "running", "running"


def _settings(newest: Mapping[str, Any] | None, schedule: Schedule | None) -> dict[str, Setting]:
    """Of the newest plan: on file they are whole, in the ledger long ones are abridged."""
    if schedule is not None and newest is not None and schedule.newest.version == newest["version"]:
        return dict(schedule.newest.points)
    on_record = {} if newest is None else {name: read_setting(one) for name, one in newest["points"].items()}
    return {name: setting for name, setting in on_record.items() if setting is not None}


def _points(
    start: Mapping[str, Any],
    last: Mapping[str, Any] | None,
    totals: Mapping[str, Totals],
    settings: Mapping[str, Setting],
) -> list[Point]:
    counted = {} if last is None else last["points"]
    entrance = (last or {}).get("entrance") or list(counted)
    names = dict.fromkeys([*(start.get("points") or ()), *counted, *totals])
    found = []
    for name in names:
        setting, total = settings.get(name), totals.get(name, Totals(0, 0, 0))
        found.append(
            Point(
                name=name,
                entrance=name in entrance,
                seen=total.seen,
                kept=total.kept,
                dropped=total.dropped,
                exact=not total.estimated,
                setting="" if setting is None else setting.kind,
                keep_fraction=None if setting is None else setting.keep_fraction,
                late_keep_fraction=None if setting is None else setting.keep_fraction_of_late,
                last_seen=counted.get(name, {}).get("seen", 0),
                last_kept=counted.get(name, {}).get("kept", 0),
            )
        )
    return found


def _answers(schedule: Schedule | None, started: bool) -> str:
    """In which answers rows may be missing, as far as the plan file says."""
    if schedule is None:
        return "no plan on file says in which answers rows are missing" if started else ""
    doubts = schedule.doubts
    if doubts.until_us <= NEVER_US and doubts.otherwise_us <= NEVER_US:
        return "all exact: no row was dropped so far"
    if doubts.until_us >= UNKNOWN_US:
        return "rows may be missing: none is called exact now"
    if doubts.until_us <= NEVER_US:
        return "exact where judged by their window; all others may miss rows"
    try:
        since = datetime.fromtimestamp(doubts.until_us / 1e6, UTC).isoformat(" ", "seconds")
    except (ValueError, OverflowError, OSError):
        return "rows may be missing in some answers"
    return f"exact again for windows that begin after {since}; rows may be missing before"


def _model(recent: Recent) -> Model | None:
    model = Model()
    for plan in recent.plans:
        decision = plan.get("decision") or {}
        given, bound_s = decision.get("costs"), recent.bound_s(plan["at_s"])
        if not given or not bound_s:
            continue
        costs = Costs(given["fixed_s"], given["per_seen_row_s"], given["per_kept_row_s"])
        # Not on older records. A row waits for one batch at worst and is in the next: each may take half of the bound.
        capacity = decision.get("capacity_rows_per_s", costs.capacity_rows_per_s(bound_s / 2))
        if not math.isfinite(capacity):
            continue
        model.at_s.append(plan["at_s"])
        model.arrival_per_s.append(decision.get("rows_per_s"))
        model.capacity_per_s.append(capacity)
        model.expected_latency_s.append((decision.get("expected") or {}).get("latency_s"))
        model.fixed_s.append(costs.fixed_s)
        model.per_seen_row_s.append(costs.per_seen_row_s)
        model.per_kept_row_s.append(costs.per_kept_row_s)
        model.noise.append(decision.get("noise"))
        model.waiting_rows.append(decision.get("waiting_rows"))
    return model if model.at_s else None


def _changes(recent: Recent) -> list[Change]:
    found = [
        Change(
            at_s=plan["at_s"],
            kind="plan",
            text=redacted(plan["cause"]),
            version=plan["version"],
            shares=plan["shares"],
        )
        for plan in list(recent.plans)[-_MOST_CAUSES:]
    ]
    for event in recent.events:
        kind = event["record"]
        if kind == "start":
            again = (
                "the query starts again, with what was learned before" if event.get("restored") else "the query starts"
            )
            found.append(Change(at_s=event["at_s"], kind=kind, text=again))
        elif kind == "stop":
            error = redacted(str(event.get("error") or ""))
            found.append(
                Change(at_s=event["at_s"], kind=kind, text=f"error: {reason(error)}" if error else "the query ends")
            )
        elif kind == "order":
            found.append(Change(at_s=event["at_s"], kind=kind, text=redacted(event["text"])))
        else:
            text = redacted(f"{event['kind']}: {event['detail']}")
            found.append(Change(at_s=event["at_s"], kind=kind, text=text))
    return sorted(found, key=lambda change: change.at_s)[-_MOST_CAUSES:]
