"""A snapshot of a guarded query, for people and dashboards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jettison.costs.status import CostStatus


@dataclass(frozen=True, slots=True)
class Status:
    """How a guarded query is doing right now.

    Parameters
    ----------
    mode
        "keeping everything", "shedding" or "dry run".
    keep_fraction
        Share of the rows that the plan in force keeps, by drop point.
    plan_version, cause
        The plan in force, and in words why it is in force.
    latency_s, latency_bound_s
        Worst row latency of the last batch that held rows, and the bound.
    batches, rows_seen, rows_kept
        Totals of this run over the batches on record.
    faults
        How often something failed, by kind; while it did, every row was kept.
    functions
        How the functions under load-aware shedding are doing, by name, with their costliest keys.
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

    @property
    def rows_dropped(self) -> int:
        """Rows that were dropped, over the batches on record."""
        return self.rows_seen - self.rows_kept

    def __str__(self) -> str:
        latency = "no batch yet" if self.latency_s is None else f"{self.latency_s:.2f} s"
        kept = ", ".join(f"{name} {fraction:.3f}" for name, fraction in self.keep_fraction.items())
        functions = "".join(f"; {name}: {status}" for name, status in self.functions.items())
        return (
            f"{self.mode} (keep fraction: {kept}), latency {latency} of {self.latency_bound_s:g} s, "
            f"{self.rows_kept:,} of {self.rows_seen:,} rows kept, plan {self.plan_version}: {self.cause}{functions}"
        )
