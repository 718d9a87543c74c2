"""Judges a run of `jettison bench faults`: what was promised, held against what came out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from jettison.answers.answer_status import BOUNDED, DEPENDENT_ROWS, EXACT, FEW_ROWS, UNCONFIRMED
from jettison.lab.bench.fault_rows import short
from jettison.lab.bench.fault_run import Evidence, as_ordered
from jettison.lab.bench.fault_scenario import BROKER_PAUSED, BROKER_RESTARTED, FAULTS, LEDGER, Scenario
from jettison.runtime.ledger import Ledger

TWICE_OR_LOST = "rows or answers twice, or lost beyond what the ledger says"
DECISIONS = "window decisions changed"
REPEATED = "repeated batches that differ"
COUNTS = "batches whose seen is not kept and dropped"
ENDS = "legs that neither went on nor ended with one clear error"
_STATUSES = (EXACT, UNCONFIRMED, BOUNDED, FEW_ROWS, DEPENDENT_ROWS)
PROMISES = (TWICE_OR_LOST, DECISIONS, REPEATED, COUNTS, ENDS)


@dataclass
class Verdict:
    """By promise, what speaks against it in words, and how many things were looked at; and what befell the run."""

    broken: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in PROMISES})
    looked_at: Counter[str] = field(default_factory=Counter)
    happened: tuple[str, ...] = ()

    def check(self, promise: str, holds: bool, otherwise: str) -> None:
        """Look at one thing."""
        self.looked_at[promise] += 1
        if not holds:
            self.broken[promise].append(otherwise)

    @property
    def holds(self) -> bool:
        return not any(self.broken.values())


def judge(evidence: Evidence) -> Verdict:
    """Hold a run against all promises."""
    verdict = Verdict(happened=tuple(fault for fault in FAULTS if fault in evidence.happened))
    ledger = Ledger(evidence.checkpoint / "jettison" / "ledger")
    batches = list(ledger.records("batch"))
    _ends(evidence, verdict)
    _repeated(evidence, verdict)
    # A ledger takes a line whose counts do not agree for damaged: where none was, lines are looked at as they are.
    _counts(batches if LEDGER in evidence.scenario.faults else list(_lines(evidence.checkpoint)), verdict)
    _on_record(evidence, batches, ledger.gaps(), verdict)
    marks = _decisions(ledger.records("plan"), verdict)
    if evidence.scenario.policy == "WindowDrop":
        _windows(evidence, marks, verdict)
    elif evidence.scenario.answers:
        _answers(evidence, batches, verdict)
    else:
        _rows(evidence, batches, verdict)
    return verdict


def _ends(evidence: Evidence, verdict: Verdict) -> None:
    for leg, outcome in zip(evidence.scenario.legs, evidence.outcomes, strict=True):
        # A broker that is gone for long may end the query, with Kafka's own error.
        excused = {BROKER_PAUSED, BROKER_RESTARTED} & set(leg.during) and "kafka" in outcome.lower()
        verdict.check(ENDS, bool(excused) or as_ordered(leg, outcome), outcome)
    verdict.check(ENDS, "Exception in thread" not in evidence.said, evidence.said[-2000:])


def _repeated(evidence: Evidence, verdict: Verdict) -> None:
    may_differ = _holds_back if evidence.scenario.answers else _keeps_all
    for batch, attempts in evidence.attempts.items():
        first, *others = [Counter(map(_hashable, items)) for items in attempts]
        for other in others:
            same = first == other or (evidence.loses_plans and may_differ(evidence, batch, first, other))
            verdict.check(REPEATED, same, f"batch {batch}: {_difference(first, other)}")


def _holds_back(evidence: Evidence, batch: int, *attempts: Counter[Any]) -> bool:
    """Without a readable plan answers of whole windows are held back, where windows are dropped; all others are the same.

    Elsewhere nothing may differ: the windows that a batch closes rest on the rows of batches before it.
    """
    one, other = ({window: {item for item in items if item[0] == window} for window, *_ in items} for items in attempts)
    return evidence.scenario.policy == "WindowDrop" and all(
        one[window] == other[window] for window in {*one} & {*other}
    )


def _keeps_all(evidence: Evidence, batch: int, *attempts: Counter[Any]) -> bool:
    if evidence.scenario.policy == "WindowDrop":
        return True  # what a window is made of came in earlier batches; `_windows` looks at it as a whole
    most = max(attempts, key=Counter.total)
    whole = evidence.scenario.on_kafka or most.total() == _rows_of(evidence, batch)
    return whole and all(weight == 1.0 for _, weight in most) and all(one.total() <= most.total() for one in attempts)


def _lines(checkpoint: Path) -> Iterator[dict[str, Any]]:
    for path in (checkpoint / "jettison" / "ledger").glob("*.jsonl"):
        for line in path.read_text(errors="replace").splitlines():
            with suppress(ValueError):  # a write that stopped half-way
                document = json.loads(line)
                if document["record"] == "batch":
                    yield document


def _counts(batches: Sequence[Mapping[str, Any]], verdict: Verdict) -> None:
    for batch in batches:
        for name, point in batch["points"].items():
            agree = point["seen"] == point["kept"] + point["dropped"] and point["dropped"] >= 0
            verdict.check(COUNTS, agree, f"batch {batch['batch_id']} at {name!r}: {point}")


def _on_record(evidence: Evidence, batches: Sequence[Mapping[str, Any]], gaps: Sequence[int], verdict: Verdict) -> None:
    """A batch is on record once, or the ledger says that it is missing."""
    recorded = Counter(batch["batch_id"] for batch in batches)
    for batch in evidence.attempts:
        named = recorded[batch] == 1 or (recorded[batch] == 0 and batch in gaps)
        verdict.check(TWICE_OR_LOST, named, f"batch {batch} is {recorded[batch]} times on record, missing are {gaps}")


def _decisions(plans: Iterable[Mapping[str, Any]], verdict: Verdict) -> dict[int, str]:
    """The mark of every window, by its number."""
    found: dict[int, str] = {}
    for plan in plans:
        for setting in plan["points"].values():
            for first, marks in zip(setting.get("first", ()), setting.get("marks", ()), strict=True):
                for number, mark in enumerate(marks, start=first):
                    same = found.setdefault(number, mark) == mark
                    verdict.check(DECISIONS, same, f"window {number} was {found[number]}, is {mark}")
    return found


def _rows(evidence: Evidence, batches: Sequence[Mapping[str, Any]], verdict: Verdict) -> None:
    """Each batch holds as many rows as the ledger says, each of them from its file, and all that are protected."""
    for batch in batches:
        number = batch["batch_id"]
        came = Counter(id for id, _ in evidence.attempts.get(number, [[]])[-1])
        points = [point for point in batch["points"].values() if point["exact"]]
        if len(points) == len(batch["points"]):
            seen = sum(batch["points"][name]["seen"] for name in batch.get("entrance", batch["points"]))
            kept = seen - sum(point["dropped"] for point in points)
            verdict.check(TWICE_OR_LOST, came.total() == kept, f"batch {number}: {came.total()} rows, on record {kept}")
            if not evidence.scenario.on_kafka:
                there = _rows_of(evidence, number)
                verdict.check(TWICE_OR_LOST, seen == there, f"batch {number}: {there} rows, on record {seen} seen")
    last = {batch: attempts[-1] for batch, attempts in evidence.attempts.items()}
    if evidence.scenario.on_kafka:  # records of a batch are not those of a file
        parts = [("the topic", [row for rows in evidence.files for row in rows], [*chain(*last.values())])]
    else:
        parts = [(f"file {number}", rows, last.get(number, [])) for number, rows in enumerate(evidence.files)]
    for where, rows, items in parts:
        came = Counter(id for id, _ in items)
        extra = came - Counter(row.id for row in rows)
        verdict.check(TWICE_OR_LOST, not extra, f"{where}: twice or from elsewhere {_first(extra)}")
        if _protects(evidence.scenario):
            lost = Counter(row.id for row in rows if row.vip and row.value is not None) - came
            verdict.check(TWICE_OR_LOST, not lost, f"{where}: protected and lost {_first(lost)}")


def _protects(scenario: Scenario) -> bool:
    """Whether the query protects rows: the input of a network does not."""
    return scenario.policy != "NetworkDrop"


def _answers(evidence: Evidence, batches: Sequence[Mapping[str, Any]], verdict: Verdict) -> None:
    """Each group of a window has one answer at most, and all of them rest on as many rows as the ledger says were kept."""
    rows = [row for rows in evidence.files for row in rows]
    truth = Counter((row.window, short(row.key)) for row in rows if row.is_timely)
    delivered = Counter[Any]()
    kept = 0
    for attempts in evidence.attempts.values():
        for window, key, value, rests_on, status, _, _ in attempts[-1]:
            group = window, key
            delivered[group] += 1
            kept += rests_on
            verdict.check(TWICE_OR_LOST, delivered[group] == 1, f"{group} is answered twice")
            verdict.check(TWICE_OR_LOST, rests_on <= truth[group], f"{group}: {rests_on} rows of {truth[group]}")
            exact = status != "exact" or value == truth[group]
            verdict.check(TWICE_OR_LOST, exact, f"{group}: called exact, {value} of {truth[group]}")
    protected = {(row.window, short(row.key)) for row in rows if row.is_timely and row.vip}
    if _protects(evidence.scenario):
        lost = protected - set(delivered)
        verdict.check(TWICE_OR_LOST, not lost, f"no answer to {_first(lost)}")
    points = [point for batch in batches for point in batch["points"].values()]
    if len(batches) == len(evidence.attempts) and all(p["exact"] for p in points) and len(batches[0]["points"]) == 1:
        on_record = sum(point["kept"] for point in points)
        # Rows without a time, late ones, and the last one are in no window that closes.
        astray = sum(not row.is_timely for row in rows)
        agree = 0 <= on_record - kept <= astray
        verdict.check(TWICE_OR_LOST, agree, f"answers rest on {kept} rows, on record are {on_record}, astray {astray}")


def _windows(evidence: Evidence, marks: Mapping[int, str], verdict: Verdict) -> None:
    """A window is delivered whole and once, or not at all; and if not, a decision on record says so."""
    rows = [row for rows in evidence.files for row in rows if row.is_timely and row.window is not None]
    items = [item for attempts in evidence.attempts.values() for item in attempts[-1]]
    truth, came = Counter[Any](), Counter[Any]()
    if evidence.scenario.answers:
        truth.update((row.window, short(row.key)) for row in rows)
        for window, key, value, *_ in items:
            verdict.check(TWICE_OR_LOST, (window, key) not in came, f"{window, key} is answered twice")
            came[window, key] += value
    else:
        # Rows without an id cannot be told apart, so nobody knows of which window one came.
        named = [row for row in rows if row.id is not None]
        window_of = {row.id: row.window for row in named}
        truth.update((row.window, row.id) for row in named)
        came.update((window_of.get(id, -1), id) for id, _ in items if id is not None)
    for window in {window for window, _ in [*truth, *came]}:
        of_truth = {name: count for name, count in truth.items() if name[0] == window}
        of_came = {name: count for name, count in came.items() if name[0] == window}
        whole = of_came == of_truth if of_came else True
        verdict.check(TWICE_OR_LOST, whole, f"window {window} is there in part")
        # While no plan can be read, answers are held back.
        dropped = bool(of_came) or evidence.loses_plans or marks.get(window) in ("d", "v")
        verdict.check(TWICE_OR_LOST, dropped, f"window {window} is lost, marked {marks.get(window)}")
        again = not of_came or marks.get(window) != "d"
        verdict.check(DECISIONS, again, f"window {window} was to be dropped, and is there")


def _rows_of(evidence: Evidence, batch: int) -> int:
    """Rows of a file that the query looks at: the two sides of a join are told apart by the value."""
    rows = evidence.files[batch]
    split = evidence.scenario.policy == "JoinDrop"
    return sum(row.value is not None for row in rows) if split else len(rows)


def _hashable(item: Sequence[Any]) -> tuple[Any, ...]:
    """The same with something for NaN that equals itself, without statuses: what is doubtful is said as of the attempt."""
    return tuple("NaN" if one != one else one for one in item if one not in _STATUSES)


def _difference(first: Counter[Any], other: Counter[Any]) -> str:
    return f"only at first {_first(first - other)}, only later {_first(other - first)}"


def _first(found: Iterable[Any]) -> list[Any]:
    return sorted(found, key=str)[:5]
