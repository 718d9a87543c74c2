"""The ledger: an account of what was dropped, when and why.

One JSON object a line, in `jettison/ledger/` under the query's checkpoint. What is written is never rewritten. Each run
of the query opens a file of its own, and a next one when that has grown; a file that is closed gets a summary beside
it, so that it need not be read again, and the oldest go when there are too many, while their totals stay. It can be
read while the query runs. `docs/ledger.md` describes the records. No answer depends on it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, field

from jettison.control.budget_figures import BudgetFigures
from jettison.core import documents, ledger_record
from jettison.core.answer_bounds import AnswerBounds
from jettison.core.ledger_record import CountedRecord, LedgerRecord
from jettison.core.plan import DropPlan
from jettison.core.redact import redacted
from jettison.core.stats import Stats
from jettison.core.storage import Folder
from jettison.core.taken import Taken
from jettison.runtime.ledger_files import segments_of, size, writer_of
from jettison.runtime.ledger_summary import NOTHING, Closed, Summary, Totals
from jettison.runtime.pruned import PrunedRecords
from jettison.runtime.records import SCHEMA_VERSION, Plan, lines
from jettison.runtime.standing import Standing, standing

SEGMENT_BYTES = 4 * 2**20
KEEP_BYTES = 64 * 2**20
_MOST_SEGMENTS = 256
_SUMMARY = ".summary.json"
_PRUNED = ".pruned.json"
_LOOKS = 3
_T = TypeVar("_T")
Record = dict[str, Any]


class _Pruned(Struct):
    """What all segments up to `through` held, which are gone."""

    through: str
    summary: Summary
    known: PrunedRecords = field(default_factory=PrunedRecords)


class Ledger:
    """Append records to, or read them from, the ledger in `folder`.

    A batch is recorded at most once over the life of the checkpoint, however often the query restarts. Whatever is
    damaged is skipped and counted.

    Parameters
    ----------
    folder
        Where it lies. Where none does yet, it is empty.
    run
        Name of the file to write; without one the ledger is only read.
    entrance
        Drop points at which rows are counted for the totals; all of them where not given.
    segment_bytes
        From this size on a file is closed and the next one opened.
    keep_bytes
        What the files of one writer may take together; beyond it the oldest go and only their totals stay.

    Examples
    --------
    >>> import tempfile
    >>> from jettison.core.stats import PointStats, Stats
    >>> ledger = Ledger(Folder(tempfile.mkdtemp()), run="a")
    >>> batch = Stats(0, 1e9, 1.0, {"rides": PointStats(10, 4)}, plan_version=1)
    >>> ledger.batch(batch, latency_s=1.2), ledger.batch(batch, latency_s=1.2)
    (True, False)
    >>> ledger.totals()
    Totals(batches=1, seen=10, kept=4, estimated=0)
    """

    def __init__(
        self,
        folder: Folder | str | Path,
        *,
        run: str = "",
        entrance: Sequence[str] = (),
        segment_bytes: int = SEGMENT_BYTES,
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        self._folder = folder if isinstance(folder, Folder) else Folder(folder)
        self._run, self._part, self._written = run, 1, 0
        self._entrance = tuple(entrance)
        self._segment_bytes, self._keep_bytes = segment_bytes, keep_bytes
        self._lock = threading.RLock()
        self._torn = False
        self.damaged = 0
        # Only a writer needs to know what is on record; a reader should not read everything twice.
        self._read_before: dict[str, tuple[dict[str, int], Summary]] = {}
        self._standing = Standing(self._folder, self._writer())
        self._known = self._closed_books() if run else Summary()
        self._segment = Summary()

    @classmethod
    def open(cls, folder: Folder, *, writer: str = "run", **settings: Any) -> Ledger:
        """Open the ledger in `folder` for writing, in a new file after those of earlier runs.

        Each `writer` has files of its own, so that two can write at the same time.
        """
        numbered = re.compile(rf"{re.escape(writer)}-(\d+)")
        runs = [int(match[1]) for name in folder.names() if (match := numbered.match(name))]
        return cls(folder, run=f"{writer}-{max(runs, default=0) + 1:06d}", **settings)

    @staticmethod
    def schema() -> dict[str, Any]:
        """The JSON schema of the ledger's lines, of all kinds whose modules were imported."""
        return ledger_record.schema()

    def start(self, at_s: float, **facts: Any) -> None:
        """Record that a run of the query began."""
        self._append("start", at_s, schema=SCHEMA_VERSION, **facts)

    def plan(self, at_s: float, plan: DropPlan, decision: BudgetFigures | None = None) -> None:
        """Record a plan before it is used, with its cause in words and in figures."""
        record = plan.on_record()
        self._append("plan", at_s, **record | {"cause": redacted(record["cause"]), "decision": decision})

    def batch(
        self,
        stats: Stats,
        *,
        latency_s: float | None,
        lag: tuple[int, float] | None = None,
        taken: Taken | None = None,
        answers: Mapping[str, AnswerBounds] | None = None,
    ) -> bool:
        """Record one micro-batch, with how far its source was ahead then; return whether it was new to the ledger."""
        entrance = self._entrance if set(self._entrance) < set(stats.points) else ()
        known: Record = {"entrance": entrance or None, "taken": taken, "answers": answers or None}
        known |= {"waiting_rows": stats.waiting_rows, "lag_rows": lag and lag[0], "lag_s": lag and lag[1]}
        return self._append_once(
            "batch",
            stats.committed_s,
            batch_id=stats.batch_id,
            plan_version=stats.plan_version,
            started_s=stats.started_s,
            duration_s=stats.duration_s,
            latency_s=latency_s,
            points={name: _counts(p.seen, p.kept, exact=p.exact) for name, p in stats.points.items()},
            **{name: fact for name, fact in known.items() if fact is not None},
        )

    def counted(self, kind: str, at_s: float, batch_id: int, name: str, seen: int, kept: int, **facts: Any) -> bool:
        """Record what a companion of a kind of its own did in one micro-batch; return whether it was new."""
        return self._append_once(kind, at_s, batch_id=batch_id, points={name: _counts(seen, kept)}, **facts)

    def found(self, at_s: float, record: Mapping[str, Any]) -> None:
        """Record what a policy has found out; `record` names its kind under that key."""
        self._append(record["record"], at_s, **record)

    def fault(self, at_s: float, kind: str, detail: str) -> None:
        """Record that something failed and every row was kept, or that a count is missing."""
        self._append("fault", at_s, kind=kind, detail=redacted(detail))

    def order(self, at_s: float, text: str, latency_bound_s: float, orders: Mapping[str, Any], **facts: Any) -> None:
        """Record what a person has set while the query runs, or what it has refused, and all that stands now."""
        self._append("order", at_s, text=redacted(text), latency_bound_s=latency_bound_s, orders=orders, **facts)

    def stop(self, at_s: float, *, error: str | None = None, **facts: Any) -> None:
        """Record that a run of the query ended."""
        self._append("stop", at_s, **facts, error=None if error is None else redacted(error))

    def records(self, kind: str | None = None) -> Iterator[Record]:
        """All records that are still there in the order of writing, or those of one kind."""
        for name in self._folder.names():
            yield from (record for record in self._in_file(name) if kind is None or record["record"] == kind)

    def pruned(self) -> list[PrunedRecords]:
        """What is known of records that are not there any more, by writer."""
        writers = [name.removesuffix(_PRUNED) for name in self._folder.names() if name.endswith(_PRUNED)]
        return [self._pruned(writer).known for writer in writers]

    def last(self, *kinds: str) -> Record | None:
        """The record of one of these kinds that was written last, if there is one; older files are not read for it.

        Starts, orders and plans outlive their files.
        """
        for name in reversed(self._folder.names()):
            if found := [record for record in self._in_file(name) if record["record"] in kinds]:
                return found[-1]
        return next((record for record in reversed(standing(self._folder)) if record["record"] in kinds), None)

    def _in_file(self, name: str) -> list[Record]:
        return [line.document for line in lines(self._folder.read(name) or b"")[0]] if name.endswith(".jsonl") else []

    def decisions(self) -> list[tuple[Record, list[Record]]]:
        """Each plan on record and the batches that ran under it: what was decided and expected, and what was counted."""
        plans: dict[int, tuple[Record, list[Record]]] = {one["version"]: (one, []) for one in self.records("plan")}
        for batch in self.records("batch"):
            if batch["plan_version"] in plans:
                plans[batch["plan_version"]][1].append(batch)
        return list(plans.values())

    def latest_plans(self) -> dict[int, Plan]:
        """The last plans on record, by version."""
        with self._lock:
            known = self._everything() if not self._run else self._all_known()
        return {plan.version: plan for plan in known.plans}

    def totals(self, kind: str = "batch") -> Totals:
        """Rows seen and kept over all batches ever recorded: by the guards, or by companions of a kind."""
        return self._everything().totals.get(kind, NOTHING)

    def totals_by_point(self, kind: str = "batch") -> dict[str, Totals]:
        """The same for each drop point, or each companion of a kind."""
        return self._everything().points.get(kind, {})

    def gaps(self) -> list[int]:
        """Batches that ran but are not on record, because the driver died between their commit and their record.

        The first 10,000 of them, should a damaged number make more.
        """
        recorded = self._everything().on_record.get("batch")
        return [] if recorded is None else recorded.missing(0)

    def _append_once(self, kind: str, at_s: float, /, **facts: Any) -> bool:
        line, record = _line(kind, at_s, facts)
        assert isinstance(record, CountedRecord)
        with self._lock:
            if self._known.has(kind, record) or self._segment.has(kind, record):
                return False
            self._write(kind, line, record)
        return True

    def _append(self, kind: str, at_s: float, /, **facts: Any) -> None:
        self._write(kind, *_line(kind, at_s, facts))

    def _write(self, kind: str, line: str, record: LedgerRecord) -> None:
        with self._lock:
            if self._written >= self._segment_bytes:
                self._written = 0  # where this fails, it is tried again once the file has grown as much again
                with suppress(OSError):
                    self._next_segment()
            # A write that failed may have left part of a line behind; the next record must not be joined to it.
            start = "\n" if self._torn else ""
            self._torn = True
            self._folder.append(f"{self._segment_name()}.jsonl", (start + line).encode())
            self._torn = False
            self._written += len(line)
            self._segment.take(kind, record)
            self._standing.take(kind, line)

    def _segment_name(self) -> str:
        return self._run if self._part == 1 else f"{self._run}.{self._part:04d}"

    def _next_segment(self) -> None:
        self._standing.save()  # first, because nobody reads again what is closed, and only that may go
        self._close(self._segment_name(), self._segment)
        self._known.add(self._segment)
        self._segment = Summary()
        self._part += 1
        self._prune()

    def _close(self, segment: str, summary: Summary) -> None:
        sizes = self._folder.sizes()
        covered = size(sizes, segments_of(sizes).get(segment, []))
        self._folder.replace(segment + _SUMMARY, documents.encode(Closed(covered, summary)).encode())

    def _all_known(self) -> Summary:
        known = Summary()
        known.add(self._known)
        known.add(self._segment)
        return known

    def _closed_books(self) -> Summary:
        """What this writer's earlier runs have on record; those that left no summary are read, this once."""
        sizes = self._folder.sizes()
        pruned = self._pruned(self._writer())
        through, total = pruned.through, pruned.summary
        segments = segments_of(sizes, self._writer())
        self._remove({segment for segment in segments if segment <= through}, segments)  # left behind by a crash
        known = {one: self._summary(one, sizes, files) for one, files in segments.items() if one > through}
        closed = max((one for one, summary in known.items() if summary is not None), default="")
        for segment in sorted(known):
            summary = known[segment]
            if summary is None:
                summary = Summary()
                said = [_take(summary, self._folder.read(name) or b"") for name in segments[segment]]
                self.damaged += summary.damaged
                if segment > closed:  # what stood before that is known
                    self._standing.catch_up(chain.from_iterable(said))
                    self._standing.save()
                self._close(segment, summary)
            total.add(summary)
        self._prune()
        return total

    def _everything(self) -> Summary:
        """What all writers have on record, past and present. Begun again should a file vanish meanwhile."""
        for _ in range(_LOOKS):
            total, sizes = Summary(), self._folder.sizes()
            through = {}
            for writer in {name.removesuffix(_PRUNED) for name in sizes if name.endswith(_PRUNED)}:
                pruned = self._pruned(writer)
                through[writer] = pruned.through
                total.add(pruned.summary)
            for segment, files in segments_of(sizes).items():
                if segment > through.get(writer_of(segment), ""):
                    total.add(self._so_far(segment, sizes, files))
            if sizes.keys() <= self._folder.sizes().keys():
                break
        return total

    def _so_far(self, segment: str, sizes: Mapping[str, int], files: Sequence[str]) -> Summary:
        """What a segment comes to by now. Looked at again, only what was added since is read."""
        known, summary = self._read_before.setdefault(segment, ({}, Summary()))
        if any(known.get(name, 0) > sizes[name] for name in files):  # another file of that name
            known, summary = self._read_before[segment] = {}, Summary()
        if not known and (closed := self._summary(segment, sizes, files)) is not None:
            self._read_before[segment] = {name: sizes[name] for name in files}, closed
            return closed
        for name in files:
            if sizes[name] > (start := known.get(name, 0)):
                content = self._folder.read(name, start) or b""
                known[name] = start + content.rfind(b"\n") + 1
                _take(summary, content)
        return summary

    def _summary(self, segment: str, sizes: Mapping[str, int], files: Sequence[str]) -> Summary | None:
        """The summary of a segment, if there is one that covers all of it: an old writer may not have ended."""
        if segment + _SUMMARY not in sizes:
            return None
        closed = _restored(self._folder.read(segment + _SUMMARY), Closed)
        return closed.summary if closed and closed.bytes == size(sizes, files) else None

    def _prune(self) -> None:
        """Let the oldest closed files go while there are too many: first their totals are taken over."""
        sizes = self._folder.sizes()
        segments = segments_of(sizes, self._writer())
        taken, gone = size(sizes, [name for files in segments.values() for name in files]), set[str]()
        pruned = self._pruned(self._writer())
        for segment in sorted(segments):
            if taken <= self._keep_bytes and len(segments) - len(gone) <= _MOST_SEGMENTS:
                break
            summary = self._summary(segment, sizes, segments[segment])
            if summary is None:  # still being written
                break
            if segment > pruned.through:
                pruned.summary.add(summary)
                pruned.known.take(record for name in segments[segment] for record in self._in_file(name))
            taken -= size(sizes, segments[segment])
            gone.add(segment)
        if gone:
            # Named in the file, so that those which a crash leaves behind are not counted twice.
            pruned.through = max(pruned.through, *gone)
            self._folder.replace(self._writer() + _PRUNED, documents.encode(pruned).encode())
            self._remove(gone, segments)

    def _pruned(self, writer: str) -> _Pruned:
        return _restored(self._folder.read(writer + _PRUNED), _Pruned) or _Pruned("", Summary())

    def _remove(self, gone: set[str], segments: Mapping[str, Sequence[str]]) -> None:
        for segment in gone:
            for name in segments[segment]:
                self._folder.delete(name)
            self._folder.delete(segment + _SUMMARY)

    def _writer(self) -> str:
        return writer_of(self._run)


def _take(summary: Summary, content: bytes) -> list[Record]:
    found, damaged = lines(content)
    for line in found:
        summary.take(line.document["record"], line.record)
    summary.damaged += damaged
    return [line.document for line in found]


def _restored(content: bytes | None, expected: type[_T]) -> _T | None:
    """What a file says; nothing where there is no such file, or a damaged one."""
    try:
        return None if content is None else documents.decode(content, expected)
    except ValueError:
        return None


def _line(kind: str, at_s: float, facts: Record) -> tuple[str, LedgerRecord]:
    """A record as text and as its type has it; raises `ValueError` where it would not be read back."""
    document: Record = documents.plain({"record": kind, "at_s": at_s, **facts})
    return documents.encode(document) + "\n", ledger_record.read(document, ledger_record.known_kinds())


def _counts(seen: int, kept: int, *, exact: bool = True) -> Record:
    return {"seen": seen, "kept": kept, "dropped": seen - kept, "exact": exact}
