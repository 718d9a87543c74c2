"""Which rows of a batch to drop so that all others start in time: the fewest, and the costliest among them."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from jettison.costs.sketch import FloatArray


def drop_costliest_first(
    costs: FloatArray, latest_starts: FloatArray, values: FloatArray | None = None
) -> NDArray[np.bool_]:
    """Rows to keep so that each starts by its latest start, when kept rows run one after the other in the order given.

    No choice keeps more rows when latest starts never fall (rows in order of arrival under one bound) and there are no
    values: each time a row would start too late, the costliest row so far goes, itself included, which is Moore's rule [1]_
    for the start of jobs instead of their end. With falling latest starts every row kept is still in time.

    Parameters
    ----------
    costs
        Estimated cost of each row.
    latest_starts
        How much work may lie before each row, in the same unit. A row with less than none is already too late.
    values
        Utility of each row; what goes is then what costs most per unit of it. `None` for equal values.

    Examples
    --------
    Dropping the costly second row lets all others start within 3:

    >>> drop_costliest_first(np.array([1.0, 9.0, 1.0, 1.0]), np.array([3.0, 3.0, 3.0, 3.0])).tolist()
    [True, False, True, True]

    References
    ----------
    .. [1] Moore, "An n job, one machine sequencing algorithm for minimizing the number of late jobs", 1968.
    """
    kept = latest_starts >= 0.0
    before = np.cumsum(np.where(kept, costs, 0.0)) - np.where(kept, costs, 0.0)
    if (before[kept] <= latest_starts[kept]).all():
        return kept
    weights = costs if values is None else np.divide(costs, values, out=np.full_like(costs, np.inf), where=values > 0)
    return _keep_by_rank(np.flatnonzero(kept), costs, latest_starts, weights)


def tail_drop(costs: FloatArray, latest_starts: FloatArray) -> NDArray[np.bool_]:
    """Rows to keep when each is judged as it comes, by the work before it alone and not by its own cost.

    >>> tail_drop(np.array([1.0, 9.0, 1.0, 1.0]), np.array([3.0, 3.0, 3.0, 3.0])).tolist()
    [True, True, False, False]
    """
    kept, work = [], 0.0
    for cost, latest in zip(costs.tolist(), latest_starts.tolist(), strict=True):
        kept.append(work <= latest)
        work += cost if kept[-1] else 0.0
    return np.array(kept, dtype=bool)


def _keep_by_rank(
    rows: NDArray[np.intp], costs: FloatArray, latest_starts: FloatArray, weights: FloatArray
) -> NDArray[np.bool_]:
    # The heap holds negated ranks instead of weights and rows: comparing integers takes half the time of tuples.
    by_weight = rows[np.argsort(weights[rows], kind="stable")]
    rank = np.empty(len(costs), dtype=np.int64)
    rank[by_weight] = np.arange(len(rows))
    cost_of_rank = costs[by_weight].tolist()
    costliest: list[int] = []
    kept_ranks = [False] * len(rows)
    work = 0.0
    for own, cost, latest in zip(
        (-rank[rows]).tolist(), costs[rows].tolist(), latest_starts[rows].tolist(), strict=True
    ):
        while work > latest and costliest and costliest[0] < own:
            gone = -heappop(costliest)
            kept_ranks[gone] = False
            work -= cost_of_rank[gone]
        if work <= latest:
            heappush(costliest, own)
            kept_ranks[-own] = True
            work += cost
    kept = np.zeros(len(costs), dtype=bool)
    kept[by_weight] = kept_ranks
    return kept
