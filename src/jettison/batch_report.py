"""What a backend reports of a micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jettison.concept.book import KeptGroups
from jettison.stats import EventTimes


class Counted(NamedTuple):
    """Rows seen and kept at a drop point in one batch, and whether it is certain that they are."""

    seen: int
    kept: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class BatchReport:
    """One finished micro-batch, as soon as it is known: some counts may still be missing.

    `seen` and `kept` hold the drop points whose counts came with the report; the others are expected from the
    query's `input_rows` until the exact counts arrive. `sampled` holds rows themselves, where the policy asked for some,
    and `groups` the largest groups among the rows kept. `nothing_new` says that the sources offered no row, and `any_runs`
    that the sink may have run the batch's plan more or less than once, so that no count is certain by itself.
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
    sampled: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    groups: Mapping[str, KeptGroups] = field(default_factory=dict)
    nothing_new: bool = False
    any_runs: bool = False
