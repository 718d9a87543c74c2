"""A snapshot of a guarded query, for people and dashboards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jettison.core.answer_bounds import AnswerBounds
from jettison.core.redact import redacted

_TRACEBACK = "Traceback (most recent call last):"


def reason(error: str) -> str:
    r"""The line of an error's text that names what went wrong, not the way to it.

    >>> reason("query 7: Traceback (most recent call last):\n  File 'a.py', line 3, in f\nValueError: no zone 7\n")
    'ValueError: no zone 7'
    >>> reason("job aborted\n\tat a.B.c(B.scala:3)\nCaused by: java.io.IOException: disk full\n\tat d.E.f(E.scala:9)")
    'java.io.IOException: disk full'
    """
    _, traced, last = error.rpartition(_TRACEBACK)
    lines = [line for line in last.splitlines() if line.strip()]
    if traced:  # frames are indented, and the exception follows them
        lines = [line for line in lines if not line[0].isspace()] or lines
        return lines[0].strip() if lines else "?"
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return (causes[-1].removeprefix("Caused by: ") if causes else next(iter(lines), "?")).strip()


@dataclass(frozen=True, slots=True)
class Status:
    """How a guarded query is doing right now.

    Parameters
    ----------
    mode
        "keeping everything", "shedding", "thinning late rows" (and no others), "not shedding", "dry run", or "ended".
    keep_fraction
        Share of the unprotected rows that the plan in force keeps, by drop point; never the share dropped.
    plan_version, cause
        The newest plan, and in words why it stands.
    latency_s, latency_bound_s
        Worst row latency of the last batch that held rows, and the bound.
    batches, rows_seen, rows_kept
        Totals of this run over the batches on record. Where drop points follow one another, rows count once, at the
        entrance.
    faults
        How often something failed in this run, by kind.
    not_shedding
        What has failed, in words, so that every row is kept now whatever the plan says; empty where nothing has.
    companions
        How others that drop rows in the query are doing, by name; see `Companion`.
    late_keep_fraction
        The same share for rows that are late already, by drop point, where it is another.
    rows_by_point
        Rows seen and kept by drop point.
    estimated_batches
        In how many batches counts are estimates.
    error
        What ended the query, if an error did; without secrets.
    running_batch
        What the batch that runs keeps, in words, where it runs under an older plan than the newest.
    lag_rows, lag_s
        Rows that have come and are in no batch that has ended, those of the batch that runs among them, and how long the
        oldest of them has waited; `None` where the source is not asked.
    orders
        What a person has set while the query runs, in words; see `jettison set`.
    bounds
        How wide the bounds of the answers are by name, or would be if a dry run were none, where they are watched
        (`Shedder.watch`).
    """

    mode: str
    keep_fraction: Mapping[str, float]
    plan_version: int
    cause: str
    latency_s: float | None
    latency_bound_s: float
    batches: int
    rows_seen: int
    rows_kept: int
    faults: Mapping[str, int]
    not_shedding: str = ""
    companions: Mapping[str, object] = field(default_factory=dict)
    late_keep_fraction: Mapping[str, float] = field(default_factory=dict)
    rows_by_point: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    estimated_batches: int = 0
    error: str | None = None
    running_batch: str = ""
    lag_rows: int | None = None
    lag_s: float | None = None
    orders: tuple[str, ...] = ()
    bounds: Mapping[str, AnswerBounds] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", None if self.error is None else redacted(self.error))

    @property
    def rows_dropped(self) -> int:
        return self.rows_seen - self.rows_kept

    def __str__(self) -> str:
        latency = "no batch yet" if self.latency_s is None else f"{self.latency_s:.2f} s"
        failed = ", ".join(f"{kind} {times:,}" for kind, times in self.faults.items())
        after = "".join(f"; {one.words(name)}" for name, one in self.bounds.items())
        after += f"; faults: {failed}" * bool(failed)
        after += "".join(f"; {name}: {status}" for name, status in self.companions.items())
        about = "about " if self.estimated_batches else ""
        rows = f"{about}{self.rows_kept:,} of {self.rows_seen:,} rows kept"
        if self.estimated_batches:
            rows += f" (counts of {self.estimated_batches} of {self.batches} batches are estimates)"
        if self.mode == "ended":
            why = "" if self.error is None else f" by an error ({reason(self.error)})"
            last = f"last latency {latency} of {self.latency_bound_s:g} s, last plan {self.plan_version}: {self.cause}"
            return f"ended{why}, {rows} in {self.batches} batches, {last}{after}"
        head = f"{self.mode}: {self.not_shedding}" if self.not_shedding else self.mode
        running = f" {self.running_batch}" if self.running_batch and self.mode != "dry run" else ""
        lag = "" if self.lag_rows is None else f", {self.lag_rows:,} rows ({self.lag_s or 0.0:.1f} s) behind the source"
        set_by_hand = f"; in force until cleared: {', '.join(self.orders)}" if self.orders else ""
        return (
            f"{head} (keep fraction: {self._shares()}){running}, latency {latency} of {self.latency_bound_s:g} s{lag}, "
            f"{rows}, plan {self.plan_version}: {self.cause}{set_by_hand}{after}"
        )

    def _shares(self) -> str:
        late = {name: f" (late rows {share:.3f})" for name, share in self.late_keep_fraction.items()}
        return ", ".join(f"{name} {share:.3f}{late.get(name, '')}" for name, share in self.keep_fraction.items())
