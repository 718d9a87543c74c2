"""What the paper proves of the estimate, as formulas that the sketch is tested against."""

from __future__ import annotations

from collections.abc import Sequence


def expected_cell_ratio(costs: Sequence[float], item: int, columns: int) -> float:
    """Expected `W/F` of the cell of `item` when all keys are equally frequent: theorem 4.2.

    Parameters
    ----------
    costs
        Cost of each distinct key.
    item
        Index of the key whose cell is asked for.
    columns
        Cells that a key can fall into, `k` in the paper.

    Examples
    --------
    The paper's numeric application: 4,096 keys with the costs 1 to 64, 64 keys each.

    >>> costs = [1.0 + i % 64 for i in range(4096)]
    >>> round(expected_cell_ratio(costs, 0, 55), 2), round(expected_cell_ratio(costs, 63, 55), 2)
    (32.08, 32.92)

    Notes
    -----
    Departure from the paper: the proof needs fully independent hash values, not the pairwise independence of the family
    that is used. Tests compare the formula with both.
    """
    n, total, own = len(costs), sum(costs), costs[item]
    if n == 1:
        return own
    alone = 1.0 - (1.0 - 1.0 / columns) ** n
    return (total - own) / (n - 1) - columns * (total - n * own) / (n * (n - 1)) * alone


def chance_all_rows_reach(bound: float, mean_ratio: float, rows: int) -> float:
    """Largest probability that every row's ratio is at least `bound`: Markov's inequality to the power of the rows.

    >>> round(chance_all_rows_reach(48.0, 33.0, 10), 4)
    0.0236
    """
    return min(1.0, mean_ratio / bound) ** rows
