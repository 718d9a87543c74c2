"""The default partitioning: QDPart, unless the model expects clearly more of another, for this throttler and sample."""

from __future__ import annotations

from collections.abc import Iterable

from jettison.errors import InvalidSetting, explain
from jettison.sifter.build import PARTITIONINGS, Built, Partitioning, Sample, build
from jettison.sifter.queries import RangeQueries

# What another partitioning must promise, in QoS, to be chosen over QDPart.
_PREFERRED, _MARGIN = "qdpart", 0.02


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
    """The partitioning of which the model expects the highest overall QoS; QDPart if none is expected to be clearly better.

    Notes
    -----
    [1]_ finds no partitioning that is best for all workloads, and leaves the choice open. Each is configured anyway in
    microseconds, and the model that configures it also says what to expect, so all four are built and compared. But the
    model is optimistic: it judges regions by the rows that they were cut from. Equi-depth cuts follow the clumps of a
    sample most closely and so profit most, some points of QoS where there is nothing to gain at all; hence the margin.
    """
    expected = [(one.expected_qos(throttler, fairness), one) for one in built]
    most, chosen = max(expected, key=lambda known: known[0])
    for qos, one in expected:
        if one.partitioning == _PREFERRED and most - qos <= _MARGIN:
            return one
    return chosen
