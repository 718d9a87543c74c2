"""The default partitioning: whichever the model expects the most of, for this throttler and this sample."""

from __future__ import annotations

from collections.abc import Iterable

from jettison.errors import InvalidSetting, explain
from jettison.sifter.build import PARTITIONINGS, Built, Partitioning, Sample, build
from jettison.sifter.queries import RangeQueries


def candidates(
    queries: RangeQueries, sample: Sample, *, regions: int, partitioning: Partitioning | str = "auto"
) -> tuple[Built, ...]:
    """All partitionings that may be chosen from, built once: each of the four for `"auto"`, else the one named."""
    if partitioning != "auto" and partitioning not in PARTITIONINGS:
        known = ", ".join(("auto", *PARTITIONINGS))
        raise InvalidSetting(explain(f"`partitioning` must be one of {known}", repr(partitioning)))
    wanted = PARTITIONINGS if partitioning == "auto" else (one for one in PARTITIONINGS if one == partitioning)
    return tuple(build(queries, sample, partitioning=one, regions=regions) for one in wanted)


def best(built: Iterable[Built], throttler: float, fairness: float) -> Built:
    """The partitioning of which the model expects the highest overall QoS; the first of equals.

    Notes
    -----
    [1]_ finds no partitioning that is best for all workloads, and leaves the choice open. Each is configured anyway in
    microseconds, and the model that configures it also says what to expect, so all four are built and compared.
    """
    return max(built, key=lambda one: one.expected_qos(throttler, fairness))
