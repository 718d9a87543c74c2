"""A snapshot of a guarded query, for people and dashboards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jettison.costs.status import CostStatus
from jettison.redact import redacted


@dataclass(frozen=True, slots=True)
class Status:
    """How a guarded query is doing right now.

    Parameters
    ----------
    mode
        "keeping everything", "shedding", "thinning late rows" (and no others), "dry run", or "ended".
    keep_fraction
        Share of the rows that the plan in force keeps, by drop point.
    plan_version, cause
        The plan in force, and in words why it is in force.
    latency_s, latency_bound_s
        Worst row latency of the last batch that held rows, and the bound.
    batches, rows_seen, rows_kept
        Totals of this run over the batches on record. Where drop points follow one another, rows count once, at the
        entrance.
    faults
        How often something failed, by kind; while it did, every row was kept.
    functions
        How the functions under load-aware shedding are doing, by name, with their costliest keys.
    late_keep_fraction
        The same share for rows that are late already, by drop point, where it is another.
    rows_by_point
        Rows seen and kept by drop point.
    estimated_batches
        In how many batches counts are estimates.
    error
        What ended the query, if an error did; without secrets.
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
    functions: Mapping[str, CostStatus] = field(default_factory=dict)
    late_keep_fraction: Mapping[str, float] = field(default_factory=dict)
    rows_by_point: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    estimated_batches: int = 0
    error: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", None if self.error is None else redacted(self.error))

    @property
    def rows_dropped(self) -> int:
        """Rows that were dropped, over the batches on record."""
        return self.rows_seen - self.rows_kept

    def __str__(self) -> str:
        latency = "no batch yet" if self.latency_s is None else f"{self.latency_s:.2f} s"
        functions = "".join(f"; {name}: {status}" for name, status in self.functions.items())
        about = "about " if self.estimated_batches else ""
        rows = f"{about}{self.rows_kept:,} of {self.rows_seen:,} rows kept"
        if self.estimated_batches:
            rows += f" (counts of {self.estimated_batches} of {self.batches} batches are estimates)"
        if self.mode == "ended":
            why = "" if self.error is None else f" by an error ({next(iter(self.error.strip().splitlines()), '?')})"
            last = f"last latency {latency} of {self.latency_bound_s:g} s, last plan {self.plan_version}: {self.cause}"
            return f"ended{why}, {rows} in {self.batches} batches, {last}{functions}"
        return (
            f"{self.mode} (keep fraction: {self._shares()}), latency {latency} of {self.latency_bound_s:g} s, "
            f"{rows}, plan {self.plan_version}: {self.cause}{functions}"
        )

    def _shares(self) -> str:
        late = {name: f" (late rows {share:.3f})" for name, share in self.late_keep_fraction.items()}
        return ", ".join(f"{name} {share:.3f}{late.get(name, '')}" for name, share in self.keep_fraction.items())
