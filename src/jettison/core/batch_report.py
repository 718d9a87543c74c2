"""What a backend reports of a micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from jettison.core.answer_bounds import AnswerBounds
from jettison.core.stats import EventTimes, PointStats, Stats
from jettison.core.taken import Taken


class Counted(NamedTuple):
    """Rows seen and kept at a drop point in one batch, and whether it is certain that they are."""

    seen: int
    kept: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class BatchReport:
    """One finished micro-batch, as soon as it is known: some counts may still be missing.

    `seen` and `kept` hold the drop points whose counts came with the report; the others are expected from the
    query's `input_rows` until the exact counts arrive. `observed` holds, by drop point, what its mechanism has observed
    for the policy. `nothing_new` says that the sources offered no row, and `any_runs`
    that the sink may have run the batch's plan more or less than once, so that no count is certain by itself. `taken` says
    how to read the batch's rows again, and `answers` how wide the bounds of those that came out are.
    """

    run_id: str
    batch_id: int
    started_s: float
    duration_s: float
    input_rows: int
    plan_version: int | None
    seen: Mapping[str, int] = field(default_factory=dict)
    kept: Mapping[str, int] = field(default_factory=dict)
    oldest_arrival_s: float | None = None
    newest_arrival_s: float | None = None
    recent_rows_per_s: float | None = None
    event_times: EventTimes | None = None
    work_s: float | None = None
    waiting_rows: int | None = None
    observed: Mapping[str, Any] = field(default_factory=dict)
    nothing_new: bool = False
    any_runs: bool = False
    taken: Taken | None = None
    answers: Mapping[str, AnswerBounds] = field(default_factory=dict)

    def stats(self, points: Mapping[str, PointStats], event_times: EventTimes | None) -> Stats:
        """The batch as policies and the controller know it, with the counts of these drop points."""
        own = {field.name for field in fields(self)}
        alike = {field.name: getattr(self, field.name) for field in fields(Stats) if field.name in own}
        return Stats(**alike | {"points": points, "event_times": event_times})
