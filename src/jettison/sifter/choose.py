"""The default partitioning: QDPart, unless another is clearly worth more, for this throttler and sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jettison.errors import InvalidSetting, explain
from jettison.sifter.build import PARTITIONINGS, Built, Partitioning, Sample, build
from jettison.sifter.partition import Ints
from jettison.sifter.queries import RangeQueries
from jettison.sifter.space import Floats

# The one that is best most often, and the standard errors by which another must lead to be chosen.
_PREFERRED: Partitioning = "qdpart"
_STANDARD_ERRORS = 4.0
# With fewer rows for each region their spread says nothing.
_ROWS_PER_REGION = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A partitioning as it was built, and the region of each row of its sample."""

    built: Built
    region_of: Ints

    def qos_by_row(self, throttler: float, fairness: float) -> Floats:
        """What each row says of the overall QoS: the mean is what the model expects, the spread gives its error.

        The error is that of the rows counted. Where more rows pass than were counted, so many others must go, at the
        average price of a row: what all regions earn together, over all their rows.
        """
        known = self.built.statistics
        made = self.built.configured(throttler, fairness)
        passes = 1.0 - np.append(made.drop, 0.0)[self.region_of]
        rows = float(known.frequency.sum())
        price = float(known.qos.sum()) / rows if rows > 0.0 else 0.0
        by_row: Floats = known.overall(made.drop) - price * (passes - made.pass_rate)
        return by_row


def candidates(
    queries: RangeQueries, sample: Sample, *, regions: int, partitioning: Partitioning | str = "auto"
) -> tuple[Candidate, ...]:
    """All partitionings that may be chosen from, built once: each of the four for `"auto"`, else the one named."""
    wanted = [one for one in PARTITIONINGS if partitioning in ("auto", one)]
    if not wanted:
        known = ", ".join(("auto", *PARTITIONINGS))
        raise InvalidSetting(
            explain(f"`partitioning` must be one of {known}", repr(partitioning), hint='"auto" compares them')
        )
    return tuple(candidate(queries, sample, partitioning=one, regions=regions) for one in wanted)


def candidate(queries: RangeQueries, sample: Sample, *, partitioning: Partitioning, regions: int) -> Candidate:
    """One partitioning, with what it is judged by."""
    built = build(queries, sample, partitioning=partitioning, regions=regions)
    return Candidate(built, built.partition.region_of(sample.codes))


def best(known: Sequence[Candidate], throttler: float, fairness: float) -> Candidate:
    """QDPart, unless the model expects so much more QoS of another partitioning that chance does not explain it.

    Notes
    -----
    [1]_ finds no partitioning that is best for all workloads, and leaves the choice open. Each is configured anyway in
    microseconds, and the model that configures it also says what to expect, so all four are built and compared. Every
    row of the sample judges all of them, so the differences, row by row, give the standard error of a lead; it falls
    with the size of the sample. A lead must be several times as large: there are three rivals, compared anew for every
    throttler, and the model, which takes rows to be spread evenly within a region, favours equi-depth cuts a little
    even where nothing is to be gained. `docs/papers/sifter.md` says how the number was settled.
    """
    preferred = next((place for place, one in enumerate(known) if one.built.partitioning == _PREFERRED), 0)
    most_regions = max(one.built.partition.regions for one in known)
    if len(known) == 1 or len(known[0].region_of) < _ROWS_PER_REGION * most_regions:
        return known[preferred]
    judged = [one.qos_by_row(throttler, fairness) for one in known]
    leader = max(range(len(known)), key=lambda place: float(judged[place].mean()))
    lead = judged[leader] - judged[preferred]
    error = float(lead.std(ddof=1)) / math.sqrt(len(lead))
    return known[leader] if float(lead.mean()) > _STANDARD_ERRORS * error else known[preferred]
