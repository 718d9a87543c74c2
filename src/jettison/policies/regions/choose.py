"""The default partitioning: QDPart, unless another promises more QoS for this throttler and sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from jettison.policies.regions.build import PARTITIONINGS, Built, Partitioning, Sample, build
from jettison.policies.regions.consolidate import shared_by_volume
from jettison.policies.regions.queries import RangeQueries
from jettison.source.partition import Ints
from jettison.source.space import Floats

# The one that is best most often, and the standard errors by which another must lead to be chosen.
_PREFERRED: Partitioning = "qdpart"
_STANDARD_ERRORS = 2.5
# With fewer rows for each region their spread says nothing.
_ROWS_PER_REGION = 2
# A query judges only if it gets rows from a stream this many times as long as the sample.
_HORIZON = 100.0
# The last rows to pass, as a share of all rows: what they earn is the price of a row.
_LAST_ROWS = 0.01


@dataclass(frozen=True, slots=True)
class Candidate:
    """A partitioning as it was built, and what it is judged by.

    Parameters
    ----------
    built
        The regions, with the model that configures them.
    region_of
        The region of each row of the sample.
    unseen
        QoS at stake in rows that were not sampled, for each query; the same for all candidates.
    at_stake
        QoS that is lost when a region is dropped, by region, as the judge sees it; the last entry is that of rows
        outside the domain, which pass.
    """

    built: Built
    region_of: Ints
    unseen: Floats
    at_stake: Floats

    @classmethod
    def of(cls, built: Built, sample: Sample, unseen: Floats) -> Candidate:
        """What is at stake in sampled rows falls to their regions; what is not, to wherever the query lies."""
        region_of = built.partition.region_of(sample.codes)
        sampled = np.bincount(region_of, weights=sample.at_stake, minlength=built.partition.regions + 1)
        at_stake = sampled + np.append(shared_by_volume(built.queries, built.partition, unseen), 0.0)
        return cls(built, region_of, unseen, at_stake)

    def rebuilt(self, sample: Sample, regions: int) -> Candidate:
        """The same partitioning with another number of regions, judged alike."""
        known = self.built
        built = build(known.queries, sample, partitioning=known.partitioning, regions=regions)
        return Candidate.of(built, sample, self.unseen)

    def qos_by_row(self, throttler: float, fairness: float) -> Floats:
        """What each row says of the overall QoS: the mean is what the judge expects, the spread gives its error.

        The error is that of the rows counted. Where more rows pass than were counted, so many others must go, at the
        price of those that were the last to pass.
        """
        made = self.built.configured(throttler, fairness)
        fewer = self.built.configured(max(throttler - _LAST_ROWS, 0.0), fairness)
        passes, passes_then = (1.0 - np.append(one.drop, 0.0) for one in (made, fewer))
        last_rows = made.pass_rate - fewer.pass_rate
        price = float(self.at_stake @ (passes - passes_then)) / last_rows if last_rows > 0.0 else 0.0
        expected = float(self.built.queries.weights.sum() - self.at_stake @ (1.0 - passes))
        by_row: Floats = expected - price * (passes[self.region_of] - made.pass_rate)
        return by_row


def candidates(
    queries: RangeQueries, sample: Sample, *, regions: int, partitioning: Partitioning | str = "auto"
) -> tuple[Candidate, ...]:
    """All partitionings that may be chosen from, built once: each of the four for `"auto"`, else the one named."""
    wanted = PARTITIONINGS if partitioning == "auto" else (cast(Partitioning, partitioning),)
    built = [build(queries, sample, partitioning=one, regions=regions) for one in wanted]
    # The lowest density that any of them finds: the others may lack a cut between the query and the rows around it.
    lowest = np.min([one.statistics.wanted for one in built], axis=0)
    unseen = sample.unseen * -np.expm1(-_HORIZON * len(sample.codes) * lowest)
    return tuple(Candidate.of(one, sample, unseen) for one in built)


def best(known: Sequence[Candidate], throttler: float, fairness: float) -> Candidate:
    """QDPart, unless the judge expects more QoS of another partitioning than chance explains.

    Notes
    -----
    [1]_ finds no partitioning that is best for all workloads, and leaves the choice open. Each is configured anyway in
    microseconds, so all four are built and compared: not by the models that configure them, which take rows to be
    spread evenly within a region and so each favour their own cuts, but all by the same judge. To it a query's rows lie
    where sampled rows of that query lie, and one more anywhere in the query. Queries that hardly any row is expected
    for are complete whatever is dropped.

    What remains is chance: the sample's frequencies of regions. Every row of the sample judges all partitionings, so
    the differences, row by row, give the standard error of a lead. `docs/papers/sifter.md` says how the number of
    standard errors was settled.
    """
    preferred = next((one for one in known if one.built.partitioning == _PREFERRED), known[0])
    most_regions = max(one.built.partition.regions for one in known)
    if len(known) == 1 or len(preferred.region_of) < _ROWS_PER_REGION * most_regions:
        return preferred
    standard = preferred.qos_by_row(throttler, fairness)
    leads = [_sure_lead(one.qos_by_row(throttler, fairness) - standard) for one in known]
    return known[leads.index(max(leads))] if max(leads) > 0.0 else preferred


def _sure_lead(by_row: Floats) -> float:
    """The mean of a lead, less what may be chance."""
    return float(by_row.mean()) - _STANDARD_ERRORS * float(by_row.std(ddof=1)) / math.sqrt(len(by_row))
