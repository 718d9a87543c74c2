"""One run of a query from a cold process, as a value: what arrives, what the query does, and whether it is guarded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from jettison.demo.schedule import Phase

Source = Literal["kafka", "files"]
Work = Literal["fares", "digest", "function", "slow-sink"]


@dataclass(frozen=True, slots=True)
class Case:
    """What one process is to run.

    Parameters
    ----------
    name
        As results call it; the Kafka topic has this name, too.
    source
        Where the rides come from: a Kafka topic or a folder of files.
    work
        What the query does with them: `harm_query` has each.
    phases
        How long rides arrive at which rate.
    bound_s
        Latency bound of the guard; `None` for the plain query.
    arrival_behind_s
        How far the arrival column is behind the clock.
    wild_one_in
        One row in so many claims to have arrived in 1970; 0 for none.
    rows_per_batch
        About how many rows the source gives to a batch at most; 0 for no such cap.
    least_batches
        The query goes on until so many have ended, even where no more rides arrive.
    """

    name: str
    source: Source
    work: Work
    phases: tuple[Phase, ...]
    bound_s: float | None = None
    arrival_behind_s: float = 0.0
    wild_one_in: int = 0
    rows_per_batch: int = 0
    least_batches: int = 0

    @property
    def duration_s(self) -> float:
        """How long rides arrive."""
        return sum(phase.duration_s for phase in self.phases)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, from which `from_dict` restores the case in another process."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Case:
        """Restore what `to_dict` gave, also after a passage through JSON."""
        return cls(**{**values, "phases": tuple(Phase(**phase) for phase in values["phases"])})
