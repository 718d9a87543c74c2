"""The default partitioning: QDPart, unless another is clearly worth more on held-out rows, for this throttler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jettison.errors import InvalidSetting, explain
from jettison.sifter.build import PARTITIONINGS, Built, Partitioning, Sample, build
from jettison.sifter.held_out import HeldOut
from jettison.sifter.queries import RangeQueries

# The one that is best most often, and how sure it must be that another is better.
_PREFERRED: Partitioning = "qdpart"
_STANDARD_ERRORS = 3.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A partitioning as it was built from the whole sample, and what it is judged by; nothing where it stands alone."""

    built: Built
    held_out: HeldOut | None = None


def candidates(
    queries: RangeQueries, sample: Sample, *, regions: int, partitioning: Partitioning | str = "auto"
) -> tuple[Candidate, ...]:
    """All partitionings that may be chosen from, built once: each of the four for `"auto"`, else the one named."""
    if partitioning == "auto":
        return tuple(candidate(queries, sample, partitioning=one, regions=regions) for one in PARTITIONINGS)
    for one in PARTITIONINGS:
        if one == partitioning:
            return (Candidate(build(queries, sample, partitioning=one, regions=regions)),)
    known = ", ".join(("auto", *PARTITIONINGS))
    raise InvalidSetting(
        explain(f"`partitioning` must be one of {known}", repr(partitioning), hint='"auto" compares them')
    )


def candidate(queries: RangeQueries, sample: Sample, *, partitioning: Partitioning, regions: int) -> Candidate:
    """One partitioning, with what it is judged by."""
    return Candidate(
        build(queries, sample, partitioning=partitioning, regions=regions),
        HeldOut.of(queries, sample, partitioning=partitioning, regions=regions),
    )


def best(known: Sequence[Candidate], throttler: float, fairness: float) -> Candidate:
    """QDPart, unless another partitioning has a higher overall QoS on held-out rows by more than chance explains.

    Notes
    -----
    [1]_ finds no partitioning that is best for all workloads, and leaves the choice open. The model that configures
    thresholds also says what to expect of them, but it is optimistic: it judges regions by the rows that they were
    cut from, and equi-depth cuts, which follow the clumps of a sample most closely, profit most. So each is made
    again from one half of the sample and judged by the other. Every row judges all of them, so the differences, row by
    row, give the standard error of a lead. Three of it are asked for: there are three rivals, compared anew for every
    throttler, and where data and queries are alike any lead is chance.
    """
    if len(known) == 1:
        return known[0]
    judged = [one.held_out.qos_by_row(throttler, fairness) for one in known if one.held_out is not None]
    assert len(judged) == len(known)
    preferred = next((place for place, one in enumerate(known) if one.built.partitioning == _PREFERRED), 0)
    # With less than one row for each region in either half the spread of the rows says nothing.
    if len(judged[0]) < 2 * max(one.built.partition.regions for one in known):
        return known[preferred]
    leader = max(range(len(known)), key=lambda place: float(judged[place].mean()))
    lead = judged[leader] - judged[preferred]
    error = float(lead.std(ddof=1)) / math.sqrt(len(lead))
    return known[leader] if float(lead.mean()) > _STANDARD_ERRORS * error else known[preferred]
